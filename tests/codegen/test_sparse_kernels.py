"""Indirect addressing on both backends: the texts, run here, against the oracle; and faults that must be found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.knobs import scalar
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import cavity
from lbmtune.catalogue.schemes import SCHEMES as ALL_SCHEMES
from lbmtune.catalogue.sparse import nodes
from lbmtune.catalogue.sparse.index_list import listed_rows, node_list
from lbmtune.catalogue.sparse.site_orders import ORDERS
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.lattice import LATTICES
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification.verify import verify, verify_simulation
from lbmtune.records import Verification
from lbmtune.runtime import Simulation, memory
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels import compiled, cpu_cases
from tests.support.kernels.full_size import verify_full_size

SCHEMES = {
    name: one
    for name, one in ALL_SCHEMES.items()
    if not (one.phase(LATTICES["d2q9"], 0).blockwise or one.phase(LATTICES["d2q9"], 0).ordered)
}
PRECISIONS = {"fp64": "fp64", "fp32": "fp32", "fp16s": "fp32"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "soa": {"padding": 8},
    "aos": {},
    "aosoa": {"width": 16},
}
on_host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def flow(kind: str, lattice: str, collision: str = "bgk") -> Case:
    """Walls on all faces, three of them moving; or solid cells in the same box, or in a periodic one; a force."""
    flat = lattice == "d2q9"
    case = cavity(lattice, collision, (29, 14, 1 if flat else 9), 1.3)
    z = ("periodic", "periodic") if flat else ("moving", "wall")
    velocity = (0.05, -0.03, 0.0 if flat else 0.02)
    case = replace(case, faces=("moving", "wall", "wall", "moving", *z), wall_velocity=velocity, force=(1e-3, 0.0, 0.0))
    if kind == "walls":
        return case
    solid = replace(case, geometry="sandstone:fraction=0.6:grain=0.8:seed=5")
    return solid if kind == "both" else replace(solid, faces=("periodic",) * 6, wall_velocity=(0.0, 0.0, 0.0))


def cuda(scheme: str, storage: str = "fp32", **knobs: Any) -> CudaConfig:
    found = _sparse("cuda", {"scheme": scheme, "storage": storage, "block": (32, 1, 1), **knobs})
    assert isinstance(found, CudaConfig)
    return found


def cpu(scheme: str, storage: str = "fp32", **knobs: Any) -> CpuConfig:
    found = _sparse("cpu", {"scheme": scheme, "storage": storage, "vector_bits": 0, **knobs})
    assert isinstance(found, CpuConfig)
    return found


def _sparse(backend: str, given: dict[str, Any]) -> KernelConfig:
    values = {"compute": PRECISIONS[given["storage"]], **given}
    return from_flat(
        {"backend": backend, "family": "sparse", **{name: scalar(value) for name, value in values.items()}}
    )


def on_shim(case: Case, config: CudaConfig) -> Verification:
    assert broken(case, config, Limits()) is None
    program = render(case, config)
    return verify(program, compile_on_host(program), HostDevice(), 2)


@pytest.mark.thinned(10)
@on_host
@pytest.mark.parametrize(("scheme", "layout", "lattice"), list(product(SCHEMES, LAYOUTS, LATTICES)))
def test_cuda_text_of_every_scheme_layout_and_lattice(scheme: str, layout: str, lattice: str) -> None:
    cells = 1 if layout == "aos" else 4
    config = cuda(scheme, layout=layout, cells_per_thread=cells, **LAYOUTS[layout])
    found = on_shim(flow("both", lattice), config)
    assert found.passed, found


@pytest.mark.thinned(10)
@on_host
@pytest.mark.parametrize(("scheme", "order"), list(product(SCHEMES, ORDERS)))
def test_cuda_text_in_every_order(scheme: str, order: str) -> None:
    found = on_shim(flow("solid", "d3q19", "trt"), cuda(scheme, order=order))
    assert found.passed, found


@on_host
@pytest.mark.parametrize(
    ("lattice", "kind", "cells"), [("d2q9", "both", 4), ("d3q19", "solid", 1), ("d3q27", "walls", 2)]
)
def test_cuda_text_with_chased_pointers(lattice: str, kind: str, cells: int) -> None:
    config = cuda("esoteric-twist", cells_per_thread=cells, links="three_pointers", order="hilbert")
    found = on_shim(flow(kind, lattice), config)
    assert found.passed, found


@on_host
def test_finalists_that_share_their_memory_keep_their_lists() -> None:
    case = flow("solid", "d2q9")
    pooled, made = PooledDevice(HostDevice()), []
    pooled.reset(1 << 24)
    for scheme in ("pull", "aa", "push", "esoteric-twist"):
        pooled.reset()
        program = render(case, cuda(scheme))
        made.append(Simulation(program, compile_on_host(program), pooled))
    for one in made:
        found = verify_simulation(one)
        assert found.passed, found


def prefetches(config: CudaConfig | CpuConfig) -> list[str]:
    """Requests for words of the list in the text of each pass."""
    lines = [line.strip() for line in render(flow("solid", "d2q9"), config).source.splitlines()]
    return [line.rstrip(";") for line in lines if line.startswith(("ask_for(", "prefetch(links"))]


def test_every_row_that_a_pass_reads_is_asked_for() -> None:
    """Pull reads eight rows in its one pass; Esoteric Twist three pointers, and the mask in every other step."""
    assert prefetches(cuda("pull")) == []
    assert prefetches(cuda("pull", prefetch_index=96)) == [f"ask_for(links, {n}, sites, site + 96)" for n in range(8)]
    rows = [f"ask_for(links, {n}, nodes, site + 96)" for n in (0, 1, 2)]
    chased = prefetches(cuda("esoteric-twist", prefetch_index=96, links="three_pointers"))
    assert sorted(chased) == sorted([*rows[:2], *rows])
    on_cpu = prefetches(cpu("pull", vector_bits=512, prefetch_index=64))
    assert on_cpu == ["prefetch(links, x + 64)", *(f"prefetch(links, {n} * sites + x + 64)" for n in range(1, 8))]


@on_host
def test_cuda_text_with_prefetched_words() -> None:
    config = cuda("aa", cells_per_thread=4, prefetch_index=96)
    assert on_shim(flow("both", "d2q9"), config).passed
    text = compile_cuda(render(flow("both", "d2q9"), config))
    assert text.image != compile_cuda(render(flow("both", "d2q9"), replace(config, prefetch_index=0))).image


@pytest.mark.parametrize("scheme", ["pull", "esoteric-twist"])
def test_cpu_text_with_prefetched_words(scheme: str) -> None:
    config = cpu(scheme, vector_bits=512, prefetch_index=64)
    found = cpu_cases.interpret(cpu_cases.program_of(flow("both", "d2q9"), config))
    assert found.passed, found


def lines_of(config: CpuConfig, *starts: str) -> list[str]:
    """Lines of the text of each pass that begin so."""
    lines = [line.strip() for line in render(flow("solid", "d2q9"), config).source.splitlines()]
    return [line for line in lines if line.startswith(starts)]


def test_populations_of_the_first_site_of_a_later_vector_are_prefetched() -> None:
    config = cpu("pull", vector_bits=512, prefetch_propagated=32, prefetch_local=16)
    found = lines_of(config, "later", "node = ", "prefetch(source")
    assert found[:2] == ["prefetch(source, slot0 + x + 16)", "later = min(x + 32, sites - 1)"]
    assert found[2:4] == [
        "node = links[later] & 1073741823",
        "prefetch(source, (slot2 if links[later] >> 31 & 1 else slot1) + node)",
    ]
    assert len(found) == 2 + 2 * 8


def test_local_steps_prefetch_populations_of_the_site_itself() -> None:
    """AA propagates in every other step, where the rest population alone stays."""
    local = lines_of(cpu("aa", vector_bits=512, prefetch_local=16), "prefetch(field")
    assert len(local) == 9 + 1
    assert len(lines_of(cpu("aa", vector_bits=512, prefetch_propagated=16), "prefetch(field")) == 8


def test_populations_in_groups_and_behind_swapped_pointers_are_prefetched() -> None:
    config = cpu("esoteric-twist", vector_bits=512, pointer_swap=1, prefetch_propagated=16, prefetch_local=16)
    assert any("pointer" in line for line in lines_of(config, "prefetch(field"))
    grouped = cpu("aa", vector_bits=512, prefetch_propagated=16, layout="aosoa", width=16)
    assert "prefetch(field, (slot1 if links[later] >> 31 & 1 else slot2) + ((node // 16) * 144) + (node % 16))" in (
        lines_of(grouped, "prefetch(field")
    )


@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-twist"])
def test_cpu_text_with_prefetched_populations(scheme: str) -> None:
    """The last vectors prefetch of the last site; a word beyond the list would be an error here."""
    config = cpu(scheme, vector_bits=512, prefetch_propagated=32, prefetch_local=16)
    found = cpu_cases.interpret(cpu_cases.program_of(flow("both", "d2q9"), config))
    assert found.passed, found


def test_sites_stream_what_stays_with_them() -> None:
    """Pull writes to the site alone; AA in every other step, and the rest population in the others."""
    assert len(lines_of(cpu("pull", vector_bits=512, streaming_stores=1), "stream(", "simd.fence()")) == 9 + 1
    config = cpu("aa", vector_bits=512, streaming_stores=1)
    assert len(lines_of(config, "stream(")) == 9 + 1
    assert len(lines_of(config, "simd.fence()")) == 2
    assert not lines_of(cpu("aa", vector_bits=512), "stream", "simd.fence()")


STREAMED: dict[str, dict[str, Any]] = {
    "soa": {"padding": 16},
    "rows": {},
    "aosoa": {"width": 16},
    "bundle-aosoa": {"width": 32},
}


@pytest.mark.parametrize(("scheme", "layout", "storage"), list(product(["pull", "aa"], STREAMED, ["fp32", "fp64"])))
def test_cpu_text_with_streaming_stores(scheme: str, layout: str, storage: str) -> None:
    """A store that is not aligned would be an error here."""
    config = cpu(scheme, storage, vector_bits=512, streaming_stores=1, layout=layout, **STREAMED[layout])
    case = flow("both", "d2q9")
    assert broken(case, config, Limits()) is None
    found = cpu_cases.interpret(cpu_cases.program_of(case, config))
    assert found.passed, found


@on_host
def test_verification_finds_a_wrong_pointer_of_a_solid_node(monkeypatch: pytest.MonkeyPatch) -> None:
    program = render(flow("solid", "d2q9"), cuda("esoteric-twist", links="three_pointers"))
    binary, rows = compile_on_host(program), listed_rows(program.case, program.config)
    assert verify(program, binary, HostDevice()).passed

    def astray(case: Case, config: CudaConfig, *rest: Any) -> Any:
        words = nodes.index_list(case, config, *rest).reshape(rows.rows, -1).copy()
        sites = nodes.counts(case, config).sites
        words[0, sites:] = np.arange(sites, words.shape[1])
        return words.reshape(-1)

    monkeypatch.setattr(memory, "index_list", astray)
    assert not verify(program, binary, HostDevice()).passed


@pytest.mark.thinned(10)
@on_host
@pytest.mark.parametrize(("scheme", "storage", "cells"), list(product(SCHEMES, PRECISIONS, (1, 2, 8))))
def test_cuda_text_of_every_precision_and_width(scheme: str, storage: str, cells: int) -> None:
    config = cuda(scheme, storage, cells_per_thread=cells)
    case = flow("walls", "d2q9")
    if broken(case, config, Limits()) is None:
        found = on_shim(case, config)
        assert found.passed, found


@on_host
@pytest.mark.parametrize("scheme", SCHEMES)
def test_cuda_text_at_full_size(scheme: str) -> None:
    program = render(flow("both", "d3q19"), cuda(scheme, order="tile"))
    found = verify_full_size(program, compile_on_host(program), HostDevice())
    assert found.passed, found


@pytest.mark.thinned(10)
@pytest.mark.parametrize(
    ("scheme", "layout", "lattice"),
    [*product(SCHEMES, LAYOUTS, ["d2q9"]), *((name, "soa", "d3q19") for name in SCHEMES)],
)
def test_cpu_text_of_every_scheme_layout_and_lattice(scheme: str, layout: str, lattice: str) -> None:
    config = cpu(scheme, layout=layout, vector_bits=0 if layout == "aos" else 512, **LAYOUTS[layout])
    found = cpu_cases.interpret(cpu_cases.program_of(flow("both", lattice), config))
    assert found.passed, found


SAMPLES: list[tuple[str, str, dict[str, Any]]] = [
    ("pull", "fp64", {"vector_bits": 512, "order": "hilbert", "threads": 2}),
    ("pull", "fp16s", {"vector_bits": 512, "gather": "lanes"}),
    ("push", "fp32", {"vector_bits": 256, "layout": "aosoa", "width": 16}),
    ("aa", "fp32", {"vector_bits": 512, "order": "morton", "threads": 2, "prefetch_index": 64}),
    ("esoteric-twist", "fp32", {"vector_bits": 512, "threads": 2}),
    ("esoteric-pull", "fp64", {"vector_bits": 256, "gather": "lanes", "order": "tile"}),
    ("esoteric-pull", "fp16s", {"vector_bits": 512}),
    ("two-step", "fp32", {}),
    ("swap", "fp64", {"layout": "aos"}),
]


@pytest.mark.parametrize(("scheme", "storage", "axes"), SAMPLES)
def test_compiled_cpu_kernels(scheme: str, storage: str, axes: dict[str, Any]) -> None:
    if axes.get("vector_bits", 0) > 2 * vector_bits():
        pytest.skip(f"this processor has no vectors of {axes['vector_bits']} bits")
    program = cpu_cases.program_of(flow("both", "d2q9"), cpu(scheme, storage, **axes))
    found = verify(program, compile_cpu(program), open_cpu(), 2)
    assert found.passed, found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nvrtc_compiles_without_spills(scheme: str) -> None:
    for storage in ("fp32", "fp64"):
        config = cuda(scheme, storage, block=(128, 1, 1))
        assert compiled.resources("indirect.txt", render(flow("solid", "d3q19"), config)).spill_bytes == 0


Fault = Callable[[Any], Any]


def _next_node(words: Any) -> Any:
    changed = words.copy()
    changed[0] ^= 1
    return changed


def _site_later(words: Any) -> Any:
    return np.roll(words, 1)


def _open(words: Any) -> Any:
    return words & np.uint32((1 << 31) - 1)


def _at_rest(words: Any) -> Any:
    return words & ~np.uint32(1 << 30)


FAULTS: dict[str, tuple[str, Fault]] = {
    "one node of one site off by one": ("solid", _next_node),
    "rows off by one site": ("solid", _site_later),
    "cut links open": ("solid", _open),
    "moving walls at rest": ("walls", _at_rest),
}


@pytest.mark.thinned(10)
@on_host
@pytest.mark.parametrize(("fault", "scheme", "storage"), list(product(FAULTS, ("pull", "push", "aa"), PRECISIONS)))
def test_verification_finds_a_wrong_list(
    fault: str, scheme: str, storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, change = FAULTS[fault]
    case, config = flow(kind, "d2q9"), cuda(scheme, storage)
    program = render(case, config)
    binary = compile_on_host(program)
    assert verify(program, binary, HostDevice()).passed
    monkeypatch.setattr(memory, "index_list", lambda *given: change(nodes.index_list(*given)))
    assert not verify(program, binary, HostDevice()).passed


@on_host
@pytest.mark.parametrize("storage", PRECISIONS)
def test_verification_finds_a_wrong_mask(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = render(flow("solid", "d2q9"), cuda("esoteric-twist", storage))
    binary = compile_on_host(program)
    rows = node_list(program.case, SCHEMES["esoteric-twist"])

    def without_a_bit(*given: Any) -> Any:
        words = nodes.index_list(*given).reshape(rows.rows, -1).copy()
        words[rows.mask_row] &= ~np.uint32(1 << 5)
        return words.reshape(-1)

    assert verify(program, binary, HostDevice()).passed
    monkeypatch.setattr(memory, "index_list", without_a_bit)
    assert not verify(program, binary, HostDevice()).passed


TEXT_FAULTS: dict[str, tuple[str, str, str]] = {
    "cut slot not taken": ("pull", ", CUT);", ", 29);"),
    "wrong slot": ("aa", "component(8, n)", "component(7, n)"),
    "gain of another link": ("pull", "add(f[1], ", "add(f[2], "),
    "last sites forgotten": ("push", "if (site >= sites)", "if (site + 64 >= sites)"),
}


@on_host
@pytest.mark.parametrize(("fault", "storage"), list(product(TEXT_FAULTS, PRECISIONS)))
def test_verification_finds_a_wrong_text(fault: str, storage: str) -> None:
    scheme, old, new = TEXT_FAULTS[fault]
    program = render(flow("walls", "d2q9"), cuda(scheme, storage))
    assert old in program.source
    wrong = replace(program, source=program.source.replace(old, new, 1))
    assert not verify(wrong, compile_on_host(wrong), HostDevice()).passed


@on_host
def test_populations_of_fluid_cells_come_back_as_they_were_set() -> None:
    case = flow("solid", "d3q19")
    for scheme in SCHEMES:
        program: Program = render(case, cuda(scheme, "fp64"))
        state = np.random.default_rng(1).random((19, *case.domain[::-1]))
        flows = Simulation(program, compile_on_host(program), HostDevice())
        flows.initialise(state)
        fluid = nodes.nodes(case, program.config).at >= 0
        fluid &= nodes.nodes(case, program.config).at < counts_of(program)
        np.testing.assert_allclose(flows.populations()[:, fluid], state[:, fluid], atol=1e-15)


def counts_of(program: Program) -> int:
    return nodes.counts(program.case, program.config).fluid
