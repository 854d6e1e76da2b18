"""A voxel file on the command line: its share of fluid cells, and a study whose file has gone elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lbmtune import Case, Study, load, measure, predict, verify
from lbmtune.catalogue.problem.flows import porous
from lbmtune.catalogue.problem.geometries import voxelfile
from lbmtune.cli import main
from lbmtune.errors import InputError
from lbmtune.files.studyfile import as_spec
from lbmtune.records.best_json.document import encode_best, read_best
from tests.support.studies.fake_study import stand_in

Call = Callable[..., tuple[int, str, str]]
STUDY = """
name = "sample"
[case]
flow = "porous"
lattice = "d3q19"
domain = "16x10x8"
relaxation_rate = 1.2
geometry = "file:path=geo/c.npy"
[budget]
trials = 2
[[axes.cpu]]
scheme = ["aa", "pull"]
flags = ["memory"]
[[axes.cpu]]
family = "sparse"
"""
ROCK = np.random.default_rng(1).random((8, 10, 16)) < 0.25
MISSING = "No such file or directory; restore it, or name it with --geometry (load: geometry=)."


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command line; returns the exit code, what was printed and the last line on standard error."""
    stand_in(monkeypatch)

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err.splitlines()[-1] if err else ""

    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in a folder, and its voxel file, which was moved behind it. Nobody changes them."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "geo").mkdir()
    np.save(folder / "geo" / "c.npy", ROCK)
    np.save(folder / "other.npy", ~ROCK)
    (folder / "mine.toml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        stand_in(patch)
        with pytest.raises(SystemExit) as ended:
            main(["study", str(folder / "mine.toml"), "--device", "cpu", "--output", str(folder / "out")])
    assert not ended.value.code
    (folder / "geo" / "c.npy").rename(folder / "moved, 10:30.npy")
    voxelfile._sample.cache_clear()  # which remembers what this process has read
    return folder


def test_a_study_prints_the_fluid_cells(call: Call, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "out", tmp_path / "out")
    there = ("--geometry", made / "moved, 10:30.npy")
    code, out, _ = call("study", "--device", "cpu", "--output", tmp_path / "out", "--resume", *there)
    assert code == 0
    assert "fluid cells" in out
    assert "fluid cells" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("verb", ["explain", "predict"])
def test_a_verb_prints_the_fluid_cells_of_a_geometry_alone(verb: str, call: Call, made: Path) -> None:
    fluid = f"{int((~ROCK).sum())} of 1,280 ({100 * (~ROCK).mean():.1f} %)"
    of = ("--geometry", made / "moved, 10:30.npy", "--device", "cpu")
    code, out, _ = call(verb, made / "out" / "best.json", *of)
    assert code == 0
    assert f"fluid cells       {fluid}" in " ".join(out.split("\n")) or fluid in out
    facts = json.loads(call(verb, made / "out" / "best.json", "--json", *of)[1])
    assert facts["fluid_cells"] == int((~ROCK).sum())
    assert "fluid cells" not in call(verb, "scheme=aa", "--device", "cpu", "--set", "case.domain=64x64x64")[1]


VERBS = ["explain", "render", "predict", "verify", "measure", "accuracy", "profile"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_missing_file_is_bad_input_of_every_verb_and_may_be_named_again(verb: str, call: Call, made: Path) -> None:
    best = made / "out" / "best.json"
    code, out, said = call(verb, best, "--device", "cpu")
    assert (code, out) == (2, "")
    assert said == f"lbmtune: cannot read {made / 'geo' / 'c.npy'}: {MISSING}"
    code, out, said = call(verb, best, "--device", "cpu", "--geometry", made / "other.npy")
    assert (code, out) == (2, "")
    assert "other.npy has the digest" in said
    key = read_best(best).key
    assert call(verb, key, "--study", made / "out", "--device", "cpu")[::2] == (
        2,
        f"lbmtune: cannot read {made / 'geo' / 'c.npy'}: {MISSING}",
    )


@pytest.mark.parametrize("verb", ["explain", "render", "predict"])
def test_what_is_named_again_is_used(verb: str, call: Call, made: Path) -> None:
    there = ("--device", "cpu", "--geometry", made / "moved, 10:30.npy")
    best = read_best(made / "out" / "best.json")
    assert call(verb, made / "out" / "best.json", *there)[0] == 0
    assert call(verb, best.key, "--study", made / "out", *there)[0] == 0
    assert call(verb, "scheme=aa,flags=memory", "--study", made / "out", *there)[0] == 0


@pytest.mark.parametrize("asked", [("list", "--study"), ("rank",)])
def test_the_space_of_a_study_folder(asked: tuple[str, ...], call: Call, made: Path) -> None:
    code, _, said = call(*asked, made / "out", "--device", "cpu")
    assert code == 2
    assert said.endswith(MISSING)
    code, _, said = call(*asked, made / "out", "--device", "cpu", "--geometry", made / "moved, 10:30.npy")
    assert code == 0 or "the device has 0 B free" in said  # of the machine that stands in


def test_a_study_goes_on_with_its_file_elsewhere(call: Call, made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made / "out", tmp_path / "out"))
    again = ("study", "--device", "cpu", "--output", folder, "--resume")
    assert call(*again)[::2] == (2, f"lbmtune: cannot read {made / 'geo' / 'c.npy'}: {MISSING}")
    assert "has the digest" in call(*again, "--geometry", made / "other.npy")[2]
    more = ("--geometry", made / "moved, 10:30.npy", "--set", "budget.trials=3")
    assert call(*again, *more)[0] == 0
    found = Study(folder)
    assert len(found.record.trials) == 3
    assert f'path="{made}/moved, 10:30.npy"' in found.spec.case.geometry
    assert call(*again)[0] == 0  # the path of today is kept


@pytest.mark.parametrize("verb", ["report", "export"])
def test_report_and_export_read_the_file_only_if_they_need_it(
    verb: str, call: Call, made: Path, tmp_path: Path
) -> None:
    there = ("-o", tmp_path / "made", "--geometry", made / "moved, 10:30.npy")
    assert call(verb, made / "out", *there)[0] == 0
    assert (tmp_path / "made").is_file()
    assert "has the digest" in call(verb, made / "out", "-o", tmp_path / "x", "--geometry", made / "other.npy")[2]


def test_where_no_file_is_needed(call: Call, made: Path) -> None:
    wrong = ("--geometry", made / "other.npy", "--device", "cpu")
    said = call("explain", "scheme=aa", *wrong)[2]
    assert said.endswith("is not supported for this case (leave it out): it has no solid cells.")
    said = call("explain", "scheme=aa", "--study", "quick", *wrong)[2]
    assert said.startswith(
        f"lbmtune: --geometry {made / 'other.npy'} does not go with quick; say --set case.geometry=file:"
    )


def test_load_takes_the_path_and_refuses_what_does_not_fit(made: Path, tmp_path: Path) -> None:
    best = made / "out" / "best.json"
    with pytest.raises(InputError, match=r"cannot read .*c\.npy: No such file"):
        load(best)
    with pytest.raises(InputError, match=r"other\.npy has the digest"):
        load(best, geometry=made / "other.npy")
    for domain, said in (((32, 10, 8), "has 16x10x8 cells and does not fill the domain 32x10x8"),):
        with pytest.raises(InputError, match=said):
            load(best, geometry=made / "moved, 10:30.npy", domain=domain)
    whole = ROCK.copy()
    whole[:, :, :8] = True
    np.save(tmp_path / "half.npy", whole)
    half = as_spec(porous("d3q19", "bgk", (16, 10, 8), 1.2, f"file:path={tmp_path / 'half.npy'}")).case
    (tmp_path / "best.json").write_bytes(encode_best(replace(read_best(best), case=half)))
    with pytest.raises(InputError, match="leaves no fluid cell in the domain 8x10x8"):
        load(tmp_path / "best.json", domain=(8, 10, 8))


def test_cases_of_python_are_checked_and_identified_as_well(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((8, 10, 16)))
    np.save(tmp_path / "b.npy", ROCK)
    case: Case = porous("d3q19", "bgk", (16, 10, 8), 1.2, f"file:path={tmp_path / 'a.npy'}")
    for run in (predict, verify, measure):
        with pytest.raises(InputError, match="leaves no fluid cell"):
            run(case, "backend=cpu,scheme=aa,flags=memory")
    with pytest.raises(InputError, match="leaves no fluid cell"):
        as_spec(case)
    assert ":digest=" in as_spec(replace(case, geometry=f"file:path={tmp_path / 'b.npy'}")).case.geometry
