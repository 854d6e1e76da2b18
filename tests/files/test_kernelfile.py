"""Descriptions of users' kernels: what they say, and what is wrong with them in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.catalogue.own_kernel.definition import OwnKernel
from lbmtune.errors import InputError
from lbmtune.files.kernelfile import load_kernel
from lbmtune.files.kernelstudy import kernel_study
from lbmtune.files.kerneltemplate import write_template
from lbmtune.search.spaces.space import legal_set
from tests.support.kernels.own_kernels import DESCRIPTION, TEXT, loaded, written
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "own-kernel"


def test_a_description_makes_a_family_of_its_own(tmp_path: Path) -> None:
    kernel, case = loaded(tmp_path)
    config = family_of(kernel).parse({"TILE": 8})
    assert config.flat() == {"backend": "cpu", "family": kernel.family, "threads": 1, "TILE": 8}
    assert from_flat(config.flat()) == config
    assert config.scratch_bytes(case) == 64 * 4 * 2 + 4
    assert config.population_bytes(case) == (64 * 4 * 3 + 4 * 2) / 64  # a store loads its line first
    assert broken(case, family_of(kernel).parse({"TILE": 128}), Limits()) == (
        "the constraint 'TILE <= nx' of ring does not hold (nx=64, TILE=128)"
    )
    other, _ = loaded(tmp_path, TEXT.replace("0.5f", "0.25f"))
    assert other.family != kernel.family, "another text is another family"
    assert family_of(other).parse({"TILE": 8}).key != config.key


def test_entries_that_take_turns_swap_no_buffers(tmp_path: Path) -> None:
    description = DESCRIPTION.replace('entry = "plain"', "").replace('"mean"', '"mean"\nodd_entry = "plain"')
    with pytest.raises(InputError, match=r"argument\[1\]\.swap: does not go with odd_entry"):
        loaded(tmp_path, description=description)
    kernel, _ = loaded(tmp_path, description=description.replace('swap = "g"', ""))
    assert kernel.entries == ("mean", "plain")


def test_knobs_and_domain_of_a_study_are_overridden(tmp_path: Path) -> None:
    spec = kernel_study(written(tmp_path), ["TILE=8,4", "case.domain=32x2", "budget.trials=3", "seed=5"])
    assert spec.case.domain == (32, 2, 1)
    assert (spec.budget.trials, spec.seed) == (3, 5)
    space = legal_set(spec.case, "cpu", spec.axes["cpu"], Limits())
    assert [config.flat()["TILE"] for config in space.configs] == [8, 4]


@pytest.mark.parametrize(
    ("changed", "to", "said"),
    [
        ('entry = "mean"', 'entri = "mean"', "line 2: entri: unknown key; did you mean 'entry'?"),
        ('entry = "mean"\n', "", "entry: is missing; give it a value."),
        ('"mean"', '"2nd mean"', "entry: '2nd mean' is no name of a function; correct it."),
        ('"mean"', '"mean"\nodd_entry = "2nd"', "odd_entry: '2nd' is no name of a function; correct it."),
        ('"mean"', '"mean"\nodd_entry = "plain"', "reference.entry: is one function for launches of two; give"),
        ("[64, 1]", "[64]", "domain: [64] is not of the form [512, 512]; give two or three positive cell counts."),
        ("[64, 1]", "[64, 0]", "domain: [64, 0] is not of the form"),
        ("TILE <= nx", "TYLE <= nx", "constraints[1]: 'TYLE <= nx' reads 'TYLE', which is none of nx, ny, nz, TILE"),
        ("TILE <= nx", "open('x')", "constraints[1]: \"open('x')\" has Call, which formulas do not have; correct it."),
        ('type = "int32"\nvalue', 'type = "int"\nvalue', "argument[4].type: unknown type 'int'; did you mean"),
        ('size = "nx"\nrole = "out"', 'role = "out"', "argument[2].name: g needs either a size"),
        ('role = "out"', 'role = "output"', "argument[2].role: 'output' is not the role of a buffer (use in, out"),
        ('swap = "g"', 'swap = "count"', "argument[1].swap: 'count' is no other buffer of this type and size."),
        ('value = "nx"', 'value = "nx"\nrole = "in"', "argument[4].value: nx is a value, and role, swap and random"),
        ('"count"', '"f"', "argument[3].name: f is the name of two arguments; rename one."),
        ('size = 1\n', 'size = "nx / 7"\n', "argument: the size of a buffer is 9.14"),
        ("TILE = [4, 8, 128]", "tile = [4]", "knobs.tile: is no name of a macro in capital letters"),
        ("TILE = [4, 8, 128]", "TILE = []", "knobs.TILE: []: give one or several values, each once."),
        ("[4, 8, 128]", '[4, "a"]', "knobs.TILE: [4, 'a'] has numbers and words; use either."),
        ("[4, 8, 128]", '["a b"]', "knobs.TILE: 'a b' is no word of letters, digits and '_'; correct it."),
        ("TILE = [", 'threads = [0]\nTILE = [', "knobs.threads: 0 is no number of threads"),
        ('entry = "plain"', "tolerance = 2.0", "reference.tolerance: 2.0 is not between 0 and 1"),
        ('entry = "plain"', 'python = "none.py"\nentry = "f"', "none.py: No such file or directory"),
        ('entry = "plain"', 'python = "reference.py"', "reference.entry: is missing; name the function"),
        ("[reference]", '[launch]\nblock = [1]\ngrid = [1]\n[reference]', "launch: does not go with a kernel in C"),
        ("[knobs]", "[knobs", "this is not TOML"),
        ('value = "nx"', "value = 1.5", "argument: the value of an argument is 1.5, and has to be a whole number"),
        ('value = "nx"', "value = 3e9", "has to be a whole number from -2147483648 to 2147483647; correct it."),
        ('role = "out"', 'role = "out"\nrandom = [2.0, 1.0]', "random: [2.0, 1.0] are no least and largest"),
        ('role = "inout"', 'role = "inout"\nrandom = [0, 3e9]', "are no least and largest value of int32; correct"),
        ('role = "out"', 'role = "out"\nrandom = [nan, 1.0]', "argument[2].random: [nan, 1.0] are no least"),
    ],
)  # fmt: skip
def test_bad_descriptions(tmp_path: Path, changed: str, to: str, said: str) -> None:
    assert changed in DESCRIPTION
    with pytest.raises(InputError) as error:
        loaded(tmp_path, description=DESCRIPTION.replace(changed, to, 1))
    sentence = str(error.value)
    assert said in sentence
    assert "\n" not in sentence
    assert re.search(r"[.?]$", sentence)


@pytest.mark.parametrize(("changed", "to"), [("values", []), ("name", "tile"), ("name", "a b")])
def test_a_damaged_record_of_a_kernel_is_refused(tmp_path: Path, changed: str, to: object) -> None:
    kernel, _ = loaded(tmp_path)
    whole = msgspec.to_builtins(kernel)
    assert msgspec.convert(whole, OwnKernel) == kernel
    with pytest.raises(msgspec.ValidationError, match="has no values, or is no name"):
        msgspec.convert({**whole, "knobs": [{**whole["knobs"][0], changed: to}]}, OwnKernel)


def test_the_launch_of_a_cuda_kernel_is_needed(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.rename(tmp_path / "ring.cu")
    with pytest.raises(InputError, match=r"launch: is missing; a CUDA kernel needs \[launch\] with block and grid"):
        load_kernel(tmp_path / "ring.toml")


@pytest.mark.parametrize(("override", "said"), [("TILE=5", "5 is none of its values"), ("scheme=aa", "its knobs are")])
def test_other_overrides(tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        kernel_study(written(tmp_path), [override])


def test_a_template_is_a_description(tmp_path: Path) -> None:
    """Of the example it lacks what no text says: domain, roles of arrays that are written, values of knobs."""
    path = tmp_path / "d2q9.c"
    path.write_text((EXAMPLES / "d2q9.c").read_text())
    target, left = write_template(path)
    kernel, _ = load_kernel(target)
    example, _ = load_kernel(EXAMPLES / "d2q9.toml")
    assert (kernel.entry, len(left)) == (example.entry, 3)
    assert [(one.name, one.type, one.role) for one in kernel.arguments] == [
        (one.name, one.type, one.role) for one in example.arguments
    ]
    assert {one.name for one in kernel.knobs} == {"SOA", "WRAP", "TILE_X", "TILE_Y"}
    with pytest.raises(InputError, match="exists; edit it"):
        write_template(path)
