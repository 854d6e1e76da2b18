"""Conditions on the domain of a kernel as data: made from those by which rules refuse a domain."""

from collections.abc import Iterator
from math import lcm

from lbmtune.catalogue.domain_conditions import Condition, Place
from lbmtune.catalogue.families.rules import Limits, domain_conditions
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.codegen.program import Program
from lbmtune.codegen.trace import Traced, plain
from lbmtune.records.best_json.domain import DomainLimit, DomainRules

_AXES = ("nx", "ny", "nz")


def domain_rules(program: Program, limits: Limits) -> DomainRules:
    """Return what a domain must obey. limits: of the device, on which it depends how many blocks run at once."""
    x, y, z = map(Traced, _AXES)
    place = Place((x, y, z), lambda: Extents(Traced("NX"), Traced("NY"), Traced("NZ"), program.frame.q))
    of_kernel = domain_conditions(program.case, program.config, limits)
    conditions = [(plain(one.value(place)), one) for one in (*of_kernel, *_reach(program))]
    of_extents = [[one for text, one in conditions if text == name] for name in _AXES]
    mostly, fewest, most = zip(*map(_joined, of_extents), strict=True)
    return DomainRules(
        multiple=mostly,
        least=fewest,
        most=most,
        because=tuple(dict.fromkeys(said for text, one in conditions if text in _AXES and (said := _said(text, one)))),
        limits=tuple(_limit(text, one) for text, one in conditions if text not in _AXES),
    )


def _joined(conditions: list[Condition]) -> tuple[int, int, int]:
    """Return the multiple, the least and the most extent that obey all conditions."""
    most = min(one.most for one in conditions if one.most is not None)
    return lcm(*(one.multiple for one in conditions)), max(one.least for one in conditions), most


def _said(name: str, one: Condition) -> str:
    """Return a condition on an extent in words; empty for those that every kernel has."""
    if one.least == one.most:
        return f"{name} is {one.most}: {one.because}"
    parts = [f"a multiple of {one.multiple}"] * (one.multiple > 1) + [f"at least {one.least}"] * (one.least > 1)
    return f"{name} is {' and '.join(parts)}: {one.because}" if parts else ""


def _limit(text: str, one: Condition) -> DomainLimit:
    return DomainLimit(
        value=text,
        because=one.because,
        multiple=one.multiple,
        least=one.least,
        most=one.most,
        per_multiprocessor=one.multiprocessors is not None,
    )


def _reach(program: Program) -> Iterator[Condition]:
    """Yield that the indices of the text reach all elements of a buffer, unless they have 64 bits."""
    if program.max_elements is not None:
        config, lattice = program.config, program.case.stencil
        yield Condition(
            value=lambda place: config.memory.length(place.stored) + config.extra_elements(lattice, place.cells),
            most=program.max_elements,
            because="elements of a buffer that the 32-bit indices of the text reach",
            said="{value:,} elements of a buffer",
        )
