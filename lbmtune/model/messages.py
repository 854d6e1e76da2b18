"""Predict how long an exchange takes by what was measured of the links between devices, and of nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lbmtune.decomposition.coupling import Coupling, Transport, bands
from lbmtune.decomposition.parts import Decomposition, Face, Part
from lbmtune.decomposition.transfers import face_bytes, runs
from lbmtune.model.machine.curves import by_bytes, enclosed
from lbmtune.model.machine.description import Links

_WAITS = 2
"""Waits for another device in an exchange: until it may be written to, and until it has written."""


def exchange_s(
    found: Decomposition,
    part: Part,
    links: Links,
    transport: Transport,
    start_s: float,
    *,
    busy: bool = False,
) -> float:
    """Return the seconds of the exchange of a part: two waits, and its messages, which follow each other.

    A message takes as long as one run of its bytes between devices that wait for each other, if that was measured, and
    what copies of its size take more if it has several runs. Otherwise a kernel begins once, and its stores have the
    bandwidth of both directions at once. start_s: of a launch on nothing; busy: whether kernels use memory meanwhile.
    Raises ValueError for a transport of which nothing is known.
    """
    if not known_transport(links, transport):
        raise ValueError(f"transport={transport}: links do not say how long its messages take")
    waits, faces = _WAITS * (links.wait_s or 0.0), [one for one in found.faces if one.source == part.number]
    stored = (busy and links.busy_message_store_s) or links.message_store_s
    if transport == "pack" and stored:
        return waits + sum(_curve_s(stored, face_bytes(found, face)) for face in faces)
    if transport == "pack" and links.store_both_ways_bytes_per_s:
        moved = sum(face_bytes(found, face) for face in faces)
        return waits + start_s + 2 * moved / links.store_both_ways_bytes_per_s
    return waits + sum(_copied_s(found, face, links, transport, busy=busy) for face in faces)


def _copied_s(found: Decomposition, face: Face, links: Links, transport: Transport, *, busy: bool) -> float:
    """Return the seconds of a message by copies: one of each run.

    Through the host a run takes at least two copies of the fewest bytes more: to its memory, and from there.
    """
    sent, pieces = face_bytes(found, face), 1 if found.case.geometry else runs(found, face)
    if transport == "host":
        return _curve_s(links.message_host_s, sent) + 2 * (pieces - 1) * copy_s(links, 0)
    each, idle, beside = sent / pieces, links.message_copy_s, links.busy_message_copy_s
    seconds, beside_each = pieces * copy_s(links, each), pieces
    if idle:
        seconds += _curve_s(idle, sent) - copy_s(links, sent)
    if busy and idle and beside:
        seconds += max(0.0, _curve_s(beside, sent) - _curve_s(idle, sent))
        beside_each -= 1
    if busy and links.busy_copy_s:
        seconds += beside_each * max(0.0, _curve_s(links.busy_copy_s, each) - _curve_s(links.copy_s, each))
    return seconds


def known_transport(links: Links, transport: Transport) -> bool:
    """Return whether links say how long messages take by a transport."""
    return transport in ("copy", "pack") or (transport == "host" and bool(links.message_host_s))


def enqueuing_s(found: Decomposition, links: Links, coupling: Coupling, launch_s: float) -> float:
    """Return the seconds in which the host enqueues what lies between two exchanges, for the parts of all devices.

    One thread calls for each launch, copy, mark and wait (`runtime.parts.schedule`); a graph is one call for many
    rounds. launch_s: of a launch or copy, if calls were not measured.
    """
    if coupling.launching == "graph":
        return 0.0
    each = links.call_s or {"launch": launch_s, "copy": launch_s}
    calls = Counter[str]()
    stages = found.steps // found.config.fused_steps
    for part in found.parts:
        messages = sum(part.number in (face.source, face.target) for face in found.faces)
        edges = len(bands(found, part, coupling).edges)
        calls.update(turn=stages, run=stages, mark=stages, wait=stages * messages, launch=stages)
        if edges:
            calls.update(run=1, mark=1, wait=stages + 1, launch=edges)
    for face in found.faces:
        pieces = 1 if found.case.geometry else runs(found, face)
        work = {"launch": 1} if coupling.transport == "pack" else {"copy": pieces}
        calls.update(turn=1, run=1, mark=1, wait=2, **work)
        if coupling.transport == "host":
            calls.update(run=1, mark=1, wait=1, **work)
    return sum(count * each.get(name, 0.0) for name, count in calls.items())


def copy_s(links: Links, sent: float) -> float:
    """Return the seconds of a copy of some bytes to a device that sends as many meanwhile.

    The curve is that of one direction; both at once share a little (`Links.both_ways_bytes_per_s`). Beyond the largest
    copy its bandwidth holds.
    """
    largest, longest = by_bytes(links.copy_s)[-1]
    return 2 * (largest / longest) / links.both_ways_bytes_per_s * _curve_s(links.copy_s, sent)


def _curve_s(measured: Mapping[str, float], sent: float) -> float:
    """Return the seconds of some bytes by those that were measured. Beyond the largest ones their bandwidth holds."""
    curve = by_bytes(measured)
    (least, shortest), *_, (largest, longest) = (curve[0], *curve)
    if sent >= largest:
        return longest * sent / largest
    return enclosed(curve, sent) if sent > least else shortest
