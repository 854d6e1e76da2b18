"""The interface of backends: devices, compiled programs, compilers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Launch, Program
from lbmtune.records import Conditions, Environment, Resources

Array = Any
"""A numpy or cupy array."""
OR_CPU = ", or use --device cpu"
"""The end of a sentence on a GPU that cannot be used; a kernel for a GPU has no such way out."""


@dataclass(frozen=True)
class Binary:
    """Compiled code that can be sent between processes.

    image: a cubin, or the path of a generated module as UTF-8; digest: SHA-256 of the code; names: in the code, of the
    entries that have another one there.
    """

    image: bytes
    digest: str
    resources: Resources
    log: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Placing:
    """The placement of the pages of an array in host memory. arrays: equal parts, each of which all threads share."""

    pages: str
    first_touch: str
    threads: int
    arrays: int
    numa: str = "any"


class CompileError(Exception):
    """Raised if the compiler rejects the text; the message is its log."""


class TooManyResourcesError(Exception):
    """Raised if a compiled kernel cannot be launched: registers, shared memory or threads."""


class OutOfMemoryError(Exception):
    """Raised if the device cannot allocate the buffers."""


class DeviceFaultError(Exception):
    """Raised if a kernel leaves the device unusable for this process, for example by an illegal address."""


class Queue(Protocol):
    """A queue of a device: work in order, beside that of other queues."""

    def run(self, work: Callable[[], None]) -> None:
        """Enqueue what a function enqueues: launches and copies."""
        ...

    def mark(self, *, timed: bool = False) -> Any:
        """Return a mark behind all work of now. timed: for `seconds`."""
        ...

    def wait(self, mark: Any) -> None:
        """Let later work wait for a mark of any queue of this process."""
        ...

    def seconds(self, first: Any, last: Any) -> float:
        """Wait for the later one of two timed marks of this queue, and return the seconds between both."""
        ...


class Executable(Protocol):
    """A loaded program."""

    @property
    def resources(self) -> Resources: ...

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Array | int | float]) -> None:
        """Enqueue one launch; arguments in the order of `launch.arguments`."""
        ...

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a function that enqueues all launches of `run`, at once if the device can; nothing is enqueued now."""
        ...


class Device(Protocol):
    """An open device of this process."""

    @property
    def xp(self) -> ModuleType:
        """Return the module of the device's arrays: numpy or cupy."""
        ...

    @property
    def limits(self) -> Limits: ...
    @property
    def environment(self) -> Environment: ...

    def empty(self, elements: int, dtype: str, placing: Placing | None = None, /) -> Array:
        """Return an uninitialised aligned one-dimensional array. Raises OutOfMemoryError.

        placing: of its pages, for devices whose memory is that of the host; None: as NumPy has it.
        """
        ...

    def host_empty(self, elements: int, dtype: str) -> Array:
        """Return a numpy array in the host's memory, page-locked if the device has its own memory."""
        ...

    def gathered(self, array: Array, indices: Any, /) -> Any:
        """Return elements of a contiguous array, once all enqueued work is done.

        indices: a numpy array of int64; the result is one of the same shape.
        """
        ...

    def filled(self, parts: Sequence[Array], value: int, /) -> bool:
        """Return whether every byte of some arrays of bytes has a value, once all enqueued work is done."""
        ...

    def load(self, program: Program, binary: Binary) -> Executable:
        """Load a compiled program. Raises TooManyResourcesError, OutOfMemoryError."""
        ...

    def synchronize(self) -> None:
        """Wait for all enqueued work. Raises DeviceFaultError if some of it failed."""
        ...

    def time_s(self, run: Callable[[], None]) -> float:
        """Return the seconds that `run` takes on the device, by device events or a monotonic clock."""
        ...

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        """Return the seconds of each of `count` runs without a pause between them; `look` is called in between.

        An asynchronous device has the next run in its queue by then, so that it never idles.
        """
        ...

    def conditions(self) -> Conditions:
        """Return clocks, power, temperature and throttle reasons of this moment."""
        ...

    def datasheet_bytes_per_s(self) -> float | None:
        """Return the peak memory bandwidth by bus width and clock; None if the system does not report it."""
        ...

    def marked(self, name: str, /) -> AbstractContextManager[None]:
        """Return a named range in the timeline of a profiler; without effect if none is attached."""
        ...

    def looked_at(self) -> AbstractContextManager[None]:
        """Return the range that a profiler counts if it was started with `ncu --profile-from-start off`."""
        ...

    def energy_j(self) -> float | None:
        """Return the energy drawn since a fixed moment in the past; None if the system does not report it."""
        ...


class PeerDevice(Device, Protocol):
    """A device that works beside others of this process, and exchanges data with them."""

    def current(self) -> AbstractContextManager[None]:
        """Return the range in which arrays are made on this device, and launches are of it."""
        ...

    def queue(self, *, first: bool = False) -> Queue:
        """Return a new queue. first: the blocks of its launches start before those of other queues that wait."""
        ...

    def copy(self, target: Array, source: Array, /) -> None:
        """Enqueue a copy of a contiguous array to another one, here, on another device or in `host_empty`."""
        ...

    def reaches(self, other: Any, /) -> bool:
        """Return whether kernels and copies reach the memory of another device of this process directly."""
        ...

    def recorded_in(self, queue: Any, run: Callable[[], None], /) -> Callable[[], None]:
        """Return a function that enqueues in a queue of this device what `run` enqueues, at once if it can.

        run: may enqueue in queues of any devices that wait for a mark of that one, and for which it waits in the end.
        Nothing is enqueued now.
        """
        ...


Compiler = Callable[[Program], Binary]
"""Compiles for one architecture, also in a process that has no device. Raises CompileError."""


@dataclass(frozen=True, kw_only=True)
class BackendPackage:
    """The entry of a backend, which its package registers as `BACKEND`.

    default_device: name of the device that is taken unless another one is named; accepts: whether a device name is
    one of this backend; devices: names of the devices that can be opened here; open_device: raises
    DeviceUnavailableError; compiler: the one for a device; reassembled: binaries of a program with fewer optimisations
    of the assembler, and the name of each way; reports_power: whether this process may read the energy of a device;
    link: the name of the link between two devices.
    """

    default_device: str
    accepts: Callable[[str], bool]
    devices: Callable[[], tuple[str, ...]]
    open_device: Callable[[str], Device]
    compiler: Callable[[Environment], Compiler]
    reassembled: Callable[[Environment, Program], Iterator[tuple[str, Binary]]]
    reports_power: Callable[[str], bool]
    link: Callable[[str, str], str]
