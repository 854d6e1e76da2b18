"""Evidence on claims that do not hold: measurements and counters of the kernels that they compare."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.catalogue.limits import extents
from lbmtune.claims.judge import Reading, readings_of, rests_on
from lbmtune.records import Resources
from lbmtune.records.claims import Claim, Claims, Document, Holding, Rates, in_place
from lbmtune.records.profile import Counters
from lbmtune.units import format_mlups

_TELLING = 0.03
"""Relative difference from which a counter is named."""
_STALLED = "stalled: "
_NO_STALLS = (f"{_STALLED}selected", f"{_STALLED}not selected")
_LANES = 32


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A kernel that a claim compares.

    step_s: median seconds per step; bytes_per_update: by the model; every: steps between two runs of its side task, 0
    without one; duty_bytes: density and velocity that the task moves; in_place: stores go to the addresses of loads.
    """

    title: str
    domain: str
    mlups: float
    step_s: float
    bytes_per_update: float
    resources: Resources
    counters: Counters
    every: int = 0
    duty_bytes: int = 0
    in_place: bool = False

    @property
    def sectors(self) -> float | None:
        """Return the sectors between L1 and L2 per update."""
        return self.counters.total("L2 sectors read by L1", "L2 sectors written by L1")

    @property
    def instructions(self) -> float | None:
        """Return the thread instructions per update."""
        found = self.counters.total("warp instructions")
        return None if found is None else _LANES * found

    @property
    def main_stall(self) -> str:
        """Name the most frequent stall, with the warps that it holds per issued instruction."""
        stalls = [c for c in self.counters.found if c.name.startswith(_STALLED) and c.name not in _NO_STALLS]
        worst = max(stalls, key=lambda one: one.value, default=None)
        return f"{worst.name.removeprefix(_STALLED)} ({worst.value:.1f})" if worst else ""

    @property
    def texts(self) -> dict[str, str]:
        """Return the row of a table by column, empty texts for counters that were not read."""
        r = self.resources
        shares = [self.counters.total(n) for n in ("L2 hits", "occupancy", "issue slots used", "DRAM throughput")]
        hits, warps, slots, busy = ("" if one is None else f"{one:.0f} %" for one in shares)
        read, written = self.counters.total("DRAM bytes read"), self.counters.total("DRAM bytes written")
        return {
            "variant": self.title,
            "domain": self.domain,
            "MLUPS": format_mlups(self.mlups),
            "us per step": f"{1e6 * self.step_s:,.1f}",
            "registers": str(r.registers or ""),
            "spilled bytes": str(r.spill_bytes) if r.registers else "",
            "memory, bytes per update": "" if read is None or written is None else f"{read:.1f} + {written:.1f}",
            "predicted bytes per update": f"{self.bytes_per_update:.1f}",
            "L2 sectors per update": _plain(self.sectors),
            "L2 hits": hits,
            "resident warps": warps,
            "instructions per update": _plain(self.instructions, 0),
            "issue slots used": slots,
            "memory throughput": busy,
            "main stall": self.main_stall,
        }


def evidence(claims: Claims, document: Document, claim: Claim) -> tuple[Evidence, ...]:
    """Return the kernels that a claim compares, in that order; none if it does not fail."""
    fails = any((v.document, v.claim, v.holding) == (document.name, claim.name, Holding.FAILS) for v in claims.verdicts)
    if not fails:
        return ()
    titles = {variant.name: variant.title for variant in document.variants}
    readings = readings_of(document, claims.groups, claims.header.backend)
    return tuple(_of(reading, titles[reading.row.variant]) for reading in rests_on(claim, readings))


def _of(reading: Reading, title: str) -> Evidence:
    m, trial = reading.measurement, reading.row.trial
    assert trial is not None
    assert reading.group is not None
    return Evidence(
        title=title,
        domain=extents(reading.group.case.domain),
        mlups=m.mlups,
        step_s=median(m.samples_s),
        bytes_per_update=m.bytes_per_update,
        resources=trial.resources or Resources(),
        counters=reading.row.counters or Counters(source=""),
        every=reading.row.duty.every if reading.row.duty else 0,
        duty_bytes=MACROSCOPIC_FIELDS * m.sites * trial.kernel_config.computed.bytes if reading.row.duty else 0,
        in_place=in_place(trial.config),
    )


def reasons(claim: Claim, found: Sequence[Evidence], rates: Rates) -> Iterator[str]:
    """Compare the first kernel with the second, or with bandwidth, in sentences."""
    for one, other in pairwise(found[:2]):
        if claim.kind == "interval-loss":
            cost_ms, steps_ms = 1e3 * one.every * (one.step_s - other.step_s), 1e3 * claim.every * other.step_s
            fields = one.duty_bytes / 1e6
            rate = f" for {fields:.1f} MB of fields, {fields / cost_ms:.3g} GB/s" if cost_ms > 0 else ""
            yield f"the side task takes {cost_ms:.2f} ms{rate}; {claim.every} steps take {steps_ms:.1f} ms"
        else:
            yield from _compared(one, other)
    if len(found) == 1:
        yield from _alone(found[0], rates)


def _compared(one: Evidence, other: Evidence) -> Iterator[str]:
    """Compare two kernels. The ratio of speeds is the ratio of bandwidths over the ratio of bytes per update."""
    mine, its = one.counters.memory_bytes, other.counters.memory_bytes
    if mine and its:
        a, b = (e.mlups * 1e6 * (e.counters.memory_bytes or 0) for e in (one, other))
        rates = f"{a / 1e9:,.0f} against {b / 1e9:,.0f} GB/s ({a / b:.3f} times)"
        yield (
            f"an update moves {mine:.1f} against {its:.1f} bytes ({mine / its:.3f} times), at {rates}: "
            f"{its / mine:.3f} x {a / b:.3f} = {one.mlups / other.mlups:.3f} times the speed"
        )
    elif one.bytes_per_update != other.bytes_per_update:
        yield f"the model predicts {one.bytes_per_update:.1f} against {other.bytes_per_update:.1f} bytes per update"
    yield f"a step takes {_step(one)} against {_step(other)}"
    first, second = one.counters.total, other.counters.total
    pairs: tuple[tuple[str, float | None, float | None, int], ...] = (
        ("registers", one.resources.registers, other.resources.registers, 0),
        ("spilled bytes per thread", one.resources.spill_bytes, other.resources.spill_bytes, 0),
        ("% of the warps resident", first("occupancy"), second("occupancy"), 0),
        ("L2 sectors per update", one.sectors, other.sectors, 2),
        ("% L2 hits", first("L2 hits"), second("L2 hits"), 0),
        ("instructions per update", one.instructions, other.instructions, 0),
        ("% of the issue slots used", first("issue slots used"), second("issue slots used"), 0),
        ("% of the peak memory throughput", first("DRAM throughput"), second("DRAM throughput"), 0),
    )
    different = [f"{_plain(a, n)} against {_plain(b, n)} {name}" for name, a, b, n in pairs if _differ(a, b)]
    if different:
        yield ", ".join(different)


def _alone(one: Evidence, rates: Rates) -> Iterator[str]:
    """Compare a kernel with the bandwidth of a copy, or of an update in place."""
    moved = one.counters.memory_bytes
    what, bytes_per_s = (
        ("update in place", rates.in_place_bytes_per_s) if one.in_place else ("copy", rates.copy_bytes_per_s)
    )
    least_us = 1e12 * one.bytes_per_update * (one.mlups * one.step_s) / bytes_per_s
    yield f"a step takes {_step(one)}; the bytes of a step at the bandwidth of the {what} take {least_us:.1f} us"
    if 1e6 * one.step_s < least_us:
        yield "caches hold a part of the domain: memory alone would take longer"
    if moved is not None:
        yield (
            f"{moved:.1f} of {one.bytes_per_update:.1f} bytes per update reach memory, at "
            f"{_plain(one.counters.total('DRAM throughput'), 0)} % of its peak throughput; "
            f"{_plain(one.counters.total('occupancy'), 0)} % of the warps are resident, "
            f"{_plain(one.counters.total('issue slots used'), 0)} % of the issue slots used"
        )


def _step(one: Evidence) -> str:
    """Return the time per step, and the time under the profiler, which runs kernels one by one."""
    kernels_us = one.counters.total("kernels of a step")
    seen = "" if kernels_us is None else f" ({kernels_us:.1f} us one kernel at a time, under the profiler)"
    return f"{1e6 * one.step_s:.1f} us{seen}"


def _differ(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and abs(a - b) > _TELLING * max(abs(a), abs(b))


def _plain(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
