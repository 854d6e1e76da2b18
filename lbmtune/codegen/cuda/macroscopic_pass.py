"""The CUDA program that computes density and velocity of a state between two launches."""

from collections.abc import Sequence
from typing import Any

from lbmtune.catalogue.boundaries.cell_flags import WORDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.entry import EXTENTS, boolean
from lbmtune.codegen.cuda.shared.storage import real, stored_format
from lbmtune.codegen.macroscopic_tables import ALONG, CELLS, FORCES, PLACES, SITES
from lbmtune.codegen.program import MACROSCOPICS, Launch, Program

_WARP, _MOST_THREADS = 32, 256


def macroscopic_pass(
    case: Case, config: Any, factors: Sequence[Sequence[float]], *, listed: bool, words: bool
) -> Program:
    """Return the program of the pass for states of a configuration.

    factors: of each value in density and momentum, (4, values); listed: the values of a site are found by a table of
    all of them; words: cells have words that say which of their links are cut.
    """
    threads = _MOST_THREADS if listed else min(_MOST_THREADS, -(-case.domain[0] // _WARP) * _WARP)
    numbers = {"CELLS": 1, "VALUES": len(factors[0]), "THREADS": threads, "REST": int(config.stored.shifted)}
    types = [f"typedef {real(config.compute)} Real;", *(f"constexpr int {name} = {n};" for name, n in numbers.items())]
    form, left_out = ("list", "box") if listed else ("box", "list")
    regions = {
        "title": f"// Density and velocity of the state of: {config.brief}",
        "types": "\n".join([*types, f"constexpr bool WORDS = {boolean(words)};"]),
        "storage": stored_format(config, 1),
        "sums": "\n".join(
            f"        case {k}: {_sum(column)}break;" for k, column in enumerate(zip(*factors, strict=True))
        ),
        left_out: "",
    }
    before = (PLACES, CELLS) if listed else (ALONG, WORDS)
    launch = Launch(
        f"macroscopics_of_{form}",
        ("f0", *before, MACROSCOPICS, *([SITES] if listed else []), *EXTENTS, *FORCES),
        block=(threads, 1, 1),
        covers=(threads, 1, 1),
        over="sites" if listed else "cells",
    )
    source = fill("passes/macroscopics.cu", regions) + "\n"
    return Program("cuda", case, config, source, ("--std=c++17",), ((launch,),))


def _sum(column: Sequence[float]) -> str:
    """Return the statements that add a value to those of density and momentum in which it occurs."""
    return "".join(f"m[{d}] += Real({factor!r}) * value; " for d, factor in enumerate(column) if factor)
