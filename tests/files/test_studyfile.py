import re
from dataclasses import fields

import pytest

from lbmtune.catalogue.config import FAMILIES, knobs_by_name
from lbmtune.catalogue.families.rules import Limits
from lbmtune.cli import notes_on_stderr
from lbmtune.errors import InputError
from lbmtune.files.ranges import PROTOCOL
from lbmtune.files.shipped import find_study, shipped_studies, spaces
from lbmtune.files.source import line_of
from lbmtune.files.studyfile import as_spec, load_study, overridden, parse_study
from lbmtune.records.output import Output
from lbmtune.records.spec import Target, TimingProtocol
from lbmtune.search.spaces.space import legal_set
from tests.support.refusals import refused

TEXT = """\
name = "small"
seed = 4

[case]
flow = "box"
lattice = "d3q19"
domain = [64, 32, 16]
relaxation_rate = 1.5

[budget]
trials = 7
time = "2m"

[axes.cuda]
scheme = ["aa", "pull"]
block = ["32x1x1", [64, 1, 1]]
storage = "fp32"
"""


def read(*overrides):
    return parse_study(TEXT, "small.toml", overrides)


def test_a_study_file_becomes_a_study():
    spec = read()
    assert (spec.name, spec.seed, spec.objective) == ("small", 4, "mlups")
    assert (spec.case.flow, spec.case.domain, spec.case.relaxation_rate) == ("box", (64, 32, 16), 1.5)
    assert (spec.budget.trials, spec.budget.seconds) == (7, 120.0)
    assert spec.axes["cuda"] == {"scheme": ("aa", "pull"), "block": ("32x1x1", "64x1x1"), "storage": ("fp32",)}


def test_a_backend_without_a_table_searches_the_usual_values():
    usual = knobs_by_name(FAMILIES["cpu"]["direct"]).values()
    assert read().axes["cpu"] == {knob.name: knob.search for knob in usual}


@pytest.mark.parametrize("name", ["quick", "d3q19-box", "d3q19-cavity", "d2q9-box", "d3q27-box"])
@pytest.mark.parametrize("backend", FAMILIES)
@pytest.mark.parametrize("storage", ["fp64", "fp32", "fp16s"])
def test_shipped_studies_have_legal_configurations_of_every_scheme_and_storage(name, backend, storage):
    spec = load_study(name, [f"storage={storage}"])
    assert spec.name == name
    found = spec.axes[backend]
    spaces = found if isinstance(found, tuple) else (found,)
    assert len(spaces[0]["scheme"]) >= 5
    for one in spaces:
        # what a part of the values allows, all of them allow
        part = {axis: values if axis == "scheme" else values[:2] for axis, values in one.items()}
        space = legal_set(spec.case, backend, part, Limits(cores=2))
        assert {config.scheme for config in space.configs} == set(one["scheme"])
        assert {config.storage for config in space.configs} == {storage}


def test_the_quick_study_is_small_and_the_flagship_is_not():
    assert set(shipped_studies()) == {"box", "cavity", "duct", "pipe", "porous", "quick"}
    assert set(spaces()) >= {"d3q19-box", "d3q19-cavity", "d2q9-box", "d3q27-box"}
    assert load_study("quick").budget.trials <= 30
    assert load_study("d3q19-box").case.domain == (256, 256, 256)


@pytest.mark.parametrize(
    ("override", "found"),
    [
        ("storage=fp64", lambda s: s.axes["cuda"]["storage"] == s.axes["cpu"]["storage"] == ("fp64",)),
        ("block=128x1x1", lambda s: s.axes["cuda"]["block"] == ("128x1x1",) and "block" not in s.axes["cpu"]),
        ("block=[16, 2, 2]", lambda s: s.axes["cuda"]["block"] == ("16x2x2",)),
        ("scheme=aa,push", lambda s: s.axes["cuda"]["scheme"] == ("aa", "push")),
        ("axes.cpu.threads=2", lambda s: s.axes["cpu"]["threads"] == (2,)),
        ("axes.cpu.threads=cores,all", lambda s: s.axes["cpu"]["threads"] == ("cores", "all")),
        ("case.domain=128x64x32", lambda s: s.case.domain == (128, 64, 32)),
        ("case.viscosity=0.1", lambda s: s.case.relaxation_rate == pytest.approx(1.25)),
        ("budget.trials=10", lambda s: s.budget.trials == 10),
        ("budget.time=30s", lambda s: s.budget.seconds == 30.0),
        ("budget.search_time=20s", lambda s: s.budget.search_seconds == 20.0),
        ("budget.target=0.97", lambda s: s.budget.target == Target(share=0.97)),
        ("budget.target=ceiling:0.9", lambda s: s.budget.target == Target(share=0.9, of="ceiling")),
        ("strategy=random", lambda s: s.strategy == "random"),
        ("protocol.finalists=2", lambda s: s.protocol.finalists == 2),
        ("objective=footprint", lambda s: s.objective == "footprint"),
        ("seed=9", lambda s: s.seed == 9),
        ("output.save=500", lambda s: s.output == Output(save=500)),
    ],
)
def test_every_field_can_be_overridden(override, found):
    assert found(read(override))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("storag=fp64", "did you mean 'storage'"),
        ("save=500", "did you mean 'output.save'"),
        ("domain=64x64x64", "did you mean 'case.domain'"),
        ("trials=3", "did you mean 'budget.trials'"),
        ("domian=64x64x64", "did you mean 'case.domain'"),
        (
            "foo=1",
            r"--set foo: there is no such key; there are name, objective, strategy, seed, families, case.\(flow, ",
        ),
        (
            "foo=1",
            r"budget.\(trials, time, search_time, target, sample\), limits.\(footprint, error, power\), ",
        ),
        (
            "foo=1",
            r"output.\(macroscopics, save, residual\), protocol.\(verify_periods, ",
        ),
        ("scheme=aaa", "did you mean 'aa'"),
        ("storage", "key=value"),
        ("threads=many", "threads: 'many' is not a whole number"),
        ("cells_per_thread=two", "not a whole number"),
        ("block=64x1", "not of the form 256x1x1"),
        ("budget.time=soon", "number with a unit"),
        ("case.domain=64x0x64", "extent below 1"),
        ("seed=-1", "seed: -1 is not between 0 and 4294967295"),
        ("seed=4294967296", "is not between 0 and 4294967295"),
        ("budget.search_time=0s", "budget.search_time: 0s is not above 0 and at most"),
        ("budget.target=1.4", "budget.target: 1.4 is not a share above 0 and at most 1.2; write for example 0.97"),
        ("budget.target=0", "is not a share above 0 and at most 1.2"),
        ("budget.target=fast", "budget.target: fast is not a share"),
        ("budget.target=peak:0.9", r"peak:0.9 is not supported \(use 0.97, or ceiling:0.97\)"),
        ("strategy=gready", "strategy"),
        ("budget.time=0s", "budget.time: 0s is not above 0 and at most"),
        ("budget.trials=0", "budget.trials: 0 is not between 1 and"),
        ("name=../elsewhere", "name: '../elsewhere' is not a file name"),
        ("name=.hidden", "name: '.hidden' is not a file name"),
        ("protocol.warmup_s=long", "'long' is not a number; correct"),
        ("case.domain=12", "12 is not two or three cell counts; write for example 128x128x128"),
        ('case.domain=[12,"a",3]', "is not two or three cell counts; write for example 128x128x128"),
        ("case.domain=64", "64 is not two or three cell counts"),
        (
            "case.domain=64x48",
            "domain '64x48' has two extents and d3q19 three dimensions; write 64x48x1 if that is meant.",
        ),
        ("case.lid=fast", "'fast' is not a number; correct"),
        ("case.reynolds=nan", "case.reynolds: nan is not a finite number"),
        ("case.viscosity=inf", "case.viscosity: inf is not a finite number"),
        ("seed=1.5", "1.5 is not a whole number"),
        ("case.lattice=3", "3 is not a text"),
        ("budget.time=true", "True is not a time; write for example 90s, 5m or 1h."),
        ("budget.time=-5", "-5 is not above 0 and at most 1000000000 seconds; leave it out for no limit."),
        ("case.inlet_velocity=0.1", "0.1 is not three components of a velocity; write for example"),
        ("case.faces=wall", "'wall' is not a list of kinds of faces; write those that lbmtune list names."),
        ("case.walls=interpolate", "unknown walls 'interpolate'; did you mean 'interpolated'"),
        ("case.walls=interpolated", "walls=interpolated is not supported for flow box"),
    ],
)
def test_a_wrong_override_is_named(override, message):
    with pytest.raises(InputError, match=message) as raised:
        read(override)
    assert override.partition("=")[0].rpartition(".")[2] in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lattice =", "latice =", "small.toml, line 6: case.latice: unknown key; did you mean 'lattice'"),
        ('"d3q19"', '"d3q18"', "small.toml, line 6: case.lattice: unknown lattice 'd3q18'; did you mean 'd3q19'"),
        ('"box"', '"bix"', "small.toml, line 5: case.flow: unknown flow 'bix'; did you mean 'box'"),
        ("[budget]", "[budgit]", "small.toml, line 10: budgit: unknown key; did you mean 'budget'"),
        ("trials = 7", 'trials = "x"', "small.toml, line 11: budget.trials: 'x' is not a whole number"),
        ("seed = 4", "seed = -4", "small.toml, line 2: seed: -4 is not between 0 and"),
        ("trials = 7", "trials = 0", "small.toml, line 11: budget.trials: 0 is not between 1 and"),
        ('"2m"', "0.0", "small.toml, line 12: budget.time: 0.0 is not above 0 and at most"),
        ('"small"', '"a/b"', "small.toml, line 1: name: 'a/b' is not a file name"),
        ('"small"', '""', "small.toml, line 1: name: '' is not a file name"),
        ("seed = 4", "seed = [", "small.toml, line 2|small.toml, line 4"),
        ("scheme =", "schem =", "small.toml, line 15: axes.cuda.schem: unknown key; did you mean 'scheme'"),
        ("scheme =", "meetng =", "small.toml, line 15: axes.cuda.meetng: unknown key; lbmtune list shows all."),
        ('"pull"', '"pul"', "small.toml, line 15: axes.cuda.scheme: unknown scheme 'pul'; did you mean 'pull'"),
        ("rate = 1.5", "rate = 2.5", "small.toml, line 8: case.relaxation_rate: .* between 0 and 2"),
        ("relaxation_rate = 1.5", "", "small.toml, line 4: case.*exactly one of"),
        ("relaxation_rate = 1.5", "viscosity = 1\nreynolds = 2", "exactly one of .* viscosity and reynolds"),
        ("[64, 32, 16]", '"64x32x"', "small.toml, line 7: case.domain"),
        ("[axes.cuda]", "[axes.cdua]", "small.toml, line 14: axes.cdua: unknown key; did you mean 'cuda'"),
        ('scheme = ["aa", "pull"]', "scheme = []", "line 15: axes.cuda.scheme: has no values"),
        ('name = "small"', "", "small.toml: name: is missing"),
    ],
)
def test_errors_name_file_line_and_key(old, new, message):
    assert old in TEXT
    with pytest.raises(InputError, match=message):
        parse_study(TEXT.replace(old, new), "small.toml")


NO_NUMBERS = ("nan", "inf", "-inf")
WRONG = {
    **{f"protocol.{key}": ("0", "-1", "1", "10000000") for key in ("min_samples", "max_samples", "final_rounds")},
    **{f"protocol.{key}": ("0", "-1", "1001") for key in ("verify_periods", "finalists")},
    "protocol.sustained_top": ("-1", "1001"),
    "protocol.profiled": ("-1", "2"),
    **{
        f"protocol.{key}": ("0.0", "-0.5", "90000.0", *NO_NUMBERS)
        for key in ("warmup_s", "sample_s", "final_sample_s", "sustained_s")
    },
    **{
        f"protocol.{stage}_limit_s": ("0.0", "-1.0", "90000.0", *NO_NUMBERS)
        for stage in ("compile", "verify", "measure")
    },
    "protocol.settling_s": ("-1.0", "90000.0", *NO_NUMBERS),
    "protocol.confidence": ("0.0", "-0.01", "2.0", *NO_NUMBERS),
    "protocol.bail_out": ("0.9", "-1.0", "2000000.0", *NO_NUMBERS),
    "protocol.min_cpu_share": ("-0.1", "1.1", *NO_NUMBERS),
    "budget.trials": ("0", "-3", "100000000000000000000"),
    "budget.sample": ("-1", "100000000000000000000"),
    "budget.search_time": ("0", "-5", '"0s"', "2000000000", *NO_NUMBERS),
    "budget.target": ("0", "-1", "1.3", *NO_NUMBERS),
    "budget.time": ("0", "-5", '"0s"', "2000000000", '"99999999999999h"', *NO_NUMBERS),
    **{f"output.{kind}": ("-1", "2000000000", "1.5") for kind in ("macroscopics", "save", "residual")},
    "accuracy.max_error": ("0.0", "-1.0", *NO_NUMBERS),
    "limits.error": ("0.0", "-1.0", *NO_NUMBERS),
    "limits.power": ("0.0", "-1.0", "200000.0", *NO_NUMBERS),
    "limits.footprint": ("0", "-1", '"0GiB"', "10000000000000000000"),
    "case.lid": ("0.6", "-0.6", *NO_NUMBERS),
    "case.velocity_scale": ("0.6", "-0.6", *NO_NUMBERS),
    **{f"case.{key}": ("0.0", "-1.0", *NO_NUMBERS) for key in ("magic", "outlet_density")},
    **{f"case.{key}": ("0", "-1", *NO_NUMBERS) for key in ("viscosity", "reynolds")},
    "case.relaxation_rate": ("0.0", "2.0", "-1.0", *NO_NUMBERS),
    "case.force": NO_NUMBERS,
    "case.inlet_velocity": ("[0.1, nan, 0.0]", "[inf, 0.0, 0.0]", "[0.1]"),
    "case.domain": ("[0, 8, 8]", "[-1, 8, 8]", "[100000000000000000000, 1, 1]"),
}
"""Values of the right type that make no sense."""


def test_output_is_a_table_of_intervals():
    text = f"{TEXT}\n[output]\nmacroscopics = 10\nresidual = 500\n"
    assert parse_study(text, "small.toml").output == Output(macroscopics=10, residual=500)
    assert not parse_study(TEXT, "small.toml").output
    with pytest.raises(InputError, match=r"output.sav: unknown key; did you mean 'save'"):
        parse_study(f"{TEXT}\n[output]\nsav = 10\n", "small.toml")


def test_every_number_of_the_protocol_has_a_range():
    assert set(PROTOCOL) == {field.name for field in fields(TimingProtocol)}
    assert all(getattr(TimingProtocol(), name) in allowed for name, allowed in PROTOCOL.items())
    assert {f"protocol.{name}" for name in PROTOCOL} <= set(WRONG)


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_a_number_that_makes_no_sense_is_named_in_file_and_override(key, value):
    table, _, name = key.partition(".")
    rivals = (f"{name} =", *(("relaxation_rate =",) if name in ("viscosity", "reynolds") else ()))
    lines = [line for line in TEXT.splitlines() if not line.startswith(rivals)]
    if f"[{table}]" not in lines:
        lines.append(f"[{table}]")
    at = lines.index(f"[{table}]") + 1
    text = "\n".join([*lines[:at], f"{name} = {value}", *lines[at:]])
    for tried, where in (
        (lambda: parse_study(text, "small.toml"), f"small.toml, line {at + 1}: {key}: "),
        (lambda: read(f"{key}={value}"), f"--set {key}: "),
    ):
        with pytest.raises(InputError) as raised:
            tried()
        line = str(raised.value)
        assert line.startswith(where)
        assert line.endswith(".")
        assert "\n" not in line
        number = "nan" if "nan" in value else re.search(r"[\w.+-]+", value)[0]
        assert number in line.removeprefix(where)


def test_fewer_samples_at_most_than_at_least():
    with pytest.raises(InputError, match=r"--set protocol.max_samples: min_samples 6 is above max_samples 5; correct"):
        read("protocol.max_samples=5")
    assert read("protocol.max_samples=5", "protocol.min_samples=5").protocol.max_samples == 5


def test_numbers_of_a_patch_are_finite():
    patch = '[[case.patches]]\nkind = "velocity"\nwhere = "disc"\nface = "x-"\nvelocity = [0.1, nan, 0.0]\n'
    with pytest.raises(InputError, match=r"small.toml, line \d+: case.patches\[1\]: nan is not a finite number"):
        parse_study(f"{TEXT}\n{patch}", "small.toml")


SEVERAL = (
    TEXT.replace("[axes.cuda]", "[[axes.cuda]]")
    + """
[[axes.cuda]]
family = "temporal-blocking"
representation = "moments"
steps = [1, 2]
chunk_planes = [8, 16]
"""
)


def several(*overrides):
    return parse_study(SEVERAL, "several.toml", overrides).axes["cuda"]


def test_several_tables_of_axes_are_spaces_of_their_own():
    first, second = several()
    assert first == read().axes["cuda"]
    assert second == {
        "family": ("temporal-blocking",),
        "representation": ("moments",),
        "steps": (1, 2),
        "chunk_planes": (8, 16),
    }
    assert parse_study(SEVERAL, "t").axes["cpu"] == read().axes["cpu"]
    (alone,) = parse_study(TEXT.replace("[axes.cuda]", "[[axes.cuda]]"), "t").axes["cuda"]
    assert alone == first


@pytest.mark.parametrize(
    ("override", "storages"),
    [
        ("storage=fp64", [("fp64",), ("fp64",)]),
        ("axes.cuda.storage=fp64", [("fp64",), ("fp64",)]),
        ("axes.cuda[2].storage=fp64", [("fp32",), ("fp64",)]),
        ("axes.cuda[1].storage=fp64", [("fp64",), None]),
    ],
)
def test_an_override_acts_on_all_tables_or_on_one(override, storages):
    assert [table.get("storage") for table in several(override)] == storages
    again = overridden(parse_study(SEVERAL, "t"), [override]).axes["cuda"]
    assert [table.get("storage") for table in again] == storages


def test_an_override_acts_on_the_spaces_whose_families_have_the_knob():
    """By its name of today, and by that of version 0.1, which is said."""
    assert [table.get("steps") for table in several("steps=3")] == [None, (3,)]
    assert [table.get("cells_per_thread") for table in several("cells_per_thread=2")] == [(2,), (2,)]
    assert [table.get("chunk_planes") for table in several("march=4,8")] == [None, (4, 8)]
    assert [table.get("plane_fetch") for table in several("prefetch=2")] == [None, ("cp_async",)]
    for wrong, said in (
        ("axes.cuda.tile=8x8x8", "is not a knob of family direct (use family face-exchange)."),
        ("halo=faces", "version 0.1"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            several(wrong)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps =", "stepps =", "several.toml, line 22: axes.cuda[2].stepps: unknown key; did you mean 'steps'"),
        ("[1, 2]", '["two"]', "several.toml, line 22: axes.cuda[2].steps: 'two' is not a whole number"),
        (
            '"moments"',
            '"moment"',
            "several.toml, line 21: axes.cuda[2].representation: unknown representation 'moment'",
        ),
        ("scheme =", "schem =", "several.toml, line 15: axes.cuda[1].schem: unknown key; did you mean 'scheme'"),
        ("[8, 16]", "[]", "several.toml, line 23: axes.cuda[2].chunk_planes: has no values"),
        ("seed = 4", "axes.cpu = [3]", "several.toml, line 2: axes.cpu[1]: is a table; write [axes.cpu] and its keys"),
        ("seed = 4", "axes.cpu = []", "several.toml, line 2: axes.cpu: is a table"),
        ("[budget]", "[[budget]]", "several.toml, line 10: budget: is a table; write [budget] and its keys below"),
    ],
)
def test_errors_in_one_of_several_tables_name_file_line_and_key(old, new, message):
    assert refused(lambda text: parse_study(text, "several.toml"), SEVERAL, old, new).startswith(message)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("axes.cuda[3].steps=1", "--set axes.cuda[3].steps=1: the study has 2 axes.cuda; correct the number."),
        ("axes.cuda[0].steps=1", "--set axes.cuda[0].steps=1: the study has 2 axes.cuda; correct the number."),
        ("axes.cpu[1].wrap=ghost", "--set axes.cpu[1].wrap=ghost: the study has 1 axes.cpu; correct the number."),
        ("axes.cuda[2].stepps=1", "--set axes.cuda[2].stepps: there is no such key; did you mean 'axes.cuda.steps'?"),
        ("axes.cuda[2].steps=two", "--set axes.cuda[2].steps: 'two' is not a whole number; correct it."),
    ],
)
def test_a_wrong_override_of_one_of_several_tables_is_named(override, message):
    with pytest.raises(InputError) as raised:
        several(override)
    assert str(raised.value) == message


@pytest.mark.parametrize("storage", ["fp64", "fp32", "fp16s"])
@pytest.mark.parametrize(
    ("name", "domain", "steps"),
    [
        ("d3q19-box-fast", "384x384x384", (1, 2, 3, 4)),
        ("d2q9-box-fast", "4096x4096", (1, 2, 3, 4, 5, 6, 8)),
        ("d3q27-box-fast", "256x256x256", (1, 2, 3)),
    ],
)
def test_fast_studies_have_populations_and_moments_of_every_number_of_steps(name, domain, steps, storage):
    spec = load_study(name, [f"storage={storage}", "axes.cuda[2].chunk_planes=64", f"case.domain={domain}"])
    space = legal_set(spec.case, "cuda", spec.axes["cuda"], Limits(shared_bytes_per_block=227 << 10, asynchronous=True))
    kinds = {(c.kept.name, c.fused_steps) for c in space.configs}
    several = {("populations", n) for n in (2, 3) if name == "d3q19-box-fast"}
    assert kinds == {("populations", 1), *(("moments", n) for n in steps)} | several
    assert {c.storage for c in space.configs} == {storage}
    assert len(space.sizes) == len(spec.axes["cuda"])
    assert 300 < len(space.configs) == sum(space.sizes) < 3000


def test_a_budget_that_is_left_out_is_no_limit():
    budget = parse_study(TEXT.replace("trials = 7\n", "").replace('time = "2m"\n', ""), "t").budget
    assert (budget.trials, budget.seconds) == (0, 0.0)


def test_reynolds_numbers_set_the_viscosity():
    text = TEXT.replace("relaxation_rate = 1.5", "reynolds = 100\nlid = 0.2").replace('"box"', '"cavity"')
    case = parse_study(text, "t").case
    viscosity = (1 / case.relaxation_rate - 0.5) / 3
    assert case.wall_velocity[0] * case.domain[1] / viscosity == pytest.approx(100)
    text = TEXT.replace("relaxation_rate = 1.5", "reynolds = 10\nforce = 1e-4").replace('"box"', '"channel"')
    case = parse_study(text, "t").case
    viscosity = (1 / case.relaxation_rate - 0.5) / 3
    height = case.domain[1]
    assert case.force[0] * height**2 / (8 * viscosity) * height / viscosity == pytest.approx(10)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"box"', '"box"', ""),
        ("relaxation_rate = 1.5", "reynolds = 30", ""),
        ("relaxation_rate = 1.5", "relaxation_rate = 1.99", ""),
        ("relaxation_rate = 1.5", "reynolds = 1000", "relaxation_rate 1.962 is close to 2: .* or a lower reynolds."),
        ("relaxation_rate = 1.5", "viscosity = 1e-3", "relaxation_rate 1.988 is close to 2: .* or a higher viscosity."),
    ],
)
def test_a_flow_that_may_become_unstable_gets_one_remark(old, new, said, capsys):
    with notes_on_stderr():
        for _ in range(2):
            parse_study(TEXT.replace(old, new), "t")
    assert re.fullmatch(f"{said}\n" if said else "", capsys.readouterr().err)


def test_lines_of_keys():
    assert line_of(TEXT, "case.lattice") == 6
    assert line_of(TEXT, "axes.cuda.block") == 16
    assert line_of(TEXT, "case.force") == 4
    assert line_of(TEXT, "objective") is None


def test_an_unknown_study_is_bad_input():
    with pytest.raises(InputError, match="did you mean 'd3q19-box'"):
        find_study("d3q19-bix")
    with pytest.raises(InputError, match="no study file"):
        find_study("missing.toml")


H200 = Limits(
    shared_bytes_per_block=227 << 10,
    shared_bytes_per_multiprocessor=228 << 10,
    multiprocessors=132,
    cooperative=True,
    dependent=True,
    asynchronous=True,
)


@pytest.mark.parametrize(("edge", "resident"), [(32, True), (48, True), (64, True), (96, False), (128, False)])
def test_the_study_of_small_domains_has_every_form_of_launch_that_fits(edge, resident):
    spec = load_study("d3q19-small", [f"case.domain={edge}x{edge}x{edge}"])
    space = legal_set(spec.case, "cuda", spec.axes["cuda"], H200)
    assert (space.sizes[0] > 3) == resident
    assert {"call", "graph", "dependent"} < {getattr(c, "launch", c.family) for c in space.configs} | {"persistent"}
    assert {getattr(c, "steps", 1) for c in space.configs} == {1, 2, 3}
    assert len(space.configs) < 4000


def test_an_axis_set_for_all_kinds_of_kernels_at_once_is_named_as_it_was_given() -> None:
    with pytest.raises(InputError, match=r"^--set storage: unknown storage 'fp8'"):
        load_study("quick", ("storage=fp8",))
    with pytest.raises(InputError, match=r"^--set axes\.cuda\[1\]\.storage: unknown storage 'fp8'"):
        load_study("d3q19-box", ("axes.cuda.storage=fp8",))


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_without_axes_solid_cells_and_patches_get_the_knobs_that_they_need(backend):
    plain = TEXT[: TEXT.index("[axes")]
    assert isinstance(parse_study(plain, "t").axes[backend], dict)
    stone = parse_study(plain, "t", ["case.geometry=blocks:fraction=0.3"])
    direct, sparse = stone.axes[backend]
    assert direct["flags"] == ("memory",)
    assert sparse["family"] == ("sparse",)
    assert as_spec(stone.case).axes == stone.axes
    assert legal_set(stone.case, backend, stone.axes[backend], Limits()).sizes > (0, 0)
    beads = parse_study(plain, "t", ["case.geometry=packing:fraction=0.3", "case.walls=interpolated"])
    assert beads.case.interpolates
    assert overridden(beads, ["seed=3"]).case == beads.case
    assert legal_set(beads.case, backend, beads.axes[backend], Limits()).sizes > (0, 0)
    both = {"family": ("sparse",), "scheme": ("aa",), "boundary": ("branch", "implicit")}
    legal = legal_set(beads.case, backend, both, Limits())
    assert {config.boundary for config in legal.configs} == {"branch"}
    assert any("walls=interpolated is not supported for boundary=implicit" in reason for reason in legal.illegal)
    patch = '\n[[case.patches]]\nkind = "velocity"\nwhere = "disc"\nface = "x-"\nvelocity = [0.1, 0.0, 0.0]\n'
    walls = ["case.faces=['wall', 'wall', 'wall', 'wall', 'wall', 'wall']"]
    assert len(parse_study(plain + patch, "t", walls).axes[backend]) == 2


@pytest.mark.parametrize(
    ("override", "name", "found"),
    [
        ("limits.footprint=20GiB", "max_footprint_bytes", 20 << 30),
        ("limits.footprint=4096", "max_footprint_bytes", 4096),
        ("limits.error=1e-4", "max_error", 1e-4),
        ("limits.power=350", "max_power_w", 350.0),
        ("accuracy.max_error=1e-3", "max_error", 1e-3),
    ],
)
def test_limits_are_what_a_kernel_may_take(override, name, found):
    study = read(override)
    assert getattr(study, name) == found
    assert getattr(overridden(study, ["seed=2"]), name) == found
    assert (read().max_footprint_bytes, read().max_error, read().max_power_w) == (None, None, None)


def test_an_override_of_the_error_goes_before_the_file_by_either_name(caplog):
    early = f"{TEXT}\n[accuracy]\nmax_error = 0.5\n"
    assert parse_study(early, "small.toml").max_error == 0.5
    assert "accuracy.max_error is called limits.error now" in caplog.text
    assert parse_study(early, "small.toml", ["limits.error=0.1"]).max_error == 0.1
    now = f"{TEXT}\n[limits]\nerror = 0.5\n"
    assert parse_study(now, "small.toml", ["accuracy.max_error=0.1"]).max_error == 0.1


def test_a_limit_that_is_none_is_named():
    with pytest.raises(InputError, match=r"--set limits.footprint: size 'much' is not a positive number of bytes"):
        read("limits.footprint=much")
    with pytest.raises(InputError, match=r"--set limits.footprint: 1.5 is not a size; write for example 20GiB"):
        read("limits.footprint=1.5")
