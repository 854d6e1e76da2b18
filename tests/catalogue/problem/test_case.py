"""The case: what is refused, and which links a wall cuts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.catalogue.problem.flows import box, cavity, channel
from lbmtune.errors import InputError

BOX = box("d3q19", "bgk", (8, 6, 4))
NAN, INF = float("nan"), float("inf")
CAVITY = cavity("d3q19", "bgk", (8, 6, 4), 1.5)


@pytest.mark.parametrize(
    ("base", "change", "sentence"),
    [
        (BOX, {"collision": "tbk"}, "unknown collision 'tbk'; "),
        (BOX, {"collision": "cumulant"}, "collision=cumulant is not supported for d3q19 (use mrt or d3q27): it "),
        (BOX, {"lattice": "d3q15"}, "unknown lattice 'd3q15'; did you mean"),
        (BOX, {"domain": (8, 0, 4)}, "domain 8x0x4 has an extent below 1; give three positive cell counts."),
        (BOX, {"lattice": "d2q9"}, "d2q9 is two-dimensional but domain 8x6x4 has nz = 4; set nz = 1."),
        (BOX, {"relaxation_rate": 2.0}, "relaxation_rate 2.0 is not between 0 and 2; choose omega = 1 / (3 nu + 1/2)."),
        (BOX, {"relaxation_rate": 0.0}, "relaxation_rate 0.0 is not between 0 and 2"),
        (BOX, {"magic": 0.0}, "magic 0.0 is not positive; 3/16 places a bounce-back wall half-way between cells."),
        (
            BOX,
            {"faces": ("wall", *BOX.faces[1:])},
            "face x- is wall and x+ is periodic; a direction is periodic on both",
        ),
        (BOX, {"faces": ("wal", "wal", *BOX.faces[2:])}, "unknown face 'wal'; did you mean 'wall'?"),
        (CAVITY, {"wall_velocity": (0.0, 0.0, 0.0)}, "a face is 'moving' but wall_velocity is zero; give the wall"),
    ],
)
def test_bad_cases_are_bad_input_with_a_sentence(base: Case, change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        replace(base, **change)
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize(
    ("cell", "velocity", "expected"),
    [
        ((3, 3, 2), (1, 1, 0), "open"),
        ((0, 3, 2), (-1, 0, 0), "wall"),
        ((0, 3, 2), (1, 0, 0), "open"),
        ((7, 3, 2), (1, 0, 0), "wall"),
        ((3, 5, 2), (0, 1, 0), "moving"),
        ((3, 5, 2), (0, -1, 0), "open"),
        ((7, 5, 2), (1, 1, 0), "moving"),  # an edge of the lid: the moving wall decides
        ((7, 5, 2), (1, 0, 0), "wall"),
        ((7, 4, 2), (1, 1, 0), "wall"),
        ((3, 3, 0), (0, 1, -1), "wall"),
    ],
)
def test_links_of_a_cavity(cell: tuple[int, int, int], velocity: tuple[int, int, int], expected: str) -> None:
    assert CAVITY.cut(cell, velocity) == expected


def test_a_periodic_box_cuts_nothing() -> None:
    assert not BOX.walled
    assert all(BOX.cut((0, 0, 0), c) == "open" for c in BOX.stencil.velocities)


def test_a_flat_cavity_is_periodic_along_z() -> None:
    case = cavity("d2q9", "bgk", (8, 6, 1), 1.5)
    assert case.faces == ("wall", "wall", "wall", "moving", "periodic", "periodic")
    assert case.moving
    assert not case.forced


def test_a_channel_is_driven_along_x_between_resting_walls() -> None:
    case = channel("d3q19", "trt", (8, 6, 4), 1.5, force=1e-4)
    assert case.forced
    assert not case.moving
    assert [case.cut((3, y, 2), (0, c, 0)) for y, c in ((0, -1), (5, 1), (0, 1))] == ["wall", "wall", "open"]
    assert case.sites == 8 * 6 * 4


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"wall_velocity": (0.5, 0.5, 0.0)},
            "wall_velocity .* is not below the speed of sound, 0.577; give a small one",
        ),
        ({"wall_velocity": (0.1, NAN, 0.0)}, "wall_velocity .* is not below"),
        ({"inlet_velocity": (INF, NAN, 0.0)}, "inlet_velocity .* is not below"),
        ({"force": (1e308, 0.0, 0.0)}, "half of force .* is not below"),
        ({"force": (0.0, NAN, 0.0)}, "half of force .* is not below"),
        ({"velocity_scale": 0.6}, "velocity_scale .* is not below"),
        ({"velocity_scale": NAN}, "velocity_scale .* is not below"),
        ({"relaxation_rate": NAN}, "relaxation_rate nan is not between 0 and 2"),
        ({"magic": NAN}, "magic nan is not positive"),
        ({"magic": INF}, "magic inf is not positive"),
        ({"patches": (Patch("moving", "rectangle", "y+", (0.1, NAN, 0.0)),)}, "velocity .* is not below"),
        ({"patches": (Patch("moving", "rectangle", "y+", (0.4, 0.4, 0.4)),)}, "velocity .* is not below"),
        ({"patches": (Patch("pressure", "rectangle", "y+", density=NAN),)}, "density nan is not positive"),
        ({"patches": (Patch("pressure", "rectangle", "y+", density=INF),)}, "density inf is not positive"),
    ],
)
def test_what_no_flow_can_have_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(cavity("d3q19", "bgk", (16, 16, 16), 1.2), **values)


def test_a_pressure_that_is_no_number_is_refused() -> None:
    faces = ("pressure", "pressure", "wall", "wall", "periodic", "periodic")
    for density in (NAN, INF, -1.0):
        with pytest.raises(InputError, match=r"outlet_density .* is not positive"):
            Case("box", "d3q19", "bgk", (16, 16, 16), 1.2, faces, outlet_density=density)
