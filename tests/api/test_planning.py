"""Plans for a memory: the largest domains, and the devices that a domain needs."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune import Case, plan
from lbmtune.api.predicted.planning import STEP, Capacity, share, with_halo
from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.families.rules import broken, cuda_limits
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.decomposition.cuts import grids
from lbmtune.errors import InputError

CASE = Case("box", "d3q19", "bgk", (128, 128, 128), 1.6)
PLANE = Case("box", "d2q9", "bgk", (512, 512, 1), 1.6)
CONFIGS = (
    *("scheme=pull", "scheme=aa,storage=fp64,compute=fp64", "scheme=push,wrap=ghost", "family=column,scheme=pull"),
    *("scheme=aa,layout=aosoa,width=32", "family=sparse,scheme=esoteric-twist", "family=temporal-blocking,steps=2"),
    *("scheme=aa,cells_per_thread=2,block=32x4x1", "scheme=ghost-cell,block=16x8x8"),
)
GIB = 1 << 30


def capacity(memory: int, case: Case = CASE) -> Capacity:
    return Capacity(case, cuda_limits("sm_90", 132, memory))


@settings(max_examples=60, deadline=None)
@given(
    text=st.sampled_from(CONFIGS),
    memory=st.integers(4 * GIB, 200 * GIB),
    proportions=st.sampled_from(((1, 1, 1), (4, 2, 1), (1, 3, 2))),
)
def test_the_largest_domain_fits_and_is_legal_and_the_next_is_not(text, memory, proportions):
    config, one = parse_config(text), capacity(memory)
    found = one.largest(config, proportions, 1)
    assert found is not None
    size = max(found) // STEP
    assert found == one.scaled(proportions, size)
    assert broken(replace(CASE, domain=found), one.form(config, found), one.limits) is None
    assert footprint_bytes(replace(CASE, domain=found), config) <= memory
    for larger in range(size + 1, size + 4):
        assert one.form(config, one.scaled(proportions, larger)) is None


@settings(max_examples=40, deadline=None)
@given(
    text=st.sampled_from(CONFIGS),
    memory=st.integers(512 << 20, 80 * GIB),
    domain=st.tuples(*[st.integers(4, 64).map(lambda n: 32 * n)] * 3),
)
def test_the_devices_hold_a_domain_and_fewer_do_not(text, memory, domain):
    config, one = parse_config(text), capacity(memory, replace(CASE, domain=domain))
    devices, parts = one.needed(config)
    assert devices == prod(parts)
    part = with_halo(domain, parts, config.fused_steps)
    assert footprint_bytes(replace(CASE, domain=part), config) <= memory
    assert devices * memory >= footprint_bytes(replace(CASE, domain=domain), config)
    for cut in (grid.along for grid in grids(devices - 1)) if devices > 1 else ():
        fits = one.fits(config, domain, cut) and one.form(config, share(domain, cut))
        assert not fits or not all(n <= d for n, d in zip(cut, domain, strict=True))


def test_several_devices_hold_more_than_one_and_less_than_without_halo():
    config = parse_config("scheme=pull")
    one, four = (capacity(4 * GIB).largest(config, (1, 1, 1), n) for n in (1, 4))
    whole = capacity(16 * GIB).largest(config, (1, 1, 1), 1)
    assert prod(one) < prod(four) <= prod(whole)


def test_one_layer_of_cells_for_each_step_along_axes_that_are_cut():
    assert with_halo((100, 64, 64), (1, 3, 2), 2) == (100, 26, 36)
    assert share((100, 64, 64), (1, 3, 2)) == (100, 22, 32)
    assert tuple(grid.along for grid in grids(4)) == ((1, 1, 4), (1, 2, 2), (1, 4, 1), (2, 1, 2), (2, 2, 1), (4, 1, 1))


def test_half_the_memory_holds_twice_the_cells():
    """As published: on a Tesla K20c of 5 GB two lattices of D2Q9 in fp64 hold 36 million cells at most."""
    found = {
        (one.config.family, one.config.scheme): one
        for one in plan(replace(PLANE, domain=(4096, 4096, 1)), 5 * 10**9).kernels
    }
    two, swap, ghost = (found["direct", name] for name in ("pull", "swap", "ghost-cell"))
    assert two.bytes_per_cell == 2 * swap.bytes_per_cell == 72
    assert 0.5 < ghost.bytes_per_cell / two.bytes_per_cell < 0.58
    assert two.cube[2] == 1
    assert prod(swap.cube) == pytest.approx(2 * prod(two.cube), rel=0.01)
    doubles = capacity(5 * 10**9, PLANE).largest(parse_config("scheme=pull,storage=fp64,compute=fp64"), (1, 1, 1), 1)
    assert 34e6 < prod(doubles) < 36e6


def test_largest_are_first_and_all_kinds_are_told_of():
    found = plan(CASE, 16 * GIB)
    cells = [prod(one.cube) for one in found.kernels]
    assert cells == sorted(cells, reverse=True)
    assert {one.config.family for one in found.kernels} == {"direct", "column", "sparse", "temporal-blocking"}
    assert "only regularised collision" in found.illegal["face-exchange fp32"]
    assert all(one.mlups is None for one in found.kernels)
    regularised = plan(replace(CASE, collision="regularised"), 16 * GIB)
    assert regularised.kernels[0].config.family == "face-exchange"


def test_lists_of_fluid_cells_are_scaled_and_no_other_domain_is_made(monkeypatch):
    case = Case("porous", "d3q19", "bgk", (32, 32, 32), 1.2, geometry="blocks:fraction=0.5")
    from lbmtune.catalogue.problem import geometry

    made = geometry.voxels.__wrapped__ if hasattr(geometry.voxels, "__wrapped__") else geometry.voxels

    def only_its_own(text, domain):
        assert domain == case.domain
        return made(text, domain)

    monkeypatch.setattr(geometry, "voxels", only_its_own)
    found = [one for one in plan(case, 16 * GIB, 4).kernels if one.config.family == "sparse"]
    for one in found:
        assert one.bytes_per_cell == footprint_bytes(case, one.config) / case.sites
        assert prod(one.cube) * one.bytes_per_cell < 4 * 16 * GIB


def test_a_part_has_its_share_of_patches():
    """Shapes are relative to their face."""
    patch = Patch("velocity", "rectangle:y=0.25..0.75", "x-", (0.04, 0.0, 0.0))
    case = Case("channel", "d3q19", "bgk", (512, 512, 512), 1.2, faces=("wall",) * 6, patches=(patch,))
    found = {(one.config.family, one.config.scheme): one for one in plan(case, 4 * GIB).kernels}
    assert {family for family, _ in found} == {"direct", "sparse"}
    assert (found["direct", "aa"].cube, found["direct", "aa"].devices) == ((368, 368, 368), 3)


def test_a_list_reaches_only_so_many_nodes():
    found = plan(replace(CASE, domain=(2048, 1024, 1024)), 1000 * GIB)
    sparse = next(one for one in found.kernels if one.config.family == "sparse")
    assert prod(sparse.cube) < 1 << 30
    assert sparse.devices == 3, "two parts and their spare sites exceed it"
    assert next(one for one in found.kernels if one.config.family == "direct").devices == 1


def test_a_machine_gives_memory_and_speed():
    found = plan(CASE, machine="h200")
    assert found.memory_bytes > 100 * GIB
    assert found.machine == "NVIDIA H200"
    assert all(one.mlups > 1000 for one in found.kernels)


def test_what_is_refused():
    with pytest.raises(InputError, match="give it with --memory 80GiB"):
        plan(CASE, device="7")
    with pytest.raises(InputError, match="devices=0 is not supported"):
        plan(CASE, GIB, 0)
    tiny = plan(CASE, 1000)
    assert {(one.cube, one.devices, one.parts) for one in tiny.kernels} == {(None, None, None)}
