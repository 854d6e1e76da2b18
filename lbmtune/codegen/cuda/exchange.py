"""The CUDA program that moves runs of elements from the state of one part into that of another one."""

from typing import Any

import numpy as np

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.program import Launch, Program

THREADS, PIECE_WORDS = 256, 128
"""Threads of a block, and most words that a warp moves at once."""
PIECES_OF_BLOCK = THREADS // 32
"""Pieces that a block moves at once."""
MOST_BLOCKS = 64
"""Blocks of a launch: most multiprocessors are left to the kernel that runs beside."""
WORDS = {16: "uint4", 8: "uint2", 4: "unsigned", 2: "unsigned short", 1: "unsigned char"}
"""Types of the words that are moved, by their bytes."""
MOVER = "move_runs"
"""Entry of the program."""
TAKEN, PUT, ALONG, PIECES = "taken", "put", "along", "pieces"
"""Names of the arguments: both states, the table of pieces (first word of each, words), and its length."""


Array = Any


def pieces_of(runs: Array) -> Array:
    """Return the table of pieces of runs: int64, (pieces, 3).

    runs: first word of each in both states, and its words, (runs, 3).
    """
    parts = -(-runs[:, 2] // PIECE_WORDS)
    of = np.repeat(np.arange(len(runs)), parts)
    begin = (np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts)) * PIECE_WORDS
    words = np.minimum(runs[of, 2] - begin, PIECE_WORDS)
    return np.ascontiguousarray(np.stack([runs[of, 0] + begin, runs[of, 1] + begin, words], axis=1))


def blocks_of(pieces: int) -> int:
    """Return the blocks of a launch on some pieces."""
    return min(-(-pieces // PIECES_OF_BLOCK), MOST_BLOCKS)


def mover(case: Case, config: KernelConfig, word_bytes: int) -> Program:
    """Return the program that moves words of some bytes. case, config: of the states."""
    constants = f"typedef {WORDS[word_bytes]} Word;\nconstexpr int THREADS = {THREADS}, PIECE = {PIECE_WORDS};"
    source = fill("exchange/runs.cu", {"constants": constants}) + "\n"
    launch = Launch(MOVER, (TAKEN, PUT, ALONG, PIECES), block=(THREADS, 1, 1))
    return Program("cuda", case, config, source, ("--std=c++17",), ((launch,),))
