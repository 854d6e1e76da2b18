"""`verify` and `measure` with --devices and --parts: on one processor, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from lbmtune import Case, api
from lbmtune.api.several_devices.outcomes import Proof
from lbmtune.backend.ranks import Rank
from lbmtune.cli.format.several_devices.proofs import print_race, show_agreement
from lbmtune.decomposition.coupling import Coupling
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.parts.proof import Agreement
from lbmtune.measure.parts.race import Coupled
from tests.cli.conftest import Run

KERNEL = ("scheme=aa,threads=1", "--device", "cpu", "--set", "case.domain=32x24x20", "--set", "storage=fp64")


def test_parts_of_one_device_are_proved(run: Run) -> None:
    code, out, _ = run("verify", *KERNEL, "--parts", 2)
    assert code == 0
    assert re.search(r"^overlap=none +equal bit for bit$", out, re.MULTILINE)
    assert re.search(r"^transport=host,overlap=none +equal bit for bit$", out, re.MULTILINE)
    assert re.search(
        r"^transport=pack,overlap=none +refused: transport=pack is not supported for backend=cpu", out, re.M
    )


def test_one_coupling_as_json(run: Run) -> None:
    coupling = "transport=host,overlap=none"
    found = json.loads(run("verify", *KERNEL, "--parts", 3, "--cut", "y:3", "--coupling", coupling, "--json")[1])
    assert (found["cut"], found["passed"], found["refused"]) == ("y:3", True, [])
    (one,) = found["couplings"]
    assert (one["transport"], one["overlap"], one["different"], one["worst"]) == ("host", "none", 0.0, 0.0)


def test_parts_are_timed_beside_one_device() -> None:
    case = Case("box", "d3q19", "bgk", (32, 24, 20), 1.6)
    found = api.race_parts(case, "scheme=aa,threads=1", ["cpu", "cpu"], "z:2", "overlap=none", weak=True, repeats=3)
    assert found.case.domain == (32, 24, 40)
    facts = found.facts()
    (one,) = facts["couplings"]
    assert facts["sent_bytes"] == 2 * 5 * 32 * 24 * 4
    assert len(one["period_s"]) == 3
    assert one["mlups"] == pytest.approx(32 * 24 * 40 / sorted(one["period_s"])[1] / 1e6)
    assert one["predicted_period_s"] is None
    assert 0 < one["efficiency"] < 3


def test_refused_couplings_follow_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A message of more runs than copies may move is found when it is made."""
    case = Case("box", "d3q19", "bgk", (32, 24, 20), 1.6)
    found = api.race_parts(case, "scheme=aa,threads=1", ["cpu", "cpu"], "z:2", "overlap=none", repeats=3)
    refused = Coupled(coupling=Coupling("copy"), refused="too many runs.")
    raced = replace(found, times=replace(found.times, coupled=(refused, *found.times.coupled)))
    proof = Proof(cut="z:2", domain=(8, 8, 8), found={}, refused={})
    print_race(raced, "a kernel", proof)
    out = capsys.readouterr().out
    assert re.search(r"^overlap=none +\d", out, re.MULTILINE)
    assert re.search(r"^default +refused: too many runs[.]$", out, re.MULTILINE)
    assert raced.facts()["couplings"][0]["refused"] == "too many runs."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--cut", "z:2"), "--cut goes with --devices, --parts or --ranks; add one of them"),
        (("--coupling", "overlap=none"), "--coupling goes with --devices, --parts or --ranks"),
        (("--ranks", "--parts", 2), "--ranks does not go with --device; leave one of them out: each rank has a GPU"),
        (("--halo", 2), "--halo goes with --devices, --parts or --ranks"),
        (("--parts", 2, "--halo", 2), "depth=2 is not supported for scheme="),
        (("--parts", 2, "--coupling", "overlap=some"), "overlap=some is not supported for a decomposition (use none,"),
        (("--parts", 2, "--cut", "z:3"), "cut=z:3 is not supported for 2 parts"),
        (("--parts", 2, "--coupling", "overlap=edge-first"), "overlap=edge-first is not supported for family=direct"),
        (("--devices", "0,1"), "--devices 0,1 does not go with --device; leave one of them out"),
    ],
)
def test_refusals(run: Run, asked: tuple[object, ...], said: str) -> None:
    code, _, err = run("measure", *KERNEL, *asked)
    assert (code, len(err.splitlines())) == (2, 1)
    assert said in err


@pytest.mark.parametrize("verb", ["verify", "measure"])
def test_a_process_without_a_rank_is_told_how_to_get_one(run: Run, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = run(verb, "scheme=pull", "--study", "d3q19-box", "--ranks")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "this process has no rank: start one for each GPU with torchrun, mpirun or srun" in err


@pytest.mark.parametrize(("gpus", "device"), [(("0", "cpu"), "0"), (("0", "1", "2", "3", "cpu"), "3")])
def test_a_rank_takes_a_gpu_that_it_sees(
    run: Run, monkeypatch: pytest.MonkeyPatch, gpus: tuple[str, ...], device: str
) -> None:
    taken = []

    def proved(case: object, config: object, devices: tuple[str, ...], *_: object, rank: Rank, **__: object) -> None:
        taken.append((devices, rank))
        raise InputError("seen.")

    monkeypatch.setattr("lbmtune.backend.registry.available", lambda: gpus)
    monkeypatch.setattr(api, "prove_parts", proved)
    for name, value in (("RANK", "3"), ("WORLD_SIZE", "8"), ("LOCAL_RANK", "3")):
        monkeypatch.setenv(name, value)
    run("verify", "scheme=pull", "--study", "d3q19-box", "--ranks")
    ((devices, rank),) = taken
    assert devices == (device,) * 8
    assert (rank.number, rank.count, str(rank.local)) == (3, 8, device)


def test_the_first_rank_alone_prints(capsys: pytest.CaptureFixture[str]) -> None:
    agreed = Agreement(steps=4, different=0.0, worst=0.0, bound=1e-15)
    proof = Proof(cut="z:2", domain=(8, 8, 8), found={Coupling("nccl"): agreed}, refused={})
    show_agreement(proof, {}, as_json=False, quietly=True)
    assert not capsys.readouterr().out
    wrong = replace(proof, found={Coupling("nccl"): replace(agreed, worst=1.0)})
    with pytest.raises(NothingValidError, match="parts that exchange by transport=nccl have another state"):
        show_agreement(wrong, {}, as_json=False, quietly=True)


def test_equal_domains_need_parts_that_are_alike() -> None:
    case = Case("box", "d3q19", "bgk", (32, 24, 20), 1.6)
    with pytest.raises(InputError, match=r"cut=bisection:2 is not supported for equal domains \(leave --weak out\)"):
        api.race_parts(case, "scheme=aa,threads=1", ["cpu", "cpu"], "bisection:2", "overlap=none", weak=True)
