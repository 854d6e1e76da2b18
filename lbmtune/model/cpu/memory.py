"""The term of memory on a CPU: bytes over the rate of a measured walk that is most like the kernel."""

from collections.abc import Collection, Mapping

from lbmtune.catalogue.backend_records import ANY_NODE
from lbmtune.catalogue.footprint import traffic
from lbmtune.model.cpu.inputs import CpuInputs, of_a_node
from lbmtune.model.machine.curves import closest
from lbmtune.model.machine.memory_walks import LINE_BYTES, Walk
from lbmtune.model.roofline import CALIBRATED
from lbmtune.records import Term
from lbmtune.records.terms import GROUPED, MEMORY, PREFETCH, SHIFTED
from lbmtune.units import format_rate


def memory(inputs: CpuInputs, without: Collection[str]) -> Term:
    """Return the time of the bytes of an update; prefetched streams have a share of it."""
    moved = traffic(inputs.case, inputs.config).total
    one, share = walk(inputs, without), 0.0 if PREFETCH in without else inputs.prefetched
    seconds = sum(
        part * moved / rate(inputs, one._replace(ahead=ahead))
        for ahead, part in ((True, share), (False, 1 - share))
        if part
    )
    prefetched = f", {share:.0%} prefetched" if share else ""
    sentence = f"{moved:.4g} bytes per update at {format_rate(moved / seconds)}, {one.name}{prefetched}"
    return Term(MEMORY, seconds, sentence, CALIBRATED)


def hidden_share(inputs: CpuInputs, without: Collection[str]) -> float:
    """Return the share that overlaps of the shorter of two: memory, and the arithmetic of the concurrent step."""
    shares, one = inputs.calibration.hidden, walk(inputs, without)
    share = 0.0 if PREFETCH in without else inputs.prefetched
    known = {ahead: shares.get(Walk("in place", one.access_bytes, ahead=ahead).name, 0.0) for ahead in (True, False)}
    return share * known[True] + (1 - share) * known[False]


def walk(inputs: CpuInputs, without: Collection[str] = ()) -> Walk:
    """Return the walk that is most like what the kernel does with memory."""
    width = closest(inputs.widths, inputs.access_bytes)
    if inputs.kind == "streaming":
        return Walk("streaming", LINE_BYTES)
    return Walk(
        inputs.kind,
        width,
        shifted=shifted(inputs) and not inputs.grouped and SHIFTED not in without,
        grouped=inputs.grouped and GROUPED not in without,
    )


def shifted(inputs: CpuInputs) -> bool:
    """Return whether rows start at different places of a cache line."""
    config, extents = inputs.config, inputs.config.stored_extents(inputs.case)
    starts = (
        config.memory.along_x(config.frame(inputs.case.stencil).origin[0], extents),  # of the first cell
        config.memory.along_y(1, extents),
        config.memory.component(1, extents),
    )
    return any(start * config.stored.bytes % LINE_BYTES for start in starts)


def rate(inputs: CpuInputs, one: Walk) -> float:
    """Return the bytes per second of a walk by the threads of the kernel: those of one thread each, up to all cores."""
    found, threads = inputs.calibration, inputs.threads
    plain = Walk(one.kind, one.access_bytes).name
    everybody = found.walks_bytes_per_s[measured_walk(one, found.walks_bytes_per_s).name]
    if inputs.config.numa != ANY_NODE:
        return everybody * of_a_node(inputs.config, inputs.machine)
    alone = found.thread_walks_bytes_per_s[plain] * everybody / found.walks_bytes_per_s[plain]
    return everybody if threads >= inputs.machine.environment.cores else min(everybody, threads * alone)


def measured_walk(one: Walk, rates: Mapping[str, float]) -> Walk:
    """Return a walk, without prefetches if it was not measured with them (scalars have none)."""
    return one if one.name in rates else one._replace(ahead=False)
