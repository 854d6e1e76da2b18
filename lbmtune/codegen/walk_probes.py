"""Programs of the micro-benchmarks by which a CPU is calibrated: none of them has a lattice in it."""

from __future__ import annotations

import hashlib

from lbmtune.catalogue.config import cpu
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.cpu.shared.filling import filled, indented
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.skeleton import skeleton
from lbmtune.codegen.streams import CASE, STREAMS, CpuAccess
from lbmtune.codegen.support import support_digest

WALK, MULTIPLY_ADD, MIXED, DIVIDE = "walk", "multiply_add", "mixed", "divide"
CHAINS = 10
"""Registers that chains take: enough to hide the latency of an operation, fewer than processors with vectors have."""
OPERATIONS = {MULTIPLY_ADD: 1, MIXED: 2, DIVIDE: 1}
"""Of a chain in a turn of each."""
_ROUNDS = 3
WORKED = 2 * _ROUNDS * STREAMS
"""Operations of a turn of a walk that works: about as many as a collision has."""
APART = 64
"""Elements between what two threads write: not of one cache line."""


def walks_digest() -> str:
    """Names the text of these programs."""
    text = skeleton("cpu/probes/walk.py.in") + skeleton("cpu/probes/arithmetic.py.in") + support_digest()
    return hashlib.sha256(code_of("cpu", text).encode()).hexdigest()[:16]


def walk(access: CpuAccess, threads: int, *, ahead: bool, grouped: bool, worked: bool = False) -> Program:
    """Reads streams and writes as many, wherever they start.

    ahead: whether it asks for lines of what it reads; grouped: whether one access of each stream lies beside those of
    the others; worked: whether it works on what it moves, `WORKED` operations for each turn.
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
    """So many vectors stay in registers of a width, in two each where one is too short."""
    return CHAINS // max(1, 8 * access.bytes // vector_bits if vector_bits else 1)


def arithmetic(access: CpuAccess, threads: int, count: int = CHAINS) -> Program:
    """Products with sums, such with sums in turn, and quotients, of vectors that stay in registers.

    count: of chains (`chains_of`).
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
