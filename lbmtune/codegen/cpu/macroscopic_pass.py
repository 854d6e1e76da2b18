"""The CPU program that computes density and velocity of a state between two launches."""

from collections.abc import Callable, Sequence
from typing import Any

from lbmtune.catalogue.boundaries.cell_flags import WORDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.shared.module import codes, parallel_loop
from lbmtune.codegen.macroscopic_tables import ALONG, CELLS, FORCES, OTHERS, PLACES, RUNS, SINGLES, SITES, VECTORS
from lbmtune.codegen.program import MACROSCOPICS, Launch, Program
from lbmtune.codegen.skeleton import block, filled, indented
from lbmtune.codegen.support import support_digest

_VECTOR_BYTES = 32
"""Bytes of the vectors: all processors have them, and the pass is as fast as memory with them."""
_BLOCK = 256
"""Listed sites that a thread takes at a time."""
_EXTENTS = ("nx", "ny", "nz")
_SOLID = 31


def lanes_of(config: Any) -> int:
    """Return the cells of a vector of the pass."""
    return _VECTOR_BYTES // int(config.computed.bytes)


def macroscopic_pass(
    case: Case, config: Any, factors: Sequence[Sequence[float]], *, listed: bool, words: bool
) -> Program:
    """Return the program of the pass for states of a configuration; arguments as for that of a GPU."""
    text = _Text(factors, float(config.stored.shifted))
    names = {"form": "list" if listed else "box", **parallel_loop(config)}
    entry = f"macroscopics_of_{names.pop('form')}"
    if listed:
        arguments: tuple[str, ...] = ("f0", PLACES, CELLS, MACROSCOPICS, SITES, *_EXTENTS, *FORCES)
        lines = {"site": indented(text.cell(lambda k: f"places[{k} * sites + x]"), 2), "block": str(_BLOCK)}
    else:
        arguments = ("f0", ALONG, WORDS, MACROSCOPICS, RUNS, OTHERS, *_EXTENTS, VECTORS, SINGLES, *FORCES)
        lines = text.box(words=words)
    signature = ", ".join(_type(config, name) for name in arguments)
    source = filled(
        "passes/macroscopics",
        support=support_digest(),
        compute=config.computed.dtype,
        codes=codes(config),
        lanes=lanes_of(config),
        form=filled(f"passes/{entry}", signature=signature, **names, **lines).rstrip(),
        constants="\n".join(f"{name} = real({value!r})" for value, name in text.constants.items()),
    )
    return Program("cpu", case, config, source, (), ((Launch(entry, arguments),),))


def _type(config: Any, name: str) -> str:
    """Return the Numba type of a parameter; halves are passed as 16-bit integers."""
    stored = "uint16" if config.stored.bytes == 2 else config.stored.dtype
    arrays = {
        "f0": stored,
        MACROSCOPICS: config.computed.dtype,
        **dict.fromkeys((ALONG, PLACES, CELLS), "int64"),
        **dict.fromkeys((WORDS, RUNS, OTHERS), "uint32"),
    }
    if name in arrays:
        return f"{arrays[name]}[::1]"
    return str(config.computed.dtype) if name in FORCES else "int64"


class _Text:
    """Lines of the sums. constants: the names of numbers."""

    def __init__(self, factors: Sequence[Sequence[float]], rest: float) -> None:
        self._columns = list(zip(*factors, strict=True))
        self.constants = {0.0: "zero", 0.5: "half", 1.0: "unit"}
        self._rest = self.constants[rest]

    def box(self, *, words: bool) -> dict[str, str]:
        """Return the lines of a box. words: of cells, which are computed again if a link is cut."""
        row = [f"along[{k} * line + nx + y] + along[{k} * line + nx + ny + z]" for k, _ in enumerate(self._columns)]
        vector = self._sums(lambda k: f"load(f0, start{k} + along[{k} * line + x])") + self._left("store")
        again = "cell(f0, along, words, macroscopics, nx, ny, nz, force_x, force_y, force_z, x, y, z)"
        cut = block("for x in range(nx):", block("if words[start + x]:", [again])) if words else []
        side = f" + (word >> {{k}} & 1) * {len(self._columns)} * line" if words else ""

        def place(k: int) -> str:
            at = f"{k} * line{side.format(k=k)}"
            return f"along[{at} + x] + along[{at} + nx + y] + along[{at} + nx + ny + z]"

        cell = self.cell(place)
        if words:
            solid = [*(f"m{d} = {'unit' if d == 0 else 'zero'}" for d in range(4)), *self._stores("store_one", "m{d}")]
            cell = ["word = words[here]", *block(f"if word >> {_SOLID}:", solid), *block("else:", cell)]
        return {
            "cell": indented(cell, 1),
            "starts": indented([f"start{k} = {start}" for k, start in enumerate(row)], 1),
            "vector": indented(vector, 2),
            "cut": indented(cut, 1),
        }

    def cell(self, place: Callable[[int], str]) -> list[str]:
        """Return the lines of a single cell. place: of a value."""
        return self._sums(lambda k: f"load_one(f0, {place(k)})") + self._left("store_one")

    def _sums(self, load: Callable[[int], str]) -> list[str]:
        lines = [f"m0 = {self._rest}", *(f"m{d} = half * {force}" for d, force in enumerate(FORCES, 1))]
        for k, column in enumerate(self._columns):
            lines.append(f"v{k} = {load(k)}")
            lines += [f"m{d} = m{d} {self._term(factor)}v{k}" for d, factor in enumerate(column) if factor]
        return lines

    def _term(self, factor: float) -> str:
        sign, size = "-" if factor < 0 else "+", abs(factor)
        if size == 1:
            return f"{sign} "
        return f"{sign} {self.constants.setdefault(size, f'factor{len(self.constants)}')} * "

    def _left(self, store: str) -> list[str]:
        return [f"{store}(macroscopics, here, m0)", *self._stores(store, "m{d} / m0")[1:]]

    def _stores(self, store: str, value: str) -> list[str]:
        return [f"{store}(macroscopics, {d} * cells + here, {value.format(d=d)})" for d in range(4)]
