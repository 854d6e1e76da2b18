"""The program for lbmpy: what it says of kernels, and with lbmpy that it does what the oracle does."""

from __future__ import annotations

import ast
import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.errors import InputError
from lbmtune.export.lbmpy_script import write_lbmpy
from lbmtune.export.lbmpy_terms import terms
from lbmtune.measure.verification.oracle import step, stream
from lbmtune.measure.verification.textbook_collisions import density, equilibrium, velocity
from tests.support.kernels.headers import best_of

DOMAIN, STEPS = (12, 9, 7), 5
FORCE = (1e-4, -2e-4, 3e-4)
OURS = "threads=1,vector_bits=0,storage=fp64,compute=fp64"
COMPARED = (
    ("d3q19", "bgk", "scheme=pull", FORCE),
    ("d3q19", "trt", "scheme=aa", FORCE),
    ("d3q19", "regularised", "scheme=esoteric-twist,layout=aos", FORCE),
    ("d3q19", "mrt", "scheme=esoteric-pull", (0, 0, 0)),
    ("d3q27", "cumulant", "scheme=push", (0, 0, 0)),
    ("d2q9", "regularised", "scheme=aa", (0, 0, 0)),
)


def program_of(case: Case, config: str, folder: Path) -> Path:
    write_lbmpy(best_of(case, parse_config(config, "cpu")), folder / "best_lbmpy.py")
    return folder / "best_lbmpy.py"


def test_what_has_no_counterpart_is_listed() -> None:
    case = cavity("d3q19", "bgk", (32, 32, 32), 1.6)
    config = parse_config("family=temporal-blocking,representation=moments,storage=fp16s,steps=3,rows=2", "cuda")
    said = "\n".join(terms(case, config).lacks)
    for word in ("faces", "family=temporal-blocking", "representation=moments", "storage=fp16s", "steps=3", "rows=2"):
        assert word in said
    assert terms(box("d3q19", "bgk", (32, 32, 32)), parse_config("scheme=aa,block=64x2x1", "cuda")).lacks == ()


def test_a_kernel_in_place_stays_in_place() -> None:
    case = box("d3q19", "bgk", (32, 32, 32))
    assert terms(case, parse_config("scheme=swap", "cpu")).pattern == "esopull"
    assert terms(case, parse_config("scheme=two-step", "cpu")).pattern == "pull"
    assert terms(case, parse_config("scheme=esoteric-twist", "cuda")).pattern == "esotwist"


def test_program_and_data_say_the_same(tmp_path: Path) -> None:
    path = program_of(box("d3q19", "trt", DOMAIN), "scheme=aa,layout=aos,streaming_stores=1", tmp_path)
    constants = _constants(path)
    told = json.loads(path.with_suffix(".json").read_text())
    assert constants["LAYOUT"] == told["field"]["layout"] == told["LBMOptimisation"]["field_layout"] == "zyxf"
    assert constants["DOMAIN"] == tuple(told["domain"]) == DOMAIN
    assert told["LBMConfig"]["streaming_pattern"] == "aa"
    assert told["LBMConfig"]["relaxation_rates"] == pytest.approx([1.6, 1 / (3 / 16 / (1 / 1.6 - 0.5) + 0.5)])
    assert constants["SIMD"] == told["CreateKernelConfig"]["cpu"]["vectorize"]["lanes_bits"] == 0  # of a cell's values


def test_a_hostile_name_of_a_study_stays_in_its_comment(tmp_path: Path) -> None:
    found = best_of(box("d3q19", "trt", DOMAIN), parse_config("scheme=aa", "cpu"))
    hostile = '"""\nraise SystemExit\n"""'
    write_lbmpy(replace(found, study=hostile, lbmtune=hostile), tmp_path / "box.py")
    assert "\nraise SystemExit" not in (tmp_path / "box.py").read_text()


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    found = best_of(box("d3q19", "trt", DOMAIN), parse_config("scheme=aa", "cpu"))
    with pytest.raises(InputError, match=r"best\.json does not end in \.py"):
        write_lbmpy(found, tmp_path / "best.json")


def _constants(path: Path) -> dict[str, Any]:
    """The constants at the top of a program, which is not run."""
    tree = ast.parse(path.read_text())
    named = [one for one in tree.body if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)]
    return {
        one.targets[0].id: ast.literal_eval(one.value)
        for one in named
        if isinstance(one.value, ast.Constant | ast.Tuple)
    }


@pytest.mark.peer
@pytest.mark.parametrize(("lattice", "collision", "config", "force"), COMPARED)
def test_it_does_what_the_oracle_does(
    lattice: str, collision: str, config: str, force: tuple[float, float, float], tmp_path: Path
) -> None:
    domain = DOMAIN if lattice != "d2q9" else (12, 9, 1)
    case = replace(box(lattice, collision, domain), force=force)
    made = _imported(program_of(case, f"{config},{OURS}", tmp_path)).Box()
    rho, u = _random_flow(case)
    if collision in ("mrt", "cumulant"):  # their equilibrium is the Maxwellian: at rest both are the same
        u *= 0
    relaxed = equilibrium(rho, u + 0.5 * np.reshape(force, (3, 1, 1, 1)) / rho, case.stencil)  # it begins behind one
    size = case.stencil.dimensions
    shape = case.domain[:size]
    made.set(rho.T.reshape(shape), np.moveaxis(u[:size], 0, -1).transpose(2, 1, 0, 3).reshape(*shape, size))
    made.step(STEPS)
    f = stream(relaxed, case)
    for _ in range(STEPS - 1):
        f = step(f, case)
    found_rho, found_u = made.macroscopics()
    expected = np.moveaxis(velocity(f, case)[:size], 0, -1).transpose(2, 1, 0, 3).reshape(*shape, size)
    assert np.abs(found_rho - density(f).T.reshape(shape)).max() < 1e-14
    assert np.abs(found_u - expected).max() < 1e-14


def _random_flow(case: Case) -> tuple[Any, Any]:
    random, shape = np.random.default_rng(1), case.domain[::-1]
    u = random.uniform(-0.05, 0.05, (3, *shape))
    u[case.stencil.dimensions :] = 0
    return random.uniform(0.95, 1.05, shape), u


def _imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
