"""`explain` with --parts and --cut: parts, faces and bytes of a domain on several devices, without a device."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from lbmtune import Case, api
from lbmtune.catalogue.config import parse_config
from lbmtune.errors import InputError
from tests.cli.conftest import Run


def test_a_study_is_cut_for_a_number_of_devices(run: Run) -> None:
    """All cuts are compared, and the parts of the one with the least redundant work are shown."""
    code, out, _ = run("explain", "d3q19-box", "--parts", 8)
    assert code == 0
    assert re.search(r"^cut +1x2x4, 8 parts$", out, re.MULTILINE)
    assert re.search(r"^halo +1 layer, up to 5 of 19 populations of a cell$", out, re.MULTILINE)
    assert re.search(r"^exchange +after each step, through 64 faces \(one way each\)$", out, re.MULTILINE)
    assert re.search(
        r"^ +7 +7 +0\.\.255 x 128\.\.255 x 192\.\.255 +256x128x64 +256x130x66 +2,097,152 ", out, re.MULTILINE
    )
    cuts = re.findall(r"^(\S+) +1\.000 +(\d\.\d\d)%", out, re.MULTILINE)
    assert cuts[0][0] == "1x2x4"
    assert {"z:8", "2x2x2"} < {name for name, _ in cuts}
    assert [float(share) for _, share in cuts] == sorted(float(share) for _, share in cuts)


def test_a_configuration_and_a_cut(run: Run) -> None:
    facts = json.loads(run("explain", "scheme=aa,block=64x1x1", "--study", "d3q19-box", "--cut", "z:2", "--json")[1])
    assert (facts["cut"], facts["halo_layers"], facts["steps_between_exchanges"]) == ("z:2", 1, 1)
    assert [part["extents"] for part in facts["parts"]] == [[256, 256, 128]] * 2
    assert [part["stored"] for part in facts["parts"]] == [[256, 256, 130]] * 2
    assert [face["bytes"] for face in facts["faces"]] == [5 * 256 * 256 * 4] * 4
    assert {len(face["values"]) for face in facts["faces"]} == {5}
    assert {tuple(face["image"]) for face in facts["faces"]} == {(0, 0, 0), (0, 0, 256), (0, 0, -256)}
    assert facts["exchange_bytes"] == sum(part["sent_bytes"] for part in facts["parts"])
    assert facts["cuts"] == []


def test_a_kernel_of_several_steps_sends_planes_of_moments(run: Run) -> None:
    kernel = "family=temporal-blocking,representation=moments,steps=3"
    out = run("explain", kernel, "--study", "d3q19-box-fast", "--cut", "z:2")[1]
    assert re.search(r"^halo +3 layers, all 10 values of a cell$", out, re.MULTILINE)
    assert re.search(r"^exchange +after 3 steps, through 4 faces", out, re.MULTILINE)
    assert re.search(r"^bytes per exchange +30 MiB, most of a part 15 MiB$", out, re.MULTILINE)


def test_the_imbalance_of_a_voxel_file(run: Run, tmp_path: Path) -> None:
    """Half of the sample is solid: equal slabs are not equal work, and a bisection finds the plane."""
    solid = np.zeros((48, 48, 48), np.uint8)
    solid[:24] = 1
    solid[0] = 0
    np.save(tmp_path / "half.npy", solid)
    sample = ("porous", "--set", "case.domain=48x48x48", "--set", "case.geometry=file:path=half.npy")
    equal, halved = (
        json.loads(run("explain", *sample, "--cut", cut, "--parts", 2, "--json")[1]) for cut in ("z:2", "bisection")
    )
    assert equal["imbalance"] == pytest.approx(2 * 24 / 25)
    assert halved["imbalance"] == pytest.approx(2 * 13 / 25)
    assert [part["first"] for part in halved["parts"]] == [[0, 0, 0], [0, 0, 35]]
    # through the planes at the face of the solid half nothing passes
    assert equal["exchange_bytes"] < halved["exchange_bytes"]
    table = run("explain", *sample, "--parts", 2)[1]
    assert re.search(r"^imbalance +1\.000 ", table, re.MULTILINE)  # across x
    assert re.search(r"^z:2 +1\.920 ", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("d3q19-box", "--cut", "z:300"), "cut=z:300 is not supported for domain 256x256x256 (use up to 256 along z)"),
        (("d3q19-box", "--cut", "z:3", "--parts", 2), "cut=z:3 is not supported for 2 parts"),
        (("d3q19-box", "--cut", "slabs"), "cut=slabs is not supported (use z:2 for slabs, 2x1x4 for boxes, or bis"),
        (("d3q19-box", "--parts", 0), "--parts 0 is not a whole number between 1 and 1024"),
        (("d3q19-box", "--cut", "bisection"), "cut=bisection is not supported"),
        (("family=persistent", "--cut", "z:2", "--device", 0), "family=persistent is not supported for several parts"),
    ],
)
def test_what_cannot_be_cut_is_said_in_one_sentence(run: Run, arguments: tuple[object, ...], said: str) -> None:
    code, out, err = run("explain", *arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert said in err
    assert "..;" not in err
    assert err.endswith(".\n")


def test_many_parts_are_shown_in_part(run: Run) -> None:
    out = run("explain", "d3q19-box", "--cut", "1x8x8")[1]
    assert "the 32 parts of 64 with the most fluid cells" in out


def test_from_python() -> None:
    case = Case("box", "d3q19", "bgk", (64, 64, 64), 1.6)
    found = api.decompose(case, parse_config("scheme=aa,block=64x1x1"), "bisection", 2)
    assert str(found.decomposition.cut) == "bisection:2"
    assert found.imbalance == 1
    assert found.redundant == pytest.approx(2 / 32)
    one = api.decompose(case, parse_config("scheme=aa,block=64x1x1"), parts=1)
    assert (one.exchange_bytes, one.redundant) == (0, 0)
    with pytest.raises(InputError, match="parts=None is not supported"):
        api.decompose(case, parse_config("scheme=aa"))
