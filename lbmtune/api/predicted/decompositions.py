"""Decompositions of a case for several devices: parts, faces, bytes and balance, without a device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.balance import imbalance, loads
from lbmtune.decomposition.choice import legal_cuts
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import Decomposition, decomposed
from lbmtune.decomposition.rules import refusal
from lbmtune.decomposition.transfers import face_bytes
from lbmtune.errors import InputError

MOST_CUTS = 12
"""Cuts that are compared."""


@dataclass(frozen=True)
class Share:
    """A part with its fluid cells, and the bytes and neighbours of an exchange."""

    number: int
    device: int
    first: tuple[int, int, int]
    extents: tuple[int, int, int]
    stored: tuple[int, int, int]
    fluid_cells: int
    sent_bytes: int
    neighbours: int


@dataclass(frozen=True)
class Exchange:
    """A decomposition with what follows from it.

    shares: of each part, in order; exchange_bytes: of all faces; imbalance: the most fluid cells of a part over the
    mean; redundant: cells of halos over own cells, of the part that has most of them.
    """

    decomposition: Decomposition

    @cached_property
    def bytes_of_faces(self) -> tuple[int, ...]:
        """Return the bytes of each face."""
        return tuple(face_bytes(self.decomposition, face) for face in self.decomposition.faces)

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """Return what each part has."""
        found, sent = self.decomposition, [0] * len(self.decomposition.parts)
        others: list[set[int]] = [set() for _ in found.parts]
        for face, moved in zip(found.faces, self.bytes_of_faces, strict=True):
            sent[face.source] += moved
            others[face.source].add(face.target)
        return tuple(
            Share(
                number=part.number,
                device=part.device,
                first=part.box.low,
                extents=part.box.extents,
                stored=part.stored.extents,
                fluid_cells=load,
                sent_bytes=sent[part.number],
                neighbours=len(others[part.number] - {part.number}),
            )
            for part, load in zip(found.parts, loads(found), strict=True)
        )

    @property
    def exchange_bytes(self) -> int:
        """Return the bytes that cross all faces in an exchange."""
        return sum(self.bytes_of_faces)

    @property
    def most_sent_bytes(self) -> int:
        """Return the bytes of the part that sends most."""
        return max(one.sent_bytes for one in self.shares)

    @property
    def imbalance(self) -> float:
        """Return the most fluid cells of a part over the mean."""
        return imbalance([one.fluid_cells for one in self.shares])

    @property
    def redundant(self) -> float:
        """Return the cells of the halo over the own cells of the part that has most of them."""
        return max(part.stored.cells / part.box.cells for part in self.decomposition.parts) - 1

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        found = self.decomposition
        return {
            **self.summary(),
            "crosses": found.crossed,
            "halo_layers": found.depth,
            "steps_between_exchanges": found.steps,
            "parts": [vars(one) for one in self.shares],
            "faces": [
                {
                    "source": face.source,
                    "target": face.target,
                    "image": face.image,
                    "values": sorted({one.value for one in face.crossings}),
                    "bytes": moved,
                }
                for face, moved in zip(found.faces, self.bytes_of_faces, strict=True)
            ],
        }

    def summary(self) -> dict[str, Any]:
        """Return plain data without parts and faces."""
        return {
            "cut": str(self.decomposition.cut),
            "imbalance": self.imbalance,
            "redundant_cells": self.redundant,
            "most_sent_bytes": self.most_sent_bytes,
            "exchange_bytes": self.exchange_bytes,
            "neighbours": max(one.neighbours for one in self.shares),
        }


def decompose(
    case: Case, config: KernelConfig, cut: str = "", parts: int | None = None, *, limits: Limits | None = None
) -> Exchange:
    """Return the parts of a case on several devices, and what crosses their faces.

    cut: 'z:2', '2x1x4' or 'bisection:8'; '': of all cuts into so many parts the first of `cuts`. limits: of each
    device. Raises InputError if the cut or the kernel is not supported.

        >>> from lbmtune.catalogue.config import parse_config
        >>> found = decompose(Case("box", "d3q19", "bgk", (64, 64, 64), 1.6), parse_config("block=64x1x1"), "z:2")
        >>> [(len(face.crossings), moved) for face, moved in zip(found.decomposition.faces, found.bytes_of_faces)][:1]
        [(5, 81920)]
    """
    limits = limits or Limits()
    if not cut:
        return Exchange(legal_cuts(case, config, parts, limits)[0])
    chosen = parse_cut(cut, parts)
    if reason := refusal(case, config, chosen, limits):
        raise InputError(f"{reason}.")
    return Exchange(decomposed(case, config, chosen))


def cuts(case: Case, config: KernelConfig, parts: int, *, limits: Limits | None = None) -> Iterator[Exchange]:
    """Yield the legal cuts into a number of parts, that with the least work of the busiest part first.

    Work: fluid cells without the halo, in proportion to the cells with it. Raises InputError if no cut is legal.
    """
    yield from map(Exchange, legal_cuts(case, config, parts, limits or Limits())[:MOST_CUTS])
