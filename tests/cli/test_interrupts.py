"""Ctrl-C at any moment: exit code 130, and no traceback."""

import importlib
import os
import signal
import subprocess
import sys
import time

import pytest

from lbmtune.cli.signals import like_ctrl_c
from tests.support.paths import ROOT

PRESSED = """
import os, runpy, signal, sys

class Pressed:
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            print("pressed", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGINT)

module, sys.argv[1:] = sys.argv[1], ["list"]
sys.meta_path.insert(0, Pressed())
runpy.run_module("lbmtune", run_name="__main__", alter_sys=True)
"""
"""The program, with Ctrl-C at the moment when it begins to load a module."""


@pytest.mark.parametrize("module", ["typer", "msgspec", "lbmtune.cli", "rich", "numpy"])
def test_ctrl_c_while_modules_are_loaded(module):
    done = subprocess.run(
        [sys.executable, "-c", PRESSED, module], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "pressed\n")


def test_an_interrupted_text_that_was_dealt_with_does_not_end_the_program_by_a_signal(tmp_path):
    """A data class that is being made is such a text."""
    program = """
import lbmtune.cli
from lbmtune.__main__ import main

lbmtune.cli.main = lambda: exec("raise KeyboardInterrupt")
main()
"""
    (tmp_path / "interrupted.py").write_text(program)
    paths = os.pathsep.join(filter(None, (str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH"))))
    ended = subprocess.run([sys.executable, "-m", "interrupted"], env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert ended.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_module_that_is_being_imported_is_finished_first(tmp_path, monkeypatch, number):
    """What is left of an interrupted package cannot be imported again, and the report needs it."""
    (tmp_path / "struck.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "struck", raising=False)
    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt), like_ctrl_c():
            load_and_wait()
    finally:
        signal.signal(number, before)
    assert sys.modules.pop("struck").whole


def load_and_wait():
    importlib.import_module("struck")
    time.sleep(10)
