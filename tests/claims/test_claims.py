"""Published claims: files, plans, verdicts, resuming. The verdicts are made of made-up figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from lbmtune.catalogue.config import KernelConfig, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.claims.evidence import Evidence, evidence, reasons
from lbmtune.claims.figures import figures
from lbmtune.claims.judge import Reading, beside, decide, judge, readings_of, speed_ratio, verdicts
from lbmtune.claims.plan import Here, Plan, configuration, plans
from lbmtune.claims.run import Counting, Observer, Run, check_same_device, run_claims
from lbmtune.claims.store import GROUPS, RESULTS, append_group, read_claims, read_groups
from lbmtune.cli.app import app
from lbmtune.errors import InputError, NothingValidError
from lbmtune.files.claimsfile import load_documents, parse_document
from lbmtune.files.shipped import published
from lbmtune.records import Accuracy, AccuracyPoint, Outcome, Resources, Trial
from lbmtune.records.claims import Claim, Claims, ClaimsHeader, Document, Group, Holding, Rates, Row, SideTask, Verdict
from lbmtune.records.comparison.statistics import Interval
from lbmtune.records.profile import Counter, Counters
from tests.support.refusals import refused
from tests.support.studies.fake_study import CASE, LIMITS, environment, measurement

HERE = Here(backend="cuda", limits=LIMITS, physical_cores=2, budget_bytes=1 << 30)
ON_CPU = replace(HERE, backend="cpu")
RATES = Rates(copy_bytes_per_s=1e12, in_place_bytes_per_s=2e12)

TEXT = """
name = "made-up"
title = "Made up"
source = "nobody"

[series.box]
title = "box"
case = { flow = "box", lattice = "d3q19", collision = "bgk", relaxation_rate = 1.6 }
cuda = ["32x32x32", "64x64x64"]

[variants.fast]
title = "the fast one"
series = "box"
cuda = "scheme=aa,block=32x1x1"
published."Old card" = { "32x32x32" = 150, "64x64x64" = 200 }
published."Older card" = { "16x16x16" = 40, "box: at its best" = 50 }

[variants.slow]
title = "the slow one"
series = "box"
cuda = "scheme=pull,block=32x1x1"

[variants.unheard-of]
title = "from the future"
series = "box"
cuda = "scheme=teleport"

[claims.faster]
sentence = "The fast one is faster."
of = "fast"
over = "slow"
at_least = 1.0
published = [1.1, 1.2]

[claims.unheard-of]
sentence = "The future is faster."
of = "unheard-of"
over = "slow"
at_least = 1.0
"""


def document(text: str = TEXT) -> Document:
    return parse_document(text, "made-up.toml")


def claim(**changes: object) -> Claim:
    plain = Claim(name="c", sentence="s", of=("a",), over=("b",), at_least=1.0, published=(1.1, 1.2))
    return replace(plain, **changes)


def reading(name: str, samples_s: Sequence[float], group: Group | None = None, **changes: object) -> Reading:
    """A reading with these seconds per step."""
    final = replace(measurement(cuda.Direct()), samples_s=tuple(samples_s), bytes_per_update=304, sites=10**6)
    trial = Trial(number=0, key="k", config={}, outcome=Outcome.OK, final=final)
    row = Row(variant=name, config=cuda.Direct().flat(), trial=trial)
    return Reading(replace(row, **changes), group)


GROUP = Group(document="made-up", series="box", case=CASE, rows=())


def judged(asked: Claim, a: Sequence[float], b: Sequence[float] = (1.0,) * 15, **changes: object) -> Holding:
    found = {"a": reading("a", a, GROUP, **changes), "b": reading("b", b, GROUP)}
    return judge("made-up", asked, found, "cuda", RATES).holding


def test_every_verdict_can_be_said() -> None:
    faster, slower, unsure = [0.8] * 15, [1.25] * 15, [0.8] * 7 + [1.25] * 8
    assert judged(claim(), faster) is Holding.HOLDS
    assert judged(claim(), slower) is Holding.FAILS
    assert judged(claim(), unsure) is Holding.UNDECIDED
    assert judged(claim(untestable={"cuda": "no such switch"}), faster) is Holding.UNTESTABLE
    assert judged(claim(untestable={"cpu": "no such switch"}), faster) is Holding.HOLDS


def test_a_claim_of_an_upper_bound_is_judged_the_other_way_round() -> None:
    assert judged(claim(at_least=None, at_most=1.0), [0.8] * 15) is Holding.FAILS
    assert judged(claim(at_least=None, at_most=1.0), [1.25] * 15) is Holding.HOLDS
    assert judged(claim(at_least=1.2, at_most=1.3), [0.8] * 15) is Holding.HOLDS
    assert judged(claim(at_least=1.2, at_most=1.3), [0.7] * 15) is Holding.FAILS


@given(st.floats(0.1, 10), st.floats(0, 5), st.floats(0.1, 10))
def test_a_verdict_follows_from_where_the_interval_lies(low: float, width: float, threshold: float) -> None:
    found = Interval(low, low + width / 2, low + width)
    expected = Holding.HOLDS if low >= threshold else Holding.FAILS if low + width < threshold else Holding.UNDECIDED
    assert decide(found, threshold, None) is expected


def test_an_interval_at_the_bound_that_excludes_the_printed_figure_decides() -> None:
    none = Interval(0.9998, 1.0, 1.0003)
    assert decide(none, 1.0, None) is Holding.UNDECIDED, "nothing is printed"
    assert decide(none, 1.0, None, (1.05, 1.05)) is Holding.FAILS
    assert decide(Interval(0.98, 1.0, 1.06), 1.0, None, (1.05, 1.05)) is Holding.UNDECIDED
    assert decide(none, None, 1.0, (0.6, 0.6)) is Holding.FAILS
    assert decide(Interval(1.01, 1.02, 1.03), 1.0, None, (1.05, 1.05)) is Holding.HOLDS, "less, and yet more than none"
    covers = judge(
        "made-up",
        claim(),
        {"a": reading("a", [1.0, *[0.999] * 7, *[1.001] * 7], GROUP), "b": reading("b", [1.0] * 15, GROUP)},
        "cuda",
        RATES,
    )
    assert covers.holding is Holding.FAILS
    assert covers.reason.endswith(
        "printed 1.1x .. 1.2x: its interval covers the bound and does not reach what is printed"
    )


def test_figures_beside_the_printed_range() -> None:
    assert [beside(Interval(x, x, x), (1.1, 1.2)) for x in (1.0, 1.15, 1.3)] == ["less", "as published", "more"]
    assert beside(Interval(1.0, 1.05, 1.1), (1.1, 1.2)) == "as published"
    assert beside(Interval(1, 1, 1), None) == ""


def test_drift_that_all_share_does_not_widen_a_ratio_of_variants_measured_in_turns() -> None:
    drift = [1 + n / 15 for n in range(15)]
    a, b = reading("a", [0.8 * d for d in drift], GROUP), reading("b", drift, GROUP)
    together = speed_ratio(a, b)
    assert together.median == pytest.approx(1.25)
    assert together.half_width < 1e-12
    apart = speed_ratio(replace(a, group=replace(GROUP)), b)
    assert apart.low < 1 < apart.high
    assert apart.median == pytest.approx(1.25)


def test_variants_on_different_domains_are_compared_by_updates_and_not_by_steps() -> None:
    a, b = reading("a", [1.0] * 15, GROUP), reading("b", [1.0] * 15)
    assert a.row.trial
    assert a.row.trial.final
    larger = replace(a.row.trial, final=replace(a.row.trial.final, sites=4 * 10**6))
    assert speed_ratio(replace(a, row=replace(a.row, trial=larger)), b).median == pytest.approx(4)


def measured_value(asked: Claim, readings: Mapping[str, Reading]) -> float | None:
    return judge("made-up", asked, readings, "cuda", RATES).median


def test_quantities() -> None:
    a, b, c = (reading(name, [s] * 15, GROUP) for name, s in zip("abc", (0.8, 1.0, 1.6), strict=True))
    named = {"a": a, "b": b, "c": c}
    assert measured_value(claim(), named) == pytest.approx(1.25)
    assert measured_value(claim(of=("c", "a")), named) == pytest.approx(1.25), "the fastest counts"
    assert measured_value(claim(of=("c",), over=("a", "b")), named) == pytest.approx(0.5)
    assert measured_value(claim(kind="loss", of=("c",)), named) == pytest.approx(1 - 1 / 1.6)
    assert measured_value(claim(kind="spread", of=("a", "b", "c"), over=()), named) == pytest.approx(1.0)
    # 304 bytes x 10^6 cells in 0.8 s of 10^12 bytes per second
    assert measured_value(claim(kind="bandwidth", over=()), named) == pytest.approx(3.8e-4)


def test_what_updates_in_place_is_held_against_such_an_update() -> None:
    named = {name: reading(name, [0.8] * 15, GROUP, config=cuda.Direct(scheme=name).flat()) for name in ("aa", "pull")}
    shares = [measured_value(claim(kind="bandwidth", of=(name,), over=()), named) for name in ("aa", "pull")]
    assert shares == pytest.approx([1.9e-4, 3.8e-4])
    assert replace(header(), in_place_bytes_per_s=3e12).rates == (4e12, 3e12)
    assert header().rates == (4e12, 4e12), "what an earlier version wrote"


def test_a_loss_at_an_interval_follows_from_a_shorter_one() -> None:
    # a duty of 6 s every 10 steps of 1 s; every 100 steps it takes 6 of 106 s
    named = {"a": reading("a", [1.6] * 15, GROUP, duty=SideTask("save", 10)), "b": reading("b", [1.0] * 15, GROUP)}
    assert measured_value(claim(kind="interval-loss", every=100), named) == pytest.approx(6 / 106)
    assert measured_value(claim(kind="interval-loss", every=10), named) == pytest.approx(6 / 16)


def test_errors_are_judged_over_all_velocities_that_are_asked_for() -> None:
    def errors(kind: str, velocities: tuple[float, ...], *ratios: float | None, **bounds: float) -> Verdict:
        made = reading("a", [1.0] * 15, GROUP)
        assert made.row.trial
        trial = replace(made.row.trial, accuracy=accuracy_of(cuda.Direct(), *ratios))
        asked = claim(kind=kind, over=(), velocities=velocities, **{"at_least": None, **bounds})
        return judge("made-up", asked, {"a": replace(made, row=replace(made.row, trial=trial))}, "cuda", RATES)

    found = errors("velocity-error", (0.001, 0.01, 0.1), at_most=1.6)
    assert (found.low, found.median, found.high) == pytest.approx((1.0, 1.2, 1.5))
    assert (found.holding, found.disturbed) == (Holding.HOLDS, False)
    assert found.reason.startswith("measured 1.2x (1x .. 1.5x, by velocity); at most 1.6x is claimed")
    assert errors("velocity-error", (0.01, 0.1), at_most=1.1).holding is Holding.UNDECIDED
    assert errors("velocity-error", (0.001, 0.01), at_most=1.1).holding is Holding.FAILS
    assert errors("density-error", (0.01,), at_least=10).median == pytest.approx(12)
    assert errors("density-error", (0.01,), 1.0, None, 1.0, at_least=10).reason == "the vortex did not stay finite"
    assert "at none of these velocities" in errors("density-error", (0.5,), at_least=10).reason


def test_an_error_that_was_not_measured_is_told() -> None:
    asked = claim(kind="velocity-error", over=(), velocities=(0.1,))
    found = judge("made-up", asked, {"a": reading("a", [1.0] * 15, GROUP)}, "cuda", RATES)
    assert (found.holding, found.reason) == (Holding.UNTESTABLE, "it was not measured")


def test_footprints_need_no_measurement() -> None:
    rows = {name: Reading(Row(variant=name, footprint_bytes=n)) for name, n in (("a", 55), ("b", 100))}
    found = judge("made-up", claim(kind="footprint", at_least=None, at_most=0.6), rows, "cuda", RATES)
    assert (found.holding, found.median) == (Holding.HOLDS, 0.55)


def test_what_failed_gives_its_reason() -> None:
    failed = Trial(number=0, key="k", config={}, outcome=Outcome.WRONG_RESULT, reason="f_1 is off")
    readings = {"a": Reading(Row(variant="a", trial=failed), GROUP), "b": reading("b", [1.0] * 15, GROUP)}
    found = judge("made-up", claim(), readings, "cuda", RATES)
    assert (found.holding, found.reason) == (Holding.UNTESTABLE, "wrong result: f_1 is off")


def test_what_was_right_and_could_not_be_timed_is_not_said_to_be_ok() -> None:
    right = Trial(number=0, key="k", config={}, outcome=Outcome.OK, reason="left values that are\n not finite")
    assert Row(variant="a", trial=right).why_not == "left values that are not finite"
    assert Row(variant="a", trial=replace(right, reason="")).why_not == "its timing gave no result"


def test_a_spread_needs_two_and_names_what_is_missing() -> None:
    one = {"a": reading("a", [1.0] * 15, GROUP), "b": Reading(Row(variant="b", reason="illegal here"))}
    found = judge("made-up", claim(kind="spread", of=("a", "b"), over=()), one, "cuda", RATES)
    assert (found.holding, found.reason) == (Holding.UNTESTABLE, "illegal here")


# files


@pytest.mark.parametrize(
    ("wrong", "right", "complaint"),
    [
        (
            'titel = "box"',
            'title = "box"',
            "made-up.toml, line 7: series.box.titel: unknown key; did you mean 'title'?",
        ),
        (
            'series = "bax"',
            'series = "box"',
            "made-up.toml, line 13: variants.fast.series: unknown series 'bax'; did you",
        ),
        ('of = "fest"', 'of = "fast"', "claims.faster.of: unknown variant 'fest'; did you mean 'fast'?"),
        (
            'kind = "ratoi"\nof = "fast"',
            'of = "fast"',
            "claims.faster.kind: unknown kind 'ratoi'; did you mean 'ratio'?",
        ),
        ('cuda = "aa"', 'cuda = "scheme=aa,block=32x1x1"', "variants.fast.cuda: 'aa' is not of the form knob=value"),
        (
            'duty = "sing"\ncuda = "scheme=aa"',
            'cuda = "scheme=aa,block=32x1x1"',
            "variants.fast.duty: unknown side task 'sing'",
        ),
        ('published = "x"', "published = [1.1, 1.2]", "line 33: claims.faster.published"),
        ('"64x64x64" = "fast"', '"64x64x64" = 200', "variants.fast.published"),
        ('"64x64x64" = 0', '"64x64x64" = 200', "variants.fast.published: 0 MLUPS; give a positive number"),
        (
            'kind = "density-error"\nof = "fast"',
            'of = "fast"\nover = "slow"',
            "claims.faster.velocities: are given where an error is asked for, and there alone: some of 0.001, ",
        ),
        (
            'kind = "density-error"\nof = "fast"\nvelocities = [0.3]',
            'of = "fast"\nover = "slow"',
            "claims.faster.velocities: [0.3]: errors are measured at some of 0.001, ",
        ),
        (
            'kind = "density-error"\nvelocities = [0.1]\nof = "fast"\nover = "slow"',
            'of = "fast"\nover = "slow"',
            "claims.faster.over: a density-error takes no over",
        ),
        ("published", "at_least = 1.0\npublished", "claims.faster.at_least: neither at_least nor at_most is given"),
        ("at_least = 0.9", "at_least = 1.0", "claims.faster.at_least: a ratio of 1, no effect, holds; give a bound"),
        ("at_least = 0.0", "at_least = 1.0", "claims.faster.at_least: no ratio can miss it; give a bound"),
        ("at_least = 1.3", "at_least = 1.0", "claims.faster.published: the printed figure itself misses the bounds"),
        (
            "published = [1.0, 25.0]",
            "published = [1.1, 1.2]",
            "claims.faster.at_least: a ratio of 1, no effect, holds; give a bound that it misses",
        ),
        (
            "at_most = 1.05\npublished = 0.6",
            "at_least = 1.0\npublished = [1.1, 1.2]",
            "claims.faster.at_most: a ratio of 1, no effect, holds; give a bound that it misses",
        ),
        (
            'kind = "interval-loss"\nat_most = 1.0',
            "at_least = 1.0\npublished = [1.1, 1.2]",
            "claims.faster.at_least: no interval-loss can miss it",
        ),
        ("", 'over = "slow"\n', "claims.faster.over: a ratio takes over, the variants that it is compared with"),
        ("", 'sentence = "The fast one is faster."', "claims.faster.sentence: is missing"),
        ('"32y32"', '"32x32x32"', "made-up.toml, line 9: series.box.cuda: domain '32y32' is not"),
    ],
)
def test_errors_of_a_file_name_line_and_key(wrong: str, right: str, complaint: str) -> None:
    assert complaint in refused(document, TEXT, right, wrong)


@pytest.mark.parametrize(
    "bounds",
    [
        "at_least = 0.95\npublished = 1.0",
        "at_least = 0.9\npublished = 0.932",
        "at_most = 1.02\npublished = 1.0",
        "at_least = 2.0\npublished = [1.0, 25.0]",
        "at_least = 0.85\nat_most = 1.15\npublished = 1.0",
        'kind = "loss"\nat_least = 0.0\npublished = 0.4',
        'kind = "loss"\nat_most = 0.055\npublished = [0.002, 0.055]',
    ],
)
def test_bounds_that_a_measurement_can_miss_are_right(bounds: str) -> None:
    right = document(TEXT.replace("at_least = 1.0\npublished = [1.1, 1.2]", bounds))
    assert right.claims[0].published


_MEANT: dict[str, Callable[[Claim], bool]] = {
    "over": lambda one: one.kind == "ratio" and (one.at_least or 0) >= 1,
    "free": lambda one: (one.kind == "ratio" and one.at_least is not None) or one.at_most is not None,
    "costs": lambda one: one.kind in ("loss", "interval-loss") and one.at_least is not None,
    "half": lambda one: one.at_most is not None and one.at_most < 1,
    "often": lambda one: one.at_least is not None,
    "seldom": lambda one: one.at_most is not None,
    "constant": lambda one: one.kind == "ratio" and one.at_least is not None and one.at_least < 1,
    "equal": lambda one: one.at_least is not None and one.at_most is not None,
    "worst": lambda one: one.at_most is not None,
    "recovers": lambda one: one.kind == "ratio" and one.at_least is not None,
    "spill": lambda one: one.kind == "ratio" and one.at_most is not None,
}
"""What a word in the name of a claim says on its bounds."""


def test_names_of_shipped_claims_say_what_holds() -> None:
    claims = [claim for one in load_documents(()) for claim in one.claims if claim.of]
    said = [(word, claim) for claim in claims for word in claim.name.split("-") if word in _MEANT]
    assert {word for word, _ in said} == set(_MEANT)
    assert [claim.name for word, claim in said if not _MEANT[word](claim)] == []


def test_what_the_catalogue_lacks_is_no_error_of_the_file() -> None:
    strange = document(TEXT.replace('flow = "box"', 'flow = "porcus"'))
    assert strange.series[0].missing == "this catalogue has no flow 'porcus'"
    keyed = document(TEXT.replace('flow = "box"', 'flow = "box", solids = 0.4'))
    assert keyed.series[0].missing == "this catalogue's cases have no solids"
    found = verdicts(strange, (), "cuda", RATES)
    assert {v.holding for v in found} == {Holding.UNTESTABLE}
    assert found[0].reason == strange.series[0].missing


def test_shipped_documents_are_read_and_planned_for_every_device() -> None:
    documents = (*load_documents(()), *load_documents((), 2))
    assert {d.name for d in documents} == set(published())
    for here in (HERE, ON_CPU):
        for one in documents:
            planned = list(plans(one, here))
            assert all(entry.reason for plan in planned for entry in plan.entries if entry.config is None)


def test_an_unknown_name_is_answered_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="did you mean 'tran2017'"):
        load_documents(["tran2071"])
    with pytest.raises(InputError, match="--only a,b: each takes one document; say --only a --only b"):
        load_documents(["a,b"])


# plans


def test_a_plan_says_why_a_variant_cannot_be_measured() -> None:
    plan = list(plans(document(), HERE))[-1]
    assert [entry.variant.name for entry in plan.runnable] == ["fast", "slow"]
    assert plan.entries[-1].reason == "from the future: this catalogue has no scheme 'teleport'"
    unknown = document(TEXT.replace("scheme=aa", "scheme=aa,warp_speed=9"))
    assert next(plans(unknown, HERE)).entries[0].reason == "the fast one: this catalogue has no knob 'warp_speed'"
    illegal = document(TEXT.replace("block=32x1x1", "block=2048x1x1"))
    assert "2048 threads; this device allows" in next(plans(illegal, HERE)).entries[0].reason


def test_threads_by_core_need_several_threads_to_a_core() -> None:
    with pytest.raises(InputError, match="threads=cores is not supported on this processor"):
        configuration("threads=cores", ON_CPU, (32, 32, 32))
    assert configuration("threads=cores", replace(ON_CPU, physical_cores=1), (32, 32, 32)).flat()["threads"] == 1


def test_a_part_of_the_domain_stands_for_its_cells() -> None:
    found = configuration("family=column,z_cells=nz/4,block=32x16x1", HERE, (64, 32, 192))
    assert found.flat()["z_cells"] == 48
    with pytest.raises(InputError, match="z_cells"):
        configuration("family=column,z_cells=nz/0", HERE, (64, 32, 192))


def test_a_domain_past_capacity_fits_one_lattice_and_not_two() -> None:
    past = (
        TEXT.replace('"64x64x64"]', '"past capacity"]')
        .replace('"32x32x32", ', "")
        .replace("scheme=", "storage=fp64,scheme=")
    )
    plan = next(plans(document(past), HERE))
    fast, slow, _ = plan.entries
    assert fast.config is not None
    assert slow.config is None
    assert "the budget of the device is 1 GiB" in slow.reason
    smaller = next(plans(document(past), replace(HERE, budget_bytes=1 << 28)))
    assert smaller.case.sites < plan.case.sites


# runs


def accuracy_of(config: KernelConfig, *ratios: float | None) -> Accuracy:
    """Errors against the exact vortex at 0.001, 0.01 and 0.1, times those in fp64; in density a tenth as much more."""
    points = tuple(
        AccuracyPoint(
            velocity_scale=velocity,
            relaxation_rate=1.0,
            steps=10,
            density=0.0,
            velocity=0.0,
            density_to_exact=None if ratio is None else 1e-6 * ratio * 10,
            velocity_to_exact=None if ratio is None else 1e-3 * ratio,
            reference_density_to_exact=1e-6,
            reference_velocity_to_exact=1e-3,
        )
        for velocity, ratio in zip((0.001, 0.01, 0.1), ratios or (1.5, 1.2, 1.0), strict=True)
    )
    return Accuracy(
        lattice="d3q19", collision="bgk", storage=config.storage, compute="fp32", domain=(64, 64, 4), points=points
    )


class Made:
    """An evaluator without a device. seconds: per step, by scheme."""

    asked: list[tuple[Case, tuple[KernelConfig, ...]]] = []
    accuracies = 0

    def __init__(self, case: Case) -> None:
        self._case = case

    def __enter__(self) -> Made:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def finals(self, configs: Sequence[KernelConfig], duties: Mapping[int, SideTask] | None = None) -> list[Trial]:
        Made.asked.append((self._case, tuple(configs)))
        return [
            Trial(number=n, key=c.key, config=c.flat(), outcome=Outcome.OK, final=self._final(c))
            for n, c in enumerate(configs)
        ]

    def accuracy(self, config: KernelConfig) -> Accuracy:
        Made.accuracies += 1
        if config.scheme == "pull":
            raise NothingValidError("the accuracy cannot be measured: it died.")
        return accuracy_of(config)

    def _final(self, config: KernelConfig) -> object:
        seconds = {"aa": 1.0, "pull": 1.15}[config.scheme]
        return replace(measurement(config), samples_s=(seconds,) * 15, mlups=100 / seconds, sites=self._case.sites)


def header(*documents: Document) -> ClaimsHeader:
    return ClaimsHeader(
        backend="cuda",
        environment=environment("cuda"),
        copy_bytes_per_s=4e12,
        budget_bytes=1 << 30,
        documents=tuple(d.name for d in documents),
        date="2000-01-01T00:00:00+00:00",
        version="0",
    )


def run(folder: Path, *documents: Document, observer: Observer | None = None, count: Counting | None = None) -> Claims:
    folder.mkdir(exist_ok=True)
    needs = Run(
        here=HERE,
        open_evaluator=Made,
        folder=folder,
        observer=observer or Observer(),
        count=count,
    )
    return run_claims(needs, header(*documents), documents)


def test_a_run_measures_every_group_and_judges_every_claim(tmp_path: Path) -> None:
    Made.asked = []
    claims = run(tmp_path, document())
    assert [case.domain for case, _ in Made.asked] == [(32, 32, 32), (64, 64, 64)]
    assert [(v.claim, v.holding) for v in claims.verdicts] == [
        ("faster", Holding.HOLDS),
        ("unheard-of", Holding.UNTESTABLE),
    ]
    assert claims.verdicts[0].median == pytest.approx(1.15)
    assert claims.verdicts[0].beside_published == "as published"
    assert claims.verdicts[0].reason.startswith("measured 1.15x; at least 1x is claimed, printed 1.1x .. 1.2x")
    assert read_claims(tmp_path) == claims


def test_a_table_sets_measured_beside_published(tmp_path: Path) -> None:
    small, other, _, large, *_ = figures(run(tmp_path, document()), document())
    elsewhere = ("40 (Older card, 16x16x16)", "50 (Older card, at its best)")
    assert small.published_texts == ("150 (Old card)", *elsewhere)
    assert small.ratio_texts == ("0.667", "2.5", "2")
    assert (large.domain, large.published_texts) == ("64x64x64", ("200 (Old card)", *elsewhere))
    assert (other.published_texts, other.ratio_texts) == ((), ())


def test_a_figure_of_another_domain_or_experiment_is_told_from_one_of_the_same() -> None:
    two = TEXT.replace("[series.box]", '[series.other]\ntitle = "o"\ncase = {}\n[series.box]').replace(
        'series = "box"\ncuda = "scheme=aa', 'series = ["box", "other"]\ncuda = "scheme=aa'
    )
    one = document(two.replace('"64x64x64" = 200', '"64x64x64" = 200, "other" = 7, "other: in all" = 8'))
    texts = {
        (f.series, f.domain): f.published_texts[:-2]
        for series in ("box", "other")
        for domain in ((32, 32, 32), (96, 96, 96))
        for f in [next(figures(_measured(one, series, domain), one))]
    }
    assert texts["box", "32x32x32"] == ("150 (Old card)",)
    assert texts["box", "96x96x96"] == ("200 (Old card, 64x64x64)",)
    assert texts["o", "32x32x32"] == ("150 (Old card)", "7 (Old card)")


def _measured(one: Document, series: str, domain: tuple[int, int, int]) -> Claims:
    group = Group(document="made-up", series=series, case=box("d3q19", "bgk", domain), rows=(Row(variant="fast"),))
    return Claims(header=header(one), documents=(one,), groups=(group,))


def counters_of(case: Case, config: KernelConfig) -> Counters:
    """AA moves twice the bytes of pull, of which some are spilled, and every kernel has half of its warps resident."""
    scale = 2.0 if config.scheme == "aa" else 1.0
    values = {"DRAM bytes read": 80 * scale, "DRAM bytes written": 70 * scale, "occupancy": 50.0}
    stalls = {"stalled: selected": 9.0, "stalled: barrier": 1.0, "stalled: long scoreboard": 7.0}
    found = [Counter(name=name, value=value, unit="") for name, value in {**values, **stalls}.items()]
    return Counters(source="Nsight Compute", found=tuple(found))


def test_counters_are_read_of_the_kernels_behind_claims_that_do_not_hold(tmp_path: Path) -> None:
    asked: list[list[tuple[Case, KernelConfig]]] = []

    def count(kernels: Sequence[tuple[Case, KernelConfig]]) -> list[Counters]:
        asked.append(list(kernels))
        return [counters_of(*kernel) for kernel in kernels]

    text = TEXT.replace("scheme=aa,block=32x1x1", "scheme=aa,block=32x1x1,launch=graph")
    holding = run(tmp_path / "holds", document(text), count=count)
    assert not asked
    failing = document(text.replace("at_least = 1.0", "at_least = 2.0").replace("[1.1, 1.2]", "[2.1, 2.2]"))
    found = run(tmp_path / "fails", failing, count=count)
    (kernels,) = asked
    assert [(case.domain, c.scheme, c.flat()["launch"]) for case, c in kernels] == [
        ((64, 64, 64), "aa", "call"),
        ((64, 64, 64), "pull", "call"),
    ]
    last = found.groups[-1]
    assert [bool(row.counters) for row in last.rows] == [True, True, False]
    assert not any(row.counters for row in found.groups[0].rows)
    again = run(tmp_path / "fails", failing, count=count)
    assert again == found
    assert len(asked) == 1, "what was read is not read again"

    claim = failing.claims[0]
    assert evidence(holding, document(text), document(text).claims[0]) == ()
    fast, slow = evidence(found, failing, claim)
    assert (fast.counters.memory_bytes, slow.counters.memory_bytes, fast.main_stall) == (
        300.0,
        150.0,
        "long scoreboard (7.0)",
    )
    assert fast.texts["memory, bytes per update"] == "160.0 + 140.0"
    sentence, steps = reasons(claim, (fast, slow), RATES)
    assert steps == "a step takes 1000000.0 us against 1150000.0 us"
    # twice the bytes, and 2.3 times as many of them in a second
    assert sentence.endswith(
        "150.0 bytes (2.000 times), at 30 against 13 GB/s (2.300 times): 0.500 x 2.300 = 1.150 times the speed"
    )


def test_bytes_that_counters_saw_are_held_against_those_that_are_counted(tmp_path: Path) -> None:
    asks = (
        TEXT
        + """
[claims.counted]
sentence = "It moves more than it has to."
kind = "counted-bytes"
of = "slow"
at_least = 1.0
"""
    )
    without = run(tmp_path / "without", document(asks)).verdicts[-1]
    assert (without.holding, without.reason) == (Holding.UNTESTABLE, "no counters were read of it")
    found = run(tmp_path / "with", document(asks), count=lambda kernels: [counters_of(*one) for one in kernels])
    needed = found.groups[-1].rows[1].trial.final.bytes_per_update  # type: ignore[union-attr]
    assert found.verdicts[-1].median == pytest.approx(150 / needed)
    assert [bool(row.counters) for row in found.groups[-1].rows] == [False, True, False]


@pytest.mark.parametrize(
    ("kind", "names", "found", "printed"),
    [
        ("moved-sectors", ("L2 sectors read by L1", "L2 sectors written by L1"), 0.75, "75.0 %"),
        ("fewer-stores", ("L2 sectors written by L1",), 0.25, "25.0 %"),
    ],
)
def test_sectors_of_one_kernel_are_held_against_those_of_another(
    tmp_path: Path, kind: str, names: tuple[str, ...], found: float, printed: str
) -> None:
    """Three over four; fewer of them are a quarter."""
    asks = f"""{TEXT}
[claims.sectors]
sentence = "It needs fewer."
kind = "{kind}"
of = "fast"
over = "slow"
at_most = 0.95
"""
    without = run(tmp_path / "without", document(asks)).verdicts[-1]
    assert (without.holding, without.reason) == (Holding.UNTESTABLE, "no counters were read of it")
    few, many = (
        Counters(source="made", found=tuple(Counter(name=n, value=of, unit="") for n in names)) for of in (3.0, 4.0)
    )

    def count(kernels: Sequence[tuple[Case, KernelConfig]]) -> list[Counters]:
        return [few if config.propagation.name == "aa" else many for _, config in kernels]

    verdict = run(tmp_path / "with", document(asks), count=count).verdicts[-1]
    assert verdict.median == pytest.approx(found)
    assert verdict.reason == f"measured {printed}; at most 95.0 % is claimed"


def test_what_a_single_kernel_and_a_duty_come_to() -> None:
    one = Evidence(
        title="a",
        domain="32x32x32",
        mlups=2000.0,
        step_s=32**3 / 2e9,
        bytes_per_update=304.0,
        resources=Resources(),
        counters=counters_of(CASE, cuda.Direct()),
    )
    share = Claim(name="c", sentence="s", kind="bandwidth", of=("a",))
    first, second = reasons(share, (one,), RATES)
    assert first == "a step takes 16.4 us; the bytes of a step at the bandwidth of the copy take 10.0 us"
    assert second.startswith("150.0 of 304.0 bytes per update reach memory")
    (first, _) = reasons(share, (replace(one, in_place=True),), RATES)
    assert first == ("a step takes 16.4 us; the bytes of a step at the bandwidth of the update in place take 5.0 us")
    found = list(reasons(share, (replace(one, step_s=4e-6, mlups=32**3 / 4.0, counters=Counters(source="")),), RATES))
    assert found[1:] == ["caches hold a part of the domain: memory alone would take longer"]
    often = Claim(name="c", sentence="s", kind="interval-loss", of=("a",), over=("b",), every=500)
    assert list(
        reasons(often, (replace(one, step_s=3e-4, every=20, duty_bytes=4_000_000), replace(one, step_s=2e-4)), RATES)
    ) == ["the side task takes 2.00 ms for 4.0 MB of fields, 2 GB/s; 500 steps take 100.0 ms"]
    slow_disk = replace(one, step_s=3e-4, every=20, duty_bytes=2_500_000)
    (said,) = reasons(often, (slow_disk, replace(one, step_s=2e-4)), RATES)
    assert "2.5 MB of fields, 1.25 GB/s" in said


class Interrupted(Observer):
    def measuring(self, plan: object) -> None:
        if getattr(plan, "case").domain == (64, 64, 64):  # noqa: B009
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    Made.asked = []
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, document(), observer=Interrupted())
    assert len(read_groups(tmp_path)) == 1
    with (tmp_path / GROUPS).open("ab") as file:
        file.write(b'{"document": "made-')  # a crash while writing
    claims = run(tmp_path, document())
    assert [case.domain for case, _ in Made.asked] == [(32, 32, 32), (64, 64, 64)]
    assert len(claims.groups) == 2
    assert len(read_groups(tmp_path)) == 2


def test_what_could_not_be_timed_is_measured_again_when_resumed(tmp_path: Path) -> None:
    run(tmp_path, document())
    groups = read_groups(tmp_path)
    (tmp_path / GROUPS).unlink()
    for group, outcome in zip(groups, (Outcome.WRONG_RESULT, Outcome.OK), strict=True):
        first, *rest = group.rows
        assert first.trial
        without = replace(first, trial=replace(first.trial, outcome=outcome, final=None, reason="f_1 is off"))
        append_group(tmp_path, replace(group, rows=(without, *rest)))
    Made.asked = []
    claims = run(tmp_path, document())
    assert [case.domain for case, _ in Made.asked] == [(64, 64, 64)], "what is wrong stays so"
    assert [group.rows[0].why_not for group in claims.groups] == ["wrong result: f_1 is off", ""]
    assert claims.verdicts[0].holding is Holding.HOLDS


def test_a_variant_that_has_come_into_the_catalogue_is_measured_when_resumed(tmp_path: Path) -> None:
    run(tmp_path, document())
    Made.asked = []
    arrived = document(TEXT.replace("scheme=teleport", "scheme=aa,block=32x2x1"))
    claims = run(tmp_path, arrived)
    assert len(Made.asked) == 2
    assert claims.verdicts[-1].holding is Holding.HOLDS


OF_ERRORS = TEXT.replace(
    'of = "fast"\nover = "slow"', 'kind = "velocity-error"\nvelocities = [0.001, 0.01, 0.1]\nof = ["fast", "slow"]'
)


def test_accuracy_is_measured_once_and_where_it_is_asked_for(tmp_path: Path) -> None:
    Made.asked, Made.accuracies = [], 0
    run(tmp_path, document())
    assert Made.accuracies == 0
    claims = run(tmp_path, document(OF_ERRORS))
    assert Made.accuracies == 2
    small, large = (group for group in claims.groups)
    assert [row.trial.accuracy is not None for row in small.rows[:2]] == [False, False]
    assert [row.trial.accuracy is not None for row in large.rows[:2]] == [True, False], "the second could not tell"
    assert claims.verdicts[0].median == pytest.approx(1.2)


def test_claims_of_an_older_version_are_resumed_and_not_read(tmp_path: Path) -> None:
    run(tmp_path, document())
    path = tmp_path / RESULTS
    older = json.loads(path.read_text())
    older["header"]["schema"] = 2
    older["documents"][0]["variants"][0]["published"] = {"64x64x64": 200.0}
    path.write_text(json.dumps(older))
    with pytest.raises(InputError, match="has schema 2, this version reads 3; lbmtune reproduce --resume"):
        read_claims(tmp_path)
    check_same_device(tmp_path, environment("cuda"))
    Made.asked = []
    run(tmp_path, document())
    assert not Made.asked
    assert read_claims(tmp_path).documents == (document(),)
    path.write_text(json.dumps(older | {"header": older["header"] | {"schema": 99}}))
    with pytest.raises(InputError, match="has schema 99, this version reads up to 3; update"):
        read_claims(tmp_path)


def test_a_document_that_is_not_asked_again_stays(tmp_path: Path) -> None:
    other = replace(document(), name="other")
    both = run(tmp_path, document(), other)
    Made.asked, seen = [], []

    class Counted(Observer):
        def started(self, planned: Sequence[Plan], done: Sequence[Group]) -> None:
            seen.append(({plan.document for plan in planned}, {group.document for group in done}))

    changed = replace(other, title="Made up anew")
    again = run(tmp_path, changed, observer=Counted())
    assert not Made.asked
    assert seen == [({"other"}, {"other"})]
    assert again.documents == (document(), changed)
    assert again.header.documents == ("made-up", "other")
    assert (again.groups, again.verdicts) == (both.groups, both.verdicts)
    third = replace(document(), name="third")
    assert [one.name for one in run(tmp_path, third).documents] == ["made-up", "other", "third"]
    assert len(Made.asked) == 2
    assert {group.document for group in read_claims(tmp_path).groups} == {"made-up", "other", "third"}
    run(tmp_path, document(), other, third)
    assert len(Made.asked) == 2, "nothing is measured again"


def test_documents_that_cannot_be_kept_are_not_dropped(tmp_path: Path) -> None:
    run(tmp_path, document(), replace(document(), name="other"))
    path = tmp_path / RESULTS
    older = json.loads(path.read_text())
    older["header"]["schema"] = 2
    path.write_text(json.dumps(older))
    with pytest.raises(InputError, match=r"would lose other documents; add --only other: .* has schema 2"):
        run(tmp_path, document())
    run(tmp_path, document(), replace(document(), name="other"))
    assert len(read_claims(tmp_path).documents) == 2


def test_claims_of_another_device_are_not_mixed_in(tmp_path: Path) -> None:
    run(tmp_path, document())
    check_same_device(tmp_path, environment("cuda"))
    with pytest.raises(InputError, match="begun with driver"):
        check_same_device(tmp_path, replace(environment("cuda"), driver="1.2"))


def test_a_variant_that_a_record_does_not_know_was_not_measured() -> None:
    group = Group(document="made-up", series="box", case=CASE, rows=(Row(variant="slow", reason="x"),))
    assert readings_of(document(), [group], "cuda")["fast"].row.why_not == "fast: it was not measured in this run"


def test_no_memory_is_no_budget(tmp_path: Path) -> None:
    asked = ["claims", "--device", "cpu", "--max-footprint", "0", "--output", str(tmp_path / "claims")]
    refused = CliRunner().invoke(app, asked).exception
    assert isinstance(refused, InputError)
    assert refused.exit_code == 2
    assert str(refused) == (
        "--max-footprint 0 is not a size of at least one byte; write for example --max-footprint 1GiB."
    )
    assert not (tmp_path / "claims").exists()


def test_readings_take_the_last_domain() -> None:
    one = document()
    rows = tuple(Row(variant=v.name, reason="x") for v in one.variants)
    groups = [Group(document="made-up", series="box", case=box("d3q19", "bgk", (n,) * 3), rows=rows) for n in (32, 64)]
    assert readings_of(one, groups, "cuda")["fast@box"].group == groups[1]


def test_shipped_documents_ask_for_nothing_that_is_merely_misspelt() -> None:
    """The catalogue has every scheme, layout, knob and flow that they name, and each knob in the family asked for."""
    without = ("this catalogue has no ", " is not a knob of family ")
    lacking = {
        reason
        for here in (HERE, replace(ON_CPU, physical_cores=1))
        for one in load_documents(())
        for plan in plans(one, here)
        for reason in (entry.reason for entry in plan.entries)
        if any(words in reason for words in without)
    }
    assert not lacking
