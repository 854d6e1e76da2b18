"""Ctrl-C at any moment: exit code 130, and no traceback."""

import signal
import subprocess
import sys

import pytest

from tests.support.paths import ROOT


@pytest.mark.parametrize("module", ["typer", "msgspec", "lbmtune.cli", "rich", "numpy"])
def test_ctrl_c_while_modules_are_loaded(module):
    command = [sys.executable, "-X", "importtime", "-m", "lbmtune", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr
        assert any(line.split()[-1] == module for line in process.stderr), f"{module} was not loaded"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    said = [line for line in errors.splitlines() if not line.startswith("import time:")]
    assert (process.returncode, output, said) == (130, "", [])
