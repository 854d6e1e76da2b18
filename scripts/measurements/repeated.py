"""Run one small study again and again on this device, and count what compare and reproduce say of it.

    python -m scripts.measurements.repeated OUT [--device cpu] [--runs 20] [--factor 0.95] [--domain 96x96x96]

The first study is the earlier one. Each later one is compared with it twice: as it is, where nothing changed, and with
all its speeds lowered by the factor. The kernel of the first best.json is measured again as often, against its record
and against one that is higher by the factor. Studies that are in the folder already are not run again. The spread
between runs must be known: calibrate the device first (lbmtune devices --calibrate), and leave it alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lbmtune import api
from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.flows import box
from lbmtune.files.casefile import domain_of
from lbmtune.records import Measurement
from lbmtune.records.best_json.document import Best, encode_best, read_best
from lbmtune.records.comparison.repeats import percent
from lbmtune.records.regression.ratios import Verdict
from lbmtune.records.regression.studies import compared
from lbmtune.records.spec import Budget, StudySpec
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import HEADER

_SCHEMES = ("pull", "push", "aa", "esoteric-twist", "esoteric-pull")
_AXES = {
    "cpu": {"scheme": _SCHEMES, "padding": (0, 1040), "threads": ("all",)},
    "cuda": {"scheme": _SCHEMES, "block": ("64x1x1", "128x1x1")},
}
"""Ten kernels, which every study measures."""


def study_of(domain: tuple[int, int, int]) -> StudySpec:
    """Return a study that measures all of its ten kernels."""
    return StudySpec(
        name="repeated",
        case=box("d3q19", "bgk", domain),
        axes={backend: dict(table) for backend, table in _AXES.items()},
        strategy="exhaustive",
        budget=Budget(trials=10),
    )


def slower(study: StudyRecord, factor: float) -> StudyRecord:
    """Return a study with all of its speeds multiplied."""

    def scaled(one: Measurement | None) -> Measurement | None:
        if one is None:
            return None
        names = ("mlups", "ci_low_mlups", "ci_high_mlups")
        speeds = {name: factor * getattr(one, name) for name in names}
        return replace(one, samples_s=tuple(s / factor for s in one.samples_s), **speeds)

    trials = (
        replace(one, measurement=scaled(one.measurement), final=scaled(one.final), again=scaled(one.again))
        for one in study.trials
    )
    return replace(study, trials=tuple(trials))


def faster(best: Best, factor: float) -> Best:
    """Return a best.json with a recorded speed as it was before a slow-down by a factor."""
    names = ("mlups", "ci_low_mlups", "ci_high_mlups")
    speeds = {name: getattr(best.expected, name) / factor for name in names}
    return replace(best, expected=replace(best.expected, **speeds))


def counted(studies: Sequence[StudyRecord], factor: float) -> tuple[int, int]:
    """Return how many later studies are called slower than the first: as they are, and with a slow-down."""
    first, *later = studies
    alarms = sum(bool(compared(first, one).regressions) for one in later)
    found = sum(bool(compared(first, slower(one, factor)).regressions) for one in later)
    return alarms, found


def _remeasured(path: Path, device: str, runs: int) -> int:
    """Return how often the speed of a best.json is called another one."""
    verdicts = [api.remeasure(path, device).verdict for _ in range(runs)]
    return sum(one in (Verdict.SLOWER, Verdict.FASTER) for one in verdicts)


def main() -> None:
    """Run the studies that are missing, then print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--factor", type=float, default=0.95)
    parser.add_argument("--domain", default="96x96x96")
    given = parser.parse_args()
    spec = study_of(domain_of(given.domain, "d3q19"))
    folders = [given.out / f"{number:02d}" for number in range(given.runs + 1)]
    for folder in folders:
        if not (folder / HEADER).exists():
            api.study(spec, given.device, folder, sources=())
    studies = [read_study(folder) for folder in folders]
    between = max((one.between_runs for one in studies if one.between_runs is not None), default=None)
    if between is None:
        parser.exit(
            1, "the spread between runs is not known, so that there is no verdict; calibrate the device first.\n"
        )
    alarms, found = counted(studies, given.factor)
    spread = percent(between)
    print(f"{studies[0].header.environment.device}, {extents(spec.case.domain)}, spread between runs {spread}")
    print(f"compare: {alarms} of {given.runs} repeated studies called slower, {found} with a factor of {given.factor}")
    best = api.Study(folders[0]).export(given.out / "best.json")
    raised = given.out / "raised.json"
    raised.write_bytes(encode_best(faster(read_best(best), given.factor)))
    alarms, found = (_remeasured(path, given.device, given.runs) for path in (best, raised))
    print(f"reproduce: {alarms} of {given.runs} speeds called another, {found} with a factor of {given.factor}")


if __name__ == "__main__":
    main()
