"""The record of an example of a rule, and the cases and devices of the examples."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Faces, Patch
from lbmtune.catalogue.problem.flows import box

DEVICE = Limits(
    cores=16,
    memory_bytes=2**36,
    shared_bytes_per_block=227 << 10,
    shared_bytes_per_multiprocessor=228 << 10,
    multiprocessors=132,
    cooperative=True,
    dependent=True,
    asynchronous=True,
    bulk=True,
)
"""A device with everything that kernels use."""
BARE = Limits(cores=16, memory_bytes=2**36, vector_bits=128, huge_pages=False)
"""One with what every CUDA device has, or with short vectors."""
SCARCE = replace(DEVICE, memory_bytes=2**30)
CASE = box("d3q19", "bgk", (256, 256, 256))
MOMENTS = box("d3q19", "regularised", (256, 256, 256))
SMALL = box("d3q19", "bgk", (32, 32, 32))
SMALL_MOMENTS = box("d3q19", "regularised", (32, 32, 32))
FLAT = box("d2q9", "regularised", (256, 256, 1))
PERIODIC_BESIDE_WALLS: Faces = ("periodic", "periodic", "wall", "wall", "periodic", "periodic")
MOVING_PATCH = (Patch("moving", "rectangle:x=0..0.5", "y+", (0.1, 0.0, 0.0)),)


def walled(case: Case) -> Case:
    """Return the case with walls across y."""
    return replace(case, faces=PERIODIC_BESIDE_WALLS)


def slipping(case: Case) -> Case:
    """Return the case with free slip across x, whose cells complete what arrives."""
    return replace(case, faces=("slip", "slip", "wall", "wall", "periodic", "periodic"))


def solid(case: Case) -> Case:
    """Return the case with a sphere of solid cells."""
    return replace(case, flow="solids", geometry="sphere")


def patched(case: Case) -> Case:
    """Return the case with a part of a wall that moves."""
    return replace(walled(case), patches=MOVING_PATCH)


def sized(case: Case, x: int, y: int, z: int) -> Case:
    """Return the case on another domain."""
    return replace(case, domain=(x, y, z))


class Example(NamedTuple):
    """A legal configuration and an illegal neighbour of a family, as texts without the family, and the sentence.

    case, limits: of the illegal one; the legal one has `legal_case` if that is given, and a device with everything.
    """

    legal: str
    illegal: str
    sentence: str
    case: Case = CASE
    legal_case: Case | None = None
    limits: Limits = DEVICE
