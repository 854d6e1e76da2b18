"""Hold the model against the figures that the documents print: each variant on the published device.

    python -m scripts.recorded.against_published [--docs docs/lab/model-against-published.md]

Devices, and why rows are off, are in against_published.toml. Exit code 1 if one is more than 25 % off without a reason.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from lbmtune.api.machines.devices import limits_of
from lbmtune.api.machines.shipped import named_machine, shipped_machines
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.claims.plan import Here, configuration
from lbmtune.errors import InputError
from lbmtune.files.casefile import domain_of
from lbmtune.files.claimsfile import load_documents
from lbmtune.model.machine.datasheet_scaling import REFERENCE_BYTES_PER_S, with_scaled_calibration
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records.claims import Document, Printed, Series, Variant
from scripts.paths import ROOT

DATA = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "docs" / "lab" / "model-against-published.md"
ALLOWED = 0.25
TITLE = "model against published speeds, on the published devices; share: of the bandwidth of the data sheet"
_HEAD = (
    *("document", "variant", "device", "where", "domain", "storage"),
    *("published", "model", "model / published", "share", "note"),
)
_WHOLE = 100
"""Speeds from here on are printed as whole numbers."""
_BEGIN, _END = "<!-- table -->\n", "<!-- /table -->"
_DOMAIN = re.compile(r"\d+x\d+(x\d+)?")
_SMT = {"cpu": 2, "cuda": 1}
"""Threads of a core of the published processors that were used."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device of the documents, by the beginning of its name. copy_bytes_per_s: printed for it in that state."""

    name: str
    machine: str
    copy_bytes_per_s: float = 0.0
    source: str = ""

    @property
    def described(self) -> Machine:
        """The machine with the printed bandwidth, if there is one."""
        found = named_machine(self.machine)
        if not self.copy_bytes_per_s:
            return found
        if BACKENDS[found.environment.backend].shares_host:
            rate = self.copy_bytes_per_s
            streams = dict.fromkeys(found.stream_bytes_per_s, rate)
            return replace(found, copy_bytes_per_s=rate, in_place_bytes_per_s=rate, stream_bytes_per_s=streams)
        return _with_copy(self.machine, self.copy_bytes_per_s)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why rows are off. Patterns of document, variant and device; empty ones fit all.

    ratio: least and most of predicted over published speed that it explains; None: there is no prediction.
    """

    because: str
    ratio: tuple[float, float] | None = None
    document: str = ""
    variant: str = ""
    device: str = ""

    def fits(self, row: Row) -> bool:
        """Return whether it is about a row."""
        if row.ratio is None or self.ratio is None:
            bounded = row.ratio is None and self.ratio is None
        else:
            bounded = self.ratio[0] <= row.ratio <= self.ratio[1]
        pairs = ((self.document, row.document), (self.variant, row.variant), (self.device, row.device))
        return bounded and all(re.fullmatch(pattern or ".*", text) for pattern, text in pairs)


@dataclass(frozen=True, kw_only=True)
class Data:
    """The file against_published.toml."""

    devices: tuple[Device, ...]
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """A published speed beside its prediction. predicted: None if there is none, for the reason `why`.

    where: circumstances, or the experiment; share: published bytes per second over the bandwidth of the data sheet.
    """

    document: str
    variant: str
    device: str
    where: str
    domain: str
    storage: str
    published: float
    predicted: float | None = None
    share: float | None = None
    why: str = ""

    @property
    def ratio(self) -> float | None:
        """Predicted over published speed."""
        return None if self.predicted is None else self.predicted / self.published

    @property
    def within(self) -> bool:
        """Whether the prediction lies within 25 % of the published speed."""
        return self.ratio is not None and abs(self.ratio - 1) <= ALLOWED


@cache
def data() -> Data:
    """Return devices and reasons."""
    return msgspec.toml.decode(DATA.read_bytes(), type=Data)


def _with_copy(name: str, copy_bytes_per_s: float) -> Machine:
    """Return a GPU of a data sheet whose curves are scaled by a printed copy bandwidth."""
    shipped = shipped_machines()
    sheet, lender = read_machine(shipped[name]), read_machine(shipped["h200"])
    assert sheet.datasheet is not None
    as_if = copy_bytes_per_s * REFERENCE_BYTES_PER_S / lender.copy_bytes_per_s
    return with_scaled_calibration(replace(sheet, datasheet=replace(sheet.datasheet, memory_bytes_per_s=as_if)), lender)


def device_of(name: str) -> Device | None:
    """Return the device whose name is the longest beginning of a published one, or None."""
    return max(
        (one for one in data().devices if name.startswith(one.name)), key=lambda one: len(one.name), default=None
    )


@cache
def machine_of(name: str) -> Machine | None:
    """Return the machine of a published device, or None."""
    found = device_of(name)
    return found.described if found else None


def case_of(variant: Variant, printed: Printed, series: dict[str, Series], backend: str) -> Case | None:
    """Return the case of a published speed: the printed domain, or else the largest of its experiment."""
    names = (printed.series,) if printed.series else variant.series
    cases = [case for name in names if name in series for case in series[name].cases.get(backend, ())[-1:]]
    cases = cases or [
        case for name in names if name in series for each in series[name].cases.values() for case in each[-1:]
    ]
    if not cases:
        return None
    written = _DOMAIN.search(printed.circumstances)
    return replace(cases[0], domain=domain_of(written[0], cases[0].lattice)) if written else cases[0]


def row_of(document: Document, variant: Variant, printed: Printed, storage: str = "") -> Row:
    """Return a published speed with its prediction. storage: instead of that of the configuration."""
    machine = machine_of(printed.device)
    row = Row(
        document=document.name,
        variant=variant.name,
        device=printed.device,
        where=" ".join(filter(None, (printed.series, printed.circumstances))),
        domain="",
        storage="",
        published=printed.mlups,
    )
    if machine is None:
        return replace(row, why="no machine file")
    backend = machine.environment.backend
    case = case_of(variant, printed, {one.name: one for one in document.series}, backend)
    if case is None or backend not in variant.configs:
        return replace(row, why=f"no configuration for {backend}")
    limits = limits_of(machine)
    text = variant.configs[backend]
    if variant.duty and (variant.duty.kind, variant.duty.every) == ("macroscopics", 1):
        text += ",macroscopics=every-step"
    if storage:
        text = re.sub(r"storage=\w+", f"storage={storage}", text)
    here = Here(backend=backend, limits=limits, physical_cores=limits.cores // _SMT[backend], budget_bytes=0)
    try:
        config = configuration(text, here, case.domain)
    except InputError as error:
        return replace(row, domain=extents(case.domain), why=str(error))
    return _predicted(replace(row, domain=extents(case.domain), storage=config.storage), case, config, machine)


def _predicted(row: Row, case: Case, config: KernelConfig, machine: Machine) -> Row:
    reason = broken(case, config, limits_of(machine)) or ""
    described = device_of(row.device)
    sheet = described and read_machine(shipped_machines()[described.machine]).datasheet
    moved = row.published * 1e6 * bytes_per_update(case, config)
    share = moved / (sheet.memory_bytes_per_s if sheet else machine.copy_bytes_per_s)
    return replace(row, predicted=predict(case, config, machine).mlups, share=share, why=reason)


def rows(documents: Sequence[Document] | None = None) -> Iterator[Row]:
    """Yield all published speeds, in the order of the documents."""
    for document in documents or load_documents(()):
        for variant in document.variants:
            yield from (row_of(document, variant, printed) for printed in variant.published)


def reason_of(row: Row) -> str:
    """Return why a row is off, from the file; empty if it does not say."""
    return next((one.because for one in data().reasons if one.fits(row)), "")


def unexplained(table: Sequence[Row]) -> list[Row]:
    """Return the rows that are more than 25 % off, or have no prediction, without a reason."""
    return [row for row in table if not row.within and not reason_of(row)]


def text_of(table: Sequence[Row]) -> str:
    """Return the table as text, with numbered notes below it."""
    notes = notes_of(table)
    lines = [_HEAD, *(_cells(row, notes) for row in table)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    body = "\n".join("  ".join(f"{cell:<{n}}" for cell, n in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join((TITLE, body, "", *(f"{number}. {note}" for note, number in notes.items()), summary(table))) + "\n"


def page_of(table: Sequence[Row]) -> str:
    """Return the table of the document, in Markdown."""
    notes = notes_of(table)
    lines = [_HEAD, ("---",) * len(_HEAD), *(_cells(row, notes) for row in table)]
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    said = "\n".join(f"{number}. {note}" for note, number in notes.items())
    return f"{summary(table)}\n\n{body}\n\nNotes:\n\n{said}\n"


def notes_of(table: Sequence[Row]) -> dict[str, int]:
    """Return the reasons of the rows that are off, numbered in their order."""
    found = dict.fromkeys(reason_of(row) or row.why or "not explained" for row in table if not row.within)
    return {note: number for number, note in enumerate(found, 1)}


def summary(table: Sequence[Row]) -> str:
    """Return how many rows agree."""
    within, known = sum(row.within for row in table), sum(row.predicted is not None for row in table)
    return f"{within} of {known} predictions lie within {ALLOWED:.0%} of the published speed; the others have a note."


def _cells(row: Row, notes: dict[str, int]) -> tuple[str, ...]:
    return (
        row.document,
        row.variant,
        row.device,
        row.where,
        row.domain,
        row.storage,
        f"{row.published:,.4g}" if row.published < _WHOLE else f"{row.published:,.0f}",
        "-" if row.predicted is None else f"{row.predicted:,.0f}",
        "-" if row.ratio is None else f"{row.ratio:.2f}",
        "-" if row.share is None else f"{row.share:.0%}",
        "" if row.within else str(notes[reason_of(row) or row.why or "not explained"]),
    )


def main(arguments: list[str]) -> int:
    """Print the table, write it into the document if that is wanted, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, nargs="?", const=PAGE, help="document whose table is replaced")
    given = parser.parse_args(arguments)
    table = list(rows())
    print(text_of(table), end="")
    if given.docs:
        write_table(given.docs, table)
    return 1 if unexplained(table) else 0


def write_table(path: Path, table: Sequence[Row]) -> None:
    """Replace what stands in a document between the lines that mark the table."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    path.write_text(f"{before}{begin}\n{page_of(table)}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
