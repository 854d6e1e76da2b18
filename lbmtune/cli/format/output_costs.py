"""Print what output every n steps is predicted to cost."""

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.machine.description import Machine
from lbmtune.records.output import Output


def output_rows(case: Case, config: KernelConfig, machine: Machine, wanted: Output) -> list[tuple[str, object]]:
    """Return a row for each kind of output: its share of the time of a run, and its parts; none without output."""
    if not wanted:
        return []
    if machine.output is None:
        lacks = f"{machine.name} has no rates of output (table [output] of its description)"
        return [
            ("output", f"not predicted: {lacks}; lbmtune devices --refresh measures those of a device that is here")
        ]
    from lbmtune.model.output import predicted_output  # here: the command line starts without the model

    found = predicted_output(case, config, machine, machine.output, wanted)
    return [
        ("" if n else "output costs", f"{_told(kind, wanted.intervals[kind], *one)}")
        for n, (kind, one) in enumerate(found.items())
    ]


def output_facts(case: Case, config: KernelConfig, machine: Machine, wanted: Output) -> dict[str, object]:
    """Return the seconds of each kind of output in parts, and its share, as `output_costs`; {} if not predicted."""
    if not wanted or machine.output is None:
        return {}
    from lbmtune.model.output import predicted_output  # here, as above

    found = predicted_output(case, config, machine, machine.output, wanted)
    return {"output_costs": {kind: {"seconds": parts, "share": share} for kind, (parts, share) in found.items()}}


def _told(kind: str, every: int, parts: dict[str, float], share: float) -> str:
    inner = ", ".join(f"{name} {1e3 * s:.3g} ms" for name, s in parts.items())
    return f"{kind} every {every:,} steps: {100 * share:.2g} % of the time ({inner})"
