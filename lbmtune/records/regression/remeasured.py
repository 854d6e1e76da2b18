"""Judge the speed of a best.json by a later measurement of its kernel, and tell what may have changed it."""

from collections.abc import Iterator
from dataclasses import dataclass

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records.best_json.document import Best
from lbmtune.records.comparison.repeats import percent
from lbmtune.records.comparison.statistics import Interval, paired_ratio
from lbmtune.records.measurement import Conditions, Environment, Measurement
from lbmtune.records.regression.ratios import Ratio, Verdict, ratio_of
from lbmtune.records.spec import TimingProtocol
from lbmtune.units import format_rate

_NOTICEABLE = 0.02
"""Relative change of a clock or a rate from which on it may be a cause."""
_COMPILERS = ("numba", "llvmlite")
"""Packages that compile kernels."""


@dataclass(frozen=True, kw_only=True)
class Remeasured:
    """The kernel of a best.json, measured again in turns with the default configuration.

    ratio: of the speed here and the recorded one; kernel, default: measured here, the latter None if it is the same or
    cannot run; default_key: '' then; was_default_mlups: recorded, if the file has it. causes: sentences on what may
    have changed the speed; none if it holds.
    """

    ratio: Ratio
    was_mlups: float
    kernel: Measurement
    default: Measurement | None
    default_key: str
    was_default_mlups: float | None
    causes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Return whether the kernel is faster, slower, or as fast as recorded within the noise."""
        return self.ratio.verdict

    @property
    def gain(self) -> Interval | None:
        """Return the speed of the kernel over that of the default configuration, from pairs of samples; or None."""
        return paired_ratio(self.default.samples_s, self.kernel.samples_s) if self.default else None


@dataclass(frozen=True, kw_only=True)
class Here:
    """Place of a measurement. between_runs: spread, if known; same_text: whether the kernel has the recorded text."""

    environment: Environment
    between_runs: float | None
    same_text: bool


def remeasured(
    best: Best, here: Here, kernel: Measurement, default: Measurement | None = None, default_key: str = ""
) -> Remeasured:
    """Return the verdict on the speed of a best.json. kernel, default: measured in turns."""
    known = [one for one in (best.expected.between_runs, here.between_runs) if one is not None]
    ratio = ratio_of(best.expected, kernel, max(known, default=None), 1)
    was_default = next((one.mlups for one in best.alternates if one.key == default_key), None)
    changed = ratio.verdict in (Verdict.SLOWER, Verdict.FASTER)
    return Remeasured(
        ratio=ratio,
        was_mlups=best.expected.mlups,
        kernel=kernel,
        default=default,
        default_key=default_key,
        was_default_mlups=was_default,
        causes=(*_causes(best, here, kernel, slower=ratio.ratio < 1),) if changed else (),
    )


def _causes(best: Best, here: Here, kernel: Measurement, *, slower: bool) -> Iterator[str]:
    """Yield what differs from the record and may have changed the speed, in sentences, the strongest first."""
    yield from _of_environment(best.environment, here.environment)
    if not here.same_text:
        yield f"the kernel has another text than that of lbmtune {best.lbmtune}, which recorded it"
    was, now = best.expected.conditions, kernel.conditions
    yield from _of_contention(kernel) if slower else _of_recorded_contention(best)
    yield from _of_rates(was, now, slower=slower)


def _of_environment(was: Environment, now: Environment) -> Iterator[str]:
    kind = "processor" if BACKENDS[now.backend].shares_host else "card"
    for name, before, after in was.differences(now):
        if name == "device_id" and was.device == now.device and kind == "card":
            yield f"another card of the same kind: {before} -> {after}"
        elif name in ("device", "device_id"):
            if name == "device" or was.device == now.device:  # said once
                yield f"another {kind}: {before} -> {after}"
        else:
            told = name.removesuffix("_w").replace("_", " ")
            yield f"another {told}: {_value(name, before)} -> {_value(name, after)}"
    for name in _COMPILERS:
        before, after = was.packages.get(name, ""), now.packages.get(name, "")
        if kind == "processor" and before and after and before != after:
            yield f"another {name}: {before} -> {after}"


def _value(name: str, value: object) -> str:
    if value in (None, ""):
        return "unknown"
    return f"{value:g} W" if name.endswith("_w") else str(value)


def _of_contention(now: Measurement) -> Iterator[str]:
    """Yield that others used the device while it was measured here."""
    if now.conditions.others:
        yield f"other processes used the GPU: {', '.join(now.conditions.others)}"
    share = now.conditions.cpu_share
    if share is not None and share < TimingProtocol().min_cpu_share:
        yield f"other programs used the processor: {share:.0%} of it was left"
    elif now.disturbed and not now.conditions.others:
        yield "the device was not left alone: samples were disturbed"


def _of_recorded_contention(best: Best) -> Iterator[str]:
    if best.expected.disturbed:
        yield "the recorded samples were disturbed"


def _of_rates(was: Conditions, now: Conditions, *, slower: bool) -> Iterator[str]:
    """Yield clocks and rates that changed in the direction of the speed, and new reasons for reduced clocks."""
    rates = (
        ("core clock", was.sm_clock_hz, now.sm_clock_hz, _clock),
        ("memory clock", was.memory_clock_hz, now.memory_clock_hz, _clock),
        ("main memory", was.memory_bytes_per_s, now.memory_bytes_per_s, format_rate),
        ("last cache", was.last_cache_bytes_per_s, now.last_cache_bytes_per_s, format_rate),
        ("arithmetic of a core", was.work_per_s, now.work_per_s, lambda one: f"{one / 1e9:.3g} G/s"),
    )
    for name, before, after, text in rates:
        if before and after and abs(after / before - 1) > _NOTICEABLE and (after < before) == slower:
            kind = "lower" if slower else "higher"
            yield f"{name} {percent(abs(after / before - 1))} {kind}: {text(before)} -> {text(after)}"
    new = [one for one in now.throttle if one not in was.throttle]
    if new and slower:
        yield f"the GPU reduced its clocks: {', '.join(new)}"


def _clock(hz: float) -> str:
    return f"{hz / 1e6:,.0f} MHz"
