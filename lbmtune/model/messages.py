"""Predict how long an exchange takes by what was measured of the links between devices, and of nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.parts import Decomposition, Part
from lbmtune.decomposition.transfers import face_bytes, runs
from lbmtune.model.machine.curves import by_bytes, enclosed
from lbmtune.model.machine.description import Links

_WAITS = 2
"""Waits for another device in an exchange: until it may be written to, and until it has written."""


def exchange_s(found: Decomposition, part: Part, links: Links, coupling: Coupling, start_s: float) -> float:
    """Return the seconds of the exchange of a part: two waits, and its messages, which follow each other.

    A message takes as long as one run of its bytes between devices that wait for each other, if that was measured, and
    what copies of its size take more if it has several runs. Otherwise a kernel begins once, and its stores have the
    bandwidth of both directions at once. start_s: of a launch on nothing.
    """
    waits, faces = _WAITS * (links.wait_s or 0.0), [one for one in found.faces if one.source == part.number]
    if coupling.transport == "pack" and links.message_store_s:
        return waits + sum(curve_s(by_bytes(links.message_store_s), face_bytes(found, face)) for face in faces)
    if coupling.transport == "pack" and links.store_both_ways_bytes_per_s:
        moved = sum(face_bytes(found, face) for face in faces)
        return waits + start_s + 2 * moved / links.store_both_ways_bytes_per_s
    copies = 0.0
    for face in faces:
        sent, pieces = face_bytes(found, face), 1 if found.case.geometry else runs(found, face)
        copies += pieces * copy_s(links, sent / pieces)
        if links.message_copy_s:
            copies += curve_s(by_bytes(links.message_copy_s), sent) - copy_s(links, sent)
    return waits + copies


def copy_s(links: Links, sent: float) -> float:
    """Return the seconds of a copy of some bytes to a device that sends as many meanwhile.

    The curve is that of one direction; both at once share a little (`Links.both_ways_bytes_per_s`). Beyond the largest
    copy its bandwidth holds.
    """
    curve = by_bytes(links.copy_s)
    largest, longest = curve[-1]
    return 2 * (largest / longest) / links.both_ways_bytes_per_s * curve_s(curve, sent)


def curve_s(curve: Sequence[tuple[int, float]], sent: float) -> float:
    """Return the seconds of some bytes by a curve. Beyond its largest bytes their bandwidth holds."""
    (least, shortest), *_, (largest, longest) = (curve[0], *curve)
    if sent >= largest:
        return longest * sent / largest
    return enclosed(curve, sent) if sent > least else shortest
