"""Bad input ends with one sentence that says what is wrong and what to do, exit code 2 or 3, and no traceback."""

import codecs
import errno
import gzip
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, get_args, get_origin

import pytest

from lbmtune.api import Study
from lbmtune.api.machines import measured_machines
from lbmtune.api.machines.shipped import shipped_machines
from lbmtune.backend.cpu import compile_cpu
from lbmtune.claims.store import append_group, read_claims
from lbmtune.cli import main
from lbmtune.cli.app import VERBS
from lbmtune.cli.arguments.options import with_single_options
from lbmtune.cli.verbs.study import _show as show_study
from lbmtune.errors import InputError
from lbmtune.files.studyfile import check_acts, load_study
from lbmtune.records.store import append_trial, cache_folder, make_cache, read_study
from lbmtune.records.whole_files import write_atomically
from lbmtune.scratch import scratch_folder
from lbmtune.search.lock import folder_lock
from lbmtune.search.optuna_view.storage import without_password
from tests.support.paths import RECORDED, ROOT
from tests.support.studies.fake_study import DEVICE_ID, FakeEvaluator, stand_in

SMALL = ("--set", "case.domain=64x64x64", "--trials", "6")
NEEDS_A_GPU = "say --device 0, or with explain, render and predict --machine h200, which needs no GPU."
QUICK = (ROOT / "studies" / "quick.toml").read_text()


@pytest.fixture
def refused(capsys, monkeypatch, tmp_path):
    """Runs the command line, checks that it is refused with one line, and returns that line."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=2):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert ended.value.code == code, captured.err
        assert captured.out == ""
        (line,) = captured.err.splitlines()
        return checked(line)

    return call


def checked(line):
    """A line that starts with the program's name, ends like a sentence and says what to do after a semicolon."""
    assert re.fullmatch(r"lbmtune: .+[.?]", line), line
    assert "Traceback" not in line
    return line


@pytest.fixture
def gpu(monkeypatch):
    return stand_in(monkeypatch, FakeEvaluator("cuda"))


@pytest.fixture
def cpu(monkeypatch):
    return stand_in(monkeypatch)


def test_unknown_scheme(refused, gpu):
    assert "unknown scheme 'esoteric-pul'; did you mean 'esoteric-pull'?" in refused("measure", "scheme=esoteric-pul")
    assert "did you mean 'aa'?" in refused("study", "--set", "scheme=aaa")
    assert gpu.tried == []


@pytest.mark.parametrize("name", ["layout=sao", "storage=fp23", "blok=64x1x1", "block=64", "cells_per_thread=two"])
def test_other_wrong_values_of_axes(refused, gpu, name):
    assert name.partition("=")[0] in refused("explain", name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("collision=trt", "collision belongs to the case and not to a configuration; say --set case.collision=trt."),
        ("scheme=aa,case.domain=64x64x64", "domain belongs to the case and .*; say --set case.domain=64x64x64."),
        ("scheme=peeled", "unknown scheme 'peeled'; did you mean row_tail=peeled?"),
        ("layout=regularised", "unknown layout 'regularised'; did you mean --set case.collision=regularised?"),
        ("scheme=AA", "unknown scheme 'AA'; did you mean 'aa'?"),
        ("fastest", "configuration part 'fastest' is not of the form .* the 12 digits of a trial's key"),
        ("scheme=tile", "unknown scheme 'tile'; did you mean order=tile?"),
    ],
)
def test_what_stands_in_a_configuration_by_mistake(refused, cpu, text, said):
    assert re.search(said.replace("?", "[?]"), refused("explain", text, "--device", "cpu"))


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_an_empty_configuration(refused, gpu, text):
    assert "the configuration is empty; write for example scheme=aa" in refused("explain", text)


def test_an_axis_that_is_given_twice(refused, gpu):
    assert "scheme is given twice in 'scheme=aa, scheme=pull'" in refused("explain", "scheme=aa, scheme=pull")


def test_an_axis_of_the_other_backend(refused, gpu):
    said = refused("explain", "scheme=aa,vector_bits=256", "--device", "0")
    assert "vector_bits, a knob of CPU kernels, does not go with device 0, a GPU; say --device cpu." in said
    said = refused("verify", "scheme=aa,block=64x1x1", "--device", "cpu")
    assert f"block, a knob of CUDA kernels, does not go with device cpu; {NEEDS_A_GPU}" in said


_THEIRS = "; leave it out, or set one of their knobs, which lbmtune list shows[.]$"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("study --device cpu --set block=64x1x1", f"CUDA kernels alone, and device cpu runs CPU kernels{_THEIRS}"),
        ("study --device cpu --set axes.cuda[2].steps=2", "CUDA kernels alone, and device cpu runs CPU kernels"),
        ("study --device 0 --set parallel_loop=zy", f"CPU kernels alone, and device 0 runs CUDA kernels{_THEIRS}"),
        ("list --device cpu --set block=64x1x1", "CUDA kernels alone, and device cpu runs CPU kernels"),
        ("predict quick --device cpu --set block=64x1x1", "CUDA kernels alone, and device cpu runs CPU kernels"),
        ("predict quick --machine h200 --set parallel_loop=zy", "CPU kernels alone, and NVIDIA H200 runs CUDA kernels"),
        (
            "predict scheme=aa --vary parallel_loop --device cpu --set block=64x1x1",
            "CUDA kernels alone, and device cpu runs",
        ),
    ],
)
def test_an_axis_that_is_set_and_has_no_effect_there(refused, monkeypatch, asked, said):
    """Told before the device is measured."""
    monkeypatch.setattr(measured_machines, "measured_machine", lambda *_, **__: pytest.fail("measured"))
    study, sets = ("d3q19-box-fast", asked.rpartition(" ")[2])
    arguments = asked.replace("study", f"study {study}").split()
    assert re.search(f"^lbmtune: --set {re.escape(sets)} acts on {said}", refused(*arguments))


def test_an_axis_that_acts_on_kernels_of_both_kinds_may_be_set_anywhere():
    for backend in ("cpu", "cuda"):
        check_acts(["storage=fp64", "seed=3", "case.domain=64x64x64", f"axes.{backend}.scheme=aa"], backend, "here")


@pytest.mark.parametrize(("axes", "backend"), [("block=64x1x1", "cuda"), ("threads=2", "cpu"), ("scheme=aa", "cuda")])
def test_without_a_device_an_axis_says_which_kind(gpu, capsys, axes, backend):
    """Explaining needs no device, so nobody has to name one."""
    with pytest.raises(SystemExit) as ended:
        main(["explain", axes, "--json"])
    assert not ended.value.code
    assert json.loads(capsys.readouterr().out)["config"]["backend"] == backend


@pytest.mark.parametrize(
    ("family", "backend"),
    [("wavefront", "cpu"), ("moments-wavefront", "cpu"), ("column", "cuda"), ("persistent", "cuda")],
)
def test_a_family_of_one_backend_chooses_it(capsys, family, backend):
    with pytest.raises(SystemExit) as ended:
        main(["explain", f"family={family}", "--json"])
    assert not ended.value.code
    found = json.loads(capsys.readouterr().out)["config"]
    assert (found["backend"], found["family"]) == (backend, family)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            "steps=4,scheme=aa",
            "scheme=aa is not supported for family temporal-blocking (use fewer: no family of cuda has all of these "
            "knobs): without a family steps=4 stands for that one.",
        ),
        ("steps=x", "steps='x' is not a whole number; use 1 to 8."),
        (
            "march=4,scheme=aa,steps=4",
            "without a family this is read as a configuration of version 0.1: scheme=aa is not supported for family",
        ),
    ],
)
def test_what_a_configuration_without_a_family_stands_for_is_refused_by_names_of_its_own_time(refused, config, said):
    assert refused("explain", config, "--machine", "h200").startswith(f"lbmtune: {said}")


@pytest.mark.parametrize(
    ("config", "device", "family"),
    [
        ("steps=4", ("--machine", "h200"), "temporal-blocking"),
        ("steps=3,representation=moments", ("--machine", "h200"), "temporal-blocking"),
        ("steps=2,scheme=aa", ("--device", "cpu"), "wavefront"),
    ],
)
def test_names_of_today_without_a_family_have_the_defaults_of_today(capsys, config, device, family):
    """They are not taken for those of version 0.1."""
    found = []
    for text in (config, f"family={family},{config}"):
        with pytest.raises(SystemExit) as ended:
            main(["explain", text, *device, "--json"])
        assert not ended.value.code
        out, err = capsys.readouterr()
        found.append(json.loads(out)["key"])
        assert "0.1" not in err
        assert (f"family={family} is taken, for which {config} stands without a family" in err) == (text == config)
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            ("explain", "scheme=aa", "--set", "case.domain=512X512X512"),
            "--set case.domain: domain '512X512X512' is not two or three cell counts; write for example 128x128x128.",
        ),
        (("explain", "scheme=aa", "--set", "case.lattice=D3Q19"), "unknown lattice 'D3Q19'; did you mean 'd3q19'?"),
        (
            ("study", "quick", "--time", "1h30m", "--output", "mine"),
            "--time 1h30m is not a time above 0 and at most 1000000000 seconds; write for example --time 90s, 5m or "
            "1h.",
        ),
    ],
)
def test_spellings_of_other_tools_are_refused_with_what_to_write(refused, call, said):
    assert refused(*call, "--device", "cpu").endswith(said)


@pytest.mark.parametrize("verb", ["explain", "render", "verify"])
def test_a_study_file_in_place_of_a_configuration_is_told_what_it_is_for(refused, verb):
    path = ROOT / "studies" / "box.toml"
    assert refused(verb, str(path), "--device", "cpu") == (
        f"lbmtune: {path} is a TOML file and no best.json (use --study {path} for a study file, --machine {path} for a "
        "machine description): neither is a configuration."
    )


@pytest.mark.parametrize(
    ("config", "add"),
    [
        ("tile=8x8x8,backend=cuda", "add family=face-exchange."),
        ("z_cells=2,family=temporal-blocking", "add family=column."),
        ("tile=8x8,threads=1", "add family=moments-wavefront or family=wavefront."),
        ("steps=2,threads=1", "add family=moments-wavefront or family=wavefront."),
    ],
)
def test_a_knob_of_another_family_names_the_family_to_add(refused, config, add):
    said = refused("explain", config, *(() if "threads" in config else ("--machine", "h200")))
    assert "is not a knob of family" in said
    assert said.endswith(add)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--target", "2", "--target: 2 is not a share above 0 and at most 1.2"),
        ("--domain", "12", "--domain: 12 is not two or three cell counts"),
        ("--max-error", "-1", "--max-error: -1.0 must be positive"),
        ("--max-footprint", "3X", "--max-footprint: size '3X' is not"),
        ("--strategy", "foo", "--strategy: unknown strategy 'foo'"),
        ("--lattice", "d3q18", "--lattice: unknown lattice 'd3q18'; did you mean 'd3q19'?"),
        ("--set", "budget.target=2", "--set budget.target: 2 is not a share"),
        ("--max-footprint", "1KiB", "--max-footprint 1KiB is not supported for quick (use 19MiB or more)"),
    ],
)
def test_an_error_names_the_option_as_it_was_given(refused, gpu, option, value, said):
    assert said in refused("study", "quick", *SMALL, option, value)


def test_a_long_list_of_names_is_not_printed(refused):
    assert refused("vary", "blok", "--device", "cpu").endswith("'blok'; lbmtune list shows all.")


def test_block_over_the_device_limit(refused, gpu):
    said = "block 1024x2x1 = 2048 threads; this device allows 1024"
    assert said in refused("measure", "block=1024x2x1")
    assert said in refused("study", "--set", "block=1024x2x1", *SMALL)
    assert gpu.tried == []


@pytest.mark.parametrize(
    ("device", "sets", "said"),
    [
        ("cpu", "threads=400", "threads=400; this device has 2 cores"),
        ("0", "block=1024x2x1", "this device allows 1024"),
    ],
)
def test_what_is_legal_nowhere_is_told_before_a_device_is_measured(refused, monkeypatch, device, sets, said):
    monkeypatch.setattr(measured_machines, "measured_machine", lambda *_, **__: pytest.fail("measured"))
    assert said in refused("study", "--device", device, "--set", sets, *SMALL)


def test_domain_not_divisible(refused, gpu):
    case = ("--set", "case.domain=66x64x64")
    said = "nx=66 is not a multiple of cells_per_thread=4"
    assert said in refused("measure", "cells_per_thread=4,block=32x1x1", *case)
    assert said in refused("study", "--set", "cells_per_thread=4", "--set", "block=32x1x1", *case)


def test_domain_too_large_for_memory_names_the_largest_that_fits(refused, gpu):
    line = refused("study", "--set", "case.domain=2048x2048x2048")
    found = re.search(r"domain 2048x2048x2048 needs .* the device has 64 GiB free, enough for (\d+)x\1x\1", line)
    assert found, line
    edge = int(found[1])
    assert 19 * 4 * edge**3 <= 2**36 < 2 * 19 * 4 * (edge + 16) ** 3
    refused("measure", "block=64x1x1", "--set", "case.domain=2048x2048x2048")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[case]", "[case", r"mine.toml, line \d+: this is not TOML"),
        ("seed = 1", "seed = ", r"mine.toml, line \d+: this is not TOML"),
        ("lattice =", "latice =", r"mine.toml, line \d+: case.latice: unknown key; did you mean 'lattice'\?"),
        ("[budget]", "[bugdet]", r"mine.toml, line \d+: bugdet: unknown key; did you mean 'budget'\?"),
        ('"d3q19"', '"d3q15"', r"mine.toml, line \d+: case.lattice: unknown lattice 'd3q15'; did you mean"),
        ("trials = 24", "trials = -1", r"mine.toml, line \d+: budget.trials: -1 is not between 1 and"),
        (
            "[protocol]",
            "[protocol]\nfinal_rounds = 0",
            r"mine.toml, line \d+: protocol.final_rounds: 0 is not between 2",
        ),
        ("relaxation_rate = 1.6", "relaxation_rate = 2.6", r"mine.toml, line \d+: case.relaxation_rate: .*2.6 is not"),
    ],
)
def test_a_damaged_study_file(refused, cpu, tmp_path, old, new, said):
    assert old in QUICK
    (tmp_path / "mine.toml").write_text(QUICK.replace(old, new, 1))
    assert re.search(said, refused("study", "mine.toml"))


def test_a_study_file_that_is_not_text_or_not_there(refused, cpu, tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "binary.toml is not UTF-8" in refused("study", "binary.toml")
    assert "no study file missing.toml" in refused("study", "missing.toml")
    assert "did you mean 'd3q19-box'" in refused("study", "d3q19-bx")


NESTED, LONG = "[" * 3000, "9" * 5000


def test_toml_that_exhausts_the_parser(refused, cpu, tmp_path):
    too_much = "is nested too deeply, or has a number of too many digits; correct it."
    for name, text in (("nested.toml", f"a = {NESTED}"), ("long.toml", f"{QUICK}\nlast = {LONG}")):
        (tmp_path / name).write_text(text)
        assert refused("study", name) == f"lbmtune: {name} {too_much}"
        assert refused("reproduce", "--only", name, "--device", "cpu").endswith(too_much)
    (tmp_path / "nested.toml").write_text(f"a = {NESTED}")
    assert "nested.toml: it is nested too deeply" in refused("explain", "scheme=aa", "--machine", "nested.toml")
    for value in (NESTED, LONG):
        said = refused("explain", "scheme=aa", "--set", f"protocol.finalists={value}")
        assert said == f"lbmtune: --set protocol.finalists: its value {too_much}"


@pytest.mark.parametrize(
    "asked",
    [
        ("study", "x" * 5000),
        ("study", "--output", "x" * 5000),
        ("predict", LONG),
        ("explain", "scheme=aa", "--study", "x" * 5000),
        ("explain", "scheme=aa", "--machine", "x" * 5000),
        ("explain", "x" * 5000),
        ("report", "x" * 5000),
        ("export", "x" * 5000),
    ],
    ids=lambda asked: " ".join(word[:20] for word in asked),
)
def test_a_name_that_is_too_long_for_a_file(refused, cpu, asked):
    said = refused(*asked)
    assert "File name too long" in said or "is not of the form" in said
    assert len(said) < 200 or asked == ("explain", "x" * 5000)


def test_a_study_whose_name_names_no_folder(refused, cpu, tmp_path):
    (tmp_path / "mine.toml").write_text(QUICK.replace('"quick"', f'"{"x" * 201}"'))
    assert "is not a file name of up to 200 letters" in refused("study", "mine.toml")


@pytest.mark.parametrize("option", [("--objective", "speed"), ("--device", "gpu")])
def test_wrong_options(refused, cpu, option):
    assert option[1] in refused("study", *option)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("study --refersh", "unknown option --refersh of study; did you mean --refresh[?]"),
        ("study --bogus", "unknown option --bogus of study; lbmtune study --help lists them."),
        ("--bogus", "unknown option --bogus; lbmtune --help lists them."),
        ("measure", "measure needs CONFIG: best.json, .* or scheme=aa,.*[.][.][.]; lbmtune measure --help says more."),
        ("study --device", "option '--device' requires an argument; lbmtune study --help says what it takes."),
        ("devices --json=3", "option '--json' does not take a value; lbmtune devices --help says what it takes."),
        ("study quick more", "got unexpected extra argument.* .more.; lbmtune study --help says what it takes."),
        ("studi", "unknown verb 'studi'; did you mean 'study'[?]"),
        ("xyz", "unknown verb 'xyz'; choose one of accuracy, .*, worker."),
        ("study --device banana", r"device=banana is not supported \(use cpu, or the index of a GPU: .*\)\."),
    ],
)
def test_wrong_usage_of_the_command_line(refused, arguments, said):
    """What the framework refuses is told as everything else is."""
    assert re.fullmatch(f"lbmtune: {said}", refused(*arguments.split()))


_COUNT = "is not a whole number between 1 and 1000000000; write for example"
_SEED = "is not a whole number between 0 and 4294967295; write for example --seed 2."
_TIME = "is not a time above 0 and at most 1000000000 seconds; write for example --time 90s, 5m or 1h."
_TRIAL = "is not a whole number between 0 and 1000000000; write for example --trial 53."
_MEMBER = "is not a whole number between 1 and 1000000; write for example --member 2."
_SIZE = "is not a size of at least one byte; write for example --max-footprint 1GiB."


@pytest.mark.parametrize(
    ("verb", "option", "value", "said"),
    [
        *(("study", "--trials", value, f"{_COUNT} --trials 100.") for value in ("-3", "0", "x", "1.5", "1" * 5000, "")),
        *(("study", "--seed", value, _SEED) for value in ("-1", "4294967296", "1e3")),
        *(("study", "--time", value, _TIME) for value in ("-3", "-3s", "0", "soon", "1e99", "nan", "9" * 400)),
        *(("predict", "--top", value, f"{_COUNT} --top 20.") for value in ("0", "-1", "ten")),
        ("predict", "--compile", "-1", f"{_COUNT.replace('1', '0', 1)} --compile 50."),
        *(("export", "--member", value, _MEMBER) for value in ("0", "-1", "first")),
        *(("export", "--trial", value, _TRIAL) for value in ("-1", "best")),
        *(("reproduce", "--max-footprint", value, _SIZE) for value in ("0", "-1", "big", "9" * 400)),
    ],
)
def test_numbers_of_options(refused, verb, option, value, said):
    line = refused(verb, option, value)
    begin, gap, end = line.partition(" ... ")
    if gap:  # an error is short, however long its value
        assert len(line) == len("lbmtune: ") + 400
        assert f"lbmtune: {option} {value}".startswith(begin)
        assert f"{value} {said}".endswith(end)
    else:
        assert line == f"lbmtune: {option} {value or repr('')} {said}"


def test_no_number_of_an_option_is_left_to_the_framework():
    """Which would refuse it in words of its own."""
    numbers = 0
    for place in VERBS.values():
        module, _, function = place.place.partition(":")
        verb = getattr(importlib.import_module(f"lbmtune.cli.verbs.{module}"), function)
        for name, hint in with_single_options(verb).__annotations__.items():
            kind, *options = get_args(hint) if get_origin(hint) is Annotated else [hint]
            if {int, float} & {kind, *get_args(kind)}:
                numbers += 1
                assert all(option.parser for option in options), (place, name)
    assert numbers == 22


def test_no_arguments_at_all_are_answered_with_the_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "Usage: lbmtune" in capsys.readouterr().err


def test_unwritable_output(refused, cpu, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot write file/study" in refused("study", "--output", "file/study", *SMALL)
    assert cpu.tried == []


def test_an_unusable_optuna_storage(refused, cpu):
    assert "nonsense://host/db" in refused("study", "--storage", "nonsense://host/db", "--output", "mine", *SMALL)
    assert not Path("mine/study.json").exists()


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("p", "Failed to import DB access module for the specified storage URL"),
        ("DB", "(ImportError)"),
        ("access", "(ImportError)"),
        ("port DB acc", "(ImportError)"),
        ("hunter2", "Failed to import DB access module for the specified storage URL"),
    ],
)
def test_a_sentence_shows_no_letter_of_a_password(refused, cpu, password, told):
    pytest.importorskip("sqlalchemy")
    said = refused("study", "--storage", f"mysql://u:{password}@host/db", "--output", "mine", *SMALL)
    assert told in said
    assert said.count("***") == 1
    assert said.startswith("lbmtune: Optuna storage 'mysql://u:***@host/db' cannot be used (")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("nonsense://me:hush@host/db", "nonsense://me:***@host/db"),
        ("postgresql://me:hu@hush:x/hush@host/db", "postgresql://me:***@host/db"),
        ("mysql://host/db?password=hush&b=1", "mysql://host/db?password=***&b=1"),
    ],
)
def test_a_password_of_a_storage_is_not_shown(refused, cpu, url, shown):
    line = refused("study", "--storage", url, "--output", "mine", *SMALL)
    assert repr(shown) in line
    assert "hush" not in line


def test_urls_are_shown_as_sqlalchemy_does():
    from sqlalchemy import make_url  # slow to import

    for url in (
        "sqlite:///mine.db",
        "postgresql+psycopg2://me:a-b:c@host:5/db?x=1",
        "mysql://me@host/db",
        "x://:p@h/d",
    ):
        assert without_password(url) == make_url(url).render_as_string(hide_password=True)


@pytest.fixture(scope="module")
def one_study(tmp_path_factory):
    """A finished study that nobody changes."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        stand_in(patch)
        patch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            main(["study", "--device", "cpu", "--output", "mine", *SMALL])
    assert not ended.value.code
    return folder / "mine"


@pytest.fixture
def finished(one_study, cpu, capsys, monkeypatch, tmp_path):
    """The folder of a finished study, for one test."""
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    return Path(shutil.copytree(one_study, tmp_path / "mine"))


def test_a_report_that_cannot_be_written(refused, finished):
    assert "cannot write mine/study.json/r.html" in refused("report", "mine", "-o", "mine/study.json/r.html")
    assert "cannot write mine/study.json/b.json" in refused("export", "mine", "-o", "mine/study.json/b.json")
    assert "--studies page.html is no folder; name the one that holds" in refused(
        "report", "mine", "--studies", "page.html"
    )
    assert "--studies b.json is no folder; name the one that holds" in refused("export", "mine", "--studies", "b.json")


@pytest.mark.parametrize("damage", ["cut", "garbage", "another"])
def test_a_corrupt_best_json(refused, finished, damage):
    path = finished / "best.json"
    content = path.read_text()
    path.write_text({"cut": content[: len(content) // 2], "garbage": "\x00\x01", "another": '{"a": 1}'}[damage])
    assert "best.json" in refused("explain", "mine/best.json")
    assert "best.json" in refused("measure", "mine/best.json")


@pytest.mark.parametrize("verb", ["explain", "verify", "measure", "predict", "accuracy", "profile"])
def test_a_study_beside_what_is_settled(refused, finished, verb):
    """Its case would not be that of the file."""
    said = refused(verb, "mine/best.json", "--study", "d3q19-box")
    assert "--study does not go with mine/best.json, whose case is settled; leave it out." in said
    said = refused(verb, "0123456789ab", "--study", "d3q19-box")
    assert "d3q19-box is no folder of trials, and no ranking that is kept has the key 0123456789ab; lbmtune" in said


@pytest.mark.parametrize("asked", [("list",), *((verb, "scheme=aa") for verb in ("explain", "render", "predict"))])
def test_a_machine_that_is_none(refused, cpu, tmp_path, asked):
    """The file is the user's own: nothing is to be deleted."""
    (tmp_path / "text.md").write_text("Title\n")
    (tmp_path / "study.toml").write_text(QUICK)
    names = ", ".join(shipped_machines())
    what_to_do = f"; give a file that lbmtune devices wrote, or one of {names}."
    for name, why in {
        "text.md": "text.md: it is no TOML, expected ",
        "study.toml": "study.toml: environment is missing, which the description of a machine has to have;",
        "nowhere.toml": "cannot read nowhere.toml: No such file or directory",
    }.items():
        said = refused(*asked, "--machine", name)
        assert said.startswith(f"lbmtune: {why}")
        assert said.endswith(what_to_do)
    assert "there is no machine 'h20'" in refused(*asked, "--machine", "h20")
    said = refused(*asked, "--machine", "h200", "--device", "cpu")
    assert "--machine h200 stands in the place of --device cpu; leave one of them out." in said


def test_options_of_predict_that_would_not_be_heard(refused, cpu):
    there = ("--machine", "h200")
    assert "--top 3 goes with a ranking" in refused("predict", "scheme=aa", "--top", "3", *there)
    said = refused("predict", "quick", "--top", "3", "--vary", "block", *there)
    assert "--top 3 goes with a ranking of a study's space, not with --vary; leave it out." in said
    assert "--output p.html goes with --vary or --devices" in refused("predict", "quick", "--output", "p.html", *there)
    assert not Path("p.html").exists()
    said = refused("predict", "quick", "--vary", "block", "--output", "p.pdf", *there)
    assert said == "lbmtune: --output p.pdf is not a page; name a file that ends in .html."


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("0233309e57f", "11 hexadecimal digits"), ("0233309e57f12", "13 hex"), ("0233309E57F1", "capital letters")],
)
@pytest.mark.parametrize("verb", ["predict", "explain", "render"])
def test_a_key_that_is_not_whole(refused, verb, text, wrong):
    said = refused(verb, text, "--machine", "h200")
    assert f"{text!r} has {wrong}" in said
    assert "a key has 12 hexadecimal digits with small letters: copy it whole" in said


def test_names_that_are_no_keys(refused):
    """Words of the letters of a key, and files, are studies."""
    assert "unknown study 'facade'" in refused("predict", "facade", "--machine", "h200")
    Path("decade10").write_text("what")
    assert "decade10: this is not TOML" in refused("predict", "decade10", "--machine", "h200")


@pytest.mark.parametrize("verb", ["predict", "study", "list"])
def test_an_empty_name_of_a_study(refused, verb):
    study = ("--study", "") if verb == "list" else ("",)
    assert "'' names no study; give a study file, or one of the shipped studies box, cavity, " in refused(verb, *study)


def test_an_axis_to_vary_that_the_other_kind_of_kernels_has(refused):
    said = refused("predict", "quick", "--vary", "threads", "--machine", "h200")
    assert "threads, a knob of CPU kernels, does not go with NVIDIA H200, a GPU; say --device cpu instead." in said
    said = refused("predict", "quick", "--vary", "block", "--device", "cpu")
    assert f"block, a knob of CUDA kernels, does not go with device cpu; {NEEDS_A_GPU}" in said


def test_an_axis_that_a_machine_has_not(refused, cpu):
    said = refused("explain", "threads=2", "--machine", "h200")
    assert "threads, a knob of CPU kernels, does not go with NVIDIA H200, a GPU; say --device cpu instead." in said
    slow = RECORDED / "xeon-2-cores" / "machine.toml"
    said = refused("predict", "block=64x1x1", "--machine", slow)
    assert (
        f"block, a knob of CUDA kernels, does not go with Intel(R) Xeon(R) Processor @ 2.50GHz; {NEEDS_A_GPU}" in said
    )


def test_a_key_or_a_study_that_is_not_there(refused, finished):
    assert "no trial has the key 0123456789ab in mine" in refused("explain", "0123456789ab", "--study", "mine")
    assert "no study at yours" in refused("report", "yours")
    assert "missing.json" in refused("explain", "missing.json")


def test_a_study_resumed_under_another_device(refused, finished, monkeypatch):
    header = json.loads((finished / "study.json").read_text())
    header["environment"]["device_id"] = "uuid-of-another"
    (finished / "study.json").write_text(json.dumps(header))
    line = refused("study", "--resume", "--output", "mine", "--device", "cpu")
    assert f"begun with device_id 'uuid-of-another' and this is '{DEVICE_ID}'" in line
    stand_in(monkeypatch, FakeEvaluator("cuda"))
    assert "begun on cpu and this is cuda" in refused("study", "--resume", "--output", "mine", "--device", "0")


@pytest.mark.parametrize("value", ["trials=abc", "trials=-3", "trials=1.5", "time=soon", "time=-5", "time=[1]"])
def test_a_budget_that_is_none(refused, finished, value):
    key = value.partition("=")[0]
    resumed = refused("study", "--resume", "--output", "mine", "--device", "cpu", "--set", f"budget.{value}")
    assert f"--set budget.{key}: " in resumed
    assert f"--set budget.{key}: " in refused("study", "--output", "new", "--device", "cpu", "--set", f"budget.{value}")


def test_a_study_in_a_folder_that_is_in_use(refused, finished):
    with folder_lock(finished):
        line = refused("study", "--resume", "--output", "mine", "--device", "cpu", "--trials", "9")
    assert "another process works on the study in mine" in line


def test_what_differs_is_told_before_a_device_is_measured(refused, finished, monkeypatch):
    monkeypatch.setattr(measured_machines, "measured_machine", lambda *_, **__: pytest.fail("the device was touched"))
    for where in ((), ("quick",)):
        line = refused("study", *where, "--resume", "--output", "mine", *SMALL, "--set", "protocol.finalists=9")
        assert "protocol.finalists" in line


def test_a_study_resumed_as_another_study(refused, finished):
    line = refused("study", "quick", "--resume", "--output", "mine", *SMALL, "--set", "storage=fp64")
    different = "mine holds a study with axes.cpu[1].storage fp32, and this one has fp64; only the budget can change"
    assert different in line
    assert different in refused("study", "--resume", "--output", "mine", "--set", "storage=fp64")
    line = refused("study", "--resume", "--output", "mine", "--set", "case.domain=32x64x64", "--seed", "2")
    assert "with case.domain 64, 64, 64, and this one has 32, 64, 64;" in line
    assert "with seed 1, and this one has 2;" in refused("study", "--resume", "--output", "mine", "--seed", "2")
    assert "holds no study to resume" in refused("study", "quick", "--resume", "--output", "other")
    assert "already holds a study; add --resume" in refused("study", "--output", "mine")


@pytest.mark.parametrize(("name", "content"), [("study.json", "{"), ("trials.jsonl", "{}\n")])
def test_damaged_records(refused, finished, name, content):
    (finished / name).write_text(content)
    assert "damaged" in refused("report", "mine")
    assert "damaged" in refused("study", "--resume", "--output", "mine")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("study.json", b'{"spec": {"name": "\xffx"}}', "study.json is damaged: 'utf-8' codec can't decode byte 0xff"),
        (
            "study.json",
            b'{"a": ' + b"[" * 200_000,
            "study.json is damaged: it is nested too deeply; restore it or start a new",
        ),
        (
            "trials.jsonl",
            b'{"number": 1, "key": "\xff"}\n',
            "trials.jsonl, line 1 is damaged .*0xff.*; delete that line",
        ),
        (
            "trials.jsonl",
            b'{"a": ' + b"[" * 200_000 + b"\n",
            "trials.jsonl, line 1 is damaged .it is nested too deeply.; delete",
        ),
        ("trials.jsonl", b'{"number": 1}\n', "trials.jsonl, line 1 is damaged .*missing required field"),
    ],
)
def test_records_of_a_damaged_disk(refused, finished, name, content, said):
    (finished / name).write_bytes(content)
    for verb in ("report", "export"):
        assert re.search(said, refused(verb, "mine"))
    assert re.search(said, refused("study", "--resume", "--output", "mine"))
    assert re.search(said, refused("explain", "0123456789ab", "--study", "mine", "--device", "cpu"))


@pytest.mark.parametrize("name", ["trials.jsonl", "trials.jsonl.gz"])
def test_trials_without_the_head_of_their_study(refused, finished, name):
    """Nobody knows of which case they are, so that no study may go on with them."""
    (finished / "study.json").unlink()
    if name.endswith(".gz"):
        (finished / name).write_bytes(gzip.compress((finished / "trials.jsonl").read_bytes()))
        (finished / "trials.jsonl").unlink()
    said = f"lbmtune: mine holds {name} without study.json, which says of what study these trials are; restore it, or"
    study = ("study", "quick", "--output", "mine", *SMALL)
    for asked in (study, (*study, "--resume"), ("study", "--output", "mine", "--resume"), ("report", "mine")):
        assert refused(*asked).startswith(said)
    assert refused("export", "mine").startswith(said)


def test_a_configuration_for_another_device(refused, cpu, tmp_path):
    """Whether that is said by an axis, or by a file."""
    said = refused("explain", "backend=cuda", "--device", "cpu")
    assert f"backend=cuda does not go with device cpu; {NEEDS_A_GPU}" in said
    best = RECORDED / "nvidia-h200" / "d3q19-box-fp32" / "best.json"
    said = refused("verify", best, "--device", "cpu")
    assert f"a configuration for CUDA does not go with device cpu; {NEEDS_A_GPU}" in said
    assert "unknown backend 'cdua'; did you mean 'cuda'?" in refused("explain", "backend=cdua")
    said = refused("explain", "family=temporal-blocking,representation=moments,steps=2", "--device", "cpu")
    assert f"family=temporal-blocking, a family of CUDA kernels, does not go with device cpu; {NEEDS_A_GPU}" in said
    said = refused("explain", "family=wavefront", "--machine", "h200")
    assert "family=wavefront, a family of CPU kernels, does not go with NVIDIA H200, a GPU; say --device cpu" in said


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("family=column,march=2", "march is a knob of version 0.1, which family column does not have; say z_cells."),
        ("family=sparse,march=2", "march is a knob of version 0.1, which family sparse does not have; say sites_per_t"),
        ("family=sparse,addressing=indirect", "family sparse does not have; lbmtune list shows those of today."),
        ("family=sparse,colour=2", "unknown knob 'colour' of family sparse (cuda); choose one of block, "),
    ],
)
def test_a_name_of_version_0_1_beside_a_family(refused, config, said):
    """It is refused with the name of today."""
    assert said in refused("explain", config, "--machine", "h200")


def test_an_axis_to_vary_is_looked_up_before_the_device_is(refused, monkeypatch):
    monkeypatch.setattr("lbmtune.api.machines.measured_machines.measured_machine", None)
    said = refused("predict", "quick", "--device", "0", "--vary", "blcok")
    assert "unknown knob of cuda kernels 'blcok'; did you mean 'block'?" in said
    said = refused("predict", "quick", "--device", "cpu", "--vary", "colour")
    assert "unknown knob of cpu kernels 'colour'; lbmtune list shows all." in said


# -- folders of the user


def test_a_cache_that_cannot_be_written_is_told_once_and_replaced(capsys, monkeypatch, tmp_path):
    """Workers hear of the other one as they hear of the first."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "file" / "cache"))
    for told in (True, False):
        with pytest.raises(SystemExit) as ended:
            main(["render", "scheme=aa", "--device", "cpu"])
        captured = capsys.readouterr()
        assert not ended.value.code
        assert "box d3q19 bgk: AA pattern" in captured.out
        sentence = (
            f"cannot write {tmp_path / 'file' / 'cache'} (Not a directory): compiled kernels and rankings of this "
        )
        sentence += "run are not kept; set LBMTUNE_CACHE to a folder that you alone can write.\n"
        assert captured.err == (sentence if told else "")
    write_atomically(cache_folder("cpu") / "kernel.py", b"")


@pytest.mark.parametrize("inner", ["", "cpu", "cpu/__pycache__"])
def test_a_cache_that_others_may_write_is_not_used(capsys, monkeypatch, tmp_path, inner):
    """Code that lies there would be run."""
    loose = tmp_path / "cache" / inner
    loose.mkdir(parents=True)
    loose.chmod(0o770)
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=rf"^others may write {loose}, and code that lies there is run; make it yours"):
        compile_cpu(SimpleNamespace(in_c=False))
    with pytest.raises(SystemExit):
        main(["list", "--device", "cpu"])
    assert f"others may write {loose}, and code that lies there is run: compiled kernels" in capsys.readouterr().err
    assert cache_folder("") != tmp_path / "cache"


def test_a_cache_of_somebody_else_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    with pytest.raises(InputError, match="others may write"):
        make_cache()


def test_a_new_cache_is_for_its_user_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "one" / "cache"))
    make_cache()
    assert (tmp_path / "one" / "cache").stat().st_mode & 0o777 == 0o700


def test_a_full_disk_leaves_what_was_there_and_nothing_else(monkeypatch, tmp_path):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    kept = tmp_path / "best.json"
    write_atomically(kept, b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot write .*best.json: No space left on device; choose another"):
        write_atomically(kept, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["best.json"]
    assert kept.read_bytes() == b"old"
    for append in (append_trial, append_group):
        with pytest.raises(InputError, match="No space left on device; see to the folder, and go on with --resume"):
            append(tmp_path, {"number": 0})


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("trials.jsonl.gz", b"no gzip", r"trials.jsonl.gz is damaged: Not a gzipped file"),
        ("trials.jsonl.gz", gzip.compress(b"{}\n" * 99, mtime=0)[:-9], r"trials.jsonl.gz is damaged: "),
        ("trials.jsonl", None, r"cannot read .*trials.jsonl: Is a directory; see to the folder"),
        ("study.json", None, r"cannot read .*study.json: Is a directory; see to the folder"),
        ("claims.json", None, r"cannot read .*claims.json: Is a directory; see to the folder"),
    ],
)
def test_records_that_cannot_be_read(finished, name, content, said):
    for packed in ("trials.jsonl", "trials.jsonl.gz", name):
        (finished / packed).unlink(missing_ok=True)
    if content is None:
        (finished / name).mkdir()
    else:
        (finished / name).write_bytes(content)
    read = read_claims if name == "claims.json" else read_study
    with pytest.raises(InputError, match=said):
        read(finished)


def test_a_file_where_a_study_should_be(finished):
    for read, what in ((read_study, "study"), (read_claims, "claims")):
        with pytest.raises(InputError, match=rf"no {what} at .*study.json; give the folder"):
            read(finished / "study.json")


def test_no_room_for_temporary_files(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"no folder for temporary files: .*; set TMPDIR to one with room."):
        scratch_folder()


def test_a_page_of_one_axis_that_cannot_be_written(refused, tmp_path):
    (tmp_path / "page.html").mkdir()
    few = ("quick", "--machine", "h200", "--set", "scheme=aa", "--compile", "0", "--vary", "block")
    line = refused("predict", *few, "--output", "page.html")
    assert line == "lbmtune: cannot write page.html: Is a directory; choose another file for --output."
    (tmp_path / "file").touch()
    assert refused("predict", *few, "--output", "file/page.html").startswith("lbmtune: cannot write file")


@pytest.mark.parametrize("option", [("--output", "file/page.html"), ("--sources", "file/sources")])
def test_where_a_profile_goes_is_looked_at_before_anything_is_measured(refused, monkeypatch, tmp_path, option):
    monkeypatch.setattr(
        "lbmtune.api.machines.measured_machines.measured_machine", lambda *_, **__: pytest.fail("measured")
    )
    (tmp_path / "file").touch()
    assert "lbmtune: cannot write file" in refused("profile", "scheme=aa", "--device", "cpu", *option)


def test_a_profile_beside_the_model_of_another_kind_of_device(refused):
    line = refused("profile", "scheme=aa", "--device", "cpu", "--machine", "h200")
    assert line == "lbmtune: --machine h200 is no cpu device and the configuration is for one; leave it out."


@pytest.mark.parametrize(
    "asked",
    [
        ("predict", "scheme=aa", "--machine", ""),
        ("list", "--machine", "", "--device", "cpu"),
        ("predict", "scheme=aa", "--study", "", "--device", "cpu"),
        ("study", ""),
        ("study", "--device", ""),
    ],
)
def test_what_is_given_and_empty(refused, cpu, asked):
    """As of a variable of the shell that is not set."""
    refused(*asked)


def test_a_claims_document_that_is_no_text(refused, cpu, tmp_path):
    (tmp_path / "paper.toml").write_bytes(b"\xff\xfe")
    assert "paper.toml is not UTF-8 text (byte 0)" in refused("reproduce", "--device", "cpu", "--only", "paper.toml")


def test_a_mark_of_the_byte_order_is_no_part_of_a_study(tmp_path):
    (tmp_path / "marked.toml").write_bytes(codecs.BOM_UTF8 + QUICK.encode())
    assert load_study(str(tmp_path / "marked.toml")) == load_study("quick")


# -- devices that are not there

NO_CUPY = "raise ModuleNotFoundError(\"No module named 'cupy'\", name='cupy')"
CUPY_WITHOUT_DRIVER = """
class _Runtime:
    class CUDARuntimeError(RuntimeError):
        status = {status}
    def getDeviceCount(self):
        raise self.CUDARuntimeError("{message}")
    def driverGetVersion(self):
        return {driver}
    def runtimeGetVersion(self):
        return 13000
class cuda:
    runtime = _Runtime()
"""


NO_DRIVER = CUPY_WITHOUT_DRIVER.format(status=35, driver=0, message="insufficient")
NO_GPU = CUPY_WITHOUT_DRIVER.format(status=100, driver=13000, message="no device")


EACH_VERB = """
import runpy, sys
for verb in sys.argv[1:]:
    sys.argv = ["lbmtune", *verb.split(), "--device", "0"]
    try:
        runpy.run_module("lbmtune", run_name="__main__")
    except SystemExit as ended:
        print(ended.code)
"""
KERNEL = "scheme=aa,block=64x1x1"


@pytest.mark.parametrize(
    ("verbs", "cupy", "said"),
    [
        (("study",), NO_CUPY, "Python has no module 'cupy'"),
        (("study",), NO_GPU, "sees no GPU"),
        (
            ("study", f"measure {KERNEL}", f"verify {KERNEL}", f"predict {KERNEL}"),
            NO_DRIVER,
            "there is no NVIDIA driver here",
        ),
    ],
    ids=["no CuPy", "no GPU", "no driver"],
)
def test_no_gpu_is_three(tmp_path, verbs, cupy, said):
    (tmp_path / "cupy.py").write_text(cupy)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", EACH_VERB, *verbs],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["3"] * len(verbs), done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(verbs)
    for line in lines:
        assert said in checked(line)
        assert "--device cpu" in line
    assert not (tmp_path / "lbmtune-studies" / "quick-gpu0").exists()


def test_a_member_is_of_best_json_alone(refused):
    said = "--member 2 is not supported for format=csv (leave it out): that holds all trials."
    assert refused("export", "a-study", "--member", "2", "--format", "csv") == f"lbmtune: {said}"


def test_a_study_whose_files_cannot_be_written_is_printed_even_so(tmp_path, monkeypatch, capsys):
    shutil.copytree(RECORDED / "zen3-2-cores" / "d3q19-box-fast-fp32", tmp_path / "study")
    found = Study(tmp_path / "study")

    def full(_: object) -> None:
        raise InputError(f"cannot write {found.folder}/report.html: No space left on device.")

    monkeypatch.setattr(Study, "report", full)
    with pytest.raises(InputError, match=r"No space .* Nothing is lost: lbmtune export .* write them again"):
        show_study(found, False)
    assert f"{found.winner.key}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("report s --output=", "--output is empty; name a file or a folder"),
        ("study --device cpu --output=", "--output is empty; name a file or a folder"),
        ("report s --output s/trials.jsonl.gz", "it is a record of the study in its folder"),
        ("export s --format csv --output s/study.json", "it is a record of the study in its folder"),
        ("export b.json --format c --output b.json", "--output b.json is what is exported"),
        ("explain pipe.json", "cannot read pipe.json: it is no regular file"),
        ("explain s/best.json --set case.domain=1_0x32x32", "domain '1_0x32x32' is not two or three cell counts"),
    ],
)
@pytest.mark.timeout(20)
def test_nothing_is_replaced_or_waited_for(tmp_path, monkeypatch, capsys, asked, said):
    kept = shutil.copytree(RECORDED / "zen3-2-cores" / "d3q19-box-fast-fp32", tmp_path / "s")
    shutil.copy(kept / "best.json", tmp_path / "b.json")
    os.mkfifo(tmp_path / "pipe.json")
    monkeypatch.chdir(tmp_path)
    before = {file: file.read_bytes() for file in (*kept.iterdir(), tmp_path / "b.json")}
    with pytest.raises(SystemExit) as ended:
        main(asked.split())
    assert ended.value.code == 2
    assert said in (told := capsys.readouterr().err)
    assert told.count("\n") == 1
    assert {file: file.read_bytes() for file in (*kept.iterdir(), tmp_path / "b.json")} == before


def test_what_may_not_be_read_gets_a_sentence(tmp_path, monkeypatch, capsys):
    def forbidden(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", forbidden)
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path)])
    assert ended.value.code == 2
    assert "Permission denied; see to its permissions." in capsys.readouterr().err
