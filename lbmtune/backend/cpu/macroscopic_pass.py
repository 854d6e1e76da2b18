"""Density and velocity of a state between two launches, by tables of the places of its values.

Fields are density and the components of velocity of each cell, (4, cells). codes: numbers of 16-bit codes, or empty.
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


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _add(part: Any, codes: Reals, factor: float, sums: Reals) -> None:
    if factor != 0:
        for x in range(sums.size):
            sums[x] += factor * _value(part, codes, x)


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
    values = along.shape[1]
    for row in prange(ny * nz):
        y, z = nx + row % ny, nx + ny + row // ny
        here = row * nx
        rho = fields[0][here : here + nx]  # arrays of one axis: those of two are not known to be contiguous
        jx, jy, jz = fields[1][here : here + nx], fields[2][here : here + nx], fields[3][here : here + nx]
        rho[:], jx[:], jy[:], jz[:] = first[0], first[1], first[2], first[3]
        for k in range(values):
            at, start = along[0, k], along[0, k, y] + along[0, k, z]
            f0, f1, f2, f3 = factors[0, k], factors[1, k], factors[2, k], factors[3, k]
            if straight[k]:
                begin = start + at[1]
                part = state[begin : begin + nx - 2]
                _add(part, codes, f0, rho[1 : nx - 1])
                _add(part, codes, f1, jx[1 : nx - 1])
                _add(part, codes, f2, jy[1 : nx - 1])
                _add(part, codes, f3, jz[1 : nx - 1])
            for x in range(0, nx, nx - 1 if straight[k] else 1):
                value = _value(state, codes, start + at[x])
                rho[x] += f0 * value
                jx[x] += f1 * value
                jy[x] += f2 * value
                jz[x] += f3 * value
        if words.size:
            for x in range(nx):
                word = words[here + x]
                if word:
                    rho[x], jx[x], jy[x], jz[x] = first[0], first[1], first[2], first[3]
                    for k in range(values):
                        cut = (word >> np.uint32(k)) & np.uint32(1)
                        value = _value(state, codes, along[cut, k, x] + along[cut, k, y] + along[cut, k, z])
                        rho[x] += factors[0, k] * value
                        jx[x] += factors[1, k] * value
                        jy[x] += factors[2, k] * value
                        jz[x] += factors[3, k] * value
                    if word >> _SOLID:
                        rho[x], jx[x], jy[x], jz[x] = 1, 0, 0, 0
        for x in range(nx):
            jx[x] /= rho[x]
            jy[x] /= rho[x]
            jz[x] /= rho[x]


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
