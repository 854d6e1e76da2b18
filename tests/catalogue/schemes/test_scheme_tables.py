"""The scheme tables themselves, interpreted in NumPy against the oracle, and their proof of safety."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, channel
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.pull import SCHEME
from lbmtune.catalogue.schemes.scheme import Phase, Place, bundled
from lbmtune.lattice import LATTICES, Lattice, Vector, negate
from lbmtune.measure.verification import oracle
from lbmtune.runtime.placement import PopulationPlaces

# the storage of blocks with rings is no array of the domain: such schemes are proved through their kernels
WHOLE = [name for name, table in SCHEMES.items() if not table.phase(LATTICES["d2q9"], 0).blockwise]
COMBINATIONS = list(product(WHOLE, ("box", "cavity", "channel"), LATTICES))


def _case(flow: str, lattice: str) -> Case:
    domain = (6, 5, 1 if lattice == "d2q9" else 3)
    if flow == "box":
        return box(lattice, "bgk", domain)
    if flow == "cavity":
        return cavity(lattice, "bgk", domain, 1.3)
    return channel(lattice, "bgk", domain, 1.1, force=1e-3)


def _element(case: Case, place: Place, cell: Vector) -> tuple[int, int, int, int]:
    x, y, z = ((a + o) % n for a, o, n in zip(cell, place.offset, case.domain, strict=True))
    return place.slot, z, y, x


@cache
def _elements(case: Case, place: Place) -> np.ndarray:
    """Where the place of each cell lies, as a number in the flat lattice."""
    shape = case.domain[::-1]
    each = [_element(case, place, (x, y, z)) for z, y, x in np.ndindex(*shape)]
    return np.ravel_multi_index(tuple(np.transpose(each)), (case.stencil.q, *shape)).reshape(shape)


@cache
def _cuts(case: Case, velocity: Vector) -> np.ndarray:
    """What lies between each cell and the next one along a velocity."""
    nx, ny, nz = case.domain
    return np.array([[[case.cut((x, y, z), velocity) for x in range(nx)] for y in range(ny)] for z in range(nz)])


def _step(case: Case, scheme: str, lattices: list[np.ndarray], parity: int) -> None:
    """One step by the tables, pass after pass and cell after cell; the lattices exchange afterwards if they do."""
    table = SCHEMES[scheme]
    for phase in table.passes(case.stencil, parity):
        if not phase.in_place and phase.collides:
            lattices[phase.target].fill(np.nan)
        go = _ordered_pass if phase.ordered else _pass
        go(case, phase, lattices[phase.source], lattices[phase.target])
    if table.exchanges(case.stencil):
        lattices.reverse()


def _pass(case: Case, phase: Phase, stored: np.ndarray, target: np.ndarray) -> None:
    lattice, before, after = case.stencil, stored.reshape(-1), target.reshape(-1)
    f = np.full((lattice.q, *case.domain[::-1]), np.nan)
    for access in phase.accesses:
        i = access.direction
        kind = _cuts(case, negate(lattice.velocities[i]))
        read, cut_read = (before[_elements(case, place)] for place in (access.read, access.cut_read))
        f[i] = np.where(kind == "open", read, cut_read)
        if phase.wall_term == "read":
            f[i] += np.where(kind == "moving", _gain(case, i), 0.0)
    g = oracle.collide(f, case) if phase.collides else f
    for access in phase.accesses:
        i = access.direction
        kind = _cuts(case, lattice.velocities[i])
        gain = _gain(case, lattice.opposite[i]) if phase.wall_term == "write" else 0.0
        for place, there in ((access.write, kind == "open"), (access.cut_write, kind != "open")):
            after[_elements(case, place)[there]] = (g[i] + np.where(kind == "moving", gain, 0.0))[there]


def _ordered_pass(case: Case, phase: Phase, stored: np.ndarray, target: np.ndarray) -> None:
    """Cell after cell, each with its swaps; those over a periodic face, where the other comes later, at the end."""
    assert target is stored
    before, collided = stored.copy(), stored.copy()
    _pass(case, replace(phase, swaps=()), before, collided)
    left: list[tuple[Place, Place, Vector]] = []
    for z, y, x in np.ndindex(*case.domain[::-1]):
        untouched = np.array_equal(stored[:, z, y, x], before[:, z, y, x], equal_nan=True)
        assert untouched, "a cell is touched before its turn"
        stored[:, z, y, x] = collided[:, z, y, x]
        for mine, _ in zip(phase.swaps[::2], phase.swaps[1::2], strict=True):
            c = case.stencil.velocities[mine.direction]
            if case.cut((x, y, z), c) == "open":
                swap = mine.read, mine.write, (x, y, z)
                there = all(0 <= a + d < n for a, d, n in zip((x, y, z), c, case.domain, strict=True))
                _exchange(case, stored, *swap) if there else left.append(swap)
    for swap in left:
        _exchange(case, stored, *swap)


def _exchange(case: Case, stored: np.ndarray, one: Place, other: Place, cell: Vector) -> None:
    a, b = _element(case, one, cell), _element(case, other, cell)
    stored[a], stored[b] = stored[b], stored[a]


def _gain(case: Case, i: int) -> float:
    c, w = case.stencil.velocities[i], float(case.stencil.weights[i])
    return 6 * w * float(np.dot(c, case.wall_velocity))


@pytest.mark.parametrize(("scheme", "flow", "lattice"), COMBINATIONS)
def test_table_reproduces_the_oracle(scheme: str, flow: str, lattice: str) -> None:
    case = _case(flow, lattice)
    table, config = SCHEMES[scheme], cuda.Direct(compute="fp64", storage="fp64", scheme=scheme)
    state = oracle.random_state(case)
    stored = np.full((case.stencil.q, *case.domain[::-1]), np.nan)
    found = [list(PopulationPlaces(case, config, parity, np).each()) for parity in range(table.period)]
    for i, place in enumerate(found[0]):
        stored.reshape(-1)[place.indices] = state[i] - place.gain
    lattices = [stored, np.full_like(stored, np.nan)][: table.lattices]
    for t in range(5):
        _step(case, scheme, lattices, t % table.period)
        stored, state = lattices[0].reshape(-1), oracle.step(state, case)
        gathered = [stored[place.indices] + place.gain for place in found[(t + 1) % table.period]]
        np.testing.assert_allclose(gathered, state, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("scheme", "flow", "lattice"), COMBINATIONS)
def test_no_place_is_shared_between_cells(scheme: str, flow: str, lattice: str) -> None:
    """Within a pass, a written place has one writer, and in place no other reader."""
    case, table = _case(flow, lattice), SCHEMES[scheme]
    for parity in range(table.period):
        for phase in table.passes(case.stencil, parity):
            _prove_safe(case, replace(phase, swaps=()))
            if phase.ordered:
                _prove_safe(case, Phase(phase.swaps, wall_term="none", collides=False))


def _prove_safe(case: Case, phase: Phase) -> None:
    number = np.arange(case.sites).reshape(case.domain[::-1])

    def touched(place: Place, cut_place: Place, velocity: Vector) -> np.ndarray:
        """Of each cell, in one number: the place that it touches by an access, and itself."""
        whole, cut = (_elements(case, each) for each in (place, cut_place))
        return np.where(_cuts(case, velocity) == "open", whole, cut) * case.sites + number

    velocities = case.stencil.velocities
    accesses = [(a, velocities[a.direction]) for a in phase.accesses]
    writes = np.unique([touched(a.write, a.cut_write, c) for a, c in accesses])
    reads = np.unique([touched(a.read, a.cut_read, negate(c)) for a, c in accesses])
    written = np.unique(writes // case.sites)
    assert len(written) == len(writes)
    # a pass that swaps leaves what a cut link reversed where it was, once as the one and once as the other
    assert len(writes) == len(accesses) * case.sites or (case.walled and not phase.collides)
    if phase.in_place:
        np.testing.assert_array_equal(reads[np.isin(reads // case.sites, written)], writes)


def _from_downstream(lattice: Lattice, parity: int) -> Phase:
    """Pull with the sign of its offsets wrong."""
    right = SCHEME.phase(lattice, parity)
    turned = (a._replace(read=a.read._replace(offset=negate(a.read.offset))) for a in right.accesses)
    return replace(right, accesses=tuple(turned))


def test_a_wrong_table_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter test can fail: pulling from downstream gives another state."""
    test_table_reproduces_the_oracle("pull", "box", "d3q19")
    monkeypatch.setitem(SCHEMES, "pull", replace(SCHEME, phase=_from_downstream))  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        test_table_reproduces_the_oracle("pull", "box", "d3q19")


@pytest.mark.parametrize(("lattice", "axis", "size"), [("d2q9", 1, 3), ("d3q27", 2, 9)])
def test_slots_by_plane_hold_one_plane_of_directions_each(lattice: str, axis: int, size: int) -> None:
    stencil = LATTICES[lattice]
    phase = bundled(SCHEMES["pull"], 3).phase(stencil, 0)
    direction = {access.write.slot: access.direction for access in phase.accesses}
    planes = [stencil.velocities[direction[slot]][axis] for slot in range(stencil.q)]
    assert planes == [-1] * size + [1] * size + [0] * size


@pytest.mark.parametrize("lattice", LATTICES)
def test_two_bundles_hold_one_direction_of_each_pair(lattice: str) -> None:
    stencil, half = LATTICES[lattice], (LATTICES[lattice].q + 1) // 2
    for parity in (0, 1):
        phase = bundled(SCHEMES["esoteric-twist"], half).phase(stencil, parity)
        bundle = {access.direction: access.read.slot // half for access in phase.accesses}
        assert all(bundle[i] != bundle[stencil.opposite[i]] for i in range(1, stencil.q))
        here = {bundle[a.direction] for a in phase.accesses if a.read.offset == (0, 0, 0) and a.direction}
        assert len(here) == 1


@pytest.mark.parametrize(("scheme", "lattice", "group"), list(product(SCHEMES, LATTICES, (3, 5, 10, 14))))
def test_renumbered_slots_change_nothing_else(scheme: str, lattice: str, group: int) -> None:
    stencil, plain = LATTICES[lattice], SCHEMES[scheme]
    for parity in range(plain.period):
        pairs: set[tuple[int, int]] = set()
        renumbered = bundled(plain, group).passes(stencil, parity)
        for one, other in zip(plain.passes(stencil, parity), renumbered, strict=True):
            assert replace(one, accesses=(), swaps=()) == replace(other, accesses=(), swaps=())
            for before, after in zip((*one.accesses, *one.swaps), (*other.accesses, *other.swaps), strict=True):
                assert before.direction == after.direction
                assert [place.offset for place in before[1:]] == [place.offset for place in after[1:]]
                pairs |= {(a.slot, b.slot) for a, b in zip(before[1:], after[1:], strict=True)}
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == stencil.q
