"""The support module of generated CPU kernels in plain NumPy, so that their text runs without being compiled.

It checks what compiled code does not: indices stay inside the array, streaming stores are aligned, and no
element that one row writes is touched by another row of the same step, so that rows may run at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.precision import STORAGES

_NOBODY = -1
_ROWS, _CODE = np.iinfo(np.int64), np.dtype(np.uint16)


class RaceError(AssertionError):
    pass


class _Traffic:
    """What each row has read and written since all rows met, looked through where they meet again."""

    def __init__(self) -> None:
        self.row, self.depth = _NOBODY, 0
        self.shared: dict[int, int] = {}
        """Of arrays that all threads see: id -> elements."""
        self.touches: dict[tuple[int, int, bool], list[tuple[int, int]]] = defaultdict(list)
        """Array, elements at once, whether they are written -> first element and row of each access."""

    def start(self, arrays: Sequence[np.ndarray]) -> None:
        self.depth = 0
        self.shared = {id(a): a.size for a in arrays}
        self.touches.clear()

    def touch(self, array: np.ndarray, start: int, count: int, *, writes: bool) -> None:
        if id(array) in self.shared:  # others are of one thread alone
            self.touches[id(array), count, writes].append((start, self.row))

    def meet(self) -> None:
        """From here on all rows have ended that had begun. Raises RaceError where one wrote what others touched."""
        for array in {array for array, _, _ in self.touches}:
            size = self.shared[array]
            lowest, highest = np.full(size, _ROWS.max), np.full(size, _ROWS.min)
            written = np.zeros(size, bool)
            for (touched, count, writes), found in self.touches.items():
                if touched == array:
                    starts, rows = np.array(found).T
                    elements = (starts[:, None] + np.arange(count)).ravel()
                    np.minimum.at(lowest, elements, rows.repeat(count))
                    np.maximum.at(highest, elements, rows.repeat(count))
                    written[elements] |= writes
            for element in np.flatnonzero(written & (lowest != highest)):
                rows = f"rows {lowest[element]} and {highest[element]}"
                raise RaceError(f"{rows} touch element {element}, which one of them writes")
        self.touches.clear()


_traffic = _Traffic()


def prange(count: int) -> range:
    _traffic.meet()
    return range(count)


class Placed(NamedTuple):
    """An array from an element on."""

    array: np.ndarray
    first: int


def place(array: np.ndarray, index: int) -> Placed:
    return Placed(array, index)


def _element(array: np.ndarray | Placed, index: int) -> tuple[np.ndarray, int]:
    return (array.array, array.first + index) if isinstance(array, Placed) else (array, index)


def _inside(array: np.ndarray, start: int, count: int) -> None:
    assert 0 <= start <= array.size - count, (start, count, array.size)


def memory(compute: str, lanes: int, codes: str = "") -> SimpleNamespace:
    real, format_ = np.dtype(compute), STORAGES[codes].codes if codes else None

    def _load(array: np.ndarray, start: int, count: int) -> Any:
        _inside(array, start, count)
        _traffic.touch(array, start, count, writes=False)
        found = array[start : start + count]
        return (format_.decode(found, np) if format_ and array.dtype == _CODE else found).astype(real)

    def _store(array: np.ndarray, start: int, values: Any) -> None:
        count = len(values)
        _inside(array, start, count)
        _traffic.touch(array, start, count, writes=True)
        array[start : start + count] = format_.encode(values, np) if format_ and array.dtype == _CODE else values

    def load(array: np.ndarray | Placed, i: int) -> Any:
        return _load(*_element(array, i), lanes)

    def store(array: np.ndarray | Placed, i: int, value: Any) -> None:
        assert value.dtype == real
        value = value.reshape(1) if lanes == 1 else value
        assert value.shape == (lanes,)
        _store(*_element(array, i), value)

    def stream(array: np.ndarray, i: int, value: Any) -> None:
        assert i % lanes == 0
        store(array, i, value)

    def load_before(array: np.ndarray, i: int, edge: int) -> Any:
        return np.concatenate([_load(array, edge, 1), _load(array, i, lanes - 1)])

    def load_after(array: np.ndarray, i: int, edge: int) -> Any:
        return np.concatenate([_load(array, i + 1, lanes - 1), _load(array, edge, 1)])

    def store_before(array: np.ndarray, i: int, edge: int, value: Any) -> None:
        _store(array, edge, value[:1])
        _store(array, i, value[1:])

    def store_after(array: np.ndarray, i: int, edge: int, value: Any) -> None:
        _store(array, i + 1, value[:-1])
        _store(array, edge, value[-1:])

    functions = (load, store, stream, load_before, load_after, store_before, store_after)
    return SimpleNamespace(**{f.__name__: f for f in functions})


def nodes(compute: str, lanes: int, width: int, group: int, form: str, codes: str = "") -> SimpleNamespace:
    """What `lbmtune.backend.cpu.lists` offers, each lane by itself."""
    real, one = np.dtype(compute).type, memory(compute, 1, codes)
    assert form in ("vector", "lanes")

    def elements(links: np.ndarray, at: int) -> np.ndarray:
        _inside(links, at, lanes)
        numbers = links[at : at + lanes].astype(np.int64) & (1 << 30) - 1
        return numbers // width * group + numbers % width

    def bits(links: np.ndarray, at: int, bit: int) -> np.ndarray:
        _inside(links, at, lanes)
        return links[at : at + lanes] >> np.uint32(bit) & 1 != 0

    def load_each(array: np.ndarray, indices: np.ndarray) -> Any:
        return np.array([one.load(array, int(i))[0] for i in indices], real)

    def store_each(array: np.ndarray, indices: np.ndarray, value: Any) -> None:
        assert value.dtype == real
        for i, lane in zip(indices, value, strict=True):
            one.store(array, int(i), lane.reshape(1))

    def chosen_starts(slot: int, cut: int, links: np.ndarray, flags: int, bit: int) -> np.ndarray:
        return np.where(bits(links, flags, bit), cut, slot)

    def gather(array: np.ndarray, slot: int, links: np.ndarray, at: int) -> Any:
        return load_each(array, slot + elements(links, at))

    def gather_cut(array: np.ndarray, slot: int, cut: int, links: np.ndarray, at: int, flags: int, bit: int) -> Any:
        return load_each(array, chosen_starts(slot, cut, links, flags, bit) + elements(links, at))

    def scatter(array: np.ndarray, slot: int, links: np.ndarray, at: int, value: Any) -> None:
        store_each(array, slot + elements(links, at), value)

    def scatter_cut(
        array: np.ndarray, slot: int, cut: int, links: np.ndarray, at: int, flags: int, bit: int, value: Any
    ) -> None:
        store_each(array, chosen_starts(slot, cut, links, flags, bit) + elements(links, at), value)

    def load_cut(array: np.ndarray, at: int, cut: int, links: np.ndarray, flags: int, bit: int) -> Any:
        return load_each(array, chosen_starts(at, cut, links, flags, bit) + np.arange(lanes))

    def store_cut(array: np.ndarray, at: int, cut: int, links: np.ndarray, flags: int, bit: int, value: Any) -> None:
        store_each(array, chosen_starts(at, cut, links, flags, bit) + np.arange(lanes), value)

    def chosen(links: np.ndarray, flags: int, bit: int, value: Any) -> Any:
        return np.where(bits(links, flags, bit), value, real(0)).astype(real)

    functions = (gather, gather_cut, scatter, scatter_cut, load_cut, store_cut, chosen)
    return SimpleNamespace(**{f.__name__: f for f in functions})


def cells(compute: str, lanes: int) -> SimpleNamespace:
    """What `lbmtune.backend.cpu.walls` offers."""
    real = np.dtype(compute)

    def some_cut(words: np.ndarray, at: int) -> bool:
        _inside(words, at, lanes)
        return bool(words[at : at + lanes].any())

    def back(array: np.ndarray, at: int, own: int, words: np.ndarray, first: int, bit: int) -> Any:
        assert array.dtype == real
        for start in (at, own):
            _inside(array, start, lanes)
        of = words[first : first + lanes]
        cut = (of >> np.uint32(bit) & 1 != 0) & (of & 1 == 0)
        return np.where(cut, array[own : own + lanes], array[at : at + lanes])

    return SimpleNamespace(some_cut=some_cut, back=back)


def row(function: Callable[..., None]) -> Callable[..., None]:
    def checked(*arguments: Any) -> None:
        *_, y, z = arguments
        if not _traffic.depth:  # a row of a block or a slab is part of it
            _traffic.row = int(z) * 1_000_000 + int(y)
        _traffic.depth += 1
        function(*arguments)
        _traffic.depth -= 1

    return checked


def kernel(declared: str, *, parallel: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        def checked(*arguments: Any) -> None:
            _traffic.start([a for a in arguments if isinstance(a, np.ndarray)])
            function(*arguments)
            _traffic.meet()

        return checked

    return decorated


def fence() -> None:
    pass


prefetches: list[tuple[int, int]] = []
"""Length of the array and index of each."""


def prefetch(array: np.ndarray | Placed, i: int) -> None:
    whole, index = _element(array, i)
    prefetches.append((whole.size, int(index)))


def lane(vector: Any, number: int) -> Any:
    return vector[number]


def with_lane(vector: Any, number: int, value: Any) -> Any:
    changed = vector.copy()
    changed[number] = value
    return changed
