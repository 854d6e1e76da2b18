"""Laws of the contenders of a portfolio, by measurements that are made up."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from lbmtune.api.machines.devices import limits_of
from lbmtune.api.portfolios.contenders import Contenders
from lbmtune.api.portfolios.laws import Laws
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Outcome, Trial
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.records.spec import StudySpec
from tests.support.paths import RECORDED
from tests.support.studies.fake_study import measurement

H200 = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
TILES = TemporalBlocking(
    representation="moments", block=(32, 12, 1), rows=2, steps=3, pack=4, chunk_planes=6, z_buffer="shared"
)
ALIKE = replace(TILES, plane_fetch="cp_async")
SPEC = StudySpec(name="box", case=box("d3q19", "regularised", (64, 64, 64)), axes={})


def trial(config: KernelConfig, mlups: float) -> Trial:
    speed = replace(measurement(config), mlups=mlups)
    return Trial(number=0, key=config.key, config=config.flat(), outcome=Outcome.OK, final=speed)


def domains(count: int, seed: int) -> list[tuple[int, int, int]]:
    found = np.exp2(np.random.default_rng(seed).uniform(6, 9, (count, 3))).round().astype(int).tolist()
    return [(x, y, z) for x, y, z in found]


def test_a_kernel_that_is_little_known_follows_the_law_of_one_with_the_same_tile() -> None:
    """The device takes longer for each wave than the model says, by another factor for each kernel."""
    known = Contenders(SPEC, H200, limits_of(H200), {Direct().key: Direct()})
    well, little = (known.put(one, None) for one in (TILES, ALIKE))
    assert known.shape(TILES) == known.shape(ALIKE) != known.shape(replace(TILES, rows=3))
    laws = Laws(known, domains(16, 2))
    picoseconds = np.zeros(len(laws.formulas(well)))
    picoseconds[[1, 3]] = 2.0, 4e5

    def mlups(domain: tuple[int, int, int]) -> float:
        return prod(domain) * 1e6 / float(laws.numbers(well, [domain])[0] @ picoseconds)

    measured = []
    for number, domain in enumerate(domains(24, 1)):
        taken = [trial(known.at(well, domain), mlups(domain))]
        taken += [trial(known.at(little, domain), 0.8 * mlups(domain))] * (number < 2)
        measured.append(MeasuredDomain(domain=domain, visit=1, default="", trials=tuple(taken)))
    new = domains(40, 3)
    speeds = laws.speeds(new, measured)[:, known.keys.index(little)]
    assert speeds == pytest.approx([0.8 * mlups(one) for one in new], rel=0.05)
    alone = Laws(Contenders(SPEC, H200, limits_of(H200), {Direct().key: Direct()}), laws.others)
    alone.contenders.put(ALIKE, None)
    by_model = alone.speeds(new, measured)[:, -1]
    assert np.abs(by_model / speeds - 1).max() > 0.05, "the model would not have told it"
    assert all(laws.hopes(one, measured)[-1] > speed for one, speed in zip(new, speeds, strict=True))
