"""Density and velocity of a state between two launches, by tables of the places of its values.

Fields are density and the components of velocity of each cell, (4, cells). codes: the numbers of 16-bit codes, or empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import prange, types
from numba.extending import overload

from lbmtune.backend.cpu.modules import call_cached
from lbmtune.backend.cpu.threads import bind

Reals = npt.NDArray[np.floating[Any]]
Places = npt.NDArray[np.int64]
_SOLID = np.uint32(31)


def _value(state: Any, codes: Any, at: int) -> Any:
    raise NotImplementedError("compiled code alone")


@overload(_value)  # type: ignore[untyped-decorator]
def _value_of(state: Any, codes: Any, at: int) -> Callable[..., Any]:  # noqa: ARG001
    def decoded(state: Any, codes: Any, at: int) -> Any:
        return codes[state[at]]

    def plain(state: Any, codes: Any, at: int) -> Any:  # noqa: ARG001
        return state[at]

    return decoded if isinstance(state.dtype, types.Integer) else plain


@numba.njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _of_box(
    state: Any,
    codes: Reals,
    along: Places,
    straight: npt.NDArray[np.bool_],
    words: npt.NDArray[np.uint32],
    factors: Reals,
    first: Reals,
    fields: Reals,
    extents: tuple[int, int, int],
) -> None:
    nx, ny, nz = extents
    for row in prange(ny * nz):
        y, z = nx + row % ny, nx + ny + row // ny
        m = fields[:, row * nx : (row + 1) * nx]
        for d in range(4):
            m[d, :] = first[d]
        for k in range(along.shape[1]):
            at, start = along[0, k], along[0, k, y] + along[0, k, z]
            rho, jx, jy, jz = factors[0, k], factors[1, k], factors[2, k], factors[3, k]
            begin, end = (1, nx - 1) if straight[k] else (0, 0)
            inner = start + at[begin] - begin
            for x in range(begin, end):
                value = _value(state, codes, inner + x)
                m[0, x] += rho * value
                m[1, x] += jx * value
                m[2, x] += jy * value
                m[3, x] += jz * value
            for x in range(nx):
                if begin <= x < end:
                    continue
                value = _value(state, codes, start + at[x])
                m[0, x] += rho * value
                m[1, x] += jx * value
                m[2, x] += jy * value
                m[3, x] += jz * value
        if words.size:
            for x in range(nx):
                word = words[row * nx + x]
                if word:
                    for d in range(4):
                        m[d, x] = first[d]
                    for k in range(along.shape[1]):
                        cut = (word >> np.uint32(k)) & np.uint32(1)
                        value = _value(state, codes, along[cut, k, x] + along[cut, k, y] + along[cut, k, z])
                        for d in range(4):
                            m[d, x] += factors[d, k] * value
        for x in range(nx):
            for d in range(1, 4):
                m[d, x] /= m[0, x]
        if words.size:
            for x in range(nx):
                if words[row * nx + x] >> _SOLID:
                    m[0, x] = 1
                    for d in range(1, 4):
                        m[d, x] = 0


@numba.njit(parallel=True, cache=True)  # type: ignore[untyped-decorator]
def _of_list(
    state: Any, codes: Reals, places: Places, cells: Places, factors: Reals, first: Reals, fields: Reals
) -> None:
    for site in prange(cells.size):
        rho, jx, jy, jz = first[0], first[1], first[2], first[3]
        for k in range(places.shape[0]):
            value = _value(state, codes, places[k, site])
            rho += factors[0, k] * value
            jx += factors[1, k] * value
            jy += factors[2, k] * value
            jz += factors[3, k] * value
        fields[0, cells[site]] = rho
        fields[1, cells[site]] = jx / rho
        fields[2, cells[site]] = jy / rho
        fields[3, cells[site]] = jz / rho


def of_box(threads: int, pinning: str, *arguments: Any) -> None:
    """Compute the fields of a box.

    arguments: state; codes; along: offsets of each value along x, y, z of open links, and of cut ones, (2, values,
    nx + ny + nz); straight: whether the elements of a value follow each other along x but at the ends, (values,);
    words: of cells, or empty: bit k: value k lies where a cut link has it; the highest: solid; factors: of each value
    in density and momentum, (4, values); first: density and momentum without the values, (4,); fields; extents.
    """
    _run(_of_box, threads, pinning, *arguments)


def of_list(threads: int, pinning: str, *arguments: Any) -> None:
    """Compute the fields of listed sites.

    arguments: state; codes; places: elements of the values of sites, (values, sites); cells: of the sites; factors,
    first, fields as for `of_box`.
    """
    _run(_of_list, threads, pinning, *arguments)


def _run(function: Any, threads: int, pinning: str, *arguments: Any) -> None:
    bind(threads, pinning)
    numba.set_num_threads(threads)
    call_cached(function, *arguments)
