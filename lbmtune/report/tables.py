"""Titles and tables that several pages share: what was solved; environment, conditions, sustained runs."""

from collections.abc import Sequence

from lbmtune.catalogue.collisions import NO_COLLISION
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.records import Conditions, Environment, Sustained, Trial
from lbmtune.records.spec import ALL_FAMILIES
from lbmtune.records.study import StudyRecord
from lbmtune.search.pareto import figures
from lbmtune.units import format_bytes, format_mlups, format_rate

Pairs = list[tuple[str, str]]
SHORT = {"mlups": "MLUPS", "footprint": "footprint", "energy": "nJ / update", "accuracy": "error"}
"""Titles of objectives in tables."""
_ABBREVIATION = 3
"""Letters up to which the name of a collision operator is an abbreviation."""


def case_title(case: Case) -> str:
    """Name lattice and collision operator as in text, such as "D3Q19 BGK"."""
    if case.collision == NO_COLLISION:
        return case.lattice.upper()
    operator = case.collision.upper() if len(case.collision) <= _ABBREVIATION else case.collision
    return f"{case.lattice.upper()} {operator}"


def fluid_share(case: Case, fluid: int) -> str:
    """Return fluid cells with their share of all cells."""
    return f"{fluid:,} of {case.sites:,} ({100 * fluid / case.sites:.1f} %)"


def subject(case: Case, configs: Sequence[KernelConfig], families: Sequence[str] = ()) -> str:
    """Name case, domain, precisions and steps per launch of these kernels. families: those that were asked for."""
    about = [f"{case_title(case)} {case.flow}", f"{' x '.join(map(str, case.domain))} cells"]
    if configs:
        precisions = sorted({f"{one.storage}/{one.compute}" for one in configs})
        about += [f"{' and '.join(precisions)} (stored/computed)", _steps(configs)]
    about += [f"families {' and '.join(families)} only"] if families and ALL_FAMILIES not in families else []
    return ", ".join(about)


def _steps(configs: Sequence[KernelConfig]) -> str:
    """Name the steps per launch; "many" for kernels that take their number as an argument."""
    counted = [one.fused_steps for one in configs if not one.on_chip]
    few = " to ".join(map(str, sorted({min(counted), max(counted)}))) if counted else ""
    many = "many" if len(counted) < len(configs) else ""
    number = " or ".join(filter(None, (few, many)))
    return "one step per launch" if number == "1" else f"{number} steps per launch"


def environment_table(e: Environment) -> Pairs:
    """Return device, software and host of a record."""
    rows = [
        ("device", e.device),
        ("identity", e.device_id),
        ("architecture", e.architecture),
        ("memory", format_bytes(e.memory_bytes) if e.memory_bytes else ""),
        ("CPU cores", str(e.cores or "")),
        ("vector width", f"{e.vector_bits} bit" if e.vector_bits else ""),
        ("driver", e.driver),
        ("runtime", e.runtime),
        ("compiler", e.compiler),
        ("power limit", f"{e.power_limit_w:.0f} W" if e.power_limit_w else ""),
        ("highest SM clock", f"{e.max_sm_clock_hz / 1e6:,.0f} MHz" if e.max_sm_clock_hz else ""),
        ("ECC", "" if e.ecc is None else "on" if e.ecc else "off"),
        ("host", e.host),
        ("Python", e.python),
        ("packages", ", ".join(f"{name} {version}" for name, version in e.packages.items())),
        ("date", e.date),
    ]
    return [(name, value) for name, value in rows if value]


def conditions_table(c: Conditions) -> Pairs:
    """Return the state of the device while samples were taken."""
    rows = [
        ("SM clock", c.sm_clock_hz and f"{c.sm_clock_hz / 1e6:,.0f} MHz"),
        ("memory clock", c.memory_clock_hz and f"{c.memory_clock_hz / 1e6:,.0f} MHz"),
        ("power", c.power_w and f"{c.power_w:.0f} W"),
        ("temperature", c.temperature_c and f"{c.temperature_c:.0f} degrees C"),
        ("other processes on the GPU", ", ".join(c.others)),
        ("CPU share", c.cpu_share is not None and f"{c.cpu_share:.1%}"),
        ("memory probe", c.memory_bytes_per_s and format_rate(c.memory_bytes_per_s)),
        ("last-level cache probe", c.last_cache_bytes_per_s and format_rate(c.last_cache_bytes_per_s)),
        (
            "arithmetic probe",
            c.work_per_s and f"{c.work_per_s / 1e9:.3g} billion vector operations per second and core",
        ),
    ]
    known = [(name, value) for name, value in rows if value]
    if c.sm_clock_hz or c.throttle:
        known.append(("throttle reasons", ", ".join(c.throttle) or "none"))
    return known


def sustained_table(run: Sustained, unit: str) -> Pairs:
    """Return speed, energy, power and conditions of a sustained run. unit: of speeds of the case."""
    reasons = ", ".join(f"{name} in {share:.0%} of the samples" for name, share in run.throttled.items())
    conditions = [row for row in conditions_table(run.conditions) if row[0] != "throttle reasons"]
    rows = [
        ("sustained", f"{format_mlups(run.mlups)} {unit} over {run.seconds:.1f} s, {run.steps:,} time steps"),
        ("energy", f"{run.nj_per_update:.3g} nJ per update, by {run.energy_source}" if run.nj_per_update else ""),
        ("mean power", f"{run.power_w:.0f} W" if run.power_w else ""),
        ("power limit", f"{run.power_limit_w:.0f} W" if run.power_limit_w else ""),
        ("throttle reasons", reasons or ("none" if run.conditions.sm_clock_hz else "")),
        *conditions,
        ("remark", "the conditions of the protocol were not met" if run.disturbed else ""),
    ]
    return [(name, value) for name, value in rows if value]


def plus_minus(said: object) -> str:
    """Return a text of the terminal as a page shows it."""
    return str(said).replace("+-", "\u00b1")


def product_text(values: Sequence[int]) -> str:
    """Return extents as text, such as "256 x 1 x 1"."""
    return " x ".join(map(str, values))


def objective_texts(study: StudyRecord, trial: Trial) -> list[str]:
    """Return the objectives of a trial as text, in their order."""
    return [_text(name, value) for name, value in figures(study, trial).items()]


def _text(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return {"mlups": format_mlups, "footprint": format_bytes}.get(name, "{:.3g}".format)(value)
