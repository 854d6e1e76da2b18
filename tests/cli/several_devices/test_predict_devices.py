"""`predict --devices`: weak and strong scaling by the model, without a device."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.support.paths import RECORDED, ROOT

KERNEL = ("predict", "scheme=pull,block=256x1x1", "--study", "d3q19-box")

TWO = ("--machine", "h100", "--devices", 2)


def points(run: Run, *arguments: object) -> list[dict[str, Any]]:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    found: list[dict[str, Any]] = json.loads(out)["scaling"]
    return found


def test_a_table_of_weak_and_strong_scaling(run: Run) -> None:
    code, out, err = run(*KERNEL, "--machine", "h200", "--devices", 8)
    assert (code, err) == (0, "")
    assert re.search(r"^links +NVLink 4, 18 links$", out, re.MULTILINE)
    assert re.search(r"^assumed +flag_s is that of H100, whose links are the same$", out, re.MULTILINE)
    assert re.search(r"^assumed +each device exchanges with all others .*switch", out, re.MULTILINE)
    weak, strong = (out.index(f"{kind} scaling") for kind in ("weak", "strong"))
    for part in (out[weak:strong], out[strong:]):
        assert re.findall(r"^ +(\d+)  \S+ +\d+x\d+x\d+ ", part, re.MULTILINE) == ["1", "2", "4", "8"]


def test_the_guide_shows_what_is_printed(run: Run) -> None:
    shown = (ROOT / "docs" / "guide" / "several-devices.md").read_text(encoding="utf-8")
    _, out, _ = run(*KERNEL, "--machine", "h200", "--devices", 8, "--set", "case.domain=512x512x512")
    rows = [line for line in out.splitlines() if re.match(r"^ +\d+  \S+ +512x512x", line)]
    assert len(rows) == 8
    assert [row for row in rows if f"\n    {row.rstrip()}\n" not in shown] == []


def test_what_was_measured_is_not_called_assumed(run: Run) -> None:
    out = run(*KERNEL, "--machine", "h100", "--devices", 2)[1]
    assert re.search(r"^measured +2 and 4 H100 SXM5 of one host", out, re.MULTILINE)
    assert "assumed" not in out


def test_weak_scaling_has_a_domain_for_each_device_and_strong_scaling_shares_one(run: Run) -> None:
    found = points(run, *KERNEL, "--machine", "h100", "--devices", 8)
    for one in found:
        cells = one["domain"][0] * one["domain"][1] * one["domain"][2]
        assert cells == 256**3 * (one["devices"] if one["kind"] == "weak" else 1)
        parts = ("own_cells_s", "edges_and_redundant_s", "exchange_shown_s")
        assert one["period_s"] == pytest.approx(sum(one[name] for name in parts))
        assert one["mlups"] == pytest.approx(cells * one["steps_between_exchanges"] / one["period_s"] / 1e6)
        assert one["efficiency"] <= 1
    alone = found[0]["mlups"]
    assert all(one["efficiency"] == pytest.approx(one["mlups"] / one["devices"] / alone) for one in found)
    weak, strong = ([one["efficiency"] for one in found if one["kind"] == kind] for kind in ("weak", "strong"))
    assert strong == sorted(strong, reverse=True)
    assert all(w >= s for w, s in zip(weak, strong, strict=True))


def test_the_faster_transport_is_taken(run: Run) -> None:
    """Planes of aosoa are thousands of runs, each a copy of its own."""
    rows = points(run, "predict", "scheme=pull,layout=aosoa,width=128,block=128x1x1", "--study", "d3q19-box", *TWO)
    assert {one["transport"] for one in rows if one["devices"] == 2} == {"pack"}
    assert all(one["efficiency"] > 0.9 for one in rows)


def test_launches_follow_the_recorded_speed_of_one_device(run: Run) -> None:
    best = str(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32" / "best.json")
    asked = ("predict", best, "--machine", "h200", "--devices", 2, "--weak")
    recorded = json.loads(Path(best).read_text(encoding="utf-8"))["expected"]["mlups"]
    found = json.loads(run(*asked, "--json")[1])
    alone, pair = found["scaling"]
    by_model = found["mlups_of_one_device_by_the_model"]
    assert found["mlups_of_one_device"] == recorded
    assert recorded != by_model
    assert alone["mlups"] == pytest.approx(recorded, rel=1e-3)
    assert (
        f"one device     {recorded:,.0f} MLUPS as recorded, which all else follows; by the model {by_model:,.0f}"
        in (run(*asked)[1])
    )
    other = json.loads(run(*asked, "--set", "case.domain=384x256x256", "--json")[1])
    assert other["mlups_of_one_device"] == other["mlups_of_one_device_by_the_model"], "not recorded on that domain"
    assert pair["efficiency"] == pytest.approx(pair["mlups"] / 2 / recorded)
    elsewhere = json.loads(run(*asked[:2], "--machine", "h100", *asked[4:], "--json")[1])
    assert elsewhere["mlups_of_one_device"] == elsewhere["mlups_of_one_device_by_the_model"], "of another card"


def test_one_kind_of_scaling(run: Run) -> None:
    both = points(run, *KERNEL, *TWO)
    for kind in ("weak", "strong"):
        assert points(run, *KERNEL, *TWO, f"--{kind}") == [one for one in both if one["kind"] == kind]
    assert points(run, *KERNEL, *TWO, "--weak", "--strong") == both
    code, _, err = run(*KERNEL, *TWO, "--cut", "bisection:2", "--weak")
    assert (code, err.count("\n")) == (2, 1)
    assert "--weak is not supported here (use --strong)" in err
    code, _, err = run(*KERNEL, "--machine", "h100", "--strong")
    assert (code, "--strong goes with --devices; add that." in err) == (2, True)


def test_a_given_cut_and_overlap(run: Run) -> None:
    found = points(run, *KERNEL, "--machine", "h100", "--devices", 4, "--cut", "1x2x2", "--overlap", "none")
    assert [(one["kind"], one["devices"], one["cut"]) for one in found] == [
        *(("weak", 1, "1x1x1"), ("weak", 4, "1x2x2"), ("strong", 1, "1x1x1"), ("strong", 4, "1x2x2"))
    ]
    assert {one["overlap"] for one in found} == {"none"}
    assert all(one["exchange_shown_s"] == one["exchange_s"] for one in found)


def test_the_faster_overlap_is_taken(run: Run) -> None:
    for domain in ("512x512x512", "256x64x64"):
        asked = (*KERNEL, "--set", f"case.domain={domain}", "--machine", "h100", "--devices", 2, "--cut", "z:2")
        ways = ((), *(("--overlap", name) for name in ("none", "edge-first", "edge-priority")))
        free, *fixed = (points(run, *asked, *how) for how in ways)
        for one, *others in zip(free, *fixed, strict=True):
            assert one["mlups"] == max(other["mlups"] for other in others)


def test_solid_cells_and_bisections_are_shared_alone(run: Run) -> None:
    sample = ("--study", "porous", "--set", "case.domain=96x96x96", "--set", "case.geometry=blocks:fraction=0.5:size=8")
    found = points(run, "predict", "family=sparse,block=64x1x1", *sample, "--machine", "h100", "--devices", 2)
    assert {one["kind"] for one in found} == {"strong"}
    halved = points(run, *KERNEL, "--machine", "h100", "--devices", 3, "--cut", "bisection")
    assert [(one["kind"], one["cut"]) for one in halved] == [("strong", "1x1x1"), ("strong", "bisection:3")]


def test_a_plane_is_cut_across_y(run: Run) -> None:
    asked = ("predict", "scheme=aa,block=256x1x1", "--study", "d2q9-box", "--machine", "h100", "--devices", 4)
    assert [one["cut"] for one in points(run, *asked)] == ["1x1x1", "y:2", "y:4"] * 2
    code, _, err = run(*asked, "--cut", "z:4")
    assert (code, err.count("\n")) == (2, 1)
    assert "d2q9 is two-dimensional" in err


def test_a_domain_that_one_device_cannot_hold(run: Run) -> None:
    asked = (*KERNEL, "--set", "case.domain=1024x1024x1024", "--machine", "h100", "--devices", 4)
    found = points(run, *asked)
    assert [(one["kind"], one["devices"]) for one in found] == [("strong", 2), ("strong", 4)]
    assert all(0 < one["efficiency"] <= 1 for one in found)
    assert re.search(r"^left out +weak, 1 devices: .*domain 1024x1024x1024 needs", run(*asked)[1], re.MULTILINE)


def test_a_recorded_kernel_of_several_steps(run: Run) -> None:
    best = RECORDED / "nvidia-h100" / "d3q19-box-fast-fp32" / "best.json"
    found = points(run, "predict", best, "--set", "case.domain=384x384x378", "--machine", "h100", "--devices", 2)
    assert {one["steps_between_exchanges"] for one in found} == {3}
    assert 0.9 < found[1]["efficiency"] < 1


def test_a_study_takes_the_first_kernel_that_runs_on_parts(run: Run, tmp_path: Path) -> None:
    study = tmp_path / "small.toml"
    study.write_text(
        "name = 'small'\n[case]\nflow = 'box'\nlattice = 'd3q19'\ncollision = 'bgk'\ndomain = '128x128x128'\n"
        "relaxation_rate = 1.6\n[axes.cuda]\nscheme = ['two-step', 'aa']\nblock = ['64x1x1', '128x1x1']\n"
    )
    code, out, _ = run("predict", study, "--machine", "h100", "--devices", 2, "--compile", 0, "--json")
    assert code == 0
    assert json.loads(out)["config"]["scheme"] == "aa"


def test_a_device_without_links_of_its_own_has_those_of_its_name(run: Run, tmp_path: Path) -> None:
    """As a description that `lbmtune devices` has measured anew."""
    text, links, _ = (RECORDED / "nvidia-h100" / "machine.toml").read_text().partition("\n[links]\n")
    assert links
    (tmp_path / "here.toml").write_text(text)
    asked = (*KERNEL, "--devices", 2)
    out = run(*asked, "--machine", "here.toml")[1]
    assert re.search(r"^assumed +links are those of another device of its name$", out, re.MULTILINE)
    assert points(run, *asked, "--machine", "here.toml") == points(run, *asked, "--machine", "h100")
    (tmp_path / "other.toml").write_text(text.replace('device = "NVIDIA H100 80GB HBM3"', 'device = "NVIDIA H800"'))
    code, _, err = run(*asked, "--machine", "other.toml")
    assert code == 2
    assert "nothing is known of its links." in err


def test_a_page_with_a_figure(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "scaling.html"
    code, _, err = run(*KERNEL, "--machine", "h100", "--devices", 4, "--output", page)
    assert code == 0
    assert err.endswith(f"page  {page}\n")
    text = page.read_text()
    assert all(name in text for name in ('"ideal"', '"weak"', '"strong"', "efficiency 100.0%"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*KERNEL, "--machine", "a100", "--devices", 2), "nothing is known of its links."),
        (("predict", "d3q19-box", "--machine", "v100", "--devices", 2), "nothing is known of its links."),
        ((*KERNEL, "--machine", "h100", "--devices", 0), "--devices 0 is not a whole number between 1 and 1024"),
        ((*KERNEL, "--machine", "h100", "--devices", 2, "--cut", "z:4"), "cut=z:4 is not supported for 2 parts"),
        ((*KERNEL, "--machine", "h100", "--devices", 2, "--overlap", "all"), "unknown overlap 'all'"),
        ((*KERNEL, "--machine", "h100", "--cut", "z:2"), "--cut z:2 goes with --devices; add that."),
        ((*KERNEL, "--machine", "h100", "--overlap", "none"), "--overlap none goes with --devices; add that."),
        ((*KERNEL, "--machine", "h100", "--devices", 2, "--vary", "block"), "leave --top and --vary out."),
        (("predict", "family=persistent", "--machine", "h100", "--devices", 2), "its state lies on chip."),
        (("predict", "scheme=two-step", "--machine", "h100", "--devices", 2), "it has passes within one."),
    ],
)
def test_what_cannot_be_predicted_is_said_in_one_sentence(run: Run, arguments: tuple[object, ...], said: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in err.splitlines()[-1]


def test_a_cut_that_serves_weak_scaling_alone(run: Run) -> None:
    asked = (*KERNEL, "--machine", "h100", "--devices", 512, "--cut", "z:512")
    assert [(one["kind"], one["devices"]) for one in points(run, *asked)] == [("weak", 1), ("weak", 512), ("strong", 1)]
    said = r"^left out +strong, 512 devices: cut=z:512 is not supported .*: it has more parts than planes$"
    assert re.search(said, run(*asked)[1], re.MULTILINE)


def test_one_device_needs_no_links(run: Run) -> None:
    found = points(run, *KERNEL, "--machine", "a100", "--devices", 1)
    assert [(one["kind"], one["efficiency"]) for one in found] == [("weak", 1.0), ("strong", 1.0)]
