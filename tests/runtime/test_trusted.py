"""A best.json runs the kernel that this version makes itself, and another text only if the user trusts it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lbmtune
from lbmtune.catalogue.problem.flows import cavity
from lbmtune.errors import InputError
from lbmtune.export import write_best
from lbmtune.records.best_json.document import read_best
from lbmtune.records.best_json.kernel import Kernel, SingleStep, source_digest
from lbmtune.records.store import read_study, write_header
from lbmtune.records.whole_files import HEADER
from lbmtune.runtime import load as loading
from lbmtune.runtime.load import _made_here
from tests.codegen.test_left_over_steps import recorded
from tests.records.best_json.test_export import CPU, cpu_record
from tests.support.paths import RECORDED
from tests.support.studies import made_up_records as made

REFUSED = "is of another version of lbmtune, or was changed: .* say load.*trusted=True"
pytestmark = pytest.mark.filterwarnings("ignore:this kernel was tuned")


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the kernel in a file as one would who knows how its digests are made."""
    values = json.loads(path.read_text())
    kernel = values["kernel"]
    change(kernel)
    for part, kind in ((kernel, Kernel), (kernel["single"], SingleStep)):
        if part:
            part["source_digest"] = source_digest(msgspec.convert(part, kind), kernel["target"])
    path.write_text(json.dumps(values))
    return path


def test_a_hostile_text_runs_only_if_it_is_trusted(tmp_path: Path) -> None:
    mark, path = tmp_path / "ran", tmp_path / "best.json"
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU), path)
    lbmtune.load(path).step()
    touch = f"import pathlib; pathlib.Path({str(mark)!r}).touch()\nimport numpy as np"
    changed(path, lambda kernel: kernel.update(source=kernel["source"].replace("import numpy as np", touch, 1)))
    with pytest.raises(InputError, match=REFUSED):
        lbmtune.load(path)
    assert not mark.exists()
    lbmtune.load(path, trusted=True)
    assert mark.exists()


def test_a_hostile_name_of_a_flow_is_refused_wherever_it_comes_from(tmp_path: Path) -> None:
    """It stands in comments of texts that this version makes itself, and that run without being trusted."""
    mark, path = tmp_path / "ran", tmp_path / "best.json"
    record = cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU)
    write_best(record, path)
    write_header(tmp_path, record.header)
    hostile = f'cavity"""\nimport pathlib\npathlib.Path({str(mark)!r}).touch()\n"""'
    for file in (path, tmp_path / HEADER):
        named = json.dumps(json.loads(file.read_text())).replace('"flow": "cavity"', f'"flow": {json.dumps(hostile)}')
        assert "touch" in named
        file.write_text(named)
    with pytest.raises(InputError, match="is no name"):
        lbmtune.load(path)
    with pytest.raises(InputError, match="is no name"):
        read_study(tmp_path)
    assert not mark.exists()


@pytest.mark.parametrize("end", ["\n", "\r", "\f", "\u2028", "\\\n"])
def test_a_comment_may_change_and_nothing_behind_it_runs(tmp_path: Path, end: str) -> None:
    """Whatever ends a comment for a compiler: the text that this version makes runs, not that of the file."""
    mark, path = tmp_path / "ran", tmp_path / "best.json"
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU), path)
    touch = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    changed(path, lambda kernel: kernel.update(source=f"{kernel['source']}\n# another word\n"))
    lbmtune.load(path).step()
    changed(path, lambda kernel: kernel.update(source=f"{kernel['source']}\n# a word{end}{touch}\n"))
    if end.endswith("\n"):
        with pytest.raises(InputError, match=REFUSED):
            lbmtune.load(path)
    else:
        lbmtune.load(path).step()
    assert not mark.exists()


def test_a_kernel_beyond_the_power_of_its_study_is_loaded_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU), path)
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"limits": {"power_w": 10.0}}))
    with pytest.warns(UserWarning, match=r"the power of the kernel of .*best.json is not known, and the study allows"):
        lbmtune.load(path)


def test_a_speed_that_is_not_reliable_is_loaded_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU), path)
    values = json.loads(path.read_text())
    values["expected"]["doubts"] = ["Other programs ran.", "No finals were held."]
    path.write_text(json.dumps(values))
    said = r"^the speed that .*best.json expects is not reliable: Other programs ran. No finals were held.$"
    with pytest.warns(UserWarning, match=said):
        lbmtune.load(path)


def test_a_kernel_is_loaded_without_a_cache_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "best.json"
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU), path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(UserWarning, match="Not a directory.*compiled kernels and rankings of this run are not kept"):
        flow = lbmtune.load(path)
    flow.step(2)
    assert flow.steps_done == 2


def _launch(**values: object) -> Callable[[dict[str, Any]], object]:
    return lambda kernel: kernel["period"][0][0].update(values)


@pytest.mark.parametrize(
    "change",
    [
        lambda kernel: kernel["options"].append("-include=/etc/passwd"),
        lambda kernel: kernel.update(source=f"{kernel['source']} int x;"),
        lambda kernel: kernel.update(steps=2 * kernel["steps"]),
        lambda kernel: kernel.update(opening=kernel["period"]),
        lambda kernel: kernel["period"].append(kernel["period"][0]),
        lambda kernel: kernel["single"].update(source="int x;"),
        lambda kernel: kernel["single"]["options"].append("-I/"),
        lambda kernel: kernel["single"]["launches"].append(kernel["single"]["launches"][0]),
        _launch(covers=[1, 1, 1]),
        _launch(shared_bytes=1 << 30),
        _launch(block=[1024, 1024, 64]),
        _launch(mode="cooperative"),
        _launch(entry="main"),
    ],
)
def test_whatever_runs_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    monkeypatch.setattr(loading, "open_device", lambda _: pytest.fail("opened"))
    path = tmp_path / "best.json"
    write_best(recorded("moments"), path)
    _made_here(read_best(path), path)
    with pytest.raises(InputError, match=REFUSED):
        lbmtune.load(changed(path, change))


def test_a_kernel_of_one_step_where_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "open_device", lambda _: pytest.fail("opened"))
    write_best(made.gpu_study(), tmp_path / "best.json")

    def with_single(kernel: dict[str, Any]) -> None:
        kernel["single"] = {"source": "int x;", "source_digest": "", "options": [], "launches": kernel["period"][0]}

    with pytest.raises(InputError, match=REFUSED):
        lbmtune.load(changed(tmp_path / "best.json", with_single))


@pytest.mark.parametrize("path", sorted(RECORDED.glob("nvidia-*/*/best.json")), ids=lambda path: path.parent.name)
def test_files_of_earlier_versions_run_if_this_one_makes_the_same(path: Path) -> None:
    _made_here(read_best(path), path)
