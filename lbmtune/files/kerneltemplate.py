"""The description of a user's kernel as it is begun: what can be read off its text, and what is left to fill in."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lbmtune.errors import InputError
from lbmtune.files.kernelfile import BACKENDS_OF
from lbmtune.files.source import read_text
from lbmtune.records.whole_files import write_atomically

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TESTED = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b(.*)$", re.MULTILINE)
_DEFINED = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)
_MACRO = re.compile(r"\b[A-Z][A-Z0-9_]*\b")
_TYPES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "__half": "float16",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long": "int64",
    "long long": "int64",
    "size_t": "uint64",
    "char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    **{f"{name}_t": name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
}
_QUALIFIERS = re.compile(r"\b(const|restrict|__restrict__|__restrict|volatile)\b")
_EXTENTS = ("nx", "ny", "nz")
_LAUNCH = """
[launch] # formulas of knobs, and in the grid of the domain
block = ["BLOCK_X", "BLOCK_Y"]
grid = ["ceildiv(nx, BLOCK_X)", "ceildiv(ny, BLOCK_Y)"]
"""


class _Language(NamedTuple):
    """Parts of a description that depend on the language of a kernel.

    defined: name and parameters of a kernel; needed: such a function in words; options: of the compiler; blocks: knobs
    of the launch; launch: its table; left: knobs of it that are left to fill in.
    """

    defined: re.Pattern[str]
    needed: str
    options: str
    blocks: tuple[str, ...] = ()
    launch: str = ""
    left: str = ""


_LANGUAGES = {
    "cuda": _Language(
        re.compile(r"__global__[^;{}()]*?(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)\s*\{"),
        "a __global__ function",
        '["-std=c++17"]',
        ("BLOCK_X", "BLOCK_Y"),
        _LAUNCH,
        ", block and grid",
    ),
    "cpu": _Language(
        re.compile(r"^\s*void\s+(\w+)\s*\(([^)]*)\)\s*\{", re.MULTILINE),
        "a function void NAME(...) that is not static",
        '["-O3", "-march=native"]',
    ),
}
"""By backend."""


class _Parameter(NamedTuple):
    name: str
    kind: str
    is_pointer: bool
    is_const: bool


def write_template(path: Path) -> tuple[Path, list[str]]:
    """Write the description beside a kernel; return its path, and what is left to do. Raises InputError."""
    if path.suffix not in BACKENDS_OF:
        raise InputError(f"{path} ends neither in .c nor in .cu; give a kernel in C or in CUDA.")
    target = path.with_suffix(".toml")
    if target.exists():
        raise InputError(f"{target} exists; edit it, or remove it to begin again.")
    text = _COMMENT.sub(" ", read_text(path))
    language = _LANGUAGES[BACKENDS_OF[path.suffix]]
    found = language.defined.findall(text)
    if not found:
        raise InputError(f"{path} defines no kernel: it needs {language.needed}.")
    entry, parameters = found[-1]
    named = [_parameter(one) for one in parameters.split(",") if one.strip() and one.strip() != "void"]
    write_atomically(target, _text(entry, named, _macros(text), language).encode())
    return target, list(_left(named, language))


def _parameter(text: str) -> _Parameter:
    plain = " ".join(_QUALIFIERS.sub(" ", text.replace("*", " * ").replace("[]", " * ")).split())
    kind, _, name = plain.replace("*", " ").strip().rpartition(" ")
    return _Parameter(name, _TYPES.get(" ".join(kind.split()), "float32"), "*" in plain, "const" in text)


def _macros(text: str) -> list[str]:
    """Return the macros that the text reads and does not define."""
    used = dict.fromkeys(_MACRO.findall(text))
    return [name for name in used if name not in {*_DEFINED.findall(text)} and not name.startswith("_")]


def _left(parameters: Sequence[_Parameter], language: _Language) -> Iterator[str]:
    yield "domain, bytes_per_update and the sizes and roles of buffers"
    if any(not one.is_pointer and one.name not in _EXTENTS for one in parameters):
        yield "the values of scalar arguments"
    yield f"the knobs{language.left}, and what results are compared with"


def _text(entry: str, parameters: Sequence[_Parameter], macros: Sequence[str], language: _Language) -> str:
    names = [*(name for name in language.blocks if name not in macros), *macros]
    knobs = "".join(f"{name} = {'[16, 32, 64]' if name in language.blocks else '[1]'}\n" for name in names)
    return (
        f'entry = "{entry}"\n'
        "domain = [512, 512] # cells along x, y and, in three dimensions, z\n"
        'bytes_per_update = "" # a formula; empty: each element of each buffer once\n'
        'flop_per_update = "0" # 0: unknown\n'
        f"options = {language.options} # of the compiler\n"
        "constraints = [] # formulas of knobs and nx, ny, nz that hold for legal values\n"
        f"{''.join(map(_argument, parameters))}\n"
        f"[knobs] # macros and their values, the first one is the default\n{knobs}"
        f"{language.launch}\n"
        "[reference] # what results are compared with; without it: the first value of each knob\n"
        '# python = "reference.py" # a file in NumPy, which is run\n'
        '# entry = "step" # a function there, or in the kernel\'s text\n'
        "# tolerance = 1e-5 # of the largest value of a buffer\n"
    )


def _argument(one: _Parameter) -> str:
    head = f'\n[[argument]]\nname = "{one.name}"\ntype = "{one.kind}"\n'
    if one.is_pointer:
        return f'{head}size = "9 * nx * ny" # elements\nrole = "{"in" if one.is_const else "out"}" # in, out or inout\n'
    return f'{head}value = "{one.name if one.name in _EXTENTS else 0}"\n'
