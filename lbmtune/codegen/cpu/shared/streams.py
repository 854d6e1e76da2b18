"""The places that the populations of a row are read from and written to, and their indices."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.layouts.layout import Extents, Int
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import streamed
from lbmtune.catalogue.schemes.scheme import Access, Phase, Place
from lbmtune.catalogue.storage_frame import Domain, StorageFrame
from lbmtune.codegen.passes import pointer_name
from lbmtune.codegen.trace import Traced, plain
from lbmtune.lattice import Vector, negate

FACES = ("first_x", "last_x", "first_y", "last_y", "first_z", "last_z")
_TESTS = ("x == 0", "x == nx - 1", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")
_NEIGHBOURS = {-1: "({a} - 1 if {a} > 0 else n{a} - 1)", 0: "{a}", 1: "({a} + 1 if {a} < n{a} - 1 else 0)"}
_STORED = {1: "rows", 2: "planes"}
_SUFFIX = {-1: "_low", 0: "_here", 1: "_high"}


@dataclass(frozen=True)
class Stream:
    """The place of one population that is read or written, for an open link and for a link that a wall cuts.

    name: unique; in place, a population is written where another was read by the same link, and both have one name.
    link: velocity along which a wall may cut; gain: name of the momentum that a moving wall adds, or ''.
    """

    name: str
    buffer: str
    open: Place
    cut: Place
    link: Vector
    gain: str


@dataclass(frozen=True)
class Streams:
    """Streams of one phase. buffers: names of the arrays (read from, written to)."""

    case: Case
    config: CpuConfig
    phase: Phase
    buffers: tuple[str, str]

    @cached_property
    def reads(self) -> tuple[Stream, ...]:
        """Return the reads, one per direction; the link leads along -c_i."""
        return tuple(
            Stream(str(i), self.buffers[0], access.read, access.cut_read, link, self._gain("read", i, link))
            for i, access, link in self._links(-1)
        )

    @cached_property
    def writes(self) -> tuple[Stream, ...]:
        """Return the writes, one per direction; the link leads along c_i, and a cut link reverses the direction."""
        opposite, (source, target) = self.case.stencil.opposite, self.buffers
        return tuple(
            Stream(
                str(opposite[i]) if source == target else f"{i}w",
                target,
                access.write,
                access.cut_write,
                link,
                self._gain("write", opposite[i], link),
            )
            for i, access, link in self._links(1)
        )

    def ahead(self, s: Stream) -> int:
        """Return the prefetch distance of what a stream reads, in cells; 0: none."""
        return self.config.prefetch_propagated if any(s.open.offset) else self.config.prefetch_local

    @property
    def directions(self) -> tuple[int, ...]:
        """Return the directions, in the order of the streams."""
        return tuple(access.direction for access in self.phase.accesses)

    @property
    def all(self) -> tuple[Stream, ...]:
        """Return the reads and writes; rows that are kept first are not written to the lattice by their cells."""
        return self.reads if self.phase.blockwise else (*self.reads, *self.writes)

    def _links(self, sign: int) -> Iterable[tuple[int, Access, Vector]]:
        for access in self.phase.accesses:
            velocity = self.case.stencil.velocities[access.direction]
            yield access.direction, access, velocity if sign > 0 else negate(velocity)

    def _gain(self, way: str, i: int, link: Vector) -> str:
        return f"gain{i}" if way == self.phase.wall_term and self.case.may_move(link) else ""

    @property
    def gains(self) -> tuple[int, ...]:
        """Return the directions whose populations gain momentum from moving walls."""
        return tuple(sorted({int(s.gain.removeprefix("gain")) for s in self.all if s.gain}))

    # indices

    @cached_property
    def frame(self) -> StorageFrame:
        """Return the place of the domain in storage."""
        return self.config.frame(self.case.stencil)

    @cached_property
    def extents(self) -> Extents:
        """Return the storage extents, by their names in the text."""
        y, z = (name if self._differ(axis) else f"n{'xyz'[axis]}" for axis, name in _STORED.items())
        return Extents(Traced("pitch", "//"), Traced(y, "//"), Traced(z, "//"), self.case.stencil.q)

    def extent_lines(self) -> list[str]:
        """Return definitions of the pitch of a row, the stored rows and planes, and the stride between arrays."""
        stored = self.frame.extents(Domain(*(Traced(n, "//") for n in ("nx", "ny", "nz"))))
        lines = [f"pitch = {plain(stored.x)}"]
        lines += [f"{name} = {plain(stored[axis])}" for axis, name in _STORED.items() if self._differ(axis)]
        together = self.config.memory.together
        stride = [self.config.memory.component(together, self.extents)] if together else []
        return [*lines, *(f"stride = {plain(value)}" for value in stride)]

    def _differ(self, axis: int) -> bool:
        """Return whether more rows or planes are stored than the domain has."""
        return self.frame.align[axis] > 1 or self.frame.origin[axis] > 0

    def neighbour_lines(self) -> list[str]:
        """Return what rows y - 1, y, y + 1 and planes z - 1, z, z + 1 add to an index, if they are used; they wrap."""

        def coordinate(axis: int, offset: int) -> Int:
            inside = self.frame.coordinate(axis, Traced("xyz"[axis], "//")) + offset
            return inside if self.frame.blocks else _wrapped(axis, offset)

        return self._row_lines("", [p for s in self.all for p in (s.open, s.cut)], coordinate)

    def image_lines(self) -> list[str]:
        """Return what the rows and planes that ghost cells of a ring stand for add: image_y_low and so on."""
        read = [access.read for access in self.phase.accesses]
        return self._row_lines("image_", read, lambda axis, k: self.frame.coordinate(axis, _wrapped(axis, k)))

    def _row_lines(self, prefix: str, places: list[Place], coordinate: Callable[[int, int], Int]) -> list[str]:
        """Return what rows and planes of some places add. coordinate: of an axis and an offset, in storage."""
        return [
            f"{prefix}{'xyz'[axis]}{_SUFFIX[offset]} = {plain(along(coordinate(axis, offset), self.extents))}"
            for axis, along in ((1, self.config.memory.along_y), (2, self.config.memory.along_z))
            for offset in sorted({place.offset[axis] for place in places})
        ]

    def base(self, place: Place, prefix: str = "") -> str:
        """Return what slot, y and z of a place add to an index. prefix: of the names of rows and planes."""
        y, z = rows_of(place)
        return " + ".join([*self.slot(place), f"{prefix}y{y} + {prefix}z{z}"])

    def slot(self, place: Place) -> list[str]:
        """Return the terms that the slot of a place adds."""
        if place.pointer:
            return [pointer_name(place.slot)]
        memory = self.config.memory
        array, member = divmod(place.slot, memory.together) if memory.together else (0, place.slot)
        within = memory.component(member, self.extents) if member else 0
        return [*([f"{array} * stride"] if array else []), *([str(within)] if within else [])]

    def along_x(self, x: str) -> str:
        """Return what cell x of the domain adds to an index."""
        origin = self.frame.origin[0]
        return plain(self.config.memory.along_x(Traced(x, "//") + origin, self.extents))

    # walls

    def faces_used(self) -> tuple[int, ...]:
        """Return the faces that links cross."""
        return tuple(sorted({face for s in self.all for face, _ in self.case.crossed(s.link)}))

    def test(self, face: int) -> str:
        """Return the definition of the flag of cells at a face."""
        return f"{FACES[face]} = {_TESTS[face]}"

    def at_wall(self, stream: Stream, *, moving: bool = False, first_face: int = 2) -> str:
        """Return the condition that the link crosses a (moving) wall at a face from first_face on, or ''."""
        crossed = self.case.crossed(stream.link)
        return " or ".join(FACES[f] for f, kind in crossed if f >= first_face and (not moving or kind == "moving"))

    def x_face(self, stream: Stream) -> str:
        """Return the kind of the x face that the link crosses; 'periodic' for a link parallel to it."""
        return streamed(self.case.faces[stream.link[0] > 0]) if stream.link[0] else "periodic"


def stays(stream: Stream) -> bool:
    """Return whether a population lies in the cell itself, also if a wall cuts its link."""
    return not any(stream.open.offset) and not any(stream.cut.offset)


def rows_of(place: Place) -> tuple[str, str]:
    """Return the suffixes of the names of the row and the plane of a place."""
    return _SUFFIX[place.offset[1]], _SUFFIX[place.offset[2]]


def _wrapped(axis: int, offset: int) -> Traced:
    """Return the coordinate of a neighbour along an axis; it wraps around the domain."""
    return Traced(_NEIGHBOURS[offset].format(a="xyz"[axis]), "//")
