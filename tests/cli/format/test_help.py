"""The help of the command line, completion, and what --quiet leaves out."""

import os
import re
import shlex
import subprocess
import sys

import pytest

import lbmtune
from lbmtune.cli import main
from lbmtune.cli.app import GROUPS, VERBS, verb
from lbmtune.cli.format.usage import UsageError
from tests.support.paths import ROOT
from tests.support.studies.fake_study import stand_in


def test_help_and_version_load_nothing_heavy():
    heavy = ("numpy", "sympy", "optuna", "plotly", "numba", "cupy", "pandas")
    code = f"""
import contextlib, sys
from lbmtune.cli import main
from lbmtune.cli.app import VERBS
for arguments in (["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)):
    with contextlib.suppress(SystemExit):
        main(arguments)
print([name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert f"lbmtune {lbmtune.__version__}" in done.stdout


def test_help_is_for_people(run, monkeypatch):
    """On 80 columns no summary of a verb is cut, and nothing is said in names of Python's types."""
    monkeypatch.setenv("COLUMNS", "80")
    listed = run("--help")[1].partition("Options:")[2].partition("\n\n")[2]
    verbs = re.findall(r"^  ([a-z]+)  +\S.*$", listed, re.MULTILINE)
    assert verbs == list(VERBS)
    assert re.findall(r"^(\S.*):$", listed, re.MULTILINE) == list(GROUPS)
    for name in ("", *verbs):
        text = run(*filter(None, [name]), "--help")[1]
        assert not re.search(r"<\w+|\bbool\b|\bTEXT\b|\.\.\.$", text.replace("block=256x1x1,...", "")), text
        assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"^  CONFIG  best.json, the key of a trial", run("verify", "--help")[1], re.MULTILINE)
    told = " ".join(run("study", "--help")[1].split())
    assert "--time TIME time of the whole, from the start to the last file: 90s, 5m, 1h" in told
    assert "--search-time TIME limit of the trials alone" in told
    assert re.search(r"^  --json +print the facts", run("verify", "--help")[1], re.MULTILINE)


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_has_help_with_examples_that_it_takes(run, name):
    """-h is as --help; each example is a command line of the verb, and is refused for a letter more."""
    _, text, _ = run(name, "-h")
    assert text == run(name, "--help")[1]
    examples = [shlex.split(line) for line in text.partition("\nExamples:\n")[2].splitlines()]
    assert examples
    for program, said, *arguments in examples:
        assert (program, said) == ("lbmtune", name)
        verb(name).make_context(name, list(arguments))
        with pytest.raises(UsageError):
            verb(name).make_context(name, [*arguments, "--no-such-option"])


def test_completion_knows_verbs_and_options_and_imports_no_verb_for_their_names(monkeypatch, capsys):
    monkeypatch.setenv("_LBMTUNE_COMPLETE", "complete_bash")
    monkeypatch.setattr("lbmtune.cli.app.verb", lambda name: pytest.fail(f"{name} is imported"))

    def completed_line(line):
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        with pytest.raises(SystemExit):
            main([])
        return capsys.readouterr().out.split()

    assert completed_line("lbmtune ") == list(VERBS)
    assert completed_line("lbmtune re") == ["render", "reproduce", "report"]
    monkeypatch.setattr("lbmtune.cli.app.verb", verb)
    assert completed_line("lbmtune rank --to") == ["--top"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("lbmtune verify sche", ["scheme="]),
        ("lbmtune verify scheme = esoteric-t", ["esoteric-twist"]),  # as Bash parts it
        ("lbmtune verify scheme = aa,cells_per_th", ["aa,cells_per_thread="]),
        ("lbmtune measure scheme = aa,cells_per_thread = ", ["1", "2", "4", "8"]),
        ("lbmtune vary cells_per_th", ["cells_per_thread"]),
        ("lbmtune study d3q19-box-fa", ["d3q19-box-fast"]),
        ("lbmtune study --families direct,temp", ["direct,temporal-blocking"]),
        ("lbmtune study --collision cum", ["cumulant"]),
        ("lbmtune study --set case.collis", ["case.collision="]),
        ("lbmtune rank box --machine h2", ["h200"]),
    ],
)
def test_values_are_completed(line, found, monkeypatch, capsys):
    monkeypatch.setenv("_LBMTUNE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit):
        main([])
    assert set(found) <= set(capsys.readouterr().out.split())
    assert os.environ["COMP_WORDS"] == line


def test_quiet_drops_remarks_and_keeps_results_and_errors(run, monkeypatch):
    stand_in(monkeypatch)
    monkeypatch.setattr("lbmtune.cli.verbs.predict.single_value", lambda *_, **__: "one value alone")
    told = ("vary", "scheme", "scheme=aa", "--device", "cpu")
    loud, quiet = run(*told), run(*told, "-q")
    assert loud[:2] == quiet[:2]
    assert ("one value alone" in loud[2], "one value alone" in quiet[2]) == (True, False)
    assert run("vary", "shceme", "-q")[2] != ""
    assert "one value alone" in run(*told)[2], "for that command alone"


def test_one_option_says_what_is_written_and_one_where_studies_are(run, tmp_path):
    """Former names still work, with a remark; --studies of all verbs is the folder that holds studies."""
    meant = {
        name: {"--output", "--studies"} & {one for param in verb(name).params for one in param.opts} for name in VERBS
    }
    both = {"--output", "--studies"}
    assert meant["report"] == meant["export"] == meant["predict"] == meant["vary"] == both
    assert meant["study"] == meant["reproduce"] == meant["profile"] == {"--output"}
    assert meant["explain"] == meant["verify"] == meant["render"] == {"--studies"}
    _, _, err = run("explain", "0123456789ab", "--out", tmp_path / "kept")
    assert "--out is called --studies now; the old name still works." in err
    assert f"no trial has the key 0123456789ab in {tmp_path / 'kept'}" in err
    for asked in (("--page", "p.pdf"), ("--page=p.pdf",), ("--output", "p.pdf"), ("-o", "p.pdf")):
        code, _, err = run("vary", "block", "--machine", "h200", *asked)
        assert (code, "--output p.pdf is not a page" in err) == (2, True)
    assert "unknown option --page of verify" in run("verify", "scheme=aa", "--page", "p.html")[2]


def test_a_new_folder_is_said(run, tmp_path):
    said = run(
        "export",
        ROOT / "studies" / "recorded" / "epyc-2-cores" / "d3q19-box-fast-fp32",
        "--format",
        "csv",
        "-o",
        "new/deep/t.csv",
    )
    assert said == (0, "wrote new/deep/t.csv\n", "new/deep is a new folder\n")
    assert run("report", "nowhere", "-o", "other/page.html")[0] == 2
    assert not (tmp_path / "other").exists(), "nothing is left of a check"
