"""Kernels that lbmpy generates, described as a user's kernel: all variants in one text, of which macros choose one.

lbmpy is needed to describe them, and by nothing later: records carry the text. Steps of even and odd time take turns,
so that kernels in place and kernels of two arrays have the same functions. Cells of a ghost layer are read and written
as the pattern says and are not made periodic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from string import Template
from typing import Any

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.catalogue.own_kernel.definition import THREADS, Argument, Geometry, OwnKernel, OwnKnob, Reference
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.skeleton import skeleton
from lbmtune.errors import InputError
from lbmtune.export.lbmpy_terms import DTYPES, method
from lbmtune.files.kernelstudy import study_of
from lbmtune.lattice import lattice
from lbmtune.records.spec import StudySpec

NAME = "lbmpy"
PATTERNS = ("pull", "push", "aa", "esotwist", "esopull", "esopush")
IN_PLACE = PATTERNS[2:]
LAYOUTS = ("fzyx", "zyxf")
LOOPS = ("plain", "simd", "stream")
"""Loops of a CPU: as the compiler makes them, vectors, and vectors with non-temporal stores."""
_TARGETS = {0: "GenericCPU", 128: "X86_SSE", 256: "X86_AVX", 512: "X86_AVX512"}
_CHECKED = (36, 9, 5)
"""Cells of the domain that is verified."""
_RANDOM = 1e-3
"""Largest deviation from the weights at the start."""
_C_TYPES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class _Variant:
    """A kernel to generate. loop: '' on a GPU."""

    pattern: str
    layout: str
    loop: str

    @property
    def macro(self) -> str:
        return "_".join(filter(None, ("VARIANT", self.pattern, self.layout, self.loop)))


def lbmpy_study(overrides: Sequence[str], backend: str, vector_bits: int) -> StudySpec:
    """Return the study of the kernels that lbmpy has for a case. overrides: 'key=value'. Raises InputError."""
    given, others = dict(_DEFAULTS), list[str]()
    for item in overrides:
        key, _, value = (part.strip() for part in item.partition("="))
        if key in given:
            given[key] = value
        else:
            others.append(item)
    rate = given["case.relaxation_rate"]
    try:
        omega = float(rate)
    except ValueError:
        raise InputError(f"--set case.relaxation_rate={rate} is no number; give one between 0 and 2.") from None
    _check(given["case.lattice"], given["case.collision"], given["precision"])
    case = box(given["case.lattice"], given["case.collision"], _DOMAIN, omega)
    return study_of(*lbmpy_kernel(case, given["precision"], backend, vector_bits), others)


def lbmpy_kernel(case: Case, precision: str, backend: str, vector_bits: int = 0) -> tuple[OwnKernel, Case]:
    """Return the kernels of lbmpy for a case, and their domain. vector_bits: of the processor, 0: no vectors.

    Raises InputError if lbmpy is not installed.
    """
    _check_installed()
    dtype, on_gpu = DTYPES[precision], BACKENDS[backend].thread_blocks
    variants = list(_variants(on_gpu, vector_bits))
    cells = "*".join(f"({n} + 2)" for n in ("nx", "ny", "nz"))
    elements, q = f"{case.stencil.q}*{cells}", case.stencil.q
    moved = 2 * q * (4 if precision == "fp32" else 8)
    kernel = OwnKernel(
        name=f"{NAME}-{case.lattice}-{case.collision}-{precision}",
        backend=backend,
        source=_text(case, variants, dtype, on_gpu, vector_bits),
        entry="even",
        odd_entry="odd",
        arguments=tuple(_arguments(dtype, elements)),
        knobs=tuple(_knobs(variants, on_gpu)),
        macros={},
        constraints=_CONSTRAINTS if not on_gpu and vector_bits else (),
        options=tuple(_options(on_gpu)),
        geometry=_GEOMETRY if on_gpu else Geometry(),
        bytes_per_update=str(moved) if on_gpu else f"{moved} if {_STAYS} else {moved * 3 // 2}",
        flop_per_update="0",
        reference=Reference(entry="step", python=_reference(case), tolerance=_TOLERANCES[precision], domain=_CHECKED),
    )
    family_of(kernel)
    return kernel, Case(kernel.name, case.lattice, "none", case.domain, 1.0)


_DEFAULTS = {
    "case.lattice": "d3q19",
    "case.collision": "bgk",
    "case.relaxation_rate": "1.6",
    "precision": "fp32",
}
"""Overrides that studies of lbmpy's kernels take besides those of all studies of users' kernels."""
_DOMAIN = (128, 128, 128)
_TOLERANCES = {"fp32": 2e-4, "fp64": 2e-12}
"""Tolerances relative to the largest deviation, a thousandth of the density: roundings of central moments."""
_GEOMETRY = Geometry(
    block=("BLOCK_X", "BLOCK_Y", "BLOCK_Z"),
    grid=("ceildiv(nx, BLOCK_X)", "ceildiv(ny, BLOCK_Y)", "ceildiv(nz, BLOCK_Z)"),
)
_CONSTRAINTS = ("LOOP == 'plain' or LAYOUT == 'fzyx'", "LOOP != 'stream' or PATTERN == 'pull' or PATTERN == 'push'")
"""Vectors are of neighbouring cells; stores of kernels in place are to lines that were read."""
_STAYS = " or ".join(f"PATTERN == '{one}'" for one in IN_PLACE)


def _check(name: str, collision: str, precision: str) -> None:
    if precision not in DTYPES:
        raise InputError(f"precision={precision} is not supported for --kernel lbmpy (use {', '.join(DTYPES)}).")
    if collision == "cumulant":
        raise InputError(
            f"collision={collision} is not supported for --kernel lbmpy (use bgk, trt, regularised, mrt): lbmpy takes "
            "minutes to generate one of its kernels."
        )
    if lattice(name).dimensions == 2:
        raise InputError(f"lattice={name} is not supported for --kernel lbmpy (use d3q19, d3q27).")


def _check_installed() -> None:
    try:
        import lbmpy  # noqa: F401
    except ImportError:
        raise InputError(
            '--kernel lbmpy needs lbmpy, which is not installed; pip install "lbmpy>=2.0", or name a file.'
        ) from None


def _variants(on_gpu: bool, vector_bits: int) -> Iterator[_Variant]:
    loops = ("",) if on_gpu else LOOPS if vector_bits else LOOPS[:1]
    for pattern, layout, loop in product(PATTERNS, LAYOUTS, loops):
        contiguous, reused = layout == LAYOUTS[0], pattern in IN_PLACE
        if (loop not in LOOPS[1:] or contiguous) and not (loop == LOOPS[2] and reused):
            yield _Variant(pattern, layout, loop)


def _arguments(dtype: str, elements: str) -> Iterator[Argument]:
    random = (-_RANDOM, _RANDOM)
    yield Argument(name="f", type=dtype, size=elements, role="inout", random=random)
    yield Argument(name="g", type=dtype, size=f"1 if {_STAYS} else {elements}", role="inout", random=random)
    yield from (Argument(name=name, type="int64", value=name) for name in ("nx", "ny", "nz"))


def _knobs(variants: Sequence[_Variant], on_gpu: bool) -> Iterator[OwnKnob]:
    yield OwnKnob(name="PATTERN", values=PATTERNS)
    yield OwnKnob(name="LAYOUT", values=LAYOUTS)
    if on_gpu:
        for name, values in (("BLOCK_X", (128, 32, 64, 256)), ("BLOCK_Y", (1, 2, 4)), ("BLOCK_Z", (1, 2))):
            yield OwnKnob(name=name, values=values)
        return
    loops: dict[Scalar, None] = dict.fromkeys(one.loop for one in variants)
    yield OwnKnob(name="LOOP", values=tuple(loops))
    yield OwnKnob(name=THREADS, values=("all", "cores"))


def _options(on_gpu: bool) -> Iterator[str]:
    # on a CPU as lbmpy compiles its kernels
    yield from ("-std=c++17",) if on_gpu else ("-Ofast", "-march=native", "-fopenmp")
    yield "-DVARIANT_{PATTERN}_{LAYOUT}" if on_gpu else "-DVARIANT_{PATTERN}_{LAYOUT}_{LOOP}"


def _text(case: Case, variants: Sequence[_Variant], dtype: str, on_gpu: bool, vector_bits: int) -> str:
    """Return the text with all variants."""
    parts = "\n".join(_variant_text(case, one, dtype, on_gpu, vector_bits) for one in variants)
    head = skeleton(f"export/lbmpy/head.{'cu' if on_gpu else 'c'}.in")
    return Template(head).substitute(variants=parts, real=_C_TYPES[dtype], q=case.stencil.q, lbmpy=_version())


def _version() -> str:
    import lbmpy

    return str(lbmpy.__version__)


def _variant_text(case: Case, one: _Variant, dtype: str, on_gpu: bool, vector_bits: int) -> str:
    kernels = [_generated(case, one, time, dtype, on_gpu, vector_bits) for time in _times(one)]
    names = [kernel.name for kernel in kernels]
    code = "\n".join(_local(kernel.get_c_code(), on_gpu) for kernel in kernels)
    calls = [_call(kernels[n % len(kernels)], names[n % len(names)], one.layout, odd=n == 1) for n in range(2)]
    lines = (f"#ifdef {one.macro}", code, f"#define EVEN {calls[0]}", f"#define ODD {calls[1]}", "#endif")
    return "\n".join(lines)


def _times(one: _Variant) -> tuple[str, ...]:
    return ("EVEN", "ODD") if one.pattern in IN_PLACE else ("BOTH",)


def _generated(case: Case, one: _Variant, time: str, dtype: str, on_gpu: bool, vector_bits: int) -> Any:
    """Return the kernel of a variant at even or odd times, or at both."""
    import lbmpy
    import pystencils
    from lbmpy.advanced_streaming import Timestep
    from lbmpy.creationfunctions import create_lb_ast

    vectors = one.loop in LOOPS[1:]
    target = pystencils.Target.CUDA if on_gpu else pystencils.Target[_TARGETS[vector_bits if vectors else 0]]
    config = pystencils.CreateKernelConfig(
        target=target, default_dtype=dtype, ghost_layers=1, function_name=f"{one.pattern}_{time.lower()}"
    )
    if not on_gpu:
        config.cpu.openmp.enable = True
        config.cpu.vectorize.enable = config.cpu.vectorize.assume_inner_stride_one = vectors
        config.cpu.vectorize.use_nontemporal_stores = one.loop == LOOPS[2]
    size = case.stencil.dimensions
    f, g = pystencils.fields(f"f({case.stencil.q}), g({case.stencil.q}): {dtype}[{size}D]", layout=one.layout)
    arguments = {name: _of_lbmpy(value) for name, value in method(case).items()}
    stencil = lbmpy.LBStencil(lbmpy.Stencil[case.lattice.upper()])
    settings = {"stencil": stencil, "streaming_pattern": one.pattern, "timestep": Timestep[time], **arguments}
    fields = {"symbolic_field": f, "symbolic_temporary_field": None if one.pattern in IN_PLACE else g}
    return create_lb_ast(
        lbm_config=lbmpy.LBMConfig(**settings), lbm_optimisation=lbmpy.LBMOptimisation(**fields), config=config
    )


def _of_lbmpy(value: object) -> object:
    """Return an argument of LBMConfig, with names of lbmpy looked up."""
    import lbmpy

    if not isinstance(value, str):
        return value
    kind, _, name = value.partition(".")
    return getattr(lbmpy, kind)[name]


def _local(code: str, on_gpu: bool) -> str:
    """Return the text of a generated function as one that the entries call."""
    if on_gpu:
        return code.replace("__global__", "static __device__ __forceinline__", 1).replace("int64_t", "long long")
    return f"static {code}"


def _call(kernel: Any, name: str, layout: str, *, odd: bool) -> str:
    """Return the call of a generated function. odd: two arrays have changed places."""
    extents = ("nx + 2", "ny + 2", "nz + 2")
    strides = [_stride(axis, layout) for axis in range(4)]
    two = any(one.name == "_data_g" for one in kernel.parameters)
    values = {"_data_f": "g" if odd and two else "f", "_data_g": "f" if odd else "g"}
    values |= {f"_size_{array}_{axis}": extents[axis] for array in "fg" for axis in range(3)}
    values |= {f"_stride_{array}_{axis}": strides[axis] for array in "fg" for axis in range(4)}
    return f"{name}({', '.join(values[one.name] for one in kernel.parameters)})"


def _stride(axis: int, layout: str) -> str:
    """Return the elements from one to the next along x, y, z or the directions, axis 3."""
    letters = layout[::-1]  # innermost first
    inner = letters[: letters.index("xyzf"[axis])]
    return " * ".join({"x": "(nx + 2)", "y": "(ny + 2)", "z": "(nz + 2)", "f": "Q"}[one] for one in inner) or "1"


def _reference(case: Case) -> str:
    """Return a step in NumPy: populations where lbmpy's tables say, and the collision from its definition."""
    import lbmpy

    stencil = lbmpy.LBStencil(lbmpy.Stencil[case.lattice.upper()])
    ours = case.stencil.velocities
    return Template(skeleton("export/lbmpy/reference.py.in")).substitute(
        lattice=case.lattice,
        collision=case.collision,
        rate=case.relaxation_rate,
        order=[ours.index(tuple(map(int, c))) for c in stencil],
        places={one: [_places(one, time, stencil) for time in ("EVEN", "ODD")] for one in PATTERNS},
        in_place=IN_PLACE,
    )


def _places(pattern: str, time: str, stencil: Any) -> list[Any]:
    """Return slot and offset of each direction, as they are read and as they are written."""
    import pystencils
    from lbmpy.advanced_streaming import Timestep, get_accessor

    field = pystencils.fields(f"f({stencil.Q}): float64[{stencil.D}D]")
    accessor = get_accessor(pattern, Timestep[time])
    return [
        [(int(one.index[0]), tuple(map(int, one.offsets))) for one in accesses]
        for accesses in (accessor.read(field, stencil), accessor.write(field, stencil))
    ]
