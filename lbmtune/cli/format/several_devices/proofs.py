"""Print proofs and times of parts on several devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lbmtune.catalogue.limits import extents
from lbmtune.cli.format import output
from lbmtune.errors import NothingValidError
from lbmtune.units import format_bytes, format_mlups

if TYPE_CHECKING:
    from lbmtune.api.several_devices.outcomes import Proof, Raced
    from lbmtune.decomposition.coupling import Coupling
    from lbmtune.measure.parts.race import Coupled

_DEFAULT = "default"


def show_agreement(found: Proof, named: Mapping[str, object], as_json: bool, *, quietly: bool = False) -> None:
    """Print how far parts and one device lie apart; raise NothingValidError if that is more than rounding.

    named: case and configuration, for JSON. quietly: without printing.
    """
    if quietly:
        pass
    elif as_json:
        output.emit_json("verify-parts", {**named, **found.facts()})
    else:
        domain = f"{extents(found.domain)} cells, cut={found.cut}"
        output.stdout().print(f"parts beside one device, {domain}, halos poisoned before each exchange")
        rows = [
            (
                _text(one),
                "equal bit for bit"
                if not each.worst
                else f"{each.worst:.2g} apart, by rounding up to {each.bound:.2g}"
                if each.passed
                else "wrong result",
            )
            for one, each in found.found.items()
        ]
        rows += [(_text(one), f"refused: {reason}") for one, reason in found.refused.items()]
        output.print_pairs(rows)
    if not found.passed:
        wrong = next(one for one, each in found.found.items() if not each.passed)
        raise NothingValidError(f"parts that exchange by {_text(wrong)} have another state than one device.")


def print_race(found: Raced, config: str, proof: Proof) -> None:
    """Print the speed of each coupling beside that of one device. config: in words."""
    times = found.times
    kind = "weak" if found.alone.domain != found.case.domain else "strong"
    output.print_pairs(
        [
            ("configuration", config),
            ("devices", f"{', '.join(dict.fromkeys(found.devices))}; {len(found.devices)} parts, cut={found.cut}"),
            ("domain", f"{extents(found.case.domain)}, {kind} scaling"),
            (
                "one device",
                f"{format_mlups(times.alone_mlups)} {found.case.speed_unit} on {extents(found.alone.domain)}",
            ),
            ("exchange", f"{format_bytes(found.sent_bytes)} sent by a part, every {times.steps} time steps"),
            ("proved", f"{len(proof.found)} couplings on {extents(proof.domain)}"),
        ]
    )
    unit = found.case.speed_unit
    columns = ("coupling", f"{unit}>", "efficiency>", "period us>", "launches us>", "exchange us>", "shows us>")
    predicted = (f"predicted {unit}>", "predicted exchange us>")
    timed = sorted((one for one in times.coupled if not one.refused), key=lambda one: one.median_s)
    rows = [_row(found, one) for one in timed]
    output.stdout().print("", output.table("medians of runs in turns", (*columns, *predicted), rows))
    if refused := [(_text(one.coupling), f"refused: {one.refused}") for one in times.coupled if one.refused]:
        output.stdout().print()
        output.print_pairs(refused)


def _row(found: Raced, one: Coupled) -> tuple[str, ...]:
    expected, share = found.expected(one.coupling), found.times.efficiency(one)
    mlups = found.case.fluid_sites * expected.steps / expected.total_s / 1e6 if expected else None
    return (
        _text(one.coupling),
        format_mlups(found.times.mlups(one)),
        f"{share.median:.1%}",
        *(f"{1e6 * seconds:,.1f}" for seconds in (one.median_s, one.launches_s, one.exchange_s, one.shown_s)),
        format_mlups(mlups) if mlups else "-",
        f"{1e6 * expected.exchange_s:,.1f}" if expected else "-",
    )


def _text(coupling: Coupling) -> str:
    return str(coupling) or _DEFAULT
