"""Pointers that are chased, and solid cells that are skipped, in CPU kernels with lists."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.catalogue.config import CpuConfig, completed, from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.sparse.nodes import counts
from lbmtune.codegen.describe import describe_kernel, describe_storage
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.codegen.support import support_of
from lbmtune.errors import InputError
from lbmtune.measure.verification.verify import verify
from tests.catalogue.boundaries.test_implicit import rocks
from tests.support.conformance.choices import LIMITS, case_of
from tests.support.kernels.full_size import verify_full_size


def config(**axes: Any) -> CpuConfig:
    values = {"backend": "cpu", "scheme": "esoteric-twist", "family": "sparse", **axes}
    found = from_flat(completed(values, LIMITS))
    assert isinstance(found, CpuConfig)
    return found


def passes(program: Program) -> bool:
    return verify(program, compile_cpu(program), open_cpu(), 3).passed


def test_seven_nodes_are_found_by_three_rows() -> None:
    case, chosen = case_of("rocks", "d3q19", "bgk"), config(links="three_pointers", prefetch_index=64)
    source = render(case, chosen).source
    assert len(re.findall(r"= led_by\(links, ", source)) == 2 * 3, "along each axis, in steps of both parities"
    assert len(re.findall(r"= led_on\(links, ", source)) == 2 * 3, "D3Q19 has no use for the corner"
    nodes = re.findall(r"node_\w+ = led_\w+\(.*\)", source)
    assert "node_ppo = led_on(links, 0 * nodes, node_opo)" in nodes
    assert len(re.findall(r"prefetch\(links, ", source)) == 3 + 4, "three rows, and the mask in odd steps"
    corner = render(case_of("rocks", "d3q27", "bgk"), chosen).source
    assert corner.count("node_ppp = led_on(links, 0 * nodes, node_opp)") == 2


def test_26_nodes_are_found_by_six_rows_in_every_second_step() -> None:
    case = case_of("rocks", "d3q27", "bgk")
    source = render(case, config(scheme="aa", links="six_pointers", boundary="implicit", prefetch_index=64)).source
    assert len(re.findall(r"= led_by\(links, ", source)) == 6
    assert len(re.findall(r"= led_on\(links, ", source)) == 20
    assert len(re.findall(r"prefetch\(links, ", source)) == 6


def test_others_do_not_import_what_chases() -> None:
    case = case_of("rocks", "d3q19", "bgk")
    kept, chased = (render(case, config(links=name)).source for name in ("all", "three_pointers"))
    assert "chase" not in kept
    assert "from lbmtune.backend.cpu import chase, lists, simd" in chased
    assert len({support_of(render(case, config(links=name)).source) for name in ("all", "three_pointers")}) == 2


def test_as_many_words_are_read_and_fewer_kept() -> None:
    """Geier, Schoenherr 2017: seven pointers read, three kept."""
    case = rocks("d3q27")
    kept, chased = (config(links=name, boundary="implicit") for name in ("all", "three_pointers"))
    assert traffic(case, kept) == traffic(case, chased)
    assert traffic(case, chased).index == 7 * 4
    assert traffic(case, chased).flags == 0
    _, sites, nodes = counts(case, chased)
    assert kept.list_words(case) == 7 * sites
    assert chased.list_words(case) == 3 * nodes
    assert footprint_bytes(case, chased) - footprint_bytes(case, kept) == 4 * (3 * nodes - 7 * sites)


SIX = {"scheme": "aa", "links": "six_pointers", "boundary": "implicit"}
SAMPLES: list[tuple[str, str, dict[str, Any]]] = [
    ("grinder", "d2q9", {"links": "three_pointers"}),
    ("solids", "d3q19", {"links": "three_pointers", "gather": "lanes", "order": "tile", "vector_bits": 256}),
    ("rocks", "d2q9", {"links": "three_pointers", "vector_bits": 0, "layout": "aos", "storage": "fp64"}),
    ("rocks", "d3q27", {"links": "three_pointers", "boundary": "implicit", "prefetch_index": 64, "threads": 2}),
    ("rocks", "d2q9", {"links": "three_pointers", "layout": "aosoa", "width": 16, "storage": "fp16c"}),
    ("rocks", "d2q9", {"boundary": "implicit", "scheme": "aa", "storage": "fp64"}),
    ("rocks", "d3q27", {**SIX, "prefetch_index": 64}),
    ("rocks", "d3q19", {**SIX, "gather": "lanes", "order": "tile", "vector_bits": 256}),
    ("rocks", "d2q9", {**SIX, "vector_bits": 0, "storage": "fp64", "layout": "aos"}),
    ("rocks", "d2q9", {"boundary": "implicit", "scheme": "esoteric-pull", "vector_bits": 0, "order": "hilbert"}),
]


@pytest.mark.parametrize(("flow", "lattice", "axes"), SAMPLES)
def test_kernels(flow: str, lattice: str, axes: dict[str, Any]) -> None:
    case, chosen = case_of(flow, lattice, "bgk"), config(**axes)
    assert broken(case, chosen, LIMITS) is None
    assert passes(render(case, chosen))


def test_on_the_whole_domain() -> None:
    program = render(rocks(), config(links="three_pointers", boundary="implicit"))
    assert verify_full_size(program, compile_cpu(program), open_cpu()).passed


FAULTS = {
    "a wrong axis first": ("node_poo = led_by(links, x)", "node_poo = led_by(links, 1 * nodes + x)"),
    "a wrong axis next": ("led_on(links, 0 * nodes, node_opo)", "led_on(links, 1 * nodes, node_opo)"),
    "rows of sites": ("led_by(links, 1 * nodes + x)", "led_by(links, 1 * sites + x)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_verification_finds(fault: str) -> None:
    program = render(rocks(), config(links="three_pointers", vector_bits=0))
    old, new = FAULTS[fault]
    assert program.source.count(old) >= 1
    assert not passes(replace(program, source=program.source.replace(old, new)))


def test_a_kernel_that_skips_does_not_pass_for_one_that_bounces_back() -> None:
    implicit, half_way = (render(rocks(), config(scheme="aa", boundary=name)) for name in ("implicit", "branch"))
    assert "_cut(" in half_way.source
    assert "_cut(" not in implicit.source
    assert not passes(replace(half_way, source=implicit.source))


REASONS: list[tuple[Case, dict[str, Any], str]] = [
    (rocks(), {"scheme": "pull", "boundary": "implicit"}, "scheme=pull"),
    (case_of("cavity", "d2q9", "bgk"), {"scheme": "aa", "boundary": "implicit"}, "has no solid cells to skip"),
    (rocks(), {"scheme": "esoteric-pull", "links": "three_pointers"}, "only pointers of esoteric-twist and"),
    (rocks(), {"links": "some"}, "links=some is not supported for family sparse (use all, three_pointers or six_"),
]


@pytest.mark.parametrize(("case", "axes", "reason"), REASONS)
def test_reasons(case: Case, axes: dict[str, Any], reason: str) -> None:
    assert reason in str(broken(case, config(**axes), LIMITS))


@pytest.mark.parametrize(("name", "value"), [("boundary", "implicit"), ("links", "three_pointers")])
def test_a_box_has_no_index_list(name: str, value: str) -> None:
    with pytest.raises(InputError, match=name):
        from_flat({"backend": "cpu", "family": "direct", "flags": "memory", "scheme": "esoteric-twist", name: value})
    assert getattr(config(**{name: value}), name) == value


def test_what_others_are_told_of_the_list() -> None:
    program = render(rocks(), config(links="three_pointers", boundary="implicit"))
    links = describe_storage(program).links
    assert links is not None
    assert (links.chased, links.rows, len(links.pointers)) == (True, 2, 2), "in the plane"
    (buffer,) = [one for one in describe_kernel(program).buffers if one.name == "links"]
    assert (buffer.elements_formula, buffer.elements) == ("2 * nodes", 2 * links.nodes)
