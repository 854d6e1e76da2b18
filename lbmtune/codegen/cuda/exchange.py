"""The CUDA program that moves runs of elements from the state of one part into that of another one."""

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
TAKEN, PUT, ALONG, PIECES = "taken", "put", "along", "pieces"
"""Names of the arguments: both states, the table of pieces (first word of each, words), and its length."""


def mover(case: Case, config: KernelConfig, word_bytes: int) -> Program:
    """Return the program that moves words of some bytes. case, config: of the states."""
    constants = f"typedef {WORDS[word_bytes]} Word;\nconstexpr int THREADS = {THREADS}, PIECE = {PIECE_WORDS};"
    source = fill("exchange/runs.cu", {"constants": constants}) + "\n"
    launch = Launch("move_runs", (TAKEN, PUT, ALONG, PIECES), block=(THREADS, 1, 1))
    return Program("cuda", case, config, source, ("--std=c++17",), ((launch,),))
