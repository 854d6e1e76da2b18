"""Who has a final: the best, and the best of each family that one would compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.config import KernelConfig, cpu, cuda, from_flat
from lbmtune.catalogue.layouts import SoA
from lbmtune.records import Outcome, Trial
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search.finals import NEAR, finalists_of
from lbmtune.search.kinds import kind_of
from tests.support.paths import ROOT
from tests.support.studies.fake_study import header, measurement, predict, spec

RECORDED = ROOT / "studies" / "recorded" / "nvidia-h200"
HEADER = header(spec(axes={"scheme": ("aa",), "block": ("64x1x1",)}))
KINDS: tuple[KernelConfig, ...] = tuple(
    one
    for number, scheme in enumerate(("pull", "push", "aa", "esoteric-twist"))
    for one in (
        cuda.Direct(scheme=scheme),
        cuda.Direct(scheme=scheme, flags="memory"),
        cuda.Sparse(scheme=scheme),
        cuda.Direct(scheme=scheme, index_bits=64),
        cuda.TemporalBlocking(steps=2 + number),
    )
)


def record(speeds: Mapping[int, float | None], wanted: int = 2, objective: str = "mlups") -> StudyRecord:
    """A study with one trial of each kind that has a speed in MLUPS; None: it failed."""
    trials = tuple(_trial(number, KINDS[number % len(KINDS)], mlups) for number, mlups in speeds.items())
    protocol = TimingProtocol(finalists=wanted)
    return StudyRecord(
        header=replace(HEADER, spec=replace(HEADER.spec, protocol=protocol, objective=objective)), trials=trials
    )


def _trial(number: int, config: KernelConfig, mlups: float | None) -> Trial:
    return Trial(
        number=number,
        key=f"{config.key}-{number}",
        config=config.flat(),
        outcome=Outcome.WRONG_RESULT if mlups is None else Outcome.OK,
        prediction=predict(config),
        measurement=None if mlups is None else replace(measurement(config), mlups=mlups),
    )


SPEEDS = st.dictionaries(
    st.integers(0, 3 * len(KINDS) - 1), st.one_of(st.none(), st.floats(100, 30000)), min_size=1, max_size=40
).filter(lambda speeds: len(set(speeds.values())) == len(speeds))


@given(SPEEDS, st.integers(0, 6))
def test_the_best_of_all_of_each_class_and_of_near_families_have_finals_and_nobody_else(
    speeds: Mapping[int, float | None], wanted: int
) -> None:
    study = record(speeds, wanted)
    found = finalists_of(study)
    valid = [t for t in study.trials if t.mlups]
    by_family: dict[object, Trial] = {}
    by_class: dict[object, Trial] = {}
    for trial in sorted(valid, key=lambda t: -(t.mlups or 0)):
        family = kind_of(from_flat(trial.config))
        by_family.setdefault(family, trial)
        by_class.setdefault(family.requirements, trial)
    best = sorted(valid, key=lambda t: -(t.mlups or 0))[: max(wanted, 1)]
    near = {f: t for f, t in by_family.items() if (t.mlups or 0) >= NEAR * (best[0].mlups or 0)}
    led = {t.number: str(f) for f, t in by_family.items() if t in (*near.values(), *by_class.values())}
    assert {t.number for t in found} == {t.number for t in best} | set(led)
    assert {t.number: t.stands_for for t in found if t.stands_for} == led
    speeds_found = [t.mlups or 0.0 for t in found]
    assert speeds_found == sorted(speeds_found, reverse=True)


@given(SPEEDS, st.randoms(use_true_random=False))
def test_they_depend_on_speeds_and_not_on_the_order_of_trials_or_on_earlier_finals(
    speeds: Mapping[int, float | None], random: object
) -> None:
    study = record(speeds)
    shuffled = sorted(study.trials, key=lambda _: random.random())  # type: ignore[attr-defined]
    before = tuple(replace(t, final=measurement(KINDS[0]), stands_for="another") for t in shuffled)
    assert finalists_of(replace(study, trials=before)) == finalists_of(study)


def test_where_small_is_what_counts_the_smallest_alone_have_finals() -> None:
    study = record({n: 1000.0 + n for n in range(len(KINDS))}, wanted=3, objective="footprint")
    found = finalists_of(study)
    assert len(found) == 3
    assert {t.stands_for for t in found} == {""}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (cuda.Direct(scheme="aa"), "aa, populations in one lattice"),
        (cuda.Direct(flags="memory"), "pull, populations in two lattices, flags read"),
        (cuda.Sparse(scheme="push"), "push, populations in two lattices, sites listed"),
        (cpu.Wavefront(scheme="pull", tile=(0, 0)), "pull, populations in two lattices, 4 steps per launch"),
        (
            cuda.TemporalBlocking(
                layout=SoA(), block=(256, 1, 1), chunk_planes=1, plane_fetch="none", representation="moments", steps=1
            ),
            "pull, moments in two lattices",
        ),
        (cuda.Persistent(block=(256, 1, 1), tile_planes=1), "pull, populations on chip in two lattices"),
        (cuda.FaceExchange(layout=SoA(), tile=(256, 1, 1)), "pull, moments by the faces of tiles in one lattice"),
    ],
)
def test_a_family_says_what_it_is(config: KernelConfig, said: str) -> None:
    assert str(kind_of(config)) == said


def test_one_step_in_place_has_a_final_beside_several_steps_in_place() -> None:
    """As on a processor: several steps in place lead by far, one step in place is faster than one with two lattices."""
    several = cpu.Wavefront(steps=8, tile=(32, 1))
    kinds = (several, cpu.Direct(scheme="aa"), cpu.Direct())
    speeds = (595.0, 522.0, 201.0)
    study = record({})
    trials = tuple(_trial(n, kind, mlups) for n, (kind, mlups) in enumerate(zip(kinds, speeds, strict=True)))
    protocol = replace(study.header.spec.protocol, finalists=1)
    header_of_one = replace(study.header, spec=replace(study.header.spec, protocol=protocol))
    found = finalists_of(replace(study, header=header_of_one, trials=trials))
    assert [(t.number, t.stands_for) for t in found] == [
        (0, "aa, populations in one lattice, 8 steps per launch"),
        (1, "aa, populations in one lattice"),
        (2, "pull, populations in two lattices"),
    ]


def test_what_stays_on_chip_has_a_final_beside_what_does_not() -> None:
    """As with 64^3 cells: moments in memory are far behind, and no other kernel of moments would have one."""
    kinds = (
        cuda.Persistent(block=(256, 1, 1), tile_planes=1),
        cuda.Persistent(block=(256, 1, 1), representation="moments", tile_planes=1),
        cuda.Direct(launch="graph"),
        cuda.TemporalBlocking(
            layout=SoA(),
            block=(256, 1, 1),
            chunk_planes=1,
            launch="graph",
            plane_fetch="none",
            representation="moments",
            steps=1,
        ),
    )
    trials = tuple(_trial(n, kind, 75e3 / (1 + n)) for n, kind in enumerate(kinds))
    found = finalists_of(replace(record({}, wanted=1), trials=trials))
    assert [t.stands_for for t in found] == [
        "pull, populations on chip in two lattices",
        "pull, moments on chip in two lattices",
        "pull, populations in two lattices",
        "pull, moments in two lattices",
    ]


def test_of_a_recorded_cavity_both_memories_and_both_kinds_of_links_would_be_compared() -> None:
    found = finalists_of(read_study(RECORDED / "d3q19-cavity-fp32"))
    classes = {(f.lattices, f.links) for f in (kind_of(from_flat(t.config)) for t in found)}
    assert classes == {(1, "compiled"), (1, "flags"), (2, "compiled"), (2, "flags")}
    assert len(found) <= 12
