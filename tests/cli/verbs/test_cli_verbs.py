import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from optuna.storages import JournalStorage
from rich.console import Console

import lbmtune
from lbmtune import api
from lbmtune.api.machines.devices import bounds
from lbmtune.catalogue.config import FAMILIES, CpuConfig, completed, from_flat
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.claims.store import RESULTS as STORED
from lbmtune.cli.format import output
from lbmtune.cli.verbs.list import knob_rows
from lbmtune.cli.verbs.run import show_proofs
from lbmtune.errors import DeviceUnavailableError, InputError, NothingValidError
from lbmtune.files.studyfile import load_study, overridden
from lbmtune.measure.calibration.machines import CONFIG_VARIABLE, machine_path
from lbmtune.model.machine.toml import write_machine
from lbmtune.records import Conditions, Outcome, Trial
from lbmtune.records.best_json.document import read_best
from lbmtune.records.spec import Budget, Target
from lbmtune.records.store import read_study
from lbmtune.search.joint.ledger import Ledger, begin, open_storage
from lbmtune.search.optuna_view.storage import Journal, optuna_name
from lbmtune.units import format_rate
from scripts.docs.reference import families_page
from tests.support.paths import ROOT
from tests.support.studies import fake_study
from tests.support.studies.fake_study import FakeEvaluator, stand_in, verification
from tests.support.studies.fake_study import machine as fake_machine

UNFINISHED = (
    "the study was ended early, so that another kernel may be faster, and the best kernel was not verified on the "
    "whole domain; lbmtune study --resume goes on."
)
QUICK = ("--set", "case.domain=64x64x64")


@pytest.mark.parametrize("verb", ["--version", "--help", "list"])
def test_nobody_has_to_read_to_the_end(verb):
    """As `lbmtune list | head -1`: not a word, and no failure."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "lbmtune", verb]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_was_printed_before_stands_before_what_is_printed_then():
    """A program that calls main has its own output first, in a file, too."""
    script = "from lbmtune.cli import main; print('before'); main(['--version'])"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=buffered)
    assert done.stdout.startswith("before\nlbmtune ")


def test_every_verb_is_there(run):
    code, out, _ = run("--help")
    verbs = ["devices", "study", "list", "explain", "render", "predict", "verify", "measure", "report", "export"]
    assert code == 0
    assert all(f" {verb} " in out for verb in verbs)


def test_devices_tells_the_bandwidths(run, monkeypatch):
    stand_in(monkeypatch)
    import lbmtune.backend.registry as registry

    monkeypatch.setattr(registry, "available", lambda: ("cpu",))
    code, out, _ = run("devices")
    assert code == 0
    assert "4000 GB/s" in out
    assert "64 bytes at once, streaming stores" in out
    assert re.search(r"^core clock +unknown$", out, re.MULTILINE)
    listed = json.loads(run("devices", "--json")[1])["devices"]
    assert [(one["device"], one["stream_bytes_per_s"]["16"]) for one in listed] == [("cpu", 4e12)]
    listed = json.loads(run("devices", "--device", "7", "--json")[1])["devices"]
    assert [one["device"] for one in listed] == ["7"], "asked for alone"


def test_devices_tells_where_the_description_lies(run, monkeypatch, tmp_path):
    """Which --machine takes; not the file of an older one, where this one could not be written."""
    stand_in(monkeypatch)
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "settings"))
    here = ("devices", "--device", "cpu")
    assert run(*here)[1].rstrip().endswith("not kept")
    assert json.loads(run(*here, "--json")[1])["devices"][0]["file"] is None
    described = fake_machine()
    path = machine_path(described.environment)
    write_machine(path, replace(described, copy_bytes_per_s=1e12))
    assert run(*here)[1].rstrip().endswith("not kept"), "this is another one"
    write_machine(path, described)
    assert run(*here)[1].rstrip().splitlines()[-1].split() == ["for", "--machine", str(path)]
    assert json.loads(run(*here, "--json")[1])["devices"][0]["file"] == str(path)


@pytest.mark.parametrize(
    ("options", "described_again", "links"),
    [
        ((), False, None),
        (("--refresh",), True, None),
        (("--calibrate",), False, False),
        (("--links",), False, False),
        (("--links", "--refresh"), False, True),
        (("--links", "--calibrate", "--refresh"), True, True),
    ],
)
def test_devices_shows_the_links_of_several_gpus(run, monkeypatch, options, described_again, links):
    """They are measured if that is asked for, and bandwidths again only if those are asked for."""
    stand_in(monkeypatch, FakeEvaluator("cuda"))
    asked, measured = [], []

    def described(name, *, refresh, extent):
        asked.append((name, refresh, extent))
        machine = fake_machine("cuda")
        return replace(machine, environment=replace(machine.environment, device_id=f"GPU-{name}"))

    def with_links(found, *, refresh):
        measured.append((tuple(found), refresh))
        return found

    monkeypatch.setattr("lbmtune.backend.registry.available", lambda: ("0", "1"))
    monkeypatch.setattr("lbmtune.api.measured_machine", described)
    monkeypatch.setattr("lbmtune.api.measured_links", with_links)
    monkeypatch.setattr("lbmtune.cli.format.description.link", lambda one, other: f"wire {one}{other}")
    code, out, _ = run("devices", *options)
    assert code == 0
    assert re.search(r"^ +0 +1 +wire 01 +- ", out, re.MULTILINE)
    extent = "full" if "--calibrate" in options else "bandwidths"
    assert asked == [(name, described_again, extent) for name in ("0", "1")]
    assert measured == ([] if links is None else [(("0", "1"), links)])


@pytest.mark.parametrize(("options", "warned"), [(("--links",), True), ((), False), (("--calibrate",), False)])
def test_links_of_fewer_than_two_gpus_are_not_there_to_measure(run, monkeypatch, caplog, options, warned):
    stand_in(monkeypatch)
    code, out, err = run("devices", "--device", "cpu", *options)
    assert code == 0
    assert "for --machine" in out
    assert ("--links measures nothing" in err + caplog.text) is warned


def test_clocks_are_said():
    from lbmtune.cli.format.description import machine_rows

    cpu = replace(fake_machine(), environment=replace(fake_machine().environment, backend="cpu"))
    assert dict(machine_rows("cpu", replace(cpu, core_clock_hz=2.5e9)))["core clock"] == "2500 MHz"
    card = replace(cpu, environment=replace(cpu.environment, backend="cuda", max_sm_clock_hz=1.98e9))
    rows = dict(machine_rows("0", replace(card, conditions=Conditions(sm_clock_hz=1.7e9, memory_clock_hz=3.2e9))))
    assert rows["highest clock"] == "1980 MHz"
    assert (rows["clock when measured"], rows["memory clock when measured"]) == ("1700 MHz", "3200 MHz")


def test_list_says_which_schemes_a_backend_lacks_and_why(run, monkeypatch):
    stand_in(monkeypatch)
    reason = (
        "scheme=swap-ordered is not supported on CUDA (use swap): a cell swaps with those updated before it, and "
        "thread blocks run in no order"
    )
    for study in ("box", "porous"):
        facts = json.loads(run("list", "--study", study, "--machine", "h100", "--json")[1])
        assert facts["schemes_without_kernels"] == {"swap-ordered": reason}
    assert json.loads(run("list", "--device", "cpu", "--json")[1])["schemes_without_kernels"] == {}
    assert reason in " ".join(run("list", "--machine", "h100")[1].split())
    assert "schemes without kernels here" not in run("list", "--device", "cpu")[1]


def test_list_counts_what_is_legal(run, monkeypatch):
    stand_in(monkeypatch)
    facts = json.loads(run("list", "--device", "cpu", "--json")[1])
    assert set(facts["schemes"]) == set(SCHEMES)
    assert set(facts["knobs"]) >= {"scheme", "layout", "threads", "vector_bits"}
    assert facts["legal_configurations"] > 50
    code, out, _ = run("list", "--device", "cpu")
    assert code == 0
    spaces = " + ".join(map(str, facts["legal_of_each_space"]))
    assert f"{facts['legal_configurations']} legal configurations ({spaces} in its spaces) on cpu" in out
    assert facts["flops_per_update"]["bgk"] == {"d2q9": 81, "d3q19": 176, "d3q27": 264}
    assert set(facts["flops_per_update"]["cumulant"]) == {"d3q27"}
    assert re.search(r"bgk +81 +176 +264\n", out)
    assert re.search(r"cumulant +- +- +\d+\n", out)
    order = r"^order  .*\n  values +\(row\) *\n  allowed +row, morton, hilbert, tile, stripe *$"
    assert re.search(order, out, re.MULTILINE)
    assert re.search(r"^packing .* \(fraction=0.5:radius=8:seed=1\) *$", out, re.MULTILINE)
    assert re.search(r"^file .* \(path=\.\.\.:shape=:dtype=:array=:invert=0:fluid=:repeat=0\) *$", out, re.MULTILINE)
    assert facts["knobs"]["streaming_stores"]["default"] == 0
    assert facts["knobs"]["tile"]["families"] == ["moments-wavefront", "wavefront"]
    fewer = json.loads(run("list", "--device", "cpu", "--json", "--set", "scheme=aa")[1])
    assert 0 < fewer["legal_configurations"] < facts["legal_configurations"]


def test_list_of_several_spaces_shows_each(run, monkeypatch, tmp_path):
    stand_in(monkeypatch)
    path = tmp_path / "two.toml"
    case = '[case]\nflow = "box"\nlattice = "d3q19"\ndomain = "64x64x64"\nrelaxation_rate = 1.6\n'
    spaces = '[[axes.cpu]]\nscheme = ["aa", "pull"]\n[[axes.cpu]]\nscheme = "push"\nparallel_loop = ["z", "zy"]\n'
    path.write_text(f'name = "two"\n{case}{spaces}')
    facts = json.loads(run("list", "--device", "cpu", "--json", "--study", str(path))[1])
    assert facts["legal_of_each_space"] == [2, 2]
    assert facts["knobs"]["scheme"]["spaces"] == [["aa", "pull"], ["push"]]
    assert facts["knobs"]["scheme"]["values"] == ["aa", "pull", "push"]
    out = run("list", "--device", "cpu", "--study", str(path))[1]
    assert "4 legal configurations (2 + 2 in its spaces) on cpu" in out
    assert re.search(r"^scheme .*\n  space 1 +aa, pull *\n  space 2 +push *\n", out, re.MULTILINE)
    fixed = json.loads(run("explain", "scheme=aa", "--device", "cpu", "--json", "--study", str(path))[1])
    assert fixed["config"]["storage"] == "fp32"
    wide = ("--set", "storage=fp64")
    assert (
        json.loads(run("explain", "scheme=aa", "--device", "cpu", "--json", "--study", str(path), *wide)[1])["config"][
            "storage"
        ]
        == "fp64"
    )


def test_axes_are_listed_without_breaking_their_values():
    names = ("pull", "push", "aa", "esoteric-twist", "esoteric-pull", "two-step", "swap", "swap-ordered", "ghost-cell")
    axis = {
        "title": "propagation scheme",
        "other_titles": {"wavefront": "scheme in place"},
        "spaces": [names, ("aa",)],
        "default": "pull",
        "by_device": "",
        "known": names,
        "families": (),
    }
    console = Console(file=io.StringIO(), width=80, soft_wrap=True)
    console.print(output.table("axes", ("name", "title"), knob_rows("prefetch_propagated", axis)))
    text = console.file.getvalue()
    assert not re.search(r"^ *,", text, re.MULTILINE)
    assert all(text.count(f" {name}") >= 2 for name in names)
    assert re.search(r"^  in wavefront +scheme in place *$", text, re.MULTILINE)


@pytest.mark.parametrize("knob", ["threads", "vector_bits"])
def test_a_default_of_the_device_is_said_alike_by_the_page_and_the_list(run, knob):
    default = completed({"backend": "cpu"}, bounds("cpu").limits)[knob]
    said = CpuConfig.by_device[knob]
    rows = re.findall(rf"^\| `{knob}` \|.*$", families_page(), re.MULTILINE)
    *rows, families = rows
    assert len(rows) == len(FAMILIES["cpu"])
    assert all(f" | of the device: {said} | " in row for row in rows)
    assert " | of the device" not in families
    axes = json.loads(run("list", "--device", "cpu", "--json")[1])["knobs"]
    facts = axes[knob]
    assert (facts["default"], facts["by_device"]) == (default, said)
    shown = dict(knob_rows(knob, {**facts, "spaces": [()]}))
    assert shown["  values"] == f"({default}, of the device: {said})"
    assert axes["padding"]["by_device"] == ""


def test_a_knob_is_described_for_each_family_in_which_it_means_something_else(run):
    _, out, _ = run("list", "--device", "cpu")
    assert re.search(
        r"^tile +cells of a tile, x by y by z *\n  in wavefront +rows of a tile, y by z *$", out, re.MULTILINE
    )
    assert re.search(r"^family +kernel family *$", out, re.MULTILINE)
    assert not re.search(r"^  families *$", out, re.MULTILINE)


def test_list_of_a_gpu_that_is_not_here_says_so(run, monkeypatch):
    stand_in(monkeypatch)
    code, out, _ = run("list", "--device", "0")
    assert code == 0
    assert "GPU 0 (not here; limits that all GPUs share)" in out


def test_explain_a_legal_configuration(run, monkeypatch):
    stand_in(monkeypatch)
    code, out, _ = run("explain", "scheme=aa,threads=2", *QUICK)
    assert code == 0
    for text in ("yes", "152", "update in place", "MLUPS", "MiB"):
        assert text in out
    facts = json.loads(run("explain", "scheme=aa,threads=2", *QUICK, "--json")[1])
    assert facts["legal"] is True
    assert facts["footprint_bytes"] >= 64**3 * 19 * 4
    assert facts["flops_per_update"] == 176
    assert facts["flops_per_byte"] == pytest.approx(176 / 152)
    assert "176 (1.16 flop/B)" in out
    assert facts["prediction"]["mlups"] == pytest.approx(3.9e12 / 152 / 1e6)


def test_explain_an_illegal_configuration_is_an_answer(run, monkeypatch):
    stand_in(monkeypatch)
    code, out, _ = run("explain", "scheme=aa,block=2048x1x1", "--device", "0")
    assert code == 0
    assert "no by the limits that all GPUs share: block 2048x1x1 = 2048 threads; this device allows 1024" in out


@pytest.mark.parametrize(
    ("said", "block"),
    [
        ("scheme=aa", "64x1x1"),  # 128 threads cover the row of 64 cells twice
        ("scheme=aa,cells_per_thread=2", "32x1x1"),
        ("representation=moments,steps=2", "32x8x1"),
        ("scheme=aa,block=256x1x1", "256x1x1"),
        ("scheme=aa,cells_per_thread=8,storage=fp64", "256x1x1"),  # illegal with any block
    ],
)
def test_a_block_that_is_not_said_fits_a_short_row(run, monkeypatch, said, block):
    stand_in(monkeypatch)
    sets = (*QUICK, "--set", "case.collision=regularised")
    facts = json.loads(run("explain", said, "--device", "0", *sets, "--json")[1])
    assert facts["config"]["block"] == block
    assert facts["legal"] is (block != "256x1x1")


def test_explain_names_the_axes_that_are_not_at_their_default(run, monkeypatch):
    stand_in(monkeypatch)
    out = run("explain", "scheme=aa,block=64x1x1,index_bits=0", "--device", "0")[1]
    assert re.search(
        r"^configuration +backend=cuda, block=64x1x1, family=direct, scheme=aa, all else at its default$",
        out,
        re.MULTILINE,
    )


def test_render_prints_the_kernel_and_nothing_else(run):
    code, out, err = run("render", "scheme=aa,block=64x1x1,storage=fp64", "--device", "0")
    assert (code, err) == (0, "")
    assert "__global__" in out
    facts = json.loads(run("render", "scheme=aa,block=64x1x1,storage=fp64", "--device", "0", "--json")[1])
    assert facts["source"] == out
    assert facts["config"]["compute"] == "fp64"


def test_predict(run, monkeypatch):
    stand_in(monkeypatch)
    facts = json.loads(run("predict", "scheme=aa", "--device", "cpu", "--json")[1])
    assert facts["prediction"]["bytes_per_update"] == 152
    assert facts["flops_per_byte"] == pytest.approx(facts["flops_per_update"] / 152)
    out = run("predict", "scheme=aa", "--device", "cpu")[1]
    assert "MLUPS" in out
    assert "flop/B" in out


def test_the_case_that_figures_are_of_is_said(run, monkeypatch, tmp_path):
    """A study that nobody named gives it, too."""
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    here = ("--machine", "h200")
    few = ("predict", "quick", "--set", "scheme=aa", "--compile", "0", "--top", "1")
    one = ("scheme=aa,block=64x1x1",)
    for asked in (few, ("predict", *one), ("explain", *one), ("predict", *one, "--vary", "block")):
        for sets, nx in (((), 128), (QUICK, 64)):
            assert f"D3Q19 BGK box, {nx} x {nx} x {nx} cells" in run(*asked, *sets, *here)[1]
            facts = json.loads(run(*asked, *sets, *here, "--json")[1])
            assert facts["case"]["domain"] == [nx, nx, nx]


def test_how_far_a_prediction_may_be_trusted_is_said(run, monkeypatch, tmp_path):
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    stand_in(monkeypatch)
    plain = fake_machine()
    described = replace(plain, environment=replace(plain.environment, cores=2, vector_bits=512, memory_bytes=2**36))
    monkeypatch.setattr("lbmtune.api.machines.measured_machines.measured_machine", lambda *_: described)
    uncalibrated = "Made-up 1 is not calibrated: speeds are estimated from bandwidths and instructions alone"
    few = ("quick", "--set", "scheme=aa", "--set", "steps=1", "--compile", "0")
    one = ("scheme=aa",)
    for verb, *asked in (
        ("predict", *few),
        ("predict", *one),
        ("explain", *one),
        ("predict", *one, "--vary", "parallel_loop"),
    ):
        code, _, err = run(verb, *asked, "--device", "cpu")
        assert (code, err.startswith(uncalibrated)) == (0, True), err
    known = "NVIDIA A100 SXM4 80 GB is known by its data sheet alone, with curves of NVIDIA H200"
    assert run("predict", *one, "--machine", "a100")[2].startswith(known)
    assert run("predict", *one, "--machine", "h200")[2] == ""


def test_measure(run, monkeypatch):
    stand_in(monkeypatch)
    code, out, _ = run("measure", "scheme=aa,row_offset=1", "--device", "cpu", *QUICK)
    assert code == 0
    assert "MLUPS" in out
    trial = json.loads(run("measure", "scheme=aa,row_offset=1", "--device", "cpu", *QUICK, "--json")[1])
    assert trial["outcome"] == "ok"


def test_a_slow_kernel_keeps_its_digits(run, monkeypatch):
    stand_in(monkeypatch)
    monkeypatch.setattr(fake_study, "speed", lambda _: 5.0625)
    out = run("measure", "scheme=aa", "--device", "cpu", *QUICK)[1]
    assert re.search(r"^measured +5\.06 MLUPS$", out, re.MULTILINE)
    assert re.search(
        r"^interval +5\.01 .. 5\.11 MLUPS, \+-1\.0 % within the run; between runs: not measured$", out, re.MULTILINE
    )


def test_measure_of_a_kernel_that_fails_is_one(run, monkeypatch):
    stand_in(monkeypatch, FakeEvaluator("cpu", fails=Outcome.CRASHED))
    code, out, err = run("measure", "scheme=aa", "--device", "cpu", *QUICK)
    assert (code, out) == (1, "")
    assert err == "lbmtune: crashed: planted\n"


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.TIMED_OUT, Outcome.COMPILE_FAILED])
def test_a_kernel_that_fails_is_told_as_json_too(run, monkeypatch, outcome):
    fake = stand_in(monkeypatch, FakeEvaluator("cpu", fails=outcome))

    def prove(config, *, full=False):
        assert not full, "nothing more is tried"
        fake.submit(0, config)
        return fake.next()

    monkeypatch.setattr(fake, "verify", prove, raising=False)
    for verb, *more in (("verify", "--full-size"), ("measure",)):
        code, out, err = run(verb, "scheme=aa", "--device", "cpu", *QUICK, "--json", *more)
        facts = json.loads(out)
        assert code == 1
        assert (facts["outcome"], facts["reason"]) == (outcome, "planted")
        assert err.endswith(f"{outcome}: planted\n")
        assert facts.get("passed") in (False, None)


def test_a_proof_that_passes_as_json(run, monkeypatch):
    fake = stand_in(monkeypatch)

    def prove(config, *, full=False):
        fake.submit(0, config)
        return replace(fake.next(), outcome=Outcome.OK, reason="", verification=replace(verification(), full_size=full))

    monkeypatch.setattr(fake, "verify", prove, raising=False)
    code, out, _ = run("verify", "scheme=aa", "--device", "cpu", *QUICK, "--json", "--full-size")
    facts = json.loads(out)
    assert (code, facts["passed"], facts["outcome"], len(facts["verifications"])) == (0, True, "ok", 2)


def study(run, *arguments):
    return run("study", "--device", "cpu", "--trials", 12, *QUICK, *arguments)


def test_a_study_ends_with_its_report_and_best(run, monkeypatch, tmp_path):
    fake = stand_in(monkeypatch)
    code, out, err = study(run)
    folder = tmp_path / "lbmtune-studies" / "quick-cpu"
    assert code == 0
    assert fake.closed
    assert out.splitlines()[-2].split() == ["report", "lbmtune-studies/quick-cpu/report.html"]
    assert out.splitlines()[-1].split() == ["best.json", "lbmtune-studies/quick-cpu/best.json"]
    assert (folder / "report.html").stat().st_size > 0
    assert (folder / "best.json").stat().st_size > 0
    assert "s searching" in out
    assert "12 of" in out
    assert re.search(r"^trial \d+, 1 of 12 done: ", err, re.MULTILINE)
    assert "predicted" in err
    assert len(read_study(folder).trials) == 12


def test_the_facts_of_a_study_as_json(run, monkeypatch):
    stand_in(monkeypatch)
    code, out, _ = study(run, "--json", "--output", "here")
    facts = json.loads(out)
    assert code == 0
    assert (facts["study"], facts["report"], facts["best"]) == ("here", "here/report.html", "here/best.json")
    assert facts["winner"]["outcome"] == "ok"
    assert 0 < facts["share_of_ceiling"] < 2
    assert facts["trials"] == 12


def test_studies_do_not_overwrite_each_other_and_the_last_one_resumes(run, monkeypatch, tmp_path):
    stand_in(monkeypatch)
    assert study(run)[0] == study(run)[0] == 0
    folders = tmp_path / "lbmtune-studies"
    assert sorted(p.name for p in folders.iterdir()) == ["quick-cpu", "quick-cpu-2"]
    stand_in(monkeypatch)
    code, _, err = study(run, "--resume", "--trials", 15)
    assert code == 0
    assert "12 trials done before" in err
    assert len(read_study(folders / "quick-cpu-2").trials) == 15


@pytest.mark.parametrize("named", [("quick",), ()])
def test_the_command_that_began_a_study_resumes_it(run, monkeypatch, named):
    stand_in(monkeypatch)
    asked = ["--set", "storage=fp64", "--set", "case.viscosity=0.05", "--seed", 3, "--set", "threads=2", "--time", "9m"]
    command = ["study", *named, "--device", "cpu", *QUICK, "--trials", 5, *asked, "--output", "here"]
    assert run(*command)[0] == 0
    code, _, err = run(*command, "--resume")
    assert (code, "5 trials done before" in err) == (0, True), err
    code, _, err = run(*command, "--trials", 7, "--resume")
    assert (code, "trial 7/7" in err or "5 trials done before" in err) == (0, True), err


@pytest.mark.parametrize("name", ["d3q19-cavity", "quick", "d2q9-box"])
def test_a_study_that_is_read_takes_overrides_as_its_file_does(name):
    kept = load_study(name)
    assert overridden(kept, ["seed=1"]) == kept
    for override in ("case.reynolds=120", "storage=fp16s", "budget.time=7s", "case.domain=64x64"):
        if override != "case.domain=64x64" or name == "d2q9-box":
            assert overridden(kept, [override]) == load_study(name, [override])


def test_a_study_on_several_gpus_is_asked_for_and_resumed_by_all_of_them(run, monkeypatch):
    def at(stage, trial):
        if (stage, trial) == ("measure", 5):
            raise KeyboardInterrupt

    stand_in(monkeypatch, fake := FakeEvaluator("cuda", at=at))
    monkeypatch.setattr("lbmtune.api.machines.devices.available", lambda: ("0", "1", "cpu"))
    asked = []

    def evaluator(_case, device, *_, others=()):
        asked.append((device, *others))
        return fake

    monkeypatch.setattr("lbmtune.api.studies.run.Evaluator", evaluator)
    command = ["study", "quick", "--trials", 12, "--output", "here"]
    code, _, err = run(*command, "--devices", "1,0")
    assert code == 130
    assert err.splitlines()[-1].endswith("Go on with: lbmtune study --devices 1,0 --output here --resume")
    fake._at = lambda *_: None
    assert run("study", "--devices", "1,0", "--output", "here", "--resume", "--trials", 12)[0] == 0
    assert run("study", "quick", "--trials", 3, "--devices", "all")[0] == 0
    assert asked == [("1", "0"), ("1", "0"), ("0", "1")]
    code, _, err = run(*command, "--devices", "0,1", "--device", "0")
    assert (code, err.split(": ", 1)[1]) == (2, "--devices 0,1 does not go with --device 0; leave one of them out.\n")


def test_a_folder_is_enough_to_resume(run, monkeypatch):
    stand_in(monkeypatch)
    study(run, "--output", "here")
    fake = stand_in(monkeypatch)
    code, _, err = run("study", "--output", "here", "--resume", "--trials", 14)
    assert (code, len(fake.tried)) == (0, 2), err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_ends_with_how_to_go_on(run, monkeypatch, number):
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)]

    def at(stage, trial):
        if (stage, trial) == ("measure", 5):
            os.kill(os.getpid(), number)

    fake = stand_in(monkeypatch, FakeEvaluator("cpu", at=at))
    code, out, err = study(run, "--output", "here")
    assert (code, out) == (130, "")
    assert fake.closed
    assert "lbmtune study --device cpu --output here --resume" in err.splitlines()[-1]
    assert err.splitlines()[-2] == "the best kernel so far is in here/best.json"
    assert err.splitlines()[-3] == UNFINISHED
    best = read_best(Path("here/best.json"))
    assert (best.proven, best.finished) == (False, False)
    assert best.key == read_study(Path("here")).ranked[0].key
    stand_in(monkeypatch)
    assert run("study", "--device", "cpu", "--output", "here", "--resume")[0] == 0
    best = read_best(Path("here/best.json"))
    assert (best.proven, best.finished) == (True, True)
    assert [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)] == handlers


@pytest.mark.parametrize(("kind", "name"), [("t4", "t4.json"), ("csv", "trials.csv")])
def test_all_trials_of_a_study_are_exported(run, monkeypatch, kind, name):
    stand_in(monkeypatch)
    assert study(run, "--output", "here")[0] == 0
    assert run("export", "here", "--format", kind)[1] == f"wrote here/{name}\n"
    first = Path("here", name).read_bytes()
    told = json.loads(run("export", "here", "--format", kind, "-o", "mine", "--json")[1])
    assert (told["kind"], told["path"]) == (kind, "mine")
    assert Path("mine").read_bytes() == first
    assert "unknown format 'cude'; did you mean 'cuda'?" in run("export", "here", "--format", "cude")[2]
    assert "is a file of a study; give its folder, here." in run("export", "here/best.json")[2]
    code, out, err = run("export", "here", "--format", "xml")
    assert (code, out) == (2, "")
    assert re.search("unknown format 'xml'; choose one of best, bundle, .*, t4.", err)


def test_a_speed_that_is_not_reliable_is_exported_with_the_reason(run, monkeypatch):
    stand_in(monkeypatch)
    assert study(run, "--output", "here")[0] == 0
    lines = map(json.loads, Path("here/trials.jsonl").read_text().splitlines())
    busy = {"disturbed": True, "conditions": {"cpu_share": 0.4}}
    trials = [line | {"final": line["final"] and line["final"] | busy} for line in lines]
    Path("here/trials.jsonl").write_text("".join(f"{json.dumps(trial)}\n" for trial in trials))
    code, out, err = run("export", "here", "-o", "mine.json")
    (doubt,) = read_best(Path("mine.json")).expected.doubts
    assert doubt.startswith("other programs used the processor (CPU share 40 %): these speeds are too low")
    assert (code, out, err) == (0, "wrote mine.json\n", f"{doubt}\n")


def test_a_header_is_exported(run, tmp_path):
    study = str(ROOT / "studies/recorded/nvidia-h200/d3q19-box-fp32")
    path = str(tmp_path / "mine.h")
    assert run("export", study, "--format", "cuda", "--name", "mine", "-o", path)[1] == f"wrote {path}\n"
    assert "namespace mine {" in Path(path).read_text()
    told = json.loads(run("export", study, "--format", "cuda", "-o", path, "--json")[1])
    assert (told["kind"], told["path"]) == ("cuda", path)
    assert f"namespace d3q19_box_{api.Study(study).winner.key[:6]} {{" in Path(path).read_text()
    code, out, err = run("export", study, "--name", "mine")
    assert (code, out) == (2, "")
    assert "--name mine is not supported for format=best (use cuda)" in err


def test_a_header_of_a_cpu_kernel_is_refused(run, monkeypatch):
    stand_in(monkeypatch)
    assert study(run, "--output", "here")[0] == 0
    code, out, err = run("export", "here", "--format", "cuda")
    assert (code, out) == (2, "")
    assert "format=cuda is not supported for a kernel for target=cpu (use format=c, or a study on an NVIDIA GPU)" in err


def test_a_study_that_was_killed_is_exported_and_says_so(run, monkeypatch):
    """As one that a batch system ends at its limit, whenever that is."""
    stand_in(monkeypatch)
    assert study(run, "--output", "here")[0] == 0
    lines = Path("here/trials.jsonl").read_bytes().splitlines(keepends=True)[:6]
    Path("here/trials.jsonl").write_bytes(b"".join(lines))
    header = json.loads(Path("here/study.json").read_text())
    assert header["finished"]
    Path("here/study.json").write_text(json.dumps(header | {"finished": False}))
    code, out, err = run("export", "here", "-o", "mine.json")
    assert (code, out, err) == (0, "wrote mine.json\n", f"{UNFINISHED}\n")
    best = read_best(Path("mine.json"))
    assert (best.proven, best.finished) == (False, False)
    run("report", "here")
    assert f"Unfinished: {UNFINISHED}" in Path("here/report.html").read_text()
    # of a version that did not note its end
    Path("here/study.json").write_text(json.dumps({k: v for k, v in header.items() if k != "finished"}))
    run("export", "here", "-o", "mine.json")
    best = read_best(Path("mine.json"))
    assert (best.proven, best.finished) == (False, False)
    Path("here/trials.jsonl").write_bytes(b"")
    code, out, err = run("export", "here", "-o", "mine.json")
    assert (code, out) == (1, "")
    assert "holds no verified measurement; there is nothing to export" in err


def test_best_json_is_written_before_the_report(run, monkeypatch):
    stand_in(monkeypatch)
    monkeypatch.setattr(api.Study, "report", lambda *_: pytest.fail("no room"))
    with pytest.raises(BaseException, match="no room"):
        study(run, "--output", "here")
    assert read_best(Path("here/best.json")).finished


def test_a_hang_up_that_is_ignored_stays_ignored(run, monkeypatch):
    """As of a study begun with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stand_in(monkeypatch, FakeEvaluator("cpu", at=lambda *_: os.kill(os.getpid(), signal.SIGHUP)))
        assert study(run, "--output", "here")[0] == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_device_that_is_lost_ends_a_study_with_how_to_go_on(run, monkeypatch):
    def at(stage, number):
        if (stage, number) == ("measure", 5):
            raise DeviceUnavailableError("a worker could not start: it is gone.")

    stand_in(monkeypatch, FakeEvaluator("cpu", at=at))
    code, out, err = study(run, "--output", "here")
    assert (code, out) == (3, "")
    assert "lbmtune study --device cpu --output here --resume" in err.splitlines()[-2]
    assert err.splitlines()[-1] == "lbmtune: a worker could not start: it is gone."


def test_a_password_is_never_shown_nor_kept(run, monkeypatch, tmp_path):
    def at(stage, number):
        if stage == "measure":
            raise KeyboardInterrupt

    url, storage = (
        "postgresql://me:hush-hush@host/db?sslpassword=hush-hush",
        JournalStorage(Journal(tmp_path / "kept.log")),
    )
    monkeypatch.setattr("lbmtune.search.joint.ledger.RDBStorage", lambda _, **__: storage)
    stand_in(monkeypatch, FakeEvaluator("cpu", at=at))
    code, out, err = study(run, "--output", "here", "--storage", url)
    assert code == 130
    assert "--storage 'postgresql://me:***@host/db?sslpassword=***'" in err
    stand_in(monkeypatch)
    code, again, said = study(run, "--output", "here", "--storage", url, "--resume")
    assert code == 0
    assert "hush" not in out + err + again + said
    written = [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    assert {"study.json", "trials.jsonl", "report.html", "best.json"} <= {path.name for path in written}
    assert not any(b"hush" in path.read_bytes() for path in written)


def test_a_worker_helps_a_study_until_its_search_is_over(run, monkeypatch, tmp_path):
    url = f"sqlite:///{tmp_path / 'joint.db'}"
    asked = ("worker", "--study", "quick", "--storage", url, "--device", "cpu")
    fake = stand_in(monkeypatch)
    assert study(run, "--output", "here", "--storage", url)[0] == 0
    found = read_study(Path("here"))
    code, out, err = run(*asked, "--wait", "0.1s")
    assert (code, out) == (2, "")
    assert "the search of study 'quick " in err

    storage = open_storage(url)
    header = replace(found.header, date="2999-01-01", spec=replace(found.header.spec, budget=Budget(trials=5)))
    begin(storage, optuna_name(header), header)  # the latest of that name
    told = json.loads(run(*asked, "--json")[1])
    assert (told["format"], told["study"], told["trials"]) == ("lbmtune.worker", "quick", 5)
    with Ledger(storage, "quick", [from_flat(trial.config) for trial in found.trials]) as ledger:
        assert {trial.key for trial in ledger.results()} == set(fake.tried[-5:])

    assert "there is no study 'slow' in this storage (known: quick " in run(*asked[:2], "slow", *asked[3:])[2]
    for field, said in (
        ("device", "ranks Another, and this worker has Made-up 1"),
        ("driver", "with driver 'Another'"),
    ):
        header = replace(header, date=f"{field}", environment=replace(header.environment, **{field: "Another"}))
        begin(storage, f"unlike-{field} 1", header)
        code, _, err = run(*asked[:2], f"unlike-{field}", *asked[3:])
        assert code == 2
        assert said in err
        assert "speeds of unlike devices are not one ranking" in err
        header = found.header


def test_ctrl_c_before_the_first_trial_says_that_nothing_was_kept(run, monkeypatch, tmp_path):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    stand_in(monkeypatch)
    monkeypatch.setattr("lbmtune.api.machines.measured_machines.measured_machine", stopped)
    code, out, err = study(run, "--output", "here")
    assert (code, out) == (130, "")
    assert "nothing was kept" in err
    assert not (tmp_path / "here" / "study.json").exists()


@pytest.mark.parametrize(("kept", "said"), [(False, "nothing was kept"), (True, "--max-footprint 1GiB --resume")])
def test_ctrl_c_in_a_reproduction(run, monkeypatch, tmp_path, kept, said):
    def stopped(*_, **__):
        if kept:
            (tmp_path / "here").mkdir()
            (tmp_path / "here" / STORED).touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("lbmtune.api.measured_machine", stopped)
    code, out, err = run("reproduce", "--device", "cpu", "--output", "here")
    assert (code, out) == (130, "")
    assert said in err.splitlines()[-1]


@pytest.mark.parametrize("method", ["report", "export"])
def test_ctrl_c_while_files_are_written_says_how_to_go_on(run, monkeypatch, method):
    def stopped(*_):
        raise KeyboardInterrupt

    stand_in(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(lbmtune.Study, method, stopped)
        code, out, err = study(run, "--output", "here")
    assert (code, out) == (130, "")
    assert "lbmtune study --device cpu --output here --resume" in err.splitlines()[-1]
    assert study(run, "--output", "here", "--resume")[0] == 0


def test_a_study_without_a_valid_kernel_is_one_and_has_a_report(run, monkeypatch, tmp_path):
    stand_in(monkeypatch, FakeEvaluator("cpu", fails=Outcome.COMPILE_FAILED))
    code, _, err = study(run, "--output", "here")
    assert code == 1
    assert "12 compile failed" in err
    assert (tmp_path / "here" / "report.html").exists()
    assert not (tmp_path / "here" / "best.json").exists()


def test_footprint_as_objective(run, monkeypatch):
    stand_in(monkeypatch)
    facts = json.loads(study(run, "--objective", "footprint", "--json")[1])
    trials = read_study(__import__("pathlib").Path(facts["study"])).trials
    smallest = min(trial.prediction.footprint_bytes for trial in trials)
    assert facts["winner"]["prediction"]["footprint_bytes"] == smallest


def test_report_and_export_work_from_records_alone(run, monkeypatch, tmp_path):
    stand_in(monkeypatch)
    study(run, "--output", "lbmtune-studies/mine")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lbmtune-studies/mine/report.html").unlink()
    assert run("report", "mine")[:2] == (0, "wrote lbmtune-studies/mine/report.html\n")
    assert (tmp_path / "lbmtune-studies/mine/report.html").exists()
    told = json.loads(run("export", "mine", "-o", "b.json", "--json")[1])
    assert (told["kind"], told["path"]) == ("best", "b.json")
    assert (tmp_path / "b.json").exists()


def test_a_key_and_a_best_json_name_a_configuration(run, monkeypatch):
    stand_in(monkeypatch)
    facts = json.loads(study(run, "--json")[1])
    config = facts["winner"]["config"]
    by_key = json.loads(run("explain", facts["winner"]["key"], "--json")[1])
    by_file = json.loads(run("explain", facts["best"], "--json")[1])
    by_text = json.loads(run("explain", ",".join(f"{k}={v}" for k, v in config.items()), *QUICK, "--json")[1])
    assert by_key == by_file == {**by_text, "measured": by_file["measured"]}
    assert by_key["config"] == config
    # what was recorded of it is told; values that somebody gives have no record
    best = json.loads(Path(facts["best"]).read_text())
    assert by_file["measured"] == {"mlups": best["expected"]["mlups"], "device": best["environment"]["device"]}
    assert by_text["measured"] is None
    mlups = f"{best['expected']['mlups']:,.0f} MLUPS on {best['environment']['device']}, as recorded"
    assert mlups in run("explain", facts["best"])[1]
    assert "as recorded" not in run("explain", ",".join(f"{k}={v}" for k, v in config.items()), *QUICK)[1]


@pytest.mark.parametrize(("backend", "device"), [("cuda", "0"), ("cpu", "cpu")])
def test_a_study_begins_with_a_ceiling_of_this_day(run, monkeypatch, tmp_path, backend, device):
    stand_in(monkeypatch, FakeEvaluator(backend))
    asked = []

    def machine(_, **how):
        asked.append(how)
        return fake_machine(backend)

    monkeypatch.setattr("lbmtune.api.machines.measured_machines.measured_machine", machine)
    there = ("study", "--device", device, "--output", tmp_path / "kept")
    assert run(*there, *QUICK, "--trials", 3)[0] == 0
    assert run(*there, "--trials", 4, "--resume")[0] == 0
    how = {"refresh": False, "extent": "quick"}
    assert asked == [{**how, "max_age_s": 86400}, {**how, "max_age_s": None}]
    assert "ceiling measured" in (tmp_path / "kept" / "report.html").read_text()


def test_an_axis_is_varied_around_a_configuration(run, tmp_path):
    """Around one that is given, and around the best of a study, which is then the fastest of all values."""
    machine = str(ROOT / "studies" / "recorded" / "nvidia-h200" / "machine.toml")
    asked = ("predict", "scheme=aa,block=64x1x1", "--study", "d3q19-box", "--machine", machine, "--vary", "scheme")
    page = tmp_path / "folder" / "page.html"
    found = json.loads(run(*asked, "--json", "--output", str(page))[1])
    assert found["around"]["scheme"] == "aa"
    assert {"pull", "push", "aa"} <= {one["value"] for one in found["values"]}
    assert "swap-ordered" not in {one["value"] for one in found["values"]}
    alone = json.loads(
        run("predict", "scheme=push,block=64x1x1", "--study", "d3q19-box", "--machine", machine, "--json")[1]
    )
    push = next(one for one in found["values"] if one["value"] == "push")
    assert push["prediction"] == alone["prediction"]
    text = page.read_text()
    assert "partial sectors" in text
    assert 'src="http' not in text
    best = json.loads(
        run("predict", "quick", "--machine", machine, "--vary", "cells_per_thread", "--compile", "0", "--json")[1]
    )
    assert best["compiled"] is False
    speeds = {one["value"]: one["prediction"]["mlups"] for one in best["values"]}
    assert list(speeds) == sorted(speeds)
    assert speeds[best["around"]["cells_per_thread"]] == max(speeds.values())
    assert "block around" in run("predict", "quick", "--machine", machine, "--vary", "block", "--compile", "0")[1]
    code, _, err = run("predict", "quick", "--machine", machine, "--vary", "colour")
    assert code == 2
    assert "knob of cuda kernels 'colour'" in err


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (Outcome.WRONG_RESULT, "after 1 steps on 64x64x64."),
        (Outcome.MISCOMPILED, "after 1 steps on 64x64x64; assembled by ptxas -O1 the same text is right."),
    ],
)
def test_whose_fault_a_wrong_kernel_is(capsys, outcome, end):
    failed = replace(verification(), error=1.0, domains=((64, 64, 64),))
    reason = "f_1 is off by 1; the bound is 1e-07; assembled by ptxas -O1 the same text is right"
    trial = Trial(number=0, key="k", config={}, outcome=outcome, reason=reason, verification=failed)
    with pytest.raises(NothingValidError, match=rf"^{outcome}: error 1.00e\+00 of .* {end}$"):
        show_proofs({"key": "k"}, [trial], False)


def test_a_study_is_ranked_without_the_device(run, monkeypatch, tmp_path):
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    machine = str(ROOT / "studies" / "recorded" / "nvidia-h200" / "machine.toml")
    asked = ("predict", "quick", "--machine", machine, "--top", "3", "--compile", "2")
    facts = json.loads(run(*asked, "--json")[1])
    speeds = [entry["prediction"]["mlups"] for entry in facts["first"]]
    assert len(speeds) == 3
    assert speeds == sorted(speeds, reverse=True)
    assert facts["legal_configurations"] > 3
    assert facts["first"][0]["key"] in run(*asked)[1]
    one = json.loads(run("predict", "scheme=aa,block=64x1x1", "--machine", machine, "--json")[1])
    assert one["prediction"]["ceiling_source"] == "calibrated by micro-benchmarks"


def test_the_key_of_a_ranking_is_a_configuration_beside_its_study(run, monkeypatch, tmp_path):
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    where = ("--machine", "h200", *QUICK)
    *_, last = json.loads(run("predict", "quick", *where, "--top", "3", "--compile", "0", "--json")[1])["first"]
    for verb in ("explain", "predict"):
        found = json.loads(run(verb, last["key"], "--study", "quick", *where, "--json")[1])
        assert {name: found[name] for name in ("key", "config", "prediction")} == {
            name: last[name] for name in ("key", "config", "prediction")
        }
    varied = json.loads(run("predict", last["key"], "--study", "quick", *where, "--vary", "block", "--json")[1])
    assert varied["around"] == last["config"]
    assert "__global__" in run("render", last["key"], "--study", "quick", *QUICK)[1], "no device is needed"
    code, _, err = run("explain", last["key"], "--study", "quick", "--device", "cpu")
    assert (code, "a configuration for CUDA does not go with device cpu" in err) == (2, True)
    code, _, err = run("explain", "0123456789ab", "--study", "quick", *where)
    assert code == 2
    assert "quick is no folder of trials, and no ranking that is kept has the key 0123456789ab; lbmtune predict" in err


def test_the_key_of_a_ranking_stands_for_what_was_compiled_there(run, monkeypatch, tmp_path):
    """As the ranking itself has it; on a machine for which nothing was compiled it is estimated."""
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    ranking = ("predict", "quick", "--machine", "h200", *QUICK, "--top", "3", "--compile", "2", "--json")
    first, _, last = json.loads(run(*ranking)[1])["first"]
    assert (first["compiled"], last["compiled"]) == (True, False)
    asked = ("--study", "quick", *QUICK, "--machine")
    for verb in ("explain", "predict"):
        assert json.loads(run(verb, first["key"], *asked, "h200", "--json")[1])["prediction"] == first["prediction"]
        told = run(verb, first["key"], *asked, "h200")[1]
        assert re.search(r"^registers +\d+, nothing spilled: compiled for the ranking$", told, re.MULTILINE)
        for key, machine in ((last["key"], "h200"), (first["key"], "a100")):
            assert "estimated, since the kernel is not compiled here" in run(verb, key, *asked, machine)[1]
    assert run("explain", first["key"], "--study", "quick", "--set", "case.domain=7x7x7", "--machine", "h200")[0] == 0


def test_a_machine_that_cannot_be_read(run):
    code, _, err = run("predict", "scheme=aa", "--machine", "nowhere.toml")
    assert code == 2
    assert "cannot read nowhere.toml" in err


RECORDED = ROOT / "studies" / "recorded" / "nvidia-h200"


def test_a_named_machine_has_its_own_limits(run):
    """The kernel takes 57,536 bytes of shared memory, which not every device has."""
    best = str(RECORDED / "d3q27-box-fast-fp32" / "best.json")
    code, out, _ = run("predict", best, "--machine", "h200")
    assert code == 0
    assert re.search("^machine +NVIDIA H200$", out, re.MULTILINE)
    assert "exchanges" in out
    assert "__global__" in run("render", best, "--machine", "h200")[1]
    assert re.search("^legal +yes on NVIDIA H200$", run("explain", best, "--machine", "h200")[1], re.MULTILINE)
    said = "57,536 bytes of shared memory; a block of this device has 49,152"
    assert f"no on NVIDIA Tesla K20: {said}" in run("explain", best, "--machine", "k20")[1]
    for verb in ("predict", "render"):
        code, _, err = run(verb, best, "--machine", "k20")
        assert (code, f"illegal configuration on NVIDIA Tesla K20: {said}" in err) == (2, True)


def test_an_answer_for_another_machine_than_that_of_the_record_says_so(run):
    best = str(RECORDED / "d3q19-box-fp32" / "best.json")
    for verb in ("predict", "explain"):
        assert "recorded on" not in run(verb, best, "--machine", "h200")[2]
        err = run(verb, best, "--machine", "h100")[2]
        assert "this is for NVIDIA H100" in err
        assert "the kernel was recorded on another machine, NVIDIA H200." in err


def test_what_a_record_has_of_a_kernel_is_told_and_predicted_by(run, tmp_path):
    """Registers as compiled there; on another device, and of values that somebody gives, they are estimated."""
    folder = RECORDED / "d3q19-moments-fp32"
    best, machine = str(folder / "best.json"), str(RECORDED / "machine.toml")
    record = json.loads((folder / "best.json").read_text())
    worse = record | {"resources": record["resources"] | {"entries": {}, "local_bytes": 400, "spill_bytes": 900}}
    for verb in ("explain", "predict"):
        said = run(verb, best, "--machine", machine)[1]
        assert f"{record['resources']['registers']}, nothing spilled: compiled, as recorded" in said
        assert "estimated, since the kernel is not compiled here" in run(verb, best, "--machine", "h100")[1]
        (tmp_path / "worse.json").write_text(json.dumps(worse))
        given = verb, str(tmp_path / "worse.json"), "--machine", machine, "--json"
        slower = json.loads(run(*given)[1])["prediction"]["mlups"]
        assert slower < json.loads(run(verb, best, "--machine", machine, "--json")[1])["prediction"]["mlups"]


def test_processors_are_told_apart_in_what_is_said_of_a_record_and_of_a_footprint(run):
    folder = RECORDED.parent
    best = folder / "epyc-2-cores" / "d3q19-box-fast-fp32" / "best.json"
    machines = {name: folder / f"{name}-2-cores" / "machine.toml" for name in ("epyc", "xeon")}
    assert "recorded on" not in run("predict", best, "--machine", machines["epyc"])[2]
    err = run("predict", best, "--machine", machines["xeon"])[2]
    assert "the kernel was recorded on another machine, AMD EPYC (AMD EPYC, 2 cores)." in err
    cached = "A footprint of 24.05 MiB fits in the last cache (32 MiB)"
    for domain, fits in (("64x64x64", True), ("128x128x128", False)):
        asked = ("scheme=aa", "--set", f"case.domain={domain}", "--machine", machines["epyc"])
        assert (cached in run("predict", *asked)[2]) == fits


def test_threads_without_work_are_remarked_on(run):
    machine = RECORDED.parent / "xeon-2-cores" / "machine.toml"
    told = "1 of 2 threads has work: the parallel loop has 1 iteration on 64x64x1; parallel_loop=zy divides rows."
    for verb in ("explain", "predict"):
        for loop, remarked in (("z", True), ("zy", False)):
            config = f"scheme=aa,threads=2,parallel_loop={loop}"
            asked = (config, "--set", "case.lattice=d2q9", "--set", "case.domain=64x64", "--machine", machine)
            code, _, err = run(verb, *asked)
            assert (code, told in err) == (0, remarked)
            facts = json.loads(run(verb, *asked, "--json")[1])
            assert facts["remark"] == (told if remarked else "")


def test_a_measurement_tells_threads_without_work(run, monkeypatch):
    stand_in(monkeypatch)
    told = "1 of 2 threads has work: the parallel loop has 1 iteration on 64x64x1; parallel_loop=zy divides rows."
    plane = ("--device", "cpu", "--set", "case.lattice=d2q9", "--set", "case.domain=64x64")
    for loop, remark in (("z", told), ("zy", "")):
        code, out, err = run("measure", f"scheme=aa,threads=2,parallel_loop={loop}", *plane, "--json")
        assert (code, told in err) == (0, bool(remark))
        assert json.loads(out)["remark"] == remark


def test_what_was_recorded_stands_on_its_machine_where_no_device_is_here(run, monkeypatch):
    """By its file and by its key; a device that is named, or here, is asked itself."""
    stand_in(monkeypatch)
    folder = RECORDED / "d3q27-box-fast-fp32"
    best = str(folder / "best.json")
    key = json.loads(Path(best).read_text())["key"]
    by_file = json.loads(run("explain", best, "--json")[1])
    by_key = json.loads(run("explain", key, "--study", folder, "--json")[1])
    assert by_file == by_key
    assert (by_file["legal"], by_file["machine"], by_file["limits_of_device"]) == (True, "NVIDIA H200", True)
    expected = json.loads(run("predict", best, "--json")[1])
    assert expected["machine"] == "NVIDIA H200"
    assert expected["prediction"] == by_file["prediction"]
    assert "__global__" in run("render", best)[1]
    named = json.loads(run("explain", best, "--device", "0", "--json")[1])
    assert (named["legal"], named["machine"], named["prediction"]) == (False, None, None)
    stand_in(monkeypatch, FakeEvaluator("cuda"))
    here = json.loads(run("explain", best, "--json")[1])
    assert (here["machine"], here["limits_of_device"]) == (None, True)


def test_what_is_legal_is_listed_for_a_machine(run):
    """Of these two it is the newer one alone that begins a launch before the one before it has ended."""
    both = ("--set", "launch=call,dependent")
    facts = json.loads(run("list", *both, "--machine", "h200", "--json")[1])
    assert (facts["machine"], facts["limits_of_device"]) == ("NVIDIA H200", True)
    older = re.search(
        r"^(\d+) legal configurations on NVIDIA A100", run("list", *both, "--machine", "a100")[1], re.MULTILINE
    )
    assert 0 < int(older[1]) < facts["legal_configurations"]


def test_an_axis_is_varied_in_the_case_of_a_file(run):
    """That of the study only gives the values: the file's has another collision, with which alone it is legal."""
    best = str(RECORDED / "d3q27-box-fast-fp32" / "best.json")
    found = json.loads(run("predict", best, "--vary", "chunk_planes", "--study", "d3q27-box-fast", "--json")[1])
    alone = json.loads(run("predict", best, "--json")[1])
    assert {one["value"]: one["prediction"] for one in found["values"]}[192] == alone["prediction"]
    assert len(found["values"]) > 2
    assert [one["value"] for one in json.loads(run("predict", best, "--vary", "march", "--json")[1])["values"]] == [192]


@pytest.mark.parametrize("verb", ["explain", "render", "predict"])
def test_what_is_settled_takes_no_override_but_a_domain(run, verb):
    best = str(RECORDED / "d3q19-box-fp32" / "best.json")
    code, _, err = run(verb, best, "--set", "case.domain=256x64x64", "--set", "case.relaxation_rate=1.2")
    assert code == 2
    said = (
        f"--set case.relaxation_rate does not go with {best}, whose case is settled but for case.domain; leave it out."
    )
    assert said in " ".join(err.split())


def test_a_recorded_kernel_is_explained_on_another_domain(run):
    best = str(RECORDED / "d3q19-box-fp32" / "best.json")
    asked = ("explain", best, "--machine", "h200", "--json")
    found = {n: json.loads(run(*asked, "--set", f"case.domain={n}x64x64")[1]) for n in (256, 257)}
    assert found[256]["legal"]
    assert found[256]["measured"]["mlups"] is None
    assert found[257]["reason"] == "domain 257x64x64: nx=257 is not a multiple of cells_per_thread=2"
    assert json.loads(run(*asked)[1])["measured"]["mlups"] > 1000


def test_predictions_fit_a_narrow_terminal(run, monkeypatch, tmp_path):
    """Speed, what takes most of the time and the key stand together; each term of one prediction is a line's begin."""
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, color_system=None, highlight=False, soft_wrap=True)
    monkeypatch.setattr("lbmtune.cli.format.output.stdout", lambda: console)
    best = json.loads(run("predict", "quick", "--machine", "h200", "--top", "2", "--compile", "0", "--json")[1])["rows"]
    for asked in (
        ("quick", "--top", "2", "--compile", "0"),
        ("scheme=aa",),
        ("quick", "--vary", "scheme", "--compile", "0"),
    ):
        assert run("predict", *asked, "--machine", "h200")[0] == 0
    text = screen.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    for one in best:
        found = one["prediction"]
        first, second = (f"{term['name']} {term['seconds'] * 1e12:.3g} ps" for term in found["terms"][:2])
        assert re.search(rf"^ *{found['mlups']:,.0f}  {first}, {second} .*{one['key']}", text, re.MULTILINE)
    terms = json.loads(run("predict", "scheme=aa", "--machine", "h200", "--json")[1])["prediction"]["terms"]
    assert len(terms) > 3
    whole = sum(term["seconds"] for term in terms)
    for term in terms:
        figures = rf"{term['seconds'] * 1e12:.3g} +{term['seconds'] / whole:.1%} "
        assert re.search(rf"^{term['name']} +{figures}", text, re.MULTILINE)
    first = max(terms, key=lambda term: term["seconds"])
    assert f"expected limit          {first['name']}, {first['seconds'] / whole:.0%} of the time of an update" in text


def test_registers_of_a_kernel_that_is_not_compiled_are_told_as_estimated(run):
    """Of a GPU; processors have none to tell of."""
    told = re.compile(r"^registers +\d+, (nothing|\d+ bytes) spilled: estimated", re.MULTILINE)
    for verb in ("explain", "predict"):
        assert told.search(run(verb, "scheme=aa", "--machine", "h200")[1])
    cpu = ROOT / "studies" / "recorded" / "epyc-2-cores" / "machine.toml"
    code, text, _ = run("explain", "backend=cpu", "--study", "d3q19-box-fast", "--machine", str(cpu))
    assert code == 0
    assert "bandwidth" in text
    assert "registers" not in text


def test_a_source_of_a_bandwidth_stands_beside_it_and_not_beside_what_binds(run):
    """A kernel on chip is bound by what no copy measures."""
    asked = ("launch=resident,layout=rows,block=64x4x1,march=8", "--set", "case.domain=64x64x64", "--machine", "h200")
    found = json.loads(run("predict", *asked, "--json")[1])["prediction"]
    assert found["terms"][0]["name"] != "memory"
    rate = format_rate(found["bandwidth_bytes_per_s"])
    for verb in ("predict", "explain"):
        said = " ".join(run(verb, *asked)[1].split())
        assert f"bandwidth {rate} ({found['ceiling_source']})" in said
        assert said.count(found["ceiling_source"]) == 1


def test_a_study_is_ranked_by_its_name(run, monkeypatch, tmp_path):
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    out = json.loads(run("predict", "quick", "--machine", "v100", "--top", "2", "--compile", "0", "--json")[1])
    assert out["machine"] == "NVIDIA V100 SXM2 16 GB"
    assert len(out["first"]) == 2
    assert out["first"][0]["prediction"]["ceiling_source"].startswith("data sheet, not measured; curves of")
    code, _, err = run("predict", "quick", "--machine", "volta")
    assert code == 2
    assert "there is no machine 'volta'" in err


def test_plan_tells_what_fits_in_a_memory(run):
    code, out, _ = run("plan", "quick", "--memory", "80GiB", "--set", "case.domain=2048x1024x1024", "--devices", "2")
    assert code == 0
    assert out.startswith("2 devices of 80 GiB, fp32: largest domains, and devices needed for 2048x1024x1024\n")
    assert "in proportion" in out
    assert "MLUPS" not in out
    facts = json.loads(run("plan", "quick", "--machine", "k20", "--json")[1])
    assert facts["memory_bytes"] == 5 * 10**9
    first = facts["kernels"][0]
    assert {"family", "scheme", "storage", "bytes_per_cell", "largest_cube", "devices_needed", "parts"} < first.keys()
    assert first["mlups_per_device"] > 100
    assert run("plan", "quick", "--memory", "much")[0] == 2
    assert run("plan", "quick", "--memory", "1GiB", "--devices", "0")[0] == 2


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--target", "0.9"), lambda spec: spec.budget.target == Target(share=0.9)),
        (("--search-time", "20s"), lambda spec: spec.budget.search_seconds == 20.0),
        (("--time", "50s"), lambda spec: spec.budget.seconds == 50.0),
        (("--strategy", "random"), lambda spec: spec.strategy == "random"),
        (("--domain", "24x20x16"), lambda spec: spec.case.domain == (24, 20, 16) and spec.case.flow == "box"),
        (
            ("--domain", "48x40", "--lattice", "d2q9", "--collision", "trt", "--families", "direct"),
            lambda spec: (spec.case.lattice, spec.case.collision, spec.families) == ("d2q9", "trt", ("direct",)),
        ),
    ],
)
def test_options_of_a_study_are_keys_of_its_file(run, monkeypatch, options, found):
    asked = {}

    def refused(spec, *_, **how):
        asked.update(how, spec=spec)
        raise InputError("enough.")

    stand_in(monkeypatch)
    monkeypatch.setattr("lbmtune.api.study", refused)
    assert run("study", "--device", "cpu", *options, "--no-calibration")[0] == 2
    assert found(asked["spec"])
    assert asked["calibrate"] is False
    assert asked["begun_s"] <= time.monotonic()


def test_a_study_says_why_it_ended_and_who_is_first(run, monkeypatch):
    stand_in(monkeypatch)
    code, out, _ = study(run, "--output", "here", "--target", "0.1")
    assert code == 0
    (said,) = (line for line in out.splitlines() if line.startswith("search "))
    assert re.search(r"stopped after \d evaluations?: [\d.]+ % of the prediction reached$", said)
    facts = json.loads(study(run, "--output", "there", "--target", "0.1", "--json")[1])
    assert facts["stopped"] in said
    assert facts["left_out"] == []
    assert facts["stopped"] in Path("here/report.html").read_text()
    text = study(run, "--output", "whole")[1]
    assert any(line.startswith("finals ") and "at 95 %" in line for line in text.splitlines())
    assert "stopped after 12 evaluations: the limit of trials is reached" in text
