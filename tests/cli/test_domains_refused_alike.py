"""The file, `load` and the command line refuse the same domains of a recorded kernel."""

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lbmtune
from lbmtune.api.machines.devices import limits_of
from lbmtune.api.machines.shipped import named_machine
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.record import Cells
from lbmtune.cli.arguments import configs
from lbmtune.cli.arguments.options import Options
from lbmtune.errors import InputError
from lbmtune.records.best_json.document import Best, encode_best, read_best
from lbmtune.runtime import load as loading
from tests.support.paths import RECORDED

SETS = (
    "nvidia-h200/d2q9-box-fast-fp32",
    "nvidia-h200/d3q19-box-fp32",
    "nvidia-h200/d3q19-cavity-fast-fp32",
    "nvidia-h200/d3q19-small-48",
    "nvidia-h200/d3q19-small-96",
    "nvidia-h200/d3q27-box-trt-fp64",
    "zen3-2-cores/d3q19-box-fast-fp32",
    "xeon-2-cores/d3q19-box-fp32",
)
"""A kernel of each family and backend that one of the sets without solid cells has as its best."""
DOMAINS = 12
MACHINE = "h200"


class CompiledError(Exception):
    """Stands for all that comes after a domain was admitted."""


def drawn(best: Best) -> list[Cells]:
    """Its own domain, and others near it, of whole tiles and of none."""
    draw, own = random.Random(best.key), best.case.domain
    flat = best.case.stencil.dimensions == 2

    def extent(n: int) -> int:
        return max(1, draw.choice((n, n, n, n // 2, 2 * n, 64)) + draw.choice((0, 0, 0, -1, 2, 16)))

    others = [(extent(own[0]), extent(own[1]), 1 if flat else extent(own[2])) for _ in range(DOMAINS)]
    return [own, *others, (own[0], own[1], 2 if flat else 0)]


def admitted_by_load(path: Path, domain: Cells) -> bool:
    try:
        lbmtune.load(path, domain=domain, trusted=True)
    except InputError:
        return False
    except CompiledError:
        return True
    raise AssertionError("nothing was compiled")


def admitted_by_file(best: Best, domain: Cells, limits: Limits) -> bool:
    rules = best.kernel.domain
    assert rules
    try:
        stored = best.config.stored_extents(replace(best.case, domain=domain))
    except InputError:
        return False
    numbers = zip(("nx", "ny", "nz", "NX", "NY", "NZ"), (*domain, *stored[:3]), strict=True)
    return rules.refusal(dict(numbers), limits.multiprocessors) is None


def admitted_by_command_line(path: Path, domain: Cells, options: Options) -> bool:
    sets = [f"case.domain={'x'.join(map(str, domain))}"]
    try:
        return configs.resolve(str(path), replace(options, sets=sets)).reason is None
    except InputError:
        return False


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
@pytest.mark.parametrize("name", SETS)
def test_file_load_and_command_line_refuse_the_same_domains(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = RECORDED / name / "best.json"
    best = read_best(path)
    limits = replace(limits_of(named_machine(MACHINE)), cores=2)
    device = SimpleNamespace(limits=limits, environment=best.environment)

    def compiled(*_: Any) -> Any:
        raise CompiledError

    monkeypatch.setattr(loading, "open_device", lambda _: device)
    monkeypatch.setattr(loading, "compiler_for", lambda _: compiled)
    monkeypatch.setattr(loading, "_check_support", lambda *_: None)
    monkeypatch.setattr("lbmtune.api.machines.devices.open_device", lambda _: device)
    for module in (loading, configs):  # the files stay the same, and are read and checked once
        monkeypatch.setattr(module, "read_best", cache(read_best))
    monkeypatch.setattr(configs, "named_machine", cache(named_machine))
    place = {"machine": MACHINE} if best.kernel.target == "cuda" else {"device": "cpu"}
    older = tmp_path / "older.json"
    older.write_bytes(
        encode_best(replace(best, kernel=replace(best.kernel, domain=None))).replace(b'"version": 2', b'"version": 1')
    )
    found = set[bool]()
    for domain in drawn(best):
        admitted = admitted_by_load(path, domain)
        assert admitted_by_load(older, domain) == admitted
        assert admitted_by_file(best, domain, limits) == admitted, domain
        assert admitted_by_command_line(path, domain, Options(**place)) == admitted, domain
        found.add(admitted)
    assert found == {True, False}
