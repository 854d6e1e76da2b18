"""Programs of the micro-benchmarks that calibrate a CPU."""

import hashlib

from lbmtune.catalogue.config import cpu
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.skeleton import filled, indented, skeleton
from lbmtune.codegen.streams import CASE, STREAMS, CpuAccess
from lbmtune.codegen.support import support_digest

WALK, MULTIPLY_ADD, MIXED, DIVIDE = "walk", "multiply_add", "mixed", "divide"
CHAINS = 10
"""Independent chains: enough to hide the latency of an operation, and fewer than a processor has vector registers."""
OPERATIONS = {MULTIPLY_ADD: 1, MIXED: 2, DIVIDE: 1}
"""Operations of a chain per turn."""
_ROUNDS = 3
WORKED = 2 * _ROUNDS * STREAMS
"""Operations per turn of a walk with arithmetic: about as many as a collision has."""
APART = 64
"""Elements between what two threads write, more than a cache line."""


def walks_digest() -> str:
    """Return the digest of these programs."""
    text = skeleton("cpu/probes/walk.py.in") + skeleton("cpu/probes/arithmetic.py.in") + support_digest()
    return hashlib.sha256(code_of("cpu", text).encode()).hexdigest()[:16]


def walk(access: CpuAccess, threads: int, *, ahead: bool, grouped: bool, worked: bool = False) -> Program:
    """Return the program that reads streams and writes as many, with any starts.

    ahead: whether it prefetches what it reads; grouped: whether accesses of all streams alternate in memory;
    worked: whether it computes with what it moves, `WORKED` operations per turn.
    """
    numbers = range(STREAMS)
    starts = [f"from{q} = starts[{q}] + at" for q in numbers] + [f"to{q} = starts[{STREAMS + q}] + at" for q in numbers]
    asks = [f"prefetch(source, from{q} + x + ahead)" for q in numbers if ahead]
    loads = [f"v{q} = load(source, from{q} + x)" for q in numbers]
    means = [f"v{q} = v{q} * half + v{(q + 1) % STREAMS} * half" for _ in range(_ROUNDS * worked) for q in numbers]
    moves = [f"move(target, to{q} + x, v{q})" for q in numbers]
    source = filled(
        "probes/walk",
        title=f"{STREAMS} streams, {access.bytes} bytes at once",
        support=support_digest(),
        real=access.real,
        lanes=str(access.lanes),
        store="stream" if access.streaming else "store",
        streams=str(STREAMS),
        step=str(access.lanes * (STREAMS if grouped else 1)),
        starts=indented(starts, 1),
        moves=indented([*asks, *loads, *means, *moves], 2),
        fence=indented(["simd.fence()"] if access.streaming else [], 2),
    )
    names = ("source", "target", "starts", "parts", "apart", "rows", "pitch", "length", "ahead")
    return Program("cpu", CASE, cpu.Direct(threads=threads), source, (), ((Launch(WALK, names),),))


def chains_of(access: CpuAccess, vector_bits: int) -> int:
    """Return the chains that fit into registers of a width; wider vectors take two registers each."""
    return CHAINS // max(1, 8 * access.bytes // vector_bits if vector_bits else 1)


def arithmetic(access: CpuAccess, threads: int, count: int = CHAINS) -> Program:
    """Return the program of multiply-adds, of these alternating with additions, and of divisions, all in registers.

    count: number of chains (`chains_of`).
    """
    chains = range(count)
    source = filled(
        "probes/arithmetic",
        support=support_digest(),
        real=access.real,
        lanes=str(access.lanes),
        chains=str(count),
        apart=str(APART),
        values=indented([f"v{i} = load(array, at + {i})" for i in chains], 1),
        products=indented([f"v{i} = v{i} * factor + c1" for i in chains], 2),
        sums=indented([f"v{i} = v{i} + factor" for i in chains], 2),
        ratios=indented([f"v{i} = c1 / v{i}" for i in chains], 2),
        all=" + ".join(f"v{i}" for i in chains),
    )
    names = ("array", "factor", "threads", "turns")
    launches = tuple(Launch(entry, names) for entry in OPERATIONS)
    return Program("cpu", CASE, cpu.Direct(threads=threads), source, (), (launches,))
