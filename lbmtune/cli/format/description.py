"""What verbs say of a device, and of what is expected of a kernel there: names and values, one to a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.catalogue.problem.case import Case
    from lbmtune.cli.arguments.configs import Subject
    from lbmtune.model.machine.description import Machine as Described
    from lbmtune.records import Prediction, Resources


def machine_rows(name: str, described: Described) -> list[tuple[str, object]]:
    """Names and values of a description: bandwidths, caches, clocks, and whether it is calibrated."""
    from lbmtune.units import format_bytes, format_rate

    environment = described.environment
    rows: list[tuple[str, object]] = [
        (f"device {name}", environment.device),
        ("identity", environment.device_id),
        ("architecture", environment.architecture),
        ("memory", format_bytes(environment.memory_bytes)),
        ("copy", format_rate(described.copy_bytes_per_s)),
        ("in place", format_rate(described.in_place_bytes_per_s)),
    ]
    rows += [
        (_copy_name(described.streams, access), format_rate(rate))
        for access, rate in described.stream_bytes_per_s.items()
    ]
    rows += [(f"cache {level}", format_bytes(size)) for level, size in described.caches_bytes.items()]
    if environment.backend == "cpu":
        rows += [("cores", environment.cores), ("vector width", f"{environment.vector_bits} bit")]
        rows += [("core clock", _clock(described.core_clock_hz))]
    else:
        rows += [("ECC", {True: "on", False: "off", None: "not known"}[environment.ecc])]
        rows += [("multiprocessors", described.multiprocessors), ("driver", environment.driver)]
        rows += [("highest clock", _clock(environment.max_sm_clock_hz))]
        rows += [("clock when measured", _clock(described.conditions.sm_clock_hz))]
        rows += [("memory clock when measured", _clock(described.conditions.memory_clock_hz))]
    rows += [("calibrated", _calibrated(described))]
    rows += [(what, f"{share:.1%}") for what, share in _shares(described)]
    return [*rows, ("measured", described.date)]


def _calibrated(described: Described) -> str:
    """Whether it is, and whether that may be believed."""
    from lbmtune.records.disturbance import left_alone

    if not described.calibrated:
        return "no; --calibrate does it"
    return "yes" if left_alone(described.calibration_cpu_share) else "yes, disturbed by other programs"


def _shares(described: Described) -> list[tuple[str, float]]:
    """What was had of the processor while each part was measured, where that is known."""
    parts = {"bandwidths": described.conditions.cpu_share, "calibration": described.calibration_cpu_share}
    return [(f"CPU share, {name}", share) for name, share in parts.items() if share is not None]


def _clock(hz: float | None) -> str:
    return f"{hz / 1e6:.0f} MHz" if hz else "not known: the system does not tell it"


def _copy_name(streams: int, access: str) -> str:
    """In words: of '16', or of '64 streaming'."""
    width, _, kind = access.partition(" ")
    return f"{streams}-stream copy, {width} bytes at once" + (f", {kind} stores" if kind else "")


def said(config: KernelConfig) -> str:
    """A configuration in words: the axes that do not stand at their default."""
    return ", ".join([*(f"{name}={value}" for name, value in config.identity.items()), "all else at its default"])


def arithmetic(case: Case, moved_bytes: float) -> dict[str, float]:
    """Operations of an update (`catalogue.operation_counts`), and those for each byte that it moves."""
    from lbmtune.catalogue.operation_counts import flops_per_update

    operations = flops_per_update(case)
    return {"flops_per_update": operations, "flops_per_byte": operations / moved_bytes}


def arithmetic_text(facts: Mapping[str, Any]) -> str:
    """The same in words."""
    return f"{facts['flops_per_update']} ({facts['flops_per_byte']:.2f} flop/B)"


def prediction_rows(prediction: Prediction, subject: Subject, compiled: Resources | None) -> list[tuple[str, object]]:
    """Names and values of a Prediction: its terms, the binding one first, each a line of its own, and its bandwidth.

    Also what a kernel for a GPU uses; of one that nobody has compiled, what it is taken to use.
    """
    from lbmtune.units import format_mlups, format_rate

    first, *others = (f"{one.name}: {one.sentence}, {one.seconds * 1e12:.3g} ps" for one in prediction.told)
    return [
        ("expected", f"{format_mlups(prediction.mlups)} MLUPS"),
        ("expected limit", first),
        *(("", other) for other in others),
        ("bandwidth", f"{format_rate(prediction.bandwidth_bytes_per_s)} ({prediction.ceiling_source})"),
        *_used(subject, compiled),
        *_varied(prediction, subject),
    ]


def _varied(prediction: Prediction, subject: Subject) -> list[tuple[str, object]]:
    """The axes that its largest term depends on, and how their values are compared."""
    from lbmtune.model.tuning_hints import worth_varying

    term, axes = worth_varying(prediction, subject.config)
    return [("worth varying", f"{', '.join(axes)} (--vary {axes[0]} compares), for {term}")] if axes else []


def _used(subject: Subject, compiled: Resources | None) -> list[tuple[str, object]]:
    """Registers and spilled bytes of a kernel for a GPU."""
    from lbmtune.catalogue.config import CudaConfig
    from lbmtune.model.gpu.families import estimated

    if not isinstance(subject.config, CudaConfig):
        return []
    found = compiled or estimated(subject.case, subject.config)
    spilled = f"{found.spill_bytes} bytes spilled" if found.spill_bytes else "nothing spilled"
    source = "estimated, since the kernel is not compiled here"
    if compiled:
        source = "compiled for the ranking" if subject.ranked else "compiled, as recorded"
    return [("registers", f"{found.registers}, {spilled}: {source}")]
