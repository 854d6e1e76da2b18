"""Compute the states of the oracle that kernels are compared with, of large domains slab by slab.

States that several kernels are compared with are cached.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from lbmtune import quotas
from lbmtune.catalogue.boundaries.cut_links import Window, whole
from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.case import Case
from lbmtune.cores import usable_cores
from lbmtune.measure.verification import oracle

T = TypeVar("T")
P = TypeVar("P")
_REMEMBERED_BYTES = 1 << 30
"""Cache of states of small domains: about a hundred."""
_WHOLE_BYTES = min(16 << 30, quotas.memory().total // 4)
"""Cache of states of whole domains, on a host."""
_AT_ONCE = 2
"""Such states that must fit in memory, because one is computed from another."""
_SHARE_OF_ALL, _SHARE_OF_FREE = 1 / 3, 2 / 3
"""Most of a host's memory for them; the rest is for kernels and comparisons."""
_BETWEEN = 2
"""Steps from one such state to the next: more steps widen the layers around slabs, fewer copy more."""
_THREADS = 4
"""Most threads that process slabs on a host: each needs memory of its own, and all share the bandwidth."""
_SLAB_CELLS = {"cpu": 1 << 20, "cuda": 1 << 22}
"""Cells of a slab: a few hundred megabytes of a host, a few gigabytes of a GPU."""
_ARRAYS = 8
"""Arrays of a slab; a thread needs fewer: two states with the layers around them, and what is computed of them."""
_THIN_CELLS = 1 << 16
"""Cells of a slab without layers around it, on a host: one of its populations fits in a cache."""


@remembered(_REMEMBERED_BYTES)
def small_states(case: Case, wanted: tuple[int, ...], walls: Walls) -> Any:
    """Return the states after given steps, ascending, shape (steps, q, nz, ny, nx), on the host."""
    state = oracle.random_state(case)
    found = [state] * (wanted[0] == 0)
    for n in range(1, wanted[-1] + 1):
        state = oracle.step(state, case, walls=walls)
        found += [state] * (n in wanted)
    return np.stack(found)


def whole_state(case: Case, steps: int, *, walls: Walls) -> Any:
    """Return the cached state of the whole domain after some steps, on the host; None if memory is too small."""
    if (known := _whole_state.known(case, steps, walls)) is not None:
        return known
    memory, needed_bytes = quotas.memory(), _AT_ONCE * _state_bytes(case)
    free_bytes = memory.available + _whole_state.held_bytes
    if needed_bytes > min(_SHARE_OF_ALL * memory.total, _SHARE_OF_FREE * free_bytes):
        return None
    if needed_bytes > _SHARE_OF_FREE * memory.available:
        _whole_state.forget()  # release cached states
    return _whole_state(case, steps, walls)


@remembered(_WHOLE_BYTES)
def _whole_state(case: Case, steps: int, walls: Walls) -> Any:
    """Compute the state of the whole domain after some steps from the scattered state, on the host; read-only.

    It continues the latest cached state. Intermediate states alternate between the memory of two.
    """
    done, state = _latest_before(steps, case, walls)
    spare: Any = None
    while done < steps:
        more = min(_BETWEEN, steps - done)
        # reuse intermediate states, because the system is slow to provide fresh memory
        target = np.empty((case.stencil.q, *reversed(case.domain))) if spare is None else spare
        _advance(case, state, more, target, walls=walls)
        spare = state if state is not None and state.flags.writeable else None
        state, done = target, done + more
    state.setflags(write=False)
    return state


def _latest_before(steps: int, case: Case, walls: Walls) -> tuple[int, Any]:
    """Return the steps and the state of the latest cached one before; 0 and None: the scattered state."""
    for n in range(steps - 1, 0, -1):
        if (state := _whole_state.known(case, n, walls)) is not None:
            return n, state
    return 0, None


def _advance(case: Case, start: Any, steps: int, out: Any, *, walls: Walls) -> None:
    """Take steps of the whole domain from one array to another. start: None for the scattered state."""

    def fill(parts: Sequence[Window]) -> list[None]:
        found = reference_slabs(case, parts, steps, np, walls=walls, start=start)
        for part, slab in zip(parts, found, strict=True):
            out[:, *_slices_of(part)] = slab
        return []

    map_slabs(fill, case, np)


def _slices_of(part: Window) -> tuple[slice, slice, slice]:
    """Return the slices of a part in an array of the whole domain, along z, y and x."""
    x, y, z = (slice(one.start, one.stop) for one in part)
    return z, y, x


def _state_bytes(case: Case) -> int:
    return 8 * case.stencil.q * prod(case.domain)


def map_slabs(
    work: Callable[[Sequence[Window]], list[T]], case: Case, xp: ModuleType, *, thin: bool = False
) -> list[T]:
    """Return the results of a function on the slabs of a domain; on a host threads share the slabs.

    thin: the function needs no layers around a slab.
    """
    most = min(_THREADS, usable_cores()) if xp is np else 1
    parts = list(slabs(case, _slab_cells(case, xp, most, thin=thin)))
    threads = min(most, len(parts))
    return [one for found in map_parts(work, [parts[k::threads] for k in range(threads)], xp) for one in found]


def map_parts(work: Callable[[P], T], parts: Sequence[P], xp: ModuleType) -> list[T]:
    """Return the results of a function on each part of a domain; on a host threads share the parts."""
    threads = min(_THREADS, len(parts)) if xp is np else 1
    if threads == 1 or (threads := min(threads, usable_cores())) == 1:
        return list(map(work, parts))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))


def slabs(case: Case, cells: int) -> Iterator[Window]:
    """Yield parts of about a number of cells, cut across the slowest axis of the lattice."""
    axis = case.stencil.dimensions - 1
    extent = case.domain[axis]
    thickness = max(1, min(extent, cells * extent // case.sites))
    for start in range(0, extent, thickness):
        part = list(whole(case.domain))
        part[axis] = range(start, min(start + thickness, extent))
        yield (part[0], part[1], part[2])


def _slab_cells(case: Case, xp: ModuleType, threads: int, *, thin: bool) -> int:
    if xp is not np:
        return _SLAB_CELLS["cuda"]
    room = quotas.memory().available // (_ARRAYS * 8 * case.stencil.q * threads)
    return min(_SLAB_CELLS["cpu"], _THIN_CELLS if thin else max(_THIN_CELLS, room))


def reference_slabs(
    case: Case, parts: Sequence[Window], steps: int, xp: ModuleType, *, walls: Walls = Walls.HALF_WAY, start: Any = None
) -> Iterator[Any]:
    """Yield the states of slabs after some steps from the scattered state, shape (q, nz, ny, nx) of the slab.

    start: a state of the whole domain to begin with instead.
    Each is computed on the slab and as many layers around it as there are steps, so that errors at the rim do not
    reach the slab. A state is valid until the next one is requested: all use the same memory. Slabs of a state that is
    there are parts of it, and are not copied.
    """
    if start is not None and not steps:
        yield from (start[:, *_slices_of(part)] for part in parts)
        return
    widened = [_widened(case, part, steps) for part in parts]
    room = [
        xp.empty(case.stencil.q * max(prod(map(len, window)) for window in widened)) for _ in range(1 + (steps > 0))
    ]
    for part, window in zip(parts, widened, strict=True):
        shape = (case.stencil.q, *map(len, reversed(window)))
        arrays = [buffer[: prod(shape)].reshape(shape) for buffer in room]
        _copy_start(case, window, xp, arrays[0], start)
        for n in range(steps):
            oracle.step(arrays[n % 2], case, xp, window, walls=walls, out=arrays[1 - n % 2])
        inner = (range(p.start - w.start, p.stop - w.start) for p, w in zip(part, window, strict=True))
        x, y, z = (slice(r.start, r.stop) for r in inner)
        yield arrays[steps % 2][:, z, y, x]


def _widened(case: Case, part: Window, steps: int) -> Window:
    """Return a slab with the layers around it that affect it; beyond a periodic face, those of the image."""
    axis = case.stencil.dimensions - 1
    low, high = part[axis].start - steps, part[axis].stop + steps
    if case.faces[2 * axis] != "periodic":
        low, high = max(0, low), min(case.domain[axis], high)
    x, y, z = (range(low, high) if along == axis else r for along, r in enumerate(part))
    return (x, y, z)


def _copy_start(case: Case, window: Window, xp: ModuleType, out: Any, start: Any) -> None:
    """Copy a part of a state of the whole domain, or of the scattered state; beyond a periodic face, of the image."""
    if start is None:
        _scattered(case, window, xp, out)
        return
    axis = case.stencil.dimensions - 1
    along = xp.arange(window[axis].start, window[axis].stop)
    xp.take(start, along, axis=3 - axis, mode="wrap", out=out)


def _scattered(case: Case, part: Window, xp: ModuleType, out: Any = None) -> Any:
    """Return the random state of a part; coordinates beyond a periodic face are those of the image."""
    x, y, z = (xp.arange(r.start, r.stop) % n for r, n in zip(part, case.domain, strict=True))
    return oracle.scattered_state(case, x, y, z, xp, out)
