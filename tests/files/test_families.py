"""Studies whose values are made: the key `families`, restrictions beside it, and cases without a file."""

import pytest

from lbmtune import api
from lbmtune.catalogue.config import FAMILIES
from lbmtune.catalogue.families.rules import Limits
from lbmtune.errors import InputError
from lbmtune.files.shipped import find_study, shipped_studies
from lbmtune.files.studyfile import base_study, load_study, overridden, parse_study
from lbmtune.records.header import KnobRange
from lbmtune.search.spaces.space import legal_set
from lbmtune.search.study import check_same_spec
from tests.support.studies.described_cpu import describe_cpu

TEXT = """\
name = "made"
families = ["direct", "temporal-blocking"]

[case]
flow = "box"
lattice = "d3q19"
collision = "regularised"
domain = [64, 64, 64]
relaxation_rate = 1.5

[axes.cuda]
cells_per_thread = [1, 2]
steps = 2
"""


def read(*overrides):
    return parse_study(TEXT, "made.toml", overrides)


def legal(spec, backend="cuda"):
    limits = Limits(cores=2, shared_bytes_per_block=227 << 10, asynchronous=True, multiprocessors=132)
    return legal_set(spec.case, backend, spec.axes[backend], limits, spec.families).configs


def test_values_of_the_file_restrict_all_families_that_have_the_knob():
    spec = read()
    assert spec.families == ("direct", "temporal-blocking")
    assert spec.axes == {"cuda": {"cells_per_thread": (1, 2), "steps": (2,)}, "cpu": {}}
    found = legal(spec)
    assert {config.family for config in found} == set(spec.families)
    assert {config.cells_per_thread for config in found} == {1, 2}
    assert {config.steps for config in found if config.family == "temporal-blocking"} == {2}
    assert len({config.block for config in found}) > 3


def test_a_backend_has_those_of_the_families_that_it_knows():
    assert {config.family for config in legal(read(), "cpu")} == {"direct"}


@pytest.mark.parametrize("backend", FAMILIES)
def test_all_are_all_families_of_a_backend(backend):
    found = {config.family for config in legal(read("families=all"), backend)}
    assert found >= {"direct", "temporal-blocking" if backend == "cuda" else "wavefront"}
    assert read("families=all").families == ("all",)


def test_overrides_restrict_in_any_order():
    spec = read("steps=2,3", "families=temporal-blocking", "layout=rows", "storage=fp64")
    assert spec.axes["cuda"] == {
        "cells_per_thread": (1, 2),
        "steps": (2, 3),
        "layout": ("rows",),
        "storage": ("fp64",),
    }
    assert {(config.steps, config.storage, config.compute) for config in legal(spec)} == {
        (2, "fp64", "fp64"),
        (3, "fp64", "fp64"),
    }
    assert overridden(read("families=all"), ["scheme=aa"]).axes["cpu"] == {"scheme": ("aa",)}


def test_several_tables_are_a_union_whose_other_values_are_made():
    tables = '[[axes.cuda]]\nfamily = "direct"\nscheme = "aa"\n[[axes.cuda]]\nsteps = [1, 2]\n'
    spec = parse_study(TEXT[: TEXT.index("[axes")] + tables, "made.toml", ["axes.cuda[2].rows=1"])
    assert spec.axes["cuda"] == ({"family": ("direct",), "scheme": ("aa",)}, {"steps": (1, 2), "rows": (1,)})
    found = legal(spec)
    assert {config.family for config in found} == {"direct", "temporal-blocking"}
    assert found[0].scheme == "aa"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("families=persistant", "--set families: unknown families 'persistant'; did you mean 'persistent'"),
        ("families=direct,colum", "unknown families 'colum'; did you mean 'column'"),
        ("axes.cuda.tile=8x8x8", "tile: is not a knob of family direct or temporal-blocking .use family face-exchange"),
        ("chunk_planes=many", "'many' is not a whole number"),
        ("scheme=ab", "unknown scheme 'ab'"),
        ("chunk_planes=[]", "has no values; give at least one"),
    ],
)
def test_a_wrong_family_or_restriction_is_named(override, message):
    with pytest.raises(InputError, match=message):
        read(override)


def test_a_case_needs_no_file():
    spec = base_study(["case.domain=300x200x500", "case.lattice=d3q19", "case.collision=trt"])
    assert (spec.name, spec.case.domain, spec.case.collision) == ("box", (300, 200, 500), "trt")
    assert spec.families == ("all",)
    assert len(legal(spec)) > 1000
    assert base_study(["case.flow=cavity", "case.reynolds=100"]).name == "cavity"
    assert base_study(["case.flow=cavity", "name=mine"]).name == "mine"
    assert base_study() == load_study("box")


def test_a_folder_hides_no_shipped_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quick").mkdir()
    assert load_study("quick").name == "quick"
    with pytest.raises(InputError, match="there is no study file quick/other"):
        find_study("quick/other")
    (tmp_path / "box").write_text(TEXT)
    assert load_study("box").name == "made"


def test_a_study_of_other_families_is_another_study(tmp_path):
    with pytest.raises(InputError, match="families direct, temporal-blocking, and this one has all"):
        check_same_spec(read(), read("families=all"), tmp_path)


def test_a_study_of_made_values_runs(tmp_path, monkeypatch):
    describe_cpu(monkeypatch, tmp_path / "config")
    few = ["budget.trials=2", "protocol.finalists=1", "protocol.sustained_top=0", "protocol.final_rounds=2"]
    any_speed = ["protocol.bail_out=1000", "protocol.min_cpu_share=0", "protocol.final_sample_s=0.005"]
    any_speed += ["protocol.profiled=0"]
    spec = base_study(["case.domain=32x16x16", "case.collision=trt", *few, *any_speed])
    found = api.study(spec, "cpu", tmp_path / "made", calibrate=False)
    assert len(found.record.trials) == 2
    closed = {(one.family, one.knob): one for one in found.record.header.ranges}
    assert closed["direct", "scheme"].values[:2] == ("pull", "push")
    assert closed["wavefront", "tile"].reason == "tiles whose rows stay in a cache through all steps"
    assert {config["family"] for config in (trial.config for trial in found.record.trials)} <= {
        family for family, _ in closed
    }
    assert api.Study(tmp_path / "made").spec == spec
    again = api.study(spec, "cpu", tmp_path / "made", resume=True, calibrate=False)
    assert len(again.record.trials) == 2


def test_the_listing_has_the_values_of_each_family_and_why_there_are_no_others():
    facts = api.listing(base_study(["case.domain=64x32x32", "storage=fp64"]), "cpu")
    rows = {(one.family, one.knob): one for one in facts["ranges"]}
    assert rows["direct", "storage"] == KnobRange(
        family="direct", knob="storage", values=("fp64",), reason="given by the study"
    )
    assert facts["knobs"]["family"]["values"] == ("direct", "moments-wavefront", "wavefront")
    assert facts["knobs"]["steps"]["spaces"][0] == ()
    assert not api.listing(load_study("quick"), "cpu")["ranges"]


@pytest.mark.parametrize("name", sorted(shipped_studies().keys() - {"quick"}))
@pytest.mark.parametrize("backend", FAMILIES)
def test_shipped_studies_are_cases_whose_values_are_made(name, backend):
    spec = load_study(name, ["case.domain=64x64x64"] if name != "duct" else [])
    assert (spec.name, spec.families, spec.axes[backend]) == (name, ("all",), {})
    found = legal(spec, backend)
    assert {config.family for config in found} >= {"direct"}
    assert len(found) > 100


@pytest.mark.parametrize("old", ["d3q19-box-fast", "d3q19-cavity-fast", "d3q19-duct", "d3q19-pipe", "d3q19-porous"])
def test_cases_are_those_of_the_spaces_of_recorded_sets(old):
    name = old.split("-")[1]
    assert load_study(old).case == load_study(name).case
    assert not load_study(old).families
