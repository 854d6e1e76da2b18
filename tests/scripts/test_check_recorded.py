"""The check of recorded sets: what it passes, and all that it must notice."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from lbmtune.catalogue.config import KernelConfig, cuda, from_flat
from lbmtune.catalogue.families.rules import broken, cuda_limits
from lbmtune.catalogue.precision import STORAGES
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.claims.judge import verdicts
from lbmtune.claims.store import decoded
from lbmtune.codegen.render import render
from lbmtune.export import write_best
from lbmtune.files.claimsfile import load_documents
from lbmtune.measure.verification.accuracy import AFTER_STEPS
from lbmtune.records import Accuracy
from lbmtune.records.best_json.document import encode_best, read_best
from lbmtune.records.best_json.kernel import source_digest
from lbmtune.records.claims import Claim, Claims
from lbmtune.records.store import append_trial, read_study, write_header
from lbmtune.records.whole_files import HEADER, TRIALS
from tests.support.paths import ROOT
from tests.support.script_module import load
from tests.support.studies import made_up_records as made

SCRIPT = ROOT / "scripts" / "check_recorded.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    return load(SCRIPT)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A set as it is kept: below a folder of its device, its trials compressed."""
    study = made.cpu_study()
    case = study.header.spec.case
    trials = [replace(t, source_digest=render(case, from_flat(t.config)).digest) for t in study.trials]
    folder = tmp_path / "device" / "made-up-fp32"
    write_header(folder, study.header)
    for trial in trials:
        append_trial(folder, trial)
    path = folder / TRIALS
    (folder / f"{TRIALS}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    write_best(replace(study, trials=tuple(trials)), folder / "best.json")
    return folder


def test_a_set_that_is_up_to_date_passes(check: ModuleType, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(recorded.parents[1])]) == 0
    assert capsys.readouterr().out.endswith("1 recorded sets, 0 stale\n")


def test_the_page_says_of_each_set_how_many_were_verified_per_second_and_how_its_finals_went(
    check: ModuleType, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a figure that is not that of the trials is told, and set right."""
    folder = recorded.parents[1]
    page = folder / "README.md"
    page.write_text(
        f"Sets\n\n{check.SETS}| device/made-up-fp32 | 9 | 9 | 1 | 9.0 |\n\nFinals\n\n{check.FINALS}\nAfter\n"
    )
    assert check.main([str(folder)]) == 1
    study = read_study(recorded)
    row = check.row("device/made-up-fp32", study)
    assert f"its table lacks {row}" in capsys.readouterr().out
    assert check.main([str(folder), "--write"]) == 0
    assert page.read_text() == f"Sets\n\n{check.SETS}{row}\n\nFinals\n\n{check.FINALS}\nAfter\n"
    assert check.main([str(folder)]) == 0
    page.write_text(page.read_text().replace(row, f"{row}\n{row}"))
    assert check.main([str(folder)]) == 1
    assert "its table has other rows" in capsys.readouterr().out


def test_finals_are_told_by_family_with_their_share_of_the_winner(check: ModuleType) -> None:
    study = made.gpu_study()
    winner, second, *_ = [trial for trial in study.ranked if trial.final]
    assert winner.final
    assert second.final
    slower = replace(winner.final, mlups=second.final.mlups, samples_s=tuple(2 * s for s in winner.final.samples_s))
    on_chip = cuda.Persistent(representation="moments")
    led = replace(second, final=slower, config=on_chip.flat(), stands_for="recorded before families said where")
    trials = tuple(led if trial.number == second.number else trial for trial in study.trials)
    (line,) = check.finals("a/b", replace(study, trials=trials))
    assert line.startswith(f"| a/b | pull, moments on chip in two lattices | {second.final.mlups:,.0f} | 0.500 | ")
    assert check.finals("a/b", study) == []


def test_a_final_that_left_early_is_compared_by_the_rounds_of_both(check: ModuleType) -> None:
    study = made.gpu_study()
    winner, second, *_ = [trial for trial in study.ranked if trial.final]
    assert winner.final
    assert second.final
    rounds = len(winner.final.samples_s) // 2
    early = replace(second.final, samples_s=tuple(2 * s for s in winner.final.samples_s[:rounds]))
    led = replace(second, final=early, stands_for="the second kind")
    trials = tuple(led if trial.number == second.number else trial for trial in study.trials)
    (line,) = check.finals("a/b", replace(study, trials=trials))
    assert "| 0.500 |" in line


def test_a_row_holds_the_figures_of_the_trials(check: ModuleType) -> None:
    study = made.gpu_study()
    trials = tuple(replace(t, elapsed_s=0.5 * (n + 1)) for n, t in enumerate(study.trials))
    binaries = len({t.binary_digest for t in trials if t.mlups})
    pace = binaries / (0.5 * len(trials))
    row = check.row("a/b", replace(study, trials=trials))
    assert row == f"| a/b | {len(trials)} | {binaries} | {0.5 * len(trials):.0f} | {pace:.1f} |"


def test_no_set_at_all_fails_unless_that_is_allowed(check: ModuleType, tmp_path: Path) -> None:
    assert check.main([str(tmp_path)]) == 1
    assert check.main([str(tmp_path / "absent")]) == 1
    assert check.main([str(tmp_path), "--allow-none"]) == 0


def _other_digests(folder: Path) -> None:
    path = folder / f"{TRIALS}.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    text = "".join(json.dumps({**line, "source_digest": "0" * 64}) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()))


def _other_best(folder: Path) -> None:
    write_best(made.gpu_study(), folder / "best.json")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_other_digests, "recorded 000000000000, now"),
        (_other_best, "holds a kernel that is none of the set"),
        (lambda folder: (folder / "best.json").unlink(), "cannot read"),
        (lambda folder: (folder / "best.json").write_text("{}"), "is not a best.json"),
    ],
)
def test_what_is_stale_is_told(
    check: ModuleType,
    recorded: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
    said: str,
) -> None:
    assert (recorded / HEADER).exists()
    spoil(recorded)
    assert check.main([str(recorded.parents[1])]) == 1
    out = capsys.readouterr().out
    assert said in out
    assert out.endswith("1 recorded sets, 1 stale\n")


def test_the_kernel_of_one_step_of_the_best_one_is_looked_at_too(check: ModuleType, tmp_path: Path) -> None:
    """No digest of a trial is of its text. One that was verified and found wrong is left out, and may be."""
    study = made.gpu_study()
    case = replace(study.header.spec.case, collision="regularised", domain=(96, 96, 96))
    config = cuda.TemporalBlocking(chunk_planes=1, plane_fetch="none", representation="moments")
    assert broken(case, config, cuda_limits("sm_90", 132, 2**36)) is None
    program = render(case, config)
    trial = replace(study.ranked[0], config=config.flat(), key=config.key, source_digest=program.digest)
    header = replace(study.header, spec=replace(study.header.spec, case=case))
    study = replace(study, header=header, trials=(trial,))
    path = tmp_path / "best.json"
    write_best(study, path)
    assert check.stale_best(study, tmp_path) == []
    found = read_best(path)
    assert found.kernel.single
    other = replace(found.kernel.single, source=f"{found.kernel.single.source}\nint other;\n")
    other = replace(other, source_digest=source_digest(other, "cuda"))
    stale = ["best.json: of its kernel single would be written otherwise now"]
    for single in (other, None):
        path.write_bytes(encode_best(replace(found, kernel=replace(found.kernel, single=single))))
        assert check.stale_best(study, tmp_path) == stale
    assert trial.verification
    wrong = replace(trial.verification, single=replace(trial.verification, error=1.0, bound=0.5))
    assert check.stale_best(replace(study, trials=(replace(trial, verification=wrong),)), tmp_path) == []


def test_recorded_claims_are_judged_as_they_would_be_now() -> None:
    """By the documents that they were measured for: rows of another question would not answer today's."""
    path = SCRIPT.parent.parent / "studies" / "recorded" / "nvidia-h200" / "claims-2026-11-23.json.gz"
    found = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Claims)
    assert {document.name for document in found.documents} == {document.name for document in load_documents(())}
    rates = found.header.rates
    now = [v for one in found.documents for v in verdicts(one, found.groups, found.header.backend, rates)]
    assert now == list(found.verdicts)


RECORDED = SCRIPT.parent.parent / "studies" / "recorded" / "nvidia-h200" / "claims-2026-11-23.json.gz"


@pytest.fixture(scope="module")
def tran() -> Claims:
    """What is recorded of one document."""
    found = decoded(gzip.decompress(RECORDED.read_bytes()), RECORDED)
    return replace(
        found,
        documents=tuple(one for one in found.documents if one.name == "tran2017"),
        groups=tuple(one for one in found.groups if one.document == "tran2017"),
        verdicts=tuple(one for one in found.verdicts if one.document == "tran2017"),
    )


def _other_source(found: Claims) -> Claims:
    first, *rest = found.groups
    trial = first.rows[-1].trial
    assert trial
    row = replace(first.rows[-1], trial=replace(trial, source_digest="0" * 64))
    return replace(found, groups=(replace(first, rows=(*first.rows[:-1], row)), *rest))


def _without_a_variant(found: Claims) -> Claims:
    first, *rest = found.groups
    rows = tuple(row for row in first.rows if row.variant != "aos")
    return replace(found, groups=(replace(first, rows=rows), *rest))


def _another_document(found: Claims) -> Claims:
    return replace(found, documents=(replace(found.documents[0], title="another"),))


def _other_verdict(found: Claims) -> Claims:
    return replace(found, verdicts=tuple(replace(v, reason="for no reason") for v in found.verdicts))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_other_source, "recorded 000000000000, now"),
        (_without_a_variant, "tran2017.aos (cavity, 64x64x64): this is not in the record"),
        (lambda found: replace(found, groups=found.groups[:-1]), "(branches, 256x256x256): this is not in the record"),
        (_another_document, "tran2017: the document has changed since"),
        (lambda found: replace(found, documents=()), "tran2017: this document is not in the record"),
        (_other_verdict, "tran2017.tiling: now does not hold, measured"),
    ],
)
def test_what_is_stale_of_claims_is_told(
    check: ModuleType, tran: Claims, spoil: Callable[[Claims], Claims], said: str
) -> None:
    shipped = {document.name: document for document in tran.documents}
    assert check.stale_claims(tran, shipped) == []
    assert any(said in line for line in check.stale_claims(spoil(tran), shipped))


def test_an_accuracy_that_is_asked_for_and_not_recorded_is_told(check: ModuleType, tran: Claims) -> None:
    document = tran.documents[0]
    error = Claim(name="error", sentence="s", kind="density-error", of=("aos",), velocities=(0.1,), at_least=1.0)
    asking = replace(document, claims=(*document.claims, error))
    (line,) = [one for one in check.stale_claims(tran, {"tran2017": asking}) if "accuracy" in one]
    assert line == "tran2017.aos (cavity, 256x256x256): its accuracy is not in the record"


def test_recorded_claims_are_checked_with_the_sets(
    check: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "claims.json.gz").write_bytes(gzip.compress(b'{"header": {}}'))
    assert check.main([str(tmp_path), "--allow-none"]) == 1
    assert "claims.json.gz: STALE" in capsys.readouterr().out


def test_dated_claims_are_checked_by_the_documents_that_they_hold(
    check: ModuleType, tran: Claims, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "claims-2026-11-23.json.gz"
    path.write_bytes(gzip.compress(msgspec.json.encode(tran)))
    assert check.main([str(tmp_path), "--allow-none"]) == 0
    assert "claims-2026-11-23.json.gz: " in capsys.readouterr().out
    path.write_bytes(gzip.compress(msgspec.json.encode(_other_source(tran))))
    assert check.main([str(tmp_path), "--allow-none"]) == 1
    assert "recorded 000000000000, now" in capsys.readouterr().out
    path.rename(tmp_path / "claims.json.gz")
    assert check.main([str(tmp_path), "--allow-none"]) == 1
    assert "tran2017: the document has changed since" in capsys.readouterr().out


def test_the_accuracy_of_every_storage_format_is_recorded() -> None:
    recorded = json.loads((SCRIPT.parent.parent / "studies/recorded/accuracy.json").read_text())
    assert recorded["environment"]["device"]
    assert [one["config"]["storage"] for one in recorded["found"]] == list(STORAGES)
    accuracies = [msgspec.convert(one["accuracy"], Accuracy) for one in recorded["found"]]
    for accuracy, one in zip(accuracies, recorded["found"], strict=True):
        assert accuracy.after
        assert accuracy.after.steps == AFTER_STEPS
        assert accuracy.storage == one["config"]["storage"]
    order = ("fp64", "fp32", "fp16c", "fp16s", "bf16")
    errors = {accuracy.storage: accuracy.after.velocity for accuracy in accuracies if accuracy.after}
    assert sorted(errors, key=lambda storage: errors[storage] or 1.0) == list(order)


KEPT = SCRIPT.parent.parent / "studies/recorded"
ON_GPUS = sorted(KEPT.glob("*/accuracy-*.json"))


@pytest.mark.parametrize(
    "path",
    [
        KEPT / "accuracy.json",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ON_GPUS),
    ],
    ids=str,
)
def test_a_recorded_accuracy_is_of_the_kernels_of_now(path: Path) -> None:
    for one in json.loads(path.read_text())["found"]:
        case = box(one["accuracy"]["lattice"], one["accuracy"]["collision"], tuple(one["accuracy"]["domain"]))
        assert render(case, from_flat(one["config"])).digest == one["source_digest"], one["key"]


ELSEWHERE = ("persistent", "face-exchange")
"""Families that round elsewhere than in launches of one to four steps."""


def test_the_page_has_the_accuracies_of_kernels_on_chip_and_of_tiles_with_faces() -> None:
    columns = (
        ("populations", "direct"),
        ("populations", "persistent"),
        ("moments", "temporal-blocking"),
        ("moments", "face-exchange"),
        ("moments", "persistent"),
    )
    errors = {}
    for one in json.loads((KEPT / "nvidia-h200" / "accuracy-regularised.json").read_text())["found"]:
        found = msgspec.convert(one["accuracy"], Accuracy)
        assert found.after
        if found.steps > 1:
            continue
        errors[found.storage, found.representation, one["config"]["family"]] = found.after.velocity
    page = (KEPT.parent.parent / "docs" / "lab" / "moments.md").read_text().partition("| moments on chip |\n")[2]
    for storage in ("fp64", "fp32", "fp16c", "fp16s", "bf16"):
        found = [errors.get((storage, *one)) for one in columns]
        cells = ["-" if e is None else f"{e:.1e}".replace("e-0", "e-") if e else "0" for e in found]
        assert f"| {storage} | {' | '.join(cells)} |\n" in page


def test_the_accuracy_of_moments_and_of_several_steps_is_recorded() -> None:
    """Each format of what a cell keeps, with one to four steps per launch, on the same cells.

    And what rounds elsewhere, by the faces of tiles or on chip.
    """
    errors, apart = {}, set()
    for path in ON_GPUS:
        for one in json.loads(path.read_text())["found"]:
            found = msgspec.convert(one["accuracy"], Accuracy)
            assert found.domain == (64, 64, 4)
            assert found.after
            assert AFTER_STEPS <= found.after.steps < AFTER_STEPS + found.steps
            if (family := one["config"]["family"]) in ELSEWHERE:
                apart.add((found.collision, found.representation, found.storage, family))
                continue
            errors[found.collision, found.representation, found.storage, found.steps] = found.after.velocity
    of_moments = [("regularised", "moments", storage) for storage in STORAGES if storage != "fp16c"]
    of_populations = [("regularised", "populations", storage) for storage in STORAGES]
    of_bgk = [("bgk", "populations", storage, steps) for storage in STORAGES for steps in (1, 2, 3)]
    assert errors.keys() == {*((*one, n) for one in of_moments + of_populations for n in (1, 2, 3, 4)), *of_bgk}
    on_chip, by_faces = ELSEWHERE
    populations = [*of_populations, *(("bgk", "populations", storage) for storage in STORAGES)]
    everything = {*((*one, on_chip) for one in of_moments + populations), *((*one, by_faces) for one in of_moments)}
    assert apart == everything


IN_TURNS = r"^\| (\d+)\^3 \| (\w+) \| `([^`]+)` \| ([\d,]+) \| ([\d,]+): "


def test_kernels_measured_in_turns_are_those_of_now_and_as_the_page_says() -> None:
    found = {}
    for group in json.loads((KEPT / "nvidia-h200" / "turns.json").read_text())["groups"]:
        case, trials = msgspec.convert(group["case"], Case), [kernel["trial"] for kernel in group["kernels"]]
        for trial in trials:
            config = from_flat(trial["config"])
            assert render(case, config).digest == trial["source_digest"], trial["key"]
            speeds = [f"{one['final']['mlups']:,.0f}" for one in (trial, trials[0])]
            on_chip = config.family == "persistent" and config.of_moments
            found[str(case.domain[0]), config.storage, on_chip] = (config.flat(), speeds)
    page = (KEPT.parent.parent / "docs" / "lab" / "small-domains.md").read_text().partition("turns.json")[2]
    rows = re.findall(IN_TURNS, page.partition("\n\nPopulations stay")[0], re.MULTILINE)
    single = [(edge, "fp32") for edge in ("32", "48", "64", "80", "96")]
    assert sorted((edge, storage) for edge, storage, *_ in rows) == sorted(
        [*single, ("64", "fp16s"), ("96", "fp16s"), ("96", "bf16")]
    )
    for edge, storage, shape, *speeds in rows:
        flat, measured = found[edge, storage, True]
        assert speeds == measured
        assert (
            dict(item.split("=") for item in shape.split(",")).items() <= {k: str(v) for k, v in flat.items()}.items()
        )


def _shape(config: KernelConfig) -> str:
    """What a thread and a block do, as far as it is not the smallest."""
    smallest, flat = {"cells_per_thread": 1, "pack": 1, "rows": 1, "warp_sync": "block"}, config.flat()
    names = [name for name, value in smallest.items() if flat.get(name, value) != value]
    return ",".join(f"{name}={flat[name]}" for name in ["block", *names])


def test_the_fastest_kernels_of_large_domains_are_those_of_now_and_as_the_page_says() -> None:
    rows = []
    for group in json.loads((KEPT / "nvidia-h200" / "fastest.json").read_text())["groups"]:
        case = msgspec.convert(group["case"], Case)
        for trial in (kernel["trial"] for kernel in group["kernels"]):
            config = from_flat(trial["config"])
            assert render(case, config).digest == trial["source_digest"], trial["key"]
            assert trial["outcome"] == "ok"
            what = f"{case.lattice} {case.collision} {case.domain[0]}^3 | {config.kept.name} {config.storage}"
            rows.append(f"| {what} | {config.fused_steps} | `{_shape(config)}` | {trial['final']['mlups']:,.0f} |")
    assert len({row.rpartition(" | ")[0] for row in rows}) == len(rows), "each row is told from all others"
    page = (KEPT.parent.parent / "docs" / "lab" / "moments.md").read_text().partition("fastest.json")[2]
    table = [line for line in page.splitlines() if line.startswith(("| d3q19 ", "| d3q27 "))]
    assert table == rows
