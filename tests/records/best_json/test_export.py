"""best.json: its content, its schema, what a reader refuses, and the flow that runs from it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import lbmtune
from lbmtune.backend.protocol import OR_CPU
from lbmtune.catalogue.config import CpuConfig, CudaConfig, cpu, cuda, from_flat
from lbmtune.catalogue.layouts import AoS, AoSoA, SoA
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, channel, initial_flow, porous
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.catalogue.storage_frame import Domain
from lbmtune.codegen.describe import describe_storage, launch_geometry
from lbmtune.codegen.render import render
from lbmtune.errors import DeviceUnavailableError, InputError, NothingValidError
from lbmtune.export import best, read_best, write_best
from lbmtune.export.cuda_header import cuda_header
from lbmtune.measure.verification import oracle
from lbmtune.records import Conditions
from lbmtune.records.best_json.document import BEST_VERSION, SCHEMA, encode_best, schema
from lbmtune.records.best_json.kernel import source_digest
from lbmtune.records.remarks import disturbance, race_text
from lbmtune.records.study import StudyRecord
from lbmtune.runtime import load as loading
from lbmtune.runtime.placement import PopulationPlaces
from tests.support.paths import ROOT
from tests.support.studies import made_up_records as made

Change = Callable[[dict[str, Any]], object]


def cpu_record(case: Case, config: CpuConfig) -> StudyRecord:
    """A study of one trial, made for this machine as far as it matters."""
    study = made.cpu_study()
    winner = study.ranked[0]
    program = render(case, config)
    trial = replace(winner, config=config.flat(), key=config.key, source_digest=program.digest, final=None)
    header = replace(study.header, spec=replace(study.header.spec, case=case))
    return replace(study, header=header, trials=(trial,))


CPU = cpu.Direct(compute="fp64", scheme="aa", storage="fp64", vector_bits=0)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_best(made.gpu_study(), tmp_path / "best.json")
    return tmp_path / "best.json"


def test_best_holds_the_winner(written: Path) -> None:
    study = made.gpu_study()
    found, winner = read_best(written), study.ranked[0]
    assert found.config == from_flat(winner.config)
    assert found.case == study.header.spec.case
    assert found.expected.mlups == winner.mlups
    assert found.expected.share_of_ceiling == pytest.approx(winner.mlups * 152e6 / 4.2e12)
    assert found.kernel.source == render(found.case, found.config).source
    assert found.verification == winner.verification
    assert [a.key for a in found.alternates] == [t.key for t in study.ranked[1:21]]
    assert [a.proven for a in found.alternates] == [t.proven for t in study.ranked[1:21]]
    assert found.environment.device == "NVIDIA H200"
    assert found == best(study)


def test_what_a_study_says_of_its_reliability_is_in_the_file(tmp_path: Path) -> None:
    """Why its speed is not reliable, and why its ceiling is not; nothing where nothing is said."""
    study = made.gpu_study()
    calm = best(study)
    assert (calm.expected.doubts, calm.ceiling_doubt) == ((), "")
    winner = study.ranked[0]
    assert winner.final is not None
    busy = replace(winner, final=replace(winner.final, disturbed=True, conditions=Conditions(cpu_share=0.4)))
    ceiling = replace(study.header.ceiling, cpu_share=0.3)
    header = replace(study.header, ceiling=ceiling)
    loud = replace(study, header=header, trials=tuple(busy if t is winner else t for t in study.trials))
    write_best(loud, tmp_path / "best.json")
    found = read_best(tmp_path / "best.json")
    (doubt,) = found.expected.doubts
    assert doubt.startswith("other programs used the processor (CPU share 40 %): these speeds are too low")
    assert doubt == disturbance(loud)
    speed = f"{found.expected.mlups:,.0f} MLUPS on NVIDIA H200, "
    for one, said in ((calm, ""), (found, ", not reliable")):
        assert re.search(rf"{re.escape(speed)}\S+ cells{said}\.\n", cuda_header(one, "made", "made.h"))
    assert found.ceiling_doubt.startswith("other programs left 30% of the processor when its bandwidths were measured")
    values = json.loads((tmp_path / "best.json").read_text())
    del values["expected"]["doubts"], values["ceiling_doubt"], values["left_out"]  # as files of before
    (tmp_path / "before.json").write_text(json.dumps(values))
    before = read_best(tmp_path / "before.json")
    assert before == replace(found, ceiling_doubt="", expected=replace(found.expected, doubts=()))


def test_a_study_without_finals_says_so_in_its_file() -> None:
    study = made.gpu_study()
    reason = "finals of 3 kernels: killed by SIGKILL"
    header = replace(study.header, stopped="the limit of trials is reached", finished=True, left_out=(reason,))
    header = replace(header, no_finals="killed by SIGKILL")
    trials = tuple(replace(trial, final=None) for trial in study.trials)
    assert best(replace(study, header=header, trials=trials)).expected.doubts == (
        "finals: none were held (killed by SIGKILL): the ranking is that of first measurements.",
    )
    raced = best(replace(study, header=header))
    assert "held" not in " ".join(raced.expected.doubts)
    assert raced.left_out == (reason,)


def test_why_finals_are_missing_is_read_of_studies_of_all_times() -> None:
    """The reason is a field of its own; early records have it in what was left out."""
    early = made.gpu_study()
    header = replace(early.header, stopped="the limit of trials is reached", finished=True, left_out=("finals: late",))
    trials = tuple(replace(trial, final=None) for trial in early.trials)
    assert "none were held (finals: late):" in race_text(replace(early, header=header, trials=trials))
    today = replace(header, left_out=("finals of 3 kernels: late: 2 s; and so on",), no_finals="late: 2 s; and so on")
    assert "none were held (late: 2 s; and so on):" in race_text(replace(early, header=today, trials=trials))


@pytest.mark.parametrize(
    ("storage", "widths"), [("fp16s", (5, 10)), ("fp16c", (4, 11)), ("bf16", (8, 7)), ("fp32", None)]
)
def test_codes_of_sixteen_bits_are_told(storage: str, widths: tuple[int, int] | None) -> None:
    program = render(box("d3q19", "bgk", (64, 16, 12), 1.3), cuda.Direct(block=(64, 1, 1), storage=storage))
    codes = describe_storage(program).codes
    assert (codes and (codes.exponent_bits, codes.mantissa_bits)) == widths


def test_blocks_have_no_extent_along_an_axis_without_ghost_cells() -> None:
    """As the place of a cell is by the file."""
    program = render(box("d2q9", "bgk", (64, 16, 1), 1.3), cuda.Direct(block=(64, 1, 1), scheme="ghost-cell"))
    found = describe_storage(program)
    assert (found.ghost, found.blocks) == ((True, True, False), (64, 1, 0))


def test_the_shipped_schema_is_that_of_the_types(written: Path) -> None:
    """Regenerate it with json.dumps(lbmtune.records.best_json.document.schema(), indent=1) when a type changes."""
    shipped = json.loads(SCHEMA.read_text())
    assert shipped == json.loads(json.dumps(schema()))
    jsonschema.Draft202012Validator.check_schema(shipped)
    found = json.loads(written.read_text())
    jsonschema.validate(found, shipped)
    assert found["$schema"] == shipped["$id"] == f"urn:lbmtune:best:{BEST_VERSION}"


def test_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(NothingValidError, match="nothing to export"):
        write_best(made.hopeless_study(), tmp_path / "best.json")
    assert not (tmp_path / "best.json").exists()


def test_a_kernel_that_is_printed_otherwise_now_is_not_exported() -> None:
    study = made.gpu_study()
    stale = replace(study, trials=tuple(replace(t, source_digest="0" * 64) for t in study.trials))
    with pytest.raises(InputError, match="measured with source 000000000000"):
        best(stale)


def _set(*keys: Any, value: object) -> Change:
    def change(values: dict[str, Any]) -> None:
        for key in keys[:-1]:
            values = values[key]
        values[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("version", value=BEST_VERSION + 1), "has version 4 of lbmtune.best, this lbmtune reads versions 1 to 3"),
        (_set("format", value="something"), "is not a best.json"),
        (_set("expected", "mlups", value="fast"), r"damaged at \$.expected.mlups: 'fast' is not of type 'number'"),
        (_set("case", "domain", value=[1, 2]), r"damaged at \$.case.domain"),
        (_set("case", "relaxation_rate", value=3.0), "relaxation_rate 3.0 is not between 0 and 2"),
        (_set("case", "flow", value="box\n#error"), "flow 'box.*' is no name"),
        (_set("kernel", "period", value=[]), r"damaged at \$.kernel.period"),
        (_set("kernel", "buffers", value=[]), r"damaged at \$.kernel.buffers"),
        (_set("configuration", "scheme", value="push"), "has the key"),
        (_set("configuration", "warp", value=1), "unknown knob 'warp' of family direct"),
        (_set("kernel", "source", value="int x;"), "the text of its kernel has not the digest that stands beside it"),
        (_set("kernel", "domain", "multiple", value=[0, 1, 1]), "a multiple of 0 is none of a domain"),
        (_set("kernel", "domain", "limits", 0, "multiple", value=-3), "a multiple of -3 is none of a domain"),
        (lambda values: values.pop("kernel"), "'kernel' is a required property"),
        (_set("kernel", "period", 0, 0, "arguments", value=["f0", "f9"]), "its launches take 'f9', which it does not"),
        (_set("case", value=json.loads("[" * 500 + "]" * 500)), r"damaged at \$.case"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(written: Path, change: Change, said: str) -> None:
    values = json.loads(written.read_text())
    change(values)
    written.write_text(json.dumps(values))
    with pytest.raises(InputError, match=said):
        read_best(written)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a best.json"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 200_000, "not JSON .it is nested too deeply"),
        (None, "cannot read"),
    ],
)
def test_what_is_no_best_json(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "best.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        lbmtune.load(path)


CONFIGS = [
    cuda.Direct(cells_per_thread=4, scheme="esoteric-pull"),
    cuda.Direct(scheme="aa", wrap="ghost"),
    cuda.Direct(layout=AoSoA(width=16), scheme="push"),
    cuda.Direct(layout=AoS(), scheme="esoteric-twist"),
    cpu.Direct(row_padding=3, scheme="esoteric-pull"),
    cpu.Direct(layout=SoA(padding=7), row_offset=0, vector_bits=0, wrap="select"),
    cpu.Direct(layout=SoA(stride=3000), scheme="aa"),
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_formulas_give_what_the_program_does(config: CudaConfig | CpuConfig) -> None:
    """The C formulas, evaluated, against layout and launches themselves."""
    case = box("d3q19", "bgk", (48, 6, 5))
    program = render(case, config)
    storage = describe_storage(program)
    names: dict[str, int] = dict(zip(("nx", "ny", "nz"), case.domain, strict=True))

    def value(formula: str, **more: int) -> int:
        return int(eval(formula.replace("/", "//"), {}, {**names, **more}))

    for extent in storage.extents:
        name, formula = extent.split(" = ")
        names[name] = value(formula)
    for parity, locations in enumerate(storage.locations):
        places = list(PopulationPlaces(case, config, parity, np).each())
        for location, place in zip(locations, places, strict=True):
            x, y, z = (a + o + origin for a, o, origin in zip((20, 3, 2), location.offset, storage.origin, strict=True))
            assert value(storage.index, X=x, Y=y, Z=z, Q=location.slot) == place.indices[2, 3, 20]
    for step in program.period:
        for launch in step:
            found = launch_geometry(program, launch)
            assert tuple(map(value, found.grid_formula)) == found.grid == launch.grid(case.domain, program.frame)
    kernel = best(cpu_record(case, config)).kernel if isinstance(config, CpuConfig) else None
    for buffer in kernel.buffers if kernel else ():
        assert value(buffer.elements_formula) == buffer.elements == program.buffer_elements(case.domain)


def test_a_porous_sample_runs_on_the_cpu_from_its_file(tmp_path: Path) -> None:
    """The flags are no part of the file: they follow from its geometry, on any domain."""
    case = porous("d2q9", "bgk", (16, 12, 1), 1.2, "blocks:fraction=0.3", force=(1e-5, 0.0, 0.0))
    config = replace(CPU, flags="memory")
    write_best(cpu_record(case, config), tmp_path / "best.json")
    for domain in (None, (32, 10, 1)):
        with pytest.warns(UserWarning, match="tuned on EPYC and runs on"):
            flow = lbmtune.load(tmp_path / "best.json", domain=domain)
        fluid, expected = ~solid(flow.case), flow.populations()
        flow.step(4)
        for _ in range(4):
            expected = oracle.step(expected, flow.case)
        np.testing.assert_allclose(flow.populations()[:, fluid], expected[:, fluid], atol=1e-13)


def test_a_cavity_runs_on_the_cpu_from_its_file(tmp_path: Path) -> None:
    case = cavity("d2q9", "trt", (16, 12, 1), 1.4)
    write_best(cpu_record(case, CPU), tmp_path / "best.json")
    with pytest.warns(UserWarning, match="tuned on EPYC and runs on"):
        flow = lbmtune.load(tmp_path / "best.json")
    density, velocity = flow.macroscopic()
    np.testing.assert_allclose(density, 1.0)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-15)
    expected = flow.populations()
    flow.step(40)
    for _ in range(40):
        expected = oracle.step(expected, case)
    np.testing.assert_allclose(flow.populations(), expected, atol=1e-13)
    np.testing.assert_allclose(flow.velocity(), oracle.velocity(expected, case), atol=1e-13)
    np.testing.assert_allclose(flow.density(), oracle.density(expected), atol=1e-13)
    assert flow.steps_done == 40
    assert flow.velocity()[0, 0, -1].max() > 0.01
    assert flow.time_per_step_s(3) > 0


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_values_that_are_arguments_can_be_changed(tmp_path: Path) -> None:
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU), tmp_path / "best.json")
    changes = {"domain": (10, 14, 1), "relaxation_rate": 1.1, "wall_velocity": (0.02, 0.0, 0.0)}
    flow = lbmtune.load(tmp_path / "best.json", "cpu", **changes)
    assert flow.case == replace(cavity("d2q9", "trt", (16, 12, 1), 1.4), **changes)
    state = oracle.random_state(flow.case)
    flow.initialise_populations(state)
    flow.step(3)
    for _ in range(3):
        state = oracle.step(state, flow.case)
    np.testing.assert_allclose(flow.populations(), state, atol=1e-13)
    with pytest.raises(InputError, match="made without a body force"):
        lbmtune.load(tmp_path / "best.json", force=(1e-5, 0.0, 0.0))
    with pytest.raises(InputError, match="nz = 3"):
        lbmtune.load(tmp_path / "best.json", domain=(10, 14, 3))


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
@pytest.mark.parametrize("case", [box("d2q9", "bgk", (16, 12, 1)), channel("d2q9", "bgk", (16, 12, 1), 1.2, 1e-3)])
def test_a_flow_starts_as_it_is_told(tmp_path: Path, case: Case) -> None:
    write_best(cpu_record(case, CPU), tmp_path / "best.json")
    flow = lbmtune.load(tmp_path / "best.json")
    for found, wanted in zip(flow.macroscopic(), initial_flow(case), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-14)
    density = 1 + 0.01 * np.random.default_rng(1).random((1, 12, 16))
    flow.step(2)
    flow.initialise(density, (0.03, -0.01, 0.0))
    np.testing.assert_allclose(flow.density(), density)
    np.testing.assert_allclose(flow.velocity()[:2, 0, 3, 4], (0.03, -0.01))
    assert flow.steps_done == 0
    with pytest.raises(InputError, match="no wall of this kernel moves"):
        lbmtune.load(tmp_path / "best.json", wall_velocity=(0.1, 0.0, 0.0))


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_wrong_arguments_of_a_flow_get_a_sentence(tmp_path: Path) -> None:
    write_best(cpu_record(channel("d2q9", "bgk", (16, 12, 1), 1.2, 1e-3), CPU), tmp_path / "best.json")
    for domain in ("16x12x1", (16, 12), 16, (16.5, 12, 1), (16, 12, None)):
        with pytest.raises(InputError, match=r"is not three whole numbers \(use \(nx, ny, nz\)\)"):
            lbmtune.load(tmp_path / "best.json", domain=domain)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"force=1e-05 is not three numbers \(use \(x, y, z\)\)"):
        lbmtune.load(tmp_path / "best.json", force=1e-5)  # type: ignore[arg-type]
    flow = lbmtune.load(tmp_path / "best.json", domain=np.array([16, 10, 1]))  # type: ignore[arg-type]
    before = flow.populations()
    assert flow.case.domain == (16, 10, 1)
    with pytest.raises(InputError, match=r"density has the shape \(16, 10\) \(use \(nz, ny, nx\) = \(1, 10, 16\)"):
        flow.initialise(np.ones((16, 10)))
    with pytest.raises(InputError, match=r"velocity has the shape \(2,\) \(use \(3, nz, ny, nx\) = \(3, 1, 10, 16\)"):
        flow.initialise(velocity=(0.1, 0.0))
    with pytest.raises(InputError, match="density is not an array of numbers"):
        flow.initialise("dense")
    with pytest.raises(InputError, match=r"shape \(8, 1, 10, 16\) \(use .* \(q, nz, ny, nx\) = \(9, 1, 10, 16\)"):
        flow.initialise_populations(before[:8])
    with pytest.raises(InputError, match=r"populations are a float \(use"):
        flow.initialise_populations(1.0)
    with pytest.raises(InputError, match="steps=-1 is negative"):
        flow.step(-1)
    for steps in (2.5, float("inf"), float("nan"), "two", None):
        with pytest.raises(InputError, match=f"steps={re.escape(str(steps))} is not a whole number"):
            flow.step(steps)
    with pytest.raises(InputError, match="steps=0 is not positive"):
        flow.time_per_step_s(0)
    np.testing.assert_array_equal(flow.populations(), before)
    flow.step(np.int64(1))
    flow.step(1.0)
    assert re.search(r"channel d2q9 bgk on 16x10x1 cells, \S+ soa fp64, .*, 2 steps done", repr(flow))


def test_more_threads_than_cores_are_told(tmp_path: Path) -> None:
    case = box("d2q9", "bgk", (16, 12, 1))
    write_best(cpu_record(case, replace(CPU, threads=4096)), tmp_path / "best.json")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        flow = lbmtune.load(tmp_path / "best.json")
    assert any("tuned with 4096 threads and gets" in str(w.message) for w in heard)
    flow.step(1)
    assert np.isfinite(flow.density()).all()


def test_a_wrong_device_gets_a_sentence(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = r"device=cpu is not supported for .* \(use the index of a GPU, or run a study there\): its kernel is for an"
    with pytest.raises(InputError, match=told):
        lbmtune.load(written, "cpu")
    asked: list[str] = []

    def nothing(spec: str) -> None:
        asked.append(spec)
        raise DeviceUnavailableError(f"there is no GPU; install one{OR_CPU}.")

    monkeypatch.setattr(loading, "open_device", nothing)
    told = rf"^{written} holds a kernel for an NVIDIA GPU: there is no GPU; install one\.$"
    with pytest.raises(DeviceUnavailableError, match=told):
        lbmtune.load(written)
    assert asked == ["0"]


def test_a_domain_that_the_kernel_cannot_do_gets_a_sentence(tmp_path: Path) -> None:
    case = box("d2q9", "bgk", (16, 12, 1))
    write_best(cpu_record(case, replace(CPU, vector_bits=256)), tmp_path / "best.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError, match=r"nx=15 is not a multiple of 4 \(4 lanes of fp64\)"):
            lbmtune.load(tmp_path / "best.json", domain=(15, 12, 1))


def test_the_file_is_the_same_every_time() -> None:
    assert encode_best(best(made.gpu_study())) == encode_best(best(made.gpu_study()))


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_python_of_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "guide" / "best-json.md").read_text()
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), CPU), tmp_path / "best.json")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(text.split("```python\n")[1].split("```")[0], names)
    assert names["density"].shape == (1, 64, 64)
    assert names["velocity"].shape == (3, 1, 64, 64)
    assert set(vars(type(names["flow"]))) >= {
        name.split("(")[0].split(".")[1] for name in re.findall(r"`(flow\.[a-z_]+\(?)", text) if "best.exp" not in name
    } - {"best"}


@pytest.mark.parametrize(
    ("config", "reach"),
    [
        (cuda.Direct(), 19 * 2**32),
        (cuda.Direct(layout=SoA(padding=64)), 19 * 2**32),
        (cuda.Direct(layout=AoS()), 2**32),
        (cuda.Direct(layout=AoSoA(width=16), wrap="ghost"), 2**32),
    ],
    ids=str,
)
def test_how_far_the_indices_of_a_text_reach(config: CudaConfig, reach: int) -> None:
    """The longest buffer with 32-bit indices: no cell of one that is so long has an index that needs more."""
    small, large = box("d3q19", "bgk", (256, 256, 256)), box("d3q19", "bgk", (2048, 2048, 2048))
    assert render(small, config).max_elements == reach
    assert render(large, config).max_elements is None
    domain = (256, 256, reach // (19 * 256 * 258) - 3)
    program = render(small, config)
    assert program.buffer_elements(domain) <= reach
    storage, memory = program.frame.extents(Domain(*domain)), config.memory
    last = memory.along_x(storage.x - 1, storage) + memory.along_y(storage.y - 1, storage)
    assert last + memory.along_z(storage.z - 1, storage) < 2**32


def test_what_a_file_says_of_domains_is_not_run(written: Path) -> None:
    values = json.loads(written.read_text())
    values["kernel"]["domain"]["limits"][0]["value"] = "__import__('os').getpid()"
    written.write_text(json.dumps(values))
    with pytest.raises(InputError, match="is no formula of nx, ny, nz, NX, NY, NZ"):
        lbmtune.load(written, domain=(512, 64, 64))


@pytest.mark.parametrize("said", [True, False])
def test_a_domain_beyond_the_indices_is_refused(written: Path, monkeypatch: pytest.MonkeyPatch, said: bool) -> None:
    values = json.loads(written.read_text())
    assert values["kernel"]["max_elements"] == 19 * 2**32
    if not said:  # a file from before the fields
        del values["kernel"]["max_elements"], values["kernel"]["domain"]
        values["version"] = 1
        written.write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"NZ\)=163,208,757,248 is more than 81,604,378,624 .*32-bit indices"):
        lbmtune.load(written, domain=(2048, 2048, 2048))
    monkeypatch.setattr(loading, "open_device", lambda _: pytest.fail("opened", pytrace=False))
    with pytest.raises(pytest.fail.Exception, match="opened"):
        lbmtune.load(written, domain=(1600, 1600, 1600))


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
@pytest.mark.parametrize("header", ["made for: 0123456789abcdef", ""])
def test_a_cpu_kernel_for_another_support_module_is_refused(tmp_path: Path, header: str) -> None:
    path = tmp_path / "best.json"
    write_best(cpu_record(box("d2q9", "bgk", (16, 12, 1)), CPU), path)
    lbmtune.load(path)
    found = read_best(path)
    source = re.sub(r"made for: \w+", header, found.kernel.source)
    kernel = replace(found.kernel, source=source)
    path.write_bytes(encode_best(replace(found, kernel=replace(kernel, source_digest=source_digest(kernel, "cpu")))))
    with pytest.raises(InputError, match="made for another SIMD support"):
        lbmtune.load(path)
