"""A portfolio on a made-up device whose fastest kernel depends on the domain: found, checked, resumed, written."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from math import prod
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import lbmtune.api.portfolios.run as running
from lbmtune.api import bundles
from lbmtune.api.machines import devices
from lbmtune.api.portfolios import interface
from lbmtune.api.portfolios.contenders import last_resort, takes
from lbmtune.api.portfolios.exported import export_portfolio
from lbmtune.api.portfolios.interface import portfolio, unseen
from lbmtune.api.studies import run as studies
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.cli import main
from lbmtune.errors import InputError
from lbmtune.records import Measurement, Trial
from lbmtune.records.best_json.document import Best, read_best
from lbmtune.records.best_json.law import Chunks
from lbmtune.records.best_json.portfolio import CHECKED, SEARCHED, PortfolioKernel, RuleLine
from lbmtune.records.comparison.repeats import percent
from lbmtune.records.portfolio_store import DOMAINS, read_domains
from lbmtune.report.portfolio import headline, losses_figure
from scripts.measurements import portfolios as script
from tests.shim.device import COMPILER
from tests.support.studies import fake_study

pytestmark = pytest.mark.landing  # tests share a portfolio that takes long

SPEC = fake_study.spec(
    axes={
        "scheme": ("aa", "pull"),
        "layout": ("soa",),
        "padding": (0,),
        "block": ("64x1x1", "128x1x1"),
        "cells_per_thread": (1, 2),
    },
)
SPEC = replace(SPEC, budget=replace(SPEC.budget, trials=8))
RANGE, SEARCHES = "48:256", 6
SMALL = 10**6
"""Cells below which one lattice is the fastest on the made-up device, and above which two are."""


def speed(config: KernelConfig, domain: tuple[int, int, int]) -> float:
    cells = prod(domain)
    seconds = cells / 1000.0 if config.scheme == "aa" else cells / 1200.0 + SMALL / 6000.0
    block = 1.0 if str(config.flat()["block"]).startswith("128") or domain[0] < 100 else 0.99
    return cells / seconds * (1.1 if config.flat()["cells_per_thread"] == 2 else 1.0) * block


class Made(fake_study.FakeEvaluator):
    """A device with speeds by domain. measured: domains and kernels of all finals; stops_at: beginning of the last."""

    def __init__(self) -> None:
        super().__init__("cuda")
        self.measured: list[tuple[tuple[int, int, int], tuple[str, ...]]] = []
        self.stops_at, self.case = 10**9, SPEC.case

    def on(self, case: Case) -> Made:
        self.case = case
        return self

    def next(self) -> Trial:
        found = super().next()
        return replace(found, measurement=self._speed(from_flat(found.config))) if found.measurement else found

    def finals(self, configs: Sequence[KernelConfig], **how: object) -> list[Trial]:
        if len(self.measured) == self.stops_at:
            raise KeyboardInterrupt
        self.measured.append((self.case.domain, tuple(config.key for config in configs)))
        assert not any(broken(self.case, config, self.limits) for config in configs)
        proof = replace(fake_study.verification(), domains=(self.case.domain,))
        trials = super().finals(configs)
        return [
            replace(one, final=self._speed(config), verification=proof, prediction=fake_study.predict(config))
            for one, config in zip(trials, configs, strict=True)
        ]

    def _speed(self, config: KernelConfig) -> Measurement:
        mlups = speed(config, self.case.domain)
        samples_s = (self.case.sites / (mlups * 1e6),) * 8
        found = fake_study.measurement(config)
        return replace(found, mlups=mlups, ci_low_mlups=mlups, ci_high_mlups=mlups, samples_s=samples_s)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Made:
    return made_up(monkeypatch)


def made_up(monkeypatch: pytest.MonkeyPatch) -> Made:
    made = Made()
    fake_study.stand_in(monkeypatch, made)
    for module in (studies, running):
        monkeypatch.setattr(module, "Evaluator", lambda case, *_, **__: made.on(case))
    monkeypatch.setattr(running, "WorkerPool", lambda *_, **__: nullcontext())
    for module in (running, interface):
        monkeypatch.setattr(module, "open_device", lambda _: SimpleNamespace(environment=made.environment))
    monkeypatch.setattr(interface, "bounds", devices.bounds)
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Best, Made]:
    """A portfolio that was not interrupted, for all tests that look at it."""
    with pytest.MonkeyPatch.context() as patched:
        made = made_up(patched)
        return *portfolio(SPEC, RANGE, "0", tmp_path_factory.mktemp("portfolio") / "found"), made


def test_a_portfolio_covers_all_domains_and_says_so(whole: tuple[Path, Best, Made]) -> None:
    folder, best, _ = whole
    assert best == read_best(folder / "best.json")
    found = best.portfolio
    assert found is not None
    assert 2 <= len(found.kernels) <= 6
    assert found.checked >= 20
    assert found.worst_loss <= 0.03
    assert found.behind_default == 0
    assert found.left_out == ()
    searched = {row.domain for row in found.rows if row.part == SEARCHED}
    checked = {row.domain for row in found.rows if row.part == CHECKED}
    assert len(searched) == SEARCHES
    assert not searched & checked
    assert any(domain[0] % 2 for domain in checked)
    for row in found.rows:
        place = found.chosen(row.domain)
        assert place == row.kernel
        config = best.of_portfolio(place, row.domain).config
        fastest = max(speed(one, row.domain) for one in _legal(row.domain))
        assert speed(config, row.domain) >= 0.97 * fastest
    assert best.key == found.kernels[found.robust].key
    assert max(row.loss for row in found.rows if row.part == CHECKED) == found.worst_loss
    for place, one in enumerate(found.kernels):
        alone = best.of_portfolio(place)
        assert (alone.key, alone.case.domain, alone.portfolio) == (one.key, one.domain, None)
        assert alone.expected.mlups == one.mlups == pytest.approx(speed(alone.config, one.domain))


def _legal(domain: tuple[int, int, int]) -> list[KernelConfig]:
    case = replace(SPEC.case, domain=domain)
    right = (one for one in fake_study.space_of(SPEC).configs if fake_study.scatter(one) >= 0.1)
    return [one for one in right if not broken(case, one, fake_study.LIMITS)]


def test_kernels_are_possible_within_the_doubt_of_their_laws(whole: tuple[Path, Best, Made]) -> None:
    found = whole[1].portfolio
    kernels = [replace(one, doubt=0.1) for one in found.kernels]
    domain = next(row.domain for row in found.rows if all(not one.refusal(row.domain) for one in kernels))

    def possible(*changed: PortfolioKernel) -> tuple[int, ...]:
        return replace(found, kernels=changed, rule=()).possible(domain)

    times = [one.picoseconds(domain) for one in kernels]
    ranked = sorted(range(len(kernels)), key=times.__getitem__)
    within = [n for n in ranked if times[n] * 0.9 <= times[ranked[0]] * 1.1]
    assert possible(*kernels) == tuple(within)
    assert possible(*(replace(one, doubt=0.0) for one in kernels)) == tuple(ranked[:1])
    assert possible(*(replace(one, doubt=None) for one in kernels)) == tuple(ranked)
    assert possible(*(replace(one, doubt=10.0) for one in kernels)) == tuple(ranked)
    alone = [replace(one, law=(), doubt=None) for one in kernels]
    line = RuleLine(kernel=1)
    assert replace(found, kernels=tuple(alone), rule=(line,)).possible(domain)[0] == 1
    assert replace(found, rule=(line,)).candidates(domain)[0] == (1, None)
    chunks = Chunks(most="nz / 6", end="((nz + chunks - 1) / chunks + 6)")
    longer = [replace(one, kernel=replace(one.kernel, chunks=chunks), doubt=None) for one in kernels]
    candidates = replace(found, kernels=tuple(longer), rule=()).candidates(domain)
    assert [one.place for one in candidates[: len(kernels)]] == ranked
    counts = {one.chunks for one in candidates if one.place == ranked[0]}
    assert counts == set(chunks.likely(domain))
    assert {one.place for one in candidates[len(kernels) :]} == set(ranked[:2])


def test_an_interrupted_portfolio_goes_on_where_it_was(whole, device: Made, tmp_path: Path) -> None:
    _, best, uninterrupted = whole
    device.stops_at = SEARCHES + 3
    with pytest.raises(KeyboardInterrupt):
        portfolio(SPEC, RANGE, "0", tmp_path)
    with (tmp_path / DOMAINS).open("a") as file:
        file.write('{"domain": [')  # as of a machine that lost its power
    device.stops_at = 10**9
    _, again = portfolio(SPEC, RANGE, "0", tmp_path, resume=True)
    assert device.measured == uninterrupted.measured, "nothing twice"
    assert [one.domain for one in read_domains(tmp_path)] == [domain for domain, _ in device.measured[SEARCHES:]]
    assert again.portfolio == best.portfolio


def test_a_time_that_is_short_gives_a_portfolio_that_says_what_is_left_out(device: Made, tmp_path: Path) -> None:
    short = replace(SPEC, budget=replace(SPEC.budget, seconds=0.1))
    folder, best = portfolio(short, RANGE, "0", tmp_path)
    found = best.portfolio
    assert found.kernels[found.robust].key == best.key
    assert [row.domain for row in found.rows] == [one.domain for one in read_domains(folder)]
    assert (found.checked, found.worst_loss) == (0, None)
    assert "check: 20 of 20 domains" in found.left_out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--domains 64", "--domains 64 is one domain"),
        ("--domains 64:32", "--domains 64:32 is not supported"),
        ("--domains 32:64 --objective footprint", "--domains is not supported for objective=footprint"),
        ("--domains 32:64 --storage sqlite:///x", "--domains 32:64 does not go with --storage"),
        ("--domains 32:64 --domain 32x32x32", "--domains 32:64 does not go with --domain"),
        ("--domains 32:64 --parts 2", "--domains 32:64 does not go with --parts"),
        ("porous --domains 32:64", "--domains is not supported for geometry="),
    ],
)
def test_what_does_not_go_with_many_domains_is_refused(device, options, said, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["study", "--device", "0", *options.split()])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_the_command_prints_the_rule_and_the_check(whole, device: Made, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole[0], "found")
    monkeypatch.setattr("lbmtune.cli.verbs.portfolio.load_study", lambda *_: SPEC)

    def run(*options: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["study", *options, "--device", "0", "--output", "found"])
        return ended.value.code, *capsys.readouterr()

    code, _, said = run("made-up", "--domains", RANGE)
    assert (code, "already holds a portfolio; add --resume" in said) == (2, True)
    code, printed, said = run("made-up", "--domains", RANGE, "--resume")
    assert not code, said
    assert f"kernels for {RANGE}" in printed
    assert "least picoseconds: " in printed
    assert "20 domains that were not searched: worst loss" in printed
    code, printed, said = run("--resume", "--json")
    assert not code, said
    facts = json.loads(printed)
    assert facts["checked"] == 20
    assert facts["kernels"][facts["robust"]]["key"] == whole[1].key
    code, _, said = run("made-up", "--domains", "48:128", "--resume")
    assert (code, f"holds a portfolio with --domains {RANGE}" in said) == (2, True)
    assert not device.measured


def test_the_script_checks_the_rule_on_domains_that_nobody_measured(
    whole, device: Made, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(script, "CASES", {"made-up": ("made-up", ())})
    monkeypatch.setattr(interface, "as_spec", lambda *_: SPEC)
    shutil.copytree(whole[0], tmp_path / "made-up")
    before = (tmp_path / "made-up" / DOMAINS).read_bytes()
    arguments = [str(tmp_path), "--cases", "made-up", "--domains", RANGE, "--unseen", "12", "--time", "100s"]
    code = script.main(arguments)
    (facts,) = json.loads((tmp_path / "portfolios.json").read_text())
    losses = [row["loss"] for row in facts["rows"]]
    assert len(losses) == len(device.measured) == facts["unseen"] == 12
    assert not {domain for domain, _ in device.measured} & {row.domain for row in whole[1].portfolio.rows}
    assert (tmp_path / "made-up" / DOMAINS).read_bytes() == before, "they teach nothing"
    assert facts["rule"]["worst"] == max(losses)
    measured = [row["measured_loss"] for row in facts["rows"]]
    assert facts["measured"]["worst"] == max(measured)
    assert all(chosen <= loss for chosen, loss in zip(measured, losses, strict=True)), "the rule's is one of them"
    assert all(1 <= row["timed"] <= facts["kernels"] for row in facts["rows"])
    assert any(row["timed"] > 1 for row in facts["rows"])
    assert code == (max(measured) > 0.03 or facts["measured"]["behind_default"] > 0)
    assert f"{facts['kernels']} kernels" in capsys.readouterr().out
    assert code == (not script.holds(facts, 12))
    right = {"worst": 0.03, "behind_default": 0}
    late, slow = {"measured": right | {"worst": 0.031}}, {"measured": right | {"behind_default": 1}}
    assert script.holds(facts | {"measured": right}, 12)
    for wrong in ({"kernels": 7}, late, slow, {"unseen": 11}):
        assert not script.holds(facts | {"measured": right} | wrong, 12)
    device.measured.clear()
    assert script.main(arguments) == code
    assert not device.measured, "a case that is done is not measured again"
    assert unseen(tmp_path / "made-up", "0", 12, seconds=1e-9) == (), "no time, no domain"
    with pytest.raises(InputError, match="cannot read"):
        unseen(tmp_path, "0")


def test_a_bundle_has_a_folder_for_each_kernel_and_a_target_over_all(whole, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bundles, "ARCHITECTURES", ("sm_90",))
    folder, best, _ = whole
    header = export_portfolio(folder, "bundle", tmp_path / "lbm", name="lbm")
    count = len(best.portfolio.kernels)
    folders = {f"lbm_{number}" for number in range(1, count + 1)}
    assert {one.name for one in (tmp_path / "lbm").iterdir()} == {"CMakeLists.txt", "best.json", "lbm.h", *folders}
    assert read_best(tmp_path / "lbm" / "best.json") == best
    for name in folders:
        assert read_best(tmp_path / "lbm" / name / "best.json").kernel.source
        assert f'#include "{name}.h"' in header.read_text()
    lists = (tmp_path / "lbm" / "CMakeLists.txt").read_text()
    assert f"foreach(number RANGE 1 {count})" in lists
    assert "add_subdirectory(lbm_${number})" in lists


def test_the_page_has_each_domain_with_its_kernel_and_loss(whole, tmp_path) -> None:
    folder, best, _ = whole
    shutil.copytree(folder, tmp_path / "found")
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path / "found")])
    assert not ended.value.code
    text = (tmp_path / "found" / "report.html").read_text()
    found = best.portfolio
    rows = re.findall(r"<tr><td>([^<]+)</td><td>(\w+)</td><td>(\d)</td>", text)
    assert len(rows) == len(found.rows) > 20
    assert [int(kernel) - 1 for _, _, kernel in rows] == [row.kernel for row in found.rows]
    assert f"{found.checked} domains that were not searched: worst loss {percent(found.worst_loss)}" in text
    assert all(one.key in text for one in found.kernels)
    assert losses_figure(found).data[0].name == "kernel 1"
    assert sum(len(one.x) for one in losses_figure(found).data) == len(found.rows)
    assert headline(replace(found, worst_loss=None)).count("was not checked") == 1


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_the_exported_rule_chooses_as_the_file_does(whole, tmp_path, capsys) -> None:
    """Compiled beside stand-ins of the headers of the kernels, which take what the kernels take."""
    folder, best, _ = whole
    shutil.copytree(folder, tmp_path / "found")
    with pytest.raises(SystemExit) as ended:
        main(
            ["export", str(tmp_path / "found"), "--format", "cuda", "--name", "lbm", "--output", str(tmp_path / "lbm")]
        )
    assert not ended.value.code, capsys.readouterr().err
    kernels = best.portfolio.kernels
    for number, one in enumerate(kernels, 1):
        header = tmp_path / "lbm" / f"lbm_{number}.h"
        assert f"int lbm_{number}_check_domain(int nx, int ny, int nz" in header.read_text()
        rules = zip("xyz", one.kernel.domain.multiple, one.kernel.domain.least, strict=True)
        takes = " && ".join(f"n{axis} % {multiple} == 0 && n{axis} >= {least}" for axis, multiple, least in rules)
        header.write_text(
            f"enum {{ LBM_{number}_OK = 0 }};\n"
            f"static int lbm_{number}_check_domain(int nx, int ny, int nz, const unsigned char *solid) "
            f"{{ (void)solid; return !({takes}); }}\n"
        )
    source = tmp_path / "rule.c"
    source.write_text(
        '#include "lbm.h"\nint chosen(int nx, int ny, int nz) { return lbm_kernel(nx, ny, nz); }\n'
        "int possible(int nx, int ny, int nz, int *order) { return lbm_kernels(nx, ny, nz, order); }\n"
    )
    library = tmp_path / "rule.so"
    compiler = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I", tmp_path / "lbm"]
    subprocess.run([*compiler, source, "-o", library], check=True)
    compiled = ctypes.CDLL(str(library))
    chosen, order = compiled.chosen, (ctypes.c_int * len(kernels))()
    several = 0
    random = np.random.default_rng(1)
    for domain in random.integers(8, 400, (300, 3)).tolist():
        place = best.portfolio.chosen(tuple(domain))
        if all(not one.refusal(tuple(domain)) or not one.kernel.domain.limits for one in kernels):
            assert chosen(*domain) == (0 if place is None else place + 1), domain
            count = compiled.possible(*domain, order)
            assert [number - 1 for number in order[:count]] == [*best.portfolio.possible(tuple(domain))], domain
            several += count > 1
    assert several
    with pytest.raises(SystemExit) as ended:
        main(["export", str(tmp_path / "found"), "--format", "csv"])
    assert ended.value.code == 2
    assert (
        "format=csv is not supported for a portfolio (use cuda, c, bundle, or its best.json)" in capsys.readouterr().err
    )


@pytest.mark.parametrize("bits", [0, 256, 512])
def test_the_last_resort_of_a_processor_takes_odd_rows(bits: int) -> None:
    """The default kernel has vectors, whose rows are multiples of lanes."""
    limits = Limits(cores=2, vector_bits=bits, memory_bytes=2**36)
    spec = fake_study.spec("cpu")
    found = last_resort(spec, (16, 16, 16), (64, 64, 64), limits, "cpu")
    for domain in ((16, 16, 16), (17, 19, 23), (20, 24, 17), (64, 64, 64)):
        assert takes(spec, found, limits, domain), domain
