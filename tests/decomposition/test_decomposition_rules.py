"""Rules of decompositions: each refuses with its reason, and what it does not refuse is legal on every part."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import case_of, decomposed
from lbmtune.decomposition.rules import kernel_refusal, refusal

LIMITS = Limits(shared_bytes_per_block=227 << 10, cooperative=True)
BOX = box("d3q19", "regularised", (64, 32, 24), 1.6)
PULL = "scheme=pull,block=32x1x1"
MOMENTS = "family=temporal-blocking,representation=moments,steps=3,chunk_planes=8,plane_fetch=none"


def refused(case: Case, text: str, cut: str, limits: Limits = LIMITS, depth: int | None = None) -> str:
    return refusal(case, parse_config(text), parse_cut(cut), limits, depth) or ""


@pytest.mark.parametrize("cut", ["z:2", "y:4", "2x1x4", "bisection:5", "1x1x1"])
@pytest.mark.parametrize("text", [PULL, "scheme=aa,block=32x1x1", "family=sparse,block=32x1x1", MOMENTS])
def test_legal_decompositions_have_legal_parts(text: str, cut: str) -> None:
    if "temporal" in text and cut in ("2x1x4", "bisection:5"):
        return  # whose tiles need more cells
    assert refused(BOX, text, cut) == ""
    config = parse_config(text)
    for part in decomposed(BOX, config, parse_cut(cut)).parts:
        assert broken(case_of(BOX, part), config, LIMITS) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("family=persistent", "family=persistent is not supported for several parts .* on chip"),
        ("family=face-exchange", "family=face-exchange is not supported for several parts .* by the faces of tiles"),
        ("scheme=two-step,block=32x1x1", "scheme=two-step is not supported for several parts .* passes within one"),
        ("scheme=swap,block=32x1x1", "scheme=swap is not supported for several parts .* passes within one"),
    ],
)
def test_kernels_that_no_cut_serves(text: str, reason: str) -> None:
    assert re.search(reason, refused(replace(BOX, domain=(64, 32, 32)), text, "z:2"))


def test_an_order_of_cells_is_that_of_the_whole_domain() -> None:
    config = parse_config("family=direct,scheme=swap-ordered,wrap=select,row_offset=0,vector_bits=0,threads=1", "cpu")
    said = kernel_refusal(BOX, config) or ""
    assert said.endswith("its cells are updated in the order of the whole domain")


def test_steps_of_a_scheme_in_a_wavefront_have_no_halo() -> None:
    config = parse_config("family=wavefront,scheme=aa,steps=2,threads=1", "cpu")
    said = kernel_refusal(BOX, config) or ""
    assert said.startswith("steps=2 of family wavefront is not supported for several parts (use 1)")


def test_walls_of_second_order_and_patches_belong_to_the_whole() -> None:
    curved = Case("porous", "d3q19", "bgk", (64, 32, 32), 1.2, geometry="sphere", walls="interpolated")
    assert "their pass reads beyond the halo" in refused(curved, "family=sparse,block=32x1x1", "z:2")
    patch = Patch("moving", "rectangle:y=0.25..0.75:z=0..1", "x-", velocity=(0.0, 0.05, 0.0))
    patched = replace(cavity("d3q19", "bgk", (64, 32, 32), 1.2), patches=(patch,))
    assert "a moving patch is not supported for several parts" in refused(patched, "family=sparse,block=32x1x1", "z:2")


def test_a_cut_has_no_more_parts_than_planes() -> None:
    said = "cut=z:25 is not supported for domain 64x32x24 (use up to 24 along z): it has more parts than planes"
    assert refused(BOX, PULL, "z:25") == said
    assert refused(BOX, PULL, "z:24") == ""
    plane = box("d2q9", "bgk", (64, 32, 1))
    assert "use up to 1 along z" in refused(plane, PULL, "z:2")
    assert "use up to 1,024 parts" in refused(BOX, PULL, "bisection:1025")


def test_a_slab_has_as_many_planes_as_the_halo_has_layers() -> None:
    assert refused(BOX, MOMENTS, "z:8") == ""
    said = "cut=z:9 is not supported for a halo of 3 layers (use fewer parts along z): part 0 has 2 planes across it"
    assert refused(BOX, MOMENTS, "z:9").startswith(said)


def test_the_layers_of_a_halo_suit_the_steps_of_a_launch() -> None:
    assert refused(BOX, MOMENTS, "z:2", depth=6) == ""
    assert refused(BOX, MOMENTS, "z:2", depth=4) == (
        "depth=4 is not supported for steps=3 (use a multiple of 3): launches are whole"
    )
    assert refused(BOX, "scheme=aa,block=32x1x1", "z:2", depth=2) == "depth=2 is not supported for scheme=aa (use 1)"


def test_a_part_obeys_the_rules_of_the_family() -> None:
    said = refused(BOX, "scheme=pull,block=64x1x1", "3x1x1")
    assert said.startswith("cut=x:3: part 0 with its halo has 23x32x24 cells: block 64x1x1 x 1 cells covers")


def test_what_is_illegal_on_one_device_is_said_as_there() -> None:
    said = broken(BOX, parse_config("scheme=pull,flags=memory,block=32x1x1"), LIMITS)
    assert said == refused(BOX, "scheme=pull,flags=memory,block=32x1x1", "z:2")


def test_a_grid_that_is_too_large_for_one_launch_is_none_for_parts() -> None:
    long = box("d3q19", "bgk", (256, 8, 1 << 17))
    assert "this device allows" in str(broken(long, parse_config("scheme=pull,block=256x1x1"), LIMITS))
    assert refused(long, "scheme=pull,block=256x1x1", "z:4") == ""


def test_the_whole_need_not_fit_into_one_device_but_each_part_has_to() -> None:
    case = box("d3q19", "bgk", (512, 512, 512))
    small = replace(LIMITS, memory_bytes=12 << 30)
    assert broken(case, parse_config("scheme=pull"), small)
    assert refused(case, "scheme=pull", "z:2", small) == ""
    longer = replace(case, domain=(512, 512, 1024))
    assert "part 0 with its halo has 512x512x514 cells" in refused(longer, "scheme=pull", "z:2", small)
