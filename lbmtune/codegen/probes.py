"""Programs of the micro-benchmarks by which a device is calibrated: none of them has a lattice in it."""

from __future__ import annotations

from lbmtune.catalogue.config import CudaConfig
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.skeleton import skeleton
from lbmtune.codegen.streams import ACCESS_TYPES, CASE

RUNS, SPILL = "copy_runs", "spill"
WORD_BYTES = 4


def probe(
    *,
    streams: int = 19,
    access_bytes: int = WORD_BYTES,
    run_bytes: int = 0,
    local_bytes: int = WORD_BYTES,
    threads: int = 64,
    shared_bytes: int = 0,
) -> Program:
    """Both entries for one block size.

    run_bytes: of a stream, what lies together before those of the next one (0: all of it);
    local_bytes: of a thread; shared_bytes: asked for by each block, which decides how many share a multiprocessor.
    """
    options = (
        "--std=c++17",
        f"-DSTREAMS={streams}",
        f"-DACCESS={ACCESS_TYPES[access_bytes]}",
        f"-DRUN={run_bytes // access_bytes}",
        f"-DLOCAL={local_bytes // WORD_BYTES}",
    )
    block = (threads, 1, 1)
    arguments = {RUNS: ("source", "target", "accesses", "load", "store", "turns"), SPILL: ("target", "turns")}
    launches = tuple(
        Launch(entry, names, block=block, covers=block, shared_bytes=shared_bytes) for entry, names in arguments.items()
    )
    return Program("cuda", CASE, CudaConfig(block=block), skeleton("cuda/probes.cu"), options, (launches,))
