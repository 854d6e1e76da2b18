"""Names and values of a device and of a prediction, one to a line."""

import logging
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, cast

from lbmtune import api
from lbmtune.api.machines.devices import doubt
from lbmtune.backend.registry import link
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.cli.arguments.configs import Subject
from lbmtune.cli.format import output
from lbmtune.model.machine.description import Links, Machine
from lbmtune.records import Prediction, Resources
from lbmtune.records.comparison.repeats import percent
from lbmtune.records.idle_threads import idle_threads
from lbmtune.records.remarks import in_cache, last_cache, left_alone, prediction_doubt
from lbmtune.report.tables import fluid_share
from lbmtune.units import format_bytes, format_mlups, format_rate

LOG = logging.getLogger("lbmtune")


def machine_rows(name: str, machine: Machine) -> list[tuple[str, object]]:
    """Return names and values of a description: bandwidths, caches, clocks, calibration."""
    environment = machine.environment
    rows: list[tuple[str, object]] = [
        (f"device {name}", environment.device),
        ("identity", environment.device_id),
        ("architecture", environment.architecture),
        ("memory", format_bytes(environment.memory_bytes)),
        ("copy", format_rate(machine.copy_bytes_per_s)),
        ("in place", format_rate(machine.in_place_bytes_per_s)),
    ]
    rows += [
        (_copy_name(machine.streams, access), format_rate(rate)) for access, rate in machine.stream_bytes_per_s.items()
    ]
    rows += [(f"cache {level}", format_bytes(size)) for level, size in machine.caches_bytes.items()]
    if BACKENDS[environment.backend].shares_host:
        rows += [("cores", environment.cores), ("vector width", f"{environment.vector_bits} bit")]
        rows += [("core clock", _clock(machine.core_clock_hz))]
    else:
        rows += [("ECC", {True: "on", False: "off", None: "unknown"}[environment.ecc])]
        rows += [("multiprocessors", machine.multiprocessors), ("driver", environment.driver)]
        rows += [("highest clock", _clock(environment.max_sm_clock_hz))]
        rows += [("clock when measured", _clock(machine.conditions.sm_clock_hz))]
        rows += [("memory clock when measured", _clock(machine.conditions.memory_clock_hz))]
    rows += [("calibrated", _calibrated(machine)), ("between runs", _between_runs(machine))]
    parts = {"bandwidths": machine.conditions.cpu_share, "calibration": machine.calibration_cpu_share}
    rows += [(f"CPU share, {name}", f"{share:.1%}") for name, share in parts.items() if share is not None]
    if rates := machine.output:
        rows += [("output", ", ".join(rates.told()))]
    return [*rows, ("measured", machine.date)]


def _calibrated(machine: Machine) -> str:
    if not machine.calibrated:
        return "no (run: lbmtune devices --calibrate)"
    how = "quickly" if machine.quick else "yes"
    others = f", other figures as {machine.calibrated_as}" if machine.calibrated_as else ""
    return f"{how}{others}{'' if left_alone(machine.calibration_cpu_share) else ', disturbed by other programs'}"


def _between_runs(machine: Machine) -> str:
    if machine.between_runs is None:
        return "not measured (run: lbmtune devices --calibrate --refresh)"
    return f"+-{percent(machine.between_runs)} (90 % of repeats, from {len(machine.repeats)} pairs)"


def _clock(hz: float | None) -> str:
    return f"{hz / 1e6:.0f} MHz" if hz else "unknown"


def _copy_name(streams: int, access: str) -> str:
    """Return the name of a copy, whose access is '16' or '64 streaming'."""
    width, _, kind = access.partition(" ")
    return f"{streams}-stream copy, {width} bytes at once" + (f", {kind} stores" if kind else "")


_STEADY = 0.1
"""Distance of the median of all rounds of a figure from its best, beyond which links were disturbed."""
_LINKS = ("from>", "to>", "link", "one way>", "both ways>", "64 KiB>", "wait>")


def print_links(machines: Mapping[str, Machine]) -> None:
    """Print the links of several GPUs, as measured if they were; nothing without several."""
    if not machines:
        return
    pairs = permutations(machines.items(), 2)
    output.stdout().print(output.table("links", _LINKS, (_link_row(*one, *other) for one, other in pairs)))
    if any(not one.links or not one.links.peers for one in machines.values()):
        output.stdout().print("not all are measured (run: lbmtune devices --links)", markup=False)
    for name, machine in machines.items():
        if remark := _disturbed(machine.links):
            LOG.warning(f"links of device {name}: {remark}; lbmtune devices --links --refresh measures them again.")


def _link_row(name: str, machine: Machine, other: str, peer: Machine) -> tuple[object, ...]:
    links, key = machine.links, peer.environment.device_id
    if links is None or key not in links.peers:
        return name, other, link(name, other), *["-"] * 4
    rates = (format_rate(found[key]) for found in (links.peer_copy_bytes_per_s, links.peer_both_ways_bytes_per_s))
    times = (f"{found[key] * 1e6:.1f} us" for found in (links.peer_small_s, links.peer_wait_s))
    return name, other, links.peers[key], *rates, *times


def _disturbed(links: Links | None) -> str:
    """Return by what the measurement of links was disturbed; empty if by nothing."""
    if links and links.others:
        return f"other processes used the GPUs ({', '.join(links.others)})"
    if links and (links.spread or 0.0) > _STEADY:
        return f"rounds of a figure lay up to {links.spread:.0%} apart"
    return ""


def config_text(config: KernelConfig) -> str:
    """Return a configuration in words: the knobs that are not at their default."""
    return ", ".join([*(f"{name}={value}" for name, value in config.identity.items()), "all else at its default"])


def fluid_rows(case: Case, facts: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return the fluid cells of `api.costs` if the case has solid cells."""
    return [("fluid cells", fluid_share(case, facts["fluid_cells"]))] if case.geometry else []


def arithmetic_text(facts: Mapping[str, Any]) -> str:
    """Return operations per update, and per byte, of `api.costs`."""
    return f"{facts['flops_per_update']} ({facts['flops_per_byte']:.2f} flop/B)"


def unreliable(machine: Machine) -> str:
    """Return why predictions for a machine are not reliable; '' if they are."""
    return prediction_doubt(*machine.cpu_shares)


def doubted(title: str, machine: Machine) -> str:
    """Return a title of predictions, with a line on why they are not reliable if so."""
    return f"{title}\n{doubtful}" if (doubtful := unreliable(machine)) else title


def prediction_rows(
    prediction: Prediction, subject: Subject, compiled: Resources | None, doubtful: str
) -> list[tuple[str, object]]:
    """Return names and values of a prediction: speed, limit, bandwidth, registers, hints. Terms: `print_terms`.

    doubtful: see `unreliable`.
    """
    first, *_ = prediction.significant_terms
    share = first.seconds / sum(one.seconds for one in prediction.terms)
    return [
        ("expected", f"{format_mlups(prediction.mlups)} MLUPS{', ' * bool(doubtful)}{doubtful}"),
        ("expected limit", f"{first.name}, {share:.0%} of the time of an update"),
        ("bandwidth", f"{format_rate(prediction.bandwidth_bytes_per_s)} ({prediction.ceiling_source})"),
        *_used(subject, compiled),
        *_worth_varying(prediction, subject),
    ]


def print_terms(prediction: Prediction) -> None:
    """Print what the time of an update consists of: a table of terms, the largest first."""
    whole = sum(one.seconds for one in prediction.terms)
    rows = (
        (one.name, f"{one.seconds * 1e12:.3g}", f"{one.seconds / whole:.1%}", one.figures)
        for one in prediction.significant_terms
    )
    title = f"time of an update, {whole * 1e12:.3g} ps"
    output.stdout().print("", output.table(title, ("term", "adds ps>", "share>", "why"), rows))


def _worth_varying(prediction: Prediction, subject: Subject) -> list[tuple[str, object]]:
    """Return the knobs that the largest term depends on, and how their values are compared."""
    term, knobs = api.worth_varying(prediction, subject.config)
    if not knobs:
        return []
    return [("worth varying", f"{', '.join(knobs)}, for the largest term, {term} (lbmtune vary {knobs[0]} compares)")]


def _used(subject: Subject, compiled: Resources | None) -> list[tuple[str, object]]:
    """Return registers and spilled bytes of a kernel, compiled or estimated."""
    if not BACKENDS[subject.config.backend].reports_resources:
        return []
    found = compiled or api.estimated(subject.case, cast("CudaConfig", subject.config))
    spilled = f"{found.spill_bytes} bytes spilled" if found.spill_bytes else "nothing spilled"
    source = "estimated, since the kernel is not compiled here"
    if compiled:
        source = "compiled for the ranking" if subject.ranked else "compiled, as recorded"
    return [("registers", f"{found.registers}, {spilled}: {source}")]


def print_remarks(machine: Machine, subject: Subject | None = None) -> None:
    """Print how far predictions for a machine hold, if the kernel was recorded on another one, and idle threads."""
    of_kernel = (subject.other_device(machine), idle_threads(subject.case, subject.config)) if subject else ()
    for remark in filter(None, (doubt(machine), *of_kernel)):
        LOG.warning(remark)


def print_cached(predictions: Sequence[Prediction], machine: Machine, case: Case) -> None:
    """Print a remark if the last cache of a processor holds the smallest of the predicted kernels' fields."""
    cache_bytes = last_cache(machine.environment.backend, machine.caches_bytes)
    smallest = min((one.footprint_bytes for one in predictions), default=0)
    if remark := in_cache(smallest, cache_bytes, case.domain):
        LOG.warning(remark)
