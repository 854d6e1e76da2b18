"""The kernel of several files for a case on a device: which, why, and when there is none."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import lbmtune
from lbmtune.backend.registry import open_device
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.errors import InputError
from lbmtune.export import best
from lbmtune.records import made_of
from lbmtune.records.best_json.document import BEST_VERSION, Best, encode_best, read_best
from lbmtune.records.best_json.portfolio import CHECKED, Portfolio, PortfolioKernel, PortfolioRow, RuleLine
from lbmtune.runtime import choice
from lbmtune.runtime.solver import Solver
from tests.records.best_json.test_export import CPU, cpu_record
from tests.support.studies import made_up_records as made

SMALL, LARGE = (16, 8, 1), (64, 32, 1)
EVEN = replace(CPU, scheme="pull", vector_bits=256)
"""A kernel that needs rows of a multiple of its vectors."""
pytestmark = pytest.mark.skipif(open_device("cpu").limits.vector_bits < 256, reason="this processor has no AVX2")


def file_of(path: Path, config=CPU, domain=SMALL, device: str | None = None, case=None) -> Path:
    """Write a best.json, as if it were measured here or on another device."""
    found = best(cpu_record(case or box("d2q9", "bgk", domain), config))
    here = open_device("cpu").environment
    found = replace(found, environment=replace(here, device=device) if device else here, proven=True)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(encode_best(found))
    return path


def rung(config, domain) -> PortfolioKernel:
    found = best(cpu_record(box("d2q9", "bgk", domain), config))
    return made_of(
        PortfolioKernel,
        found.expected,
        key=found.key,
        configuration=found.configuration,
        domain=domain,
        kernel=found.kernel,
        storage=found.storage,
        verification=found.verification,
        covers=1,
        worst_loss=0.01,
    )


def portfolio(path: Path) -> Path:
    """Write a file whose rule takes another kernel from 1,000 cells on."""
    rows = tuple(
        PortfolioRow(
            domain=domain,
            part=CHECKED,
            kernel=place,
            mlups=10.0,
            default_mlups=9.0,
            fastest="one",
            fastest_mlups=10.0,
            loss=0.0,
            behind_default=False,
        )
        for place, domain in enumerate((SMALL, LARGE))
    )
    found = Portfolio(
        domains="16:64",
        tolerance=0.03,
        seed=1,
        kernels=(rung(CPU, SMALL), rung(EVEN, LARGE)),
        rule=(RuleLine(kernel=1, least_cells=1000), RuleLine(kernel=0)),
        robust=0,
        robust_loss=0.2,
        worst_loss=0.0,
        checked=2,
        behind_default=0,
        rows=rows,
    )
    alone = read_best(file_of(path))
    path.write_bytes(encode_best(replace(alone, portfolio=found)))
    return path


def test_a_portfolio_gives_the_kernel_of_its_rule(tmp_path: Path) -> None:
    path = portfolio(tmp_path / "best.json")
    for domain, config in ((SMALL, CPU), (LARGE, EVEN), ((63, 32, 1), CPU)):
        found = lbmtune.select(path, "cpu", domain)
        assert found.best.config == config, domain
        assert found.case.domain == domain
        assert found.exact
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flow, same = found.load(), lbmtune.load(path, "cpu", domain=domain)
        flow.step(2)
        assert flow.case.domain == domain
        assert same.best.key == flow.best.key == config.key
    assert "the kernel of the file for this domain, measured for 16:64; it was measured on" in str(found)
    outside = lbmtune.select(path, "cpu", (128, 32, 1))
    assert (outside.best.config, outside.exact) == (EVEN, False)
    assert "measured for 16:64, which does not hold this domain" in str(outside)
    with pytest.raises(InputError, match="which does not hold this domain"):
        lbmtune.select(path, "cpu", (128, 32, 1), strict=True)


@pytest.mark.parametrize(("fast", "place"), [(CPU, 0), (EVEN, 1)])
def test_a_choice_is_timed_once_and_said(fast, place: int, tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    path = portfolio(tmp_path / "best.json")
    timed: list[str] = []

    def seconds(flow: Solver) -> float:
        timed.append(flow.best.key)
        flow.step(1)
        return 1e-3 if flow.best.key == fast.key else 2e-3

    monkeypatch.setattr(choice, "_seconds", seconds)
    found = lbmtune.select(path, "cpu", LARGE, measure=True)
    assert found.best.config == fast
    assert found.load().best.key == fast.key
    assert timed == [EVEN.key, CPU.key], "that of the rule first"
    assert "of 2 launches of 2 kernels, timed on 64x32x1" in str(found)
    assert ("is taken instead" in str(found)) == (place == 0)
    with caplog.at_level("INFO", "lbmtune"):
        flow = lbmtune.load(path, "cpu", domain=LARGE, measure=True)
    assert (flow.best.key, len(timed)) == (fast.key, 2), "it is kept"
    assert "of 2 launches of 2 kernels, timed on 64x32x1" in caplog.text
    lbmtune.load(path, "cpu", domain=(128, 32, 1), measure=True)
    assert len(timed) == 4, "another domain"
    usual = lbmtune.load(path, "cpu", measure=True)
    assert usual.case.domain == SMALL, "that of the file"
    assert len(timed) == 6
    whole = read_best(path)
    path.write_bytes(encode_best(replace(whole, date="another")))
    lbmtune.load(path, "cpu", domain=LARGE, measure=True)
    assert len(timed) == 8, "another file"


def test_a_launch_that_does_not_run_is_left_out_and_kept_as_such(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    path, asked = portfolio(tmp_path / "best.json"), list[str]()

    def seconds(flow: Solver) -> float:
        asked.append(flow.best.key)
        if flow.best.key == EVEN.key:
            raise InputError("no room")
        return 1e-3

    monkeypatch.setattr(choice, "_seconds", seconds)
    found = lbmtune.select(path, "cpu", LARGE, measure=True)
    assert found.best.config == CPU
    assert "of 1 launches of 1 kernels" in str(found)
    assert "that of the rule does not run here" in str(found)
    lbmtune.select(path, "cpu", LARGE, measure=True)
    assert asked == [EVEN.key, CPU.key]


def test_a_damaged_file_of_what_was_timed_is_measured_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    path, timed = portfolio(tmp_path / "best.json"), list[str]()
    monkeypatch.setattr(choice, "_seconds", lambda flow: timed.append(flow.best.key) or 1e-3)
    lbmtune.load(path, "cpu", domain=LARGE, measure=True)
    kept = [one for one in (tmp_path / "cache").rglob("*.json") if "choices" in str(one)]
    assert len(kept) == 1
    kept[0].write_text('{"mlups": [')
    lbmtune.load(path, "cpu", domain=LARGE, measure=True)
    assert len(timed) == 4
    assert kept[0].read_text() != '{"mlups": ['


def test_a_choice_that_is_timed_is_among_those_that_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    path = portfolio(tmp_path / "best.json")
    found = lbmtune.select(path, "cpu", LARGE, measure=True)
    assert found.best.config in (CPU, EVEN)
    assert "timed on 64x32x1: " in str(found) or "timed on 64x32x1, " in str(found)
    odd = lbmtune.select(path, "cpu", (63, 32, 1), measure=True)
    assert odd.best.config == CPU
    assert "no other kernel that may be faster on this domain" in str(odd)
    alone = file_of(tmp_path / "alone.json")
    assert lbmtune.load(alone, "cpu", measure=True).best.config == CPU
    with pytest.raises(InputError, match="measure=True is not supported for several devices"):
        lbmtune.load(path, devices=["cpu", "cpu"], measure=True)


def test_a_portfolio_of_version_2_keeps_its_rule(tmp_path: Path) -> None:
    """It has no laws and no chunks, and its rule has a line for every domain."""
    path = portfolio(tmp_path / "best.json")
    values = json.loads(path.read_text())
    values["version"] = 2
    values.pop("$schema")
    for kernel in values["portfolio"]["kernels"]:
        assert not kernel.pop("law")
        assert kernel["kernel"].pop("chunks") is None
    assert values["kernel"].pop("chunks") is None
    path.write_text(json.dumps(values))
    old = read_best(path)
    assert old.portfolio
    assert (old.version, [one.law for one in old.portfolio.kernels]) == (BEST_VERSION, [(), ()])
    for domain, place in ((SMALL, 0), (LARGE, 1), ((63, 32, 1), 0)):
        assert old.portfolio.chosen(domain) == place
    assert lbmtune.select(path, "cpu", LARGE).best.config == EVEN


def test_a_domain_that_no_kernel_takes_is_refused(tmp_path: Path) -> None:
    path = portfolio(tmp_path / "best.json")
    whole = read_best(path)
    assert whole.portfolio
    only = replace(whole.portfolio, rule=(RuleLine(kernel=1),), kernels=whole.portfolio.kernels[1:] * 2)
    path.write_bytes(encode_best(replace(whole, portfolio=only)))
    with pytest.raises(InputError, match=r"domain=63x32x1 is not supported for .*best\.json .*: no kernel of it takes"):
        lbmtune.load(path, "cpu", domain=(63, 32, 1))
    with pytest.raises(InputError, match=r"takes this case: .*does not take this case"):
        lbmtune.select(path, "cpu", (63, 32, 1))


def test_the_nearest_device_and_the_nearest_domain_are_taken(tmp_path: Path) -> None:
    file_of(tmp_path / "a" / "best.json", domain=LARGE, device="Made-up 1")
    file_of(tmp_path / "b" / "best.json", EVEN, domain=(32, 16, 1), device="Made-up 1")
    away = lbmtune.select(tmp_path, "cpu", (40, 16, 1))
    assert (away.best.config, away.exact) == (EVEN, False)
    assert "measured on 32x16x1; it was measured on Made-up 1, and this is" in str(away)
    with pytest.raises(InputError, match=r"was measured for this: .*Made-up 1"):
        lbmtune.select(tmp_path, "cpu", LARGE, strict=True)
    here = file_of(tmp_path / "c" / "best.json", domain=(512, 512, 1))
    found = lbmtune.select(tmp_path, "cpu", LARGE)
    assert found.path == here
    assert not found.exact, "it was measured on another domain"
    assert lbmtune.select([tmp_path, here], "cpu", (512, 512, 1), strict=True).exact


def test_the_next_kernel_that_takes_the_domain_is_taken(tmp_path: Path) -> None:
    path = file_of(tmp_path / "best.json", EVEN, LARGE)
    found: Best = read_best(path)
    other = replace(made_alternate(), key=CPU.key, configuration=CPU.flat())
    path.write_bytes(encode_best(replace(found, alternates=(other,))))
    odd = lbmtune.select(path, "cpu", (63, 32, 1))
    assert (odd.best.config, odd.exact) == (CPU, False)
    assert odd.said[0].startswith(f"{EVEN.key} of {path} does not take this case: ")
    assert "the next kernel of the file" in odd.said[1]
    odd.load().step(1)
    with pytest.raises(InputError, match="does not take this case"):
        lbmtune.select(path, "cpu", (63, 32, 1), strict=True)


def made_alternate():
    return best(made.gpu_study()).alternates[0]


def test_what_does_not_match_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path, empty = file_of(tmp_path / "best.json"), tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"collision is bgk there, and trt here\.$"):
        lbmtune.select(path, "cpu", box("d2q9", "trt", SMALL))
    with pytest.raises(InputError, match="flow is box there, and cavity here"):
        lbmtune.select(path, "cpu", cavity("d2q9", "bgk", SMALL, 1.0))
    with pytest.raises(InputError, match=r"holds no best\.json"):
        lbmtune.select(empty, "cpu")
    with pytest.raises(InputError, match="cannot read"):
        lbmtune.select(tmp_path / "none.json", "cpu")
    gpu = tmp_path / "gpu.json"
    gpu.write_bytes(encode_best(best(made.gpu_study())))
    with pytest.raises(InputError, match=r"device=cpu is not supported for .*use files with a kernel for"):
        lbmtune.select(gpu, "cpu")
    faster = lbmtune.select(path, "cpu", replace(box("d2q9", "bgk", SMALL), relaxation_rate=1.2))
    assert faster.load().relaxation_rate == 1.2
