"""Programs that only move data, by which the bandwidth ceilings of kernels are measured."""

import hashlib
from collections.abc import Mapping
from string import Template
from typing import NamedTuple

from lbmtune.catalogue.config import cpu, cuda
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.program import Launch, Mode, Program, Target
from lbmtune.codegen.skeleton import filled, skeleton
from lbmtune.codegen.support import support_digest
from lbmtune.records.header import CEILING_STREAMS

COPY, SCALE = "copy_streams", "scale"
STREAMS = CEILING_STREAMS
ACCESS_TYPES = {2: "unsigned short", 4: "unsigned int", 8: "uint2", 16: "uint4"}
CASE = box("d3q19", "bgk", (256, 256, 256))
"""The case of these programs, without effect: every program has one."""


def streams_digest(target: Target) -> str:
    """Return the digest of these programs; measurements with other ones are no ceilings any more."""
    # the fields of the CPU copies are left open but for the support module
    of_cpu = Template(skeleton("cpu/probes/streams.py.in")).safe_substitute(simd="simd")
    texts = {"cuda": skeleton("cuda/probes/streams.cu"), "cpu": of_cpu + support_digest()}
    return hashlib.sha256(code_of(target, texts[target]).encode()).hexdigest()[:16]


class CpuAccess(NamedTuple):
    """An access of a CPU: element type, lanes, and whether stores are non-temporal."""

    real: str
    lanes: int
    streaming: bool

    @property
    def bytes(self) -> int:
        """Return the bytes of one access."""
        return self.lanes * (8 if self.real == "float64" else 4)


def cuda_streams(streams: int, access_bytes: int, threads: int, *, apart: bool = True) -> Program:
    """Return the program that copies `streams` arrays to as many others, and scales one in place, `threads` per block.

    apart: whether source and target are declared not to overlap, so that the compiler may reorder loads and stores.
    """
    arguments = {COPY: ("source", "target", "accesses"), SCALE: ("array", "factor", "accesses")}
    restrict, access = "__restrict__" if apart else "", ACCESS_TYPES[access_bytes]
    return cuda_probe("streams", arguments, threads, STREAMS=streams, ACCESS=access, APART=restrict)


def cuda_probe(
    name: str,
    arguments: Mapping[str, tuple[str, ...]],
    threads: int,
    shared_bytes: int = 0,
    mode: Mode = "plain",
    cooperative: str = "",
    **macros: object,
) -> Program:
    """Return the program of kernels/cuda/probes/<name>.cu.

    arguments: of each entry; cooperative: the entry whose blocks must all be resident.
    """
    block, options = (threads, 1, 1), ("--std=c++17", *(f"-D{macro}={value}" for macro, value in macros.items()))
    modes: dict[str, Mode] = {cooperative: "cooperative"}
    launches = tuple(
        Launch(entry, names, block=block, covers=block, shared_bytes=shared_bytes, mode=modes.get(entry, mode))
        for entry, names in arguments.items()
    )
    return Program("cuda", CASE, cuda.Direct(block=block), skeleton(f"cuda/probes/{name}.cu"), options, (launches,))


def cpu_streams(streams: int, access: CpuAccess, threads: int) -> Program:
    """Return the program of the copies on a CPU; each thread takes whole rows."""
    moves = [f"            move(target, x + {q} * stride, load(source, x + {q} * stride))" for q in range(streams)]
    stores = "non-temporal" if access.streaming else "plain"
    source = filled(
        "probes/streams",
        simd="narrow as simd" if access.bytes == 16 else "simd",
        title=f"{streams} streams, {access.bytes} bytes at once, {stores} stores",
        support=support_digest(),
        real=access.real,
        lanes=access.lanes,
        store="stream" if access.streaming else "store",
        parallel=threads > 1,
        streams=streams,
        moves="\n".join(moves),
    )
    launches = (
        Launch(COPY, ("source", "target", "rows", "length")),
        Launch(SCALE, ("array", "factor", "rows", "length")),
    )
    return Program("cpu", CASE, cpu.Direct(threads=threads), source, (), (launches,))
