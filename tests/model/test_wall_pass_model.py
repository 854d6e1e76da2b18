"""Predictions of the pass of interpolated walls."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.catalogue.boundaries.second_order import link_count
from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.claims.store import decoded
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.model.wall_pass import wall_pass_bytes
from lbmtune.records.legacy.configurations import config_of

RECORDED = Path(__file__).parents[2] / "studies" / "recorded"
CARD, HOST = (read_machine(RECORDED / name / "machine.toml") for name in ("nvidia-h200", "epyc-2-cores"))
CASE = Case("porous", "d3q19", "bgk", (48, 40, 32), 1.2, geometry="packing:fraction=0.5:radius=5", walls="interpolated")
SPARSE = {"cuda": parse_config("family=sparse,scheme=aa"), "cpu": parse_config("family=sparse,scheme=aa", "cpu")}


@pytest.mark.parametrize("backend", SPARSE)
@pytest.mark.parametrize("calibrated", [True, False])
def test_the_pass_is_a_term_of_its_own(backend: str, calibrated: bool) -> None:
    config, machine = SPARSE[backend], CARD if backend == "cuda" else HOST
    machine = machine if calibrated else replace(machine, calibration=None, cpu=None)
    found, half_way = predict(CASE, config, machine), predict(replace(CASE, walls="half-way"), config, machine)
    assert {term.name for term in found.terms} == {"wall pass", *(term.name for term in half_way.terms)}
    assert 1 / found.mlups - 1 / half_way.mlups == pytest.approx(1e6 * found.seconds_of("wall pass"))
    assert predict(CASE, config, machine, without=["wall pass"]).mlups == half_way.mlups
    assert found.bytes_per_update - half_way.bytes_per_update == pytest.approx(traffic(CASE, config).walls)


def test_a_launch_costs_more_on_a_small_domain() -> None:
    small = replace(CASE, domain=(16, 16, 16))
    bytes_s = wall_pass_bytes(small, SPARSE["cuda"], 32) / CARD.stream_bytes_per_s["16"]
    assert predict(small, SPARSE["cuda"], CARD).seconds_of("wall pass") > 2 * bytes_s


@pytest.mark.parametrize("values", [1, 8])
def test_lines_are_between_the_values_and_a_line_for_each(values: int) -> None:
    """Two populations are read and one is written; in arrays of structures none shares its line with another link."""
    config = SPARSE["cuda"] if values > 1 else parse_config("family=sparse,scheme=aa,layout=aos")
    links, moved = link_count(CASE) / CASE.fluid_sites, wall_pass_bytes(CASE, config, 32)
    assert traffic(CASE, config).walls < moved <= links * (12 + 3 * 32)
    assert (moved == pytest.approx(links * (12 + 3 * 32))) == (values == 1)


def test_nothing_moves_without_links() -> None:
    assert wall_pass_bytes(replace(CASE, geometry="packing:fraction=0"), SPARSE["cuda"], 32) == 0


def test_the_recorded_pass_of_geier_and_schoenherr() -> None:
    """The last cache of these two cores holds the state: lines come from the cache of the other core, which is slow."""
    path = RECORDED / "epyc-2-cores" / "claims.json.gz"
    groups = decoded(gzip.decompress(path.read_bytes()), path).groups
    (beads,) = (one for one in groups if (one.document, one.series) == ("geier2017", "beads-cumulant"))
    rows = {row.variant: row for row in beads.rows}
    trials = [rows[name].trial for name in ("half-way", "second-order")]
    without_s, with_s = (1e-6 / trial.best_measurement.mlups for trial in trials if trial)
    case, config = replace(beads.case, walls="interpolated"), config_of(rows["second-order"].config)
    assert 0.5 < predict(case, config, HOST).seconds_of("wall pass") / (with_s - without_s) < 1.5
