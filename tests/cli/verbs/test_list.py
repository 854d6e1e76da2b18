"""`lbmtune list NAME`: all that is known of a knob, a family or an entry of the catalogue."""

import json
import re

import pytest

from lbmtune.api.inventory import entries, listing
from lbmtune.catalogue.config import FAMILIES
from lbmtune.errors import InputError
from lbmtune.files.studyfile import load_study


@pytest.fixture(scope="module")
def facts():
    return listing(load_study("quick", ()), "cpu")


def test_every_name_of_a_listing_is_known_and_has_a_meaning(facts):
    kinds = ("schemes", "layouts", "lattices", "collisions", "storages", "flows", "faces", "patches", "geometries")
    names = {*facts["knobs"], *FAMILIES["cpu"], *(name for kind in kinds for name in facts[kind])}
    for name in names:
        for entry in entries(facts, name):
            assert entry["name"] == name
            assert entry["title"]
    for kind in ("knobs", "families", "walls", *kinds):
        (entry,) = entries(facts, kind)
        assert entry["entries"]
        assert all(entries(facts, name) for name in entry["entries"])


def test_a_name_that_is_several_things_is_told_as_each_of_them(facts):
    assert [one["kind"] for one in entries(facts, "storage")] == ["knob"]
    several = {name: kinds for name in facts["knobs"] if len(kinds := entries(facts, name)) > 1}
    both = [name for name in FAMILIES["cpu"] if len(entries(facts, name)) > 1]
    assert all(len({one["kind"] for one in kinds}) == len(kinds) for kinds in several.values())
    assert all(len({one["kind"] for one in entries(facts, name)}) > 1 for name in both)


def test_a_name_that_is_none_has_the_nearest_one_proposed(facts):
    with pytest.raises(InputError, match=r"unknown name 'vector_bit'; did you mean 'vector_bits'\?"):
        entries(facts, "vector_bit")


def test_a_knob_is_told_with_what_it_is_in_each_family(run):
    code, out, _ = run("list", "block", "--machine", "h200")
    assert code == 0
    assert re.search(r"^meaning +threads per block, x by y by z$", out, re.MULTILINE)
    assert re.search(r"^in sparse +threads per block$", out, re.MULTILINE)
    assert re.search(r"^default +256x1x1$", out, re.MULTILINE)
    assert re.search(r"^in quick +64x1x1, 128x1x1, 32x4x1$", out, re.MULTILINE)
    (told,) = json.loads(run("list", "block", "--machine", "h200", "--json")[1])["entries"]
    assert (told["kind"], told["unit"], told["default"]) == ("knob", "threads", "256x1x1")


def test_a_family_begins_with_the_knobs_that_are_its_own(run, facts):
    out = run("list", "wavefront", "--device", "cpu")[1]
    assert re.search(r"^family +wavefront$", out, re.MULTILINE)
    named = re.findall(r"^(\w+)  ", out.partition("\nknob ")[2], re.MULTILINE)
    families = [len(facts["knobs"][name]["families"]) for name in named]
    assert families == sorted(families)
    assert families[0] < families[-1]


def test_a_scheme_without_kernels_says_why(run):
    out = run("list", "swap-ordered", "--machine", "h200")[1]
    assert re.search(
        r"^no kernels here +scheme=swap-ordered is not supported on CUDA \(use swap\): ", out, re.MULTILINE
    )
    assert "no kernels here" not in run("list", "swap", "--machine", "h200")[1]
