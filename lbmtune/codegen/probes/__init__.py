"""Programs of the micro-benchmarks that calibrate a GPU."""

from collections.abc import Mapping
from dataclasses import replace

from lbmtune.codegen.program import Program
from lbmtune.codegen.skeleton import skeleton
from lbmtune.codegen.streams import ACCESS_TYPES, STREAMS, cuda_probe

RUNS, DISPLACED, LISTED, CHASE, SPILL = "copy_runs", "copy_displaced", "copy_listed", "chase", "spill"
AGAIN, STAGES, MEET = "copy_again", "stages", "meet"
SPILLED, SHUFFLED, EXCHANGED = "copy_spilled", "copy_shuffled", "exchange"
HOLES, PIECES, STRUCTURES, PARTS = "copy_holes", "copy_pieces", "copy_structures", "copy_parts"
OVERTAKEN = "overtake"
AGAIN_EACH = 8
"""Accesses of a thread to a tile that is read twice."""
WORD_BYTES = 4
_ELEMENTS = {2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
KINDS = {"multiply-add": 0, "conversion": 1, "shuffle": 2, "shared memory": 3}
"""Instructions that `stages` issues."""
_DISPLACED = ("source", "target", "accesses", "load", "load_far", "store", "store_far", "apart", "steps")
MEETINGS = {"none": 0, "block": 1, "neighbours": 2}
"""Barriers of warps that exchange words: none, of the block, or of adjacent warps."""


def probe(
    *,
    streams: int = 19,
    access_bytes: int = WORD_BYTES,
    run_bytes: int = 0,
    local_bytes: int = WORD_BYTES,
    early: bool = False,
    row: int = 0,
    threads: int = 64,
    shared_bytes: int = 0,
) -> Program:
    """Return the programs that move data, for one block size.

    run_bytes: contiguous bytes of a stream before those of the next one (0: all of it);
    local_bytes: local memory of a thread; early: whether launches are dependent (programmatic dependent launch);
    row: accesses of a row that a block takes (0: its threads are side by side);
    shared_bytes: dynamic shared memory per block, which limits the blocks per multiprocessor.
    """
    arguments = {
        RUNS: ("source", "target", "accesses"),
        DISPLACED: _DISPLACED,
        LISTED: ("source", "target", "list", "accesses", "loads", "stores", "ahead"),
        CHASE: ("next", "place", "steps"),
        SPILL: ("target", "turns"),
        AGAIN: ("source", "target", "tiles", "back"),
        HOLES: ("source", "target", "accesses", "holes"),
        PIECES: ("source", "target", "accesses", "pieces", "later"),
    }
    return cuda_probe(
        "copies",
        arguments,
        threads,
        shared_bytes,
        "dependent" if early else "plain",
        STREAMS=streams,
        ACCESS=ACCESS_TYPES[access_bytes],
        RUN=run_bytes // access_bytes,
        LOCAL=local_bytes // WORD_BYTES,
        EARLY=int(early),
        ROW=row,
    )


def issue_probe(
    *,
    kind: str = "multiply-add",
    number: str = "float",
    chains: int = 4,
    length: int = 32,
    meets: bool = False,
    threads: int = 256,
) -> Program:
    """Return the programs that issue instructions and synchronise.

    kind: of `KINDS`; number: 'float' or 'double'; chains: independent chains of instructions; length: instructions of a
    chain between two barriers of a block; meets: whether there are barriers.
    """
    arguments = {STAGES: ("target", "factor", "turns"), MEET: ("words", "arrivals", "turns")}
    return cuda_probe(
        "issue",
        arguments,
        threads,
        cooperative=MEET,
        KIND=KINDS[kind],
        Number=number,
        CHAINS=chains,
        LENGTH=length,
        MEETS=int(meets),
    )


def spilled_probe(*, access_bytes: int, local_bytes: int, threads: int) -> Program:
    """Return the copy whose threads hold words in local memory of `local_bytes` each."""
    arguments = {SPILLED: ("source", "target", "accesses", "words", "apart", "steps")}
    return _of_words("spills", arguments, STREAMS, access_bytes, local_bytes, threads)


def structures_probe(*, streams: int, access_bytes: int, local_bytes: int, threads: int) -> Program:
    """Return the copy of arrays of structures of `streams` elements. local_bytes: as of `spilled_probe`."""
    displaced = "load", "load_far", "store", "store_far"
    arguments = {
        STRUCTURES: ("source", "target", "accesses", *displaced, "words", "apart", "steps"),
        PARTS: ("source", "target", "accesses", "mask"),
    }
    return _of_words("structures", arguments, streams, access_bytes, local_bytes, threads)


def _of_words(
    name: str, arguments: Mapping[str, tuple[str, ...]], streams: int, access_bytes: int, local_bytes: int, threads: int
) -> Program:
    access, local = ACCESS_TYPES[access_bytes], local_bytes // WORD_BYTES
    program = cuda_probe(name, arguments, threads, STREAMS=streams, ACCESS=access, LOCAL=local)
    return replace(program, source=skeleton("cuda/probes/local_words.cu") + "\n" + program.source)


def shuffled_probe(*, element_bytes: int, access_bytes: int, run_bytes: int, threads: int) -> Program:
    """Return the displaced copy by vectors of elements. run_bytes: as of `probe`."""
    element, vector, run = _ELEMENTS[element_bytes], access_bytes // element_bytes, run_bytes // access_bytes
    arguments = {SHUFFLED: _DISPLACED}
    return cuda_probe("shuffled", arguments, threads, STREAMS=STREAMS, ELEMENT=element, VECTOR=vector, RUN=run)


def exchange_probe(*, meeting: str, threads: int) -> Program:
    """Return the program whose warps exchange words between stages. meeting: of `MEETINGS`."""
    arguments = {EXCHANGED: ("target", "nothing", "factor", "turns", "length")}
    return cuda_probe("exchange", arguments, threads, MEETS=MEETINGS[meeting])


def overtaken_probe(*, local_bytes: int, together: int, overtakes: bool, threads: int) -> Program:
    """Return the program that stores words of local memory whose load is outstanding (overtakes), or has completed.

    local_bytes: of a thread, which accesses all of it; together: words per turn.
    """
    arguments, local = {OVERTAKEN: ("target", "turns")}, local_bytes // WORD_BYTES
    return cuda_probe("spill_hazards", arguments, threads, LOCAL=local, TOGETHER=together, OVERTAKES=int(overtakes))
