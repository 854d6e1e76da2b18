"""Figures of machine descriptions: which are refused, and in which words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

import pytest

from lbmtune.errors import InputError
from lbmtune.model.machine.description import Calibration, CpuCalibration, Datasheet, Links, Machine
from lbmtune.model.machine.toml import range_of, read_machine
from lbmtune.records import Conditions, Environment
from tests.support.paths import RECORDED, ROOT

GPU, HOST = (f"studies/recorded/{name}/machine.toml" for name in ("nvidia-h200", "zen3-2-cores"))
SHEET = "machines/a100.toml"


def test_whatever_comes_with_the_package_is_plausible() -> None:
    found = [*ROOT.glob("machines/*.toml"), *RECORDED.glob("**/machine.toml")]
    assert len(found) > 30
    for path in found:
        read_machine(path)


def test_each_figure_of_a_description_has_a_range() -> None:
    for kind in (Machine, Environment, Conditions, Calibration, CpuCalibration, Datasheet, Links):
        for name, type_ in get_type_hints(kind).items():
            is_figure = re.search(r"\b(int|float)\b", str(type_)) is not None
            assert (range_of(name) is not None) == is_figure, name


@pytest.mark.parametrize(
    ("device", "key", "value", "said"),
    [
        (GPU, "streams", "999999999999999999", "streams is 999999999999999999, which has to be a count from 1 to 1000"),
        (GPU, "multiprocessors", "999999999999999999", "multiprocessors is 999999999999999999, which"),
        (GPU, "multiprocessors", "-108", "multiprocessors is -108, which has to be a count from 1 to 100000"),
        (GPU, "multiprocessors", "0", "multiprocessors is 0, which has to be a count from 1 to 100000"),
        (GPU, "multiprocessors", "1" + 400 * "0", f"multiprocessors is 1{39 * '0'}..., which has to be a count"),
        (
            GPU,
            "copy_bytes_per_s",
            "4293.0",
            "copy_bytes_per_s is 4293.0, which has to be bytes per second from 1e8 to 1",
        ),
        (GPU, "copy_bytes_per_s", "inf", "copy_bytes_per_s is inf, which"),
        (GPU, "power_limit_w", "-700.0", "environment.power_limit_w is -700.0, which has to be watts from 0 to 100000"),
        (GPU, "latency_s", "1e40", "calibration.latency_s is 1e+40, which has to be seconds from 1e-10 to 0.01"),
        (GPU, "latency_s", "340.0", "calibration.latency_s is 340.0, which"),
        (GPU, '"4 of 128"', "1.0", 'calibration.runs_bytes_per_s."4 of 128" is 1.0, which has to be bytes per second'),
        (GPU, "double", "0.5", "calibration.instructions_per_s.double is 0.5, which has to be a rate per second from"),
        (HOST, "cores", "-2", "environment.cores is -2, which has to be a count from 1 to 100000"),
        (HOST, "cores", "0", "environment.cores is 0, which has to be a count from 1 to 100000"),
        (HOST, '"in place, 32 bytes"', "1e40", 'cpu.walks_bytes_per_s."in place, 32 bytes" is 1e+40, which has to be '),
        (HOST, "L1", "999999999999999999", "caches_bytes.L1 is 999999999999999999, which has to be bytes from 1000 to"),
        (HOST, "refill_s", "-1e-9", "cpu.refill_s is -1e-09, which has to be seconds from 0 to 0.001"),
        (HOST, "core_clock_hz", "-2e9", "core_clock_hz is -2000000000.0, which has to be hertz from 1e6 to 1e11"),
        (HOST, "cpu_share", "1e40", "cpu_share is 1e+40, which has to be a share from 0 to 1"),
        (HOST, "cpu_share", "-0.5", "cpu_share is -0.5, which"),
        (HOST, "memory_bytes", "-1", "environment.memory_bytes is -1, which has to be bytes from 0 to 1e15"),
        (SHEET, "registers", "64", "datasheet.registers is 64, which has to be a count from 1000 to 1e7"),
        (
            SHEET,
            "fp32_flops_per_s",
            "19.5",
            "datasheet.fp32_flops_per_s is 19.5, which has to be operations per second",
        ),
        (SHEET, "clock_hz", "1410.0", "datasheet.clock_hz is 1410.0, which has to be hertz from 1e6 to 1e11"),
        (SHEET, "multiprocessors", "0", "multiprocessors is 0, which has to be a count from 1 to 100000"),
        (SHEET, "L2", None, "caches_bytes lacks 'L2', by which the model scales what was measured elsewhere"),
        (GPU, "flag_s", "1.8", "links.flag_s is 1.8, which has to be seconds from 1e-10 to 0.01"),
        (
            GPU,
            "both_ways_bytes_per_s",
            "748.0",
            "links.both_ways_bytes_per_s is 748.0, which has to be bytes per second",
        ),
        (GPU, "5242880", "16.6", "links.copy_s.5242880 is 16.6, which has to be seconds from 1e-10 to 0.01"),
        # of another type than the description has
        (HOST, "cores", "2.5", "environment.cores is 2.5, which has to be a whole number;"),
        (HOST, "cores", "true", "environment.cores is true, which has to be a whole number;"),
        (HOST, "cpu_share", '"all"', 'cpu_share is "all", which has to be a number;'),
        (HOST, "L2", "1048576.5", "caches_bytes.L2 is 1048576.5, which has to be a whole number;"),
        (GPU, '"4 of 128"', '"fast"', 'calibration.runs_bytes_per_s."4 of 128" is "fast", which has to be a number;'),
        (GPU, "throttle", '["a", 3]', "conditions.throttle.1 is 3, which has to be text in quotes;"),
        (GPU, "copy_bytes_per_s", "1" + 400 * "0", "0..., which is too large for a number;"),
        (SHEET, "name", "2020-01-01", "name is 2020-01-01, which has to be text in quotes;"),
        (SHEET, "measured", "0", "measured is 0, which has to be true or false;"),
        (SHEET, "backend", '"gpu"', 'environment.backend is "gpu", which has to be one of cuda, cpu;'),
        (SHEET, "name", "[]", "name is a list, which has to be text in quotes;"),
        (SHEET, "source", None, "datasheet.source is missing, which the description of a machine has to have;"),
    ],
)
def test_a_figure_that_cannot_be_is_refused_with_what_it_has_to_be(
    tmp_path: Path, device: str, key: str, value: str | None, said: str
) -> None:
    path = tmp_path / "machine.toml"
    line = re.compile(rf"^{re.escape(key)} = .*\n", re.MULTILINE)
    text, changed = line.subn("" if value is None else f"{key} = {value}\n", (ROOT / device).read_text(), count=1)
    assert changed
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(said)) as refusal:
        read_machine(path)
    assert "`" not in str(refusal.value), "no words of a library"


def test_links_have_a_copy_of_a_number_of_bytes(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    text = (ROOT / GPU).read_text()
    assert "[links.copy_s]\n" in text
    path.write_text(text.partition("[links.copy_s]\n")[0] + "[links.copy_s]\nsmall = 1e-6\n")
    with pytest.raises(InputError, match=r"links\.copy_s has no copy of a number of bytes"):
        read_machine(path)


@pytest.mark.parametrize("value", ["1e40", "-1.0"])
def test_what_hides_behind_something_is_a_share(tmp_path: Path, value: str) -> None:
    text = (ROOT / HOST).read_text()
    before, table, after = text.partition("[cpu.hidden]\n")
    first, _, others = after.partition("\n")
    path = tmp_path / "machine.toml"
    path.write_text(f"{before}{table}{first.partition('=')[0]}= {value}\n{others}")
    with pytest.raises(InputError, match=r"cpu\.hidden\.\".*\" is .*, which has to be a share from 0 to 1;"):
        read_machine(path)


def test_figures_of_later_versions_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text("unknown_bytes = -1\n" + (ROOT / SHEET).read_text())
    assert read_machine(path) == read_machine(ROOT / SHEET)
