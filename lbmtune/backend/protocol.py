"""What a backend offers to the rest of the package."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Launch, Program
from lbmtune.records import Conditions, Environment, Resources

Array = Any
"""A numpy or cupy array."""


@dataclass(frozen=True)
class Binary:
    """Compiled code that can travel between processes.

    image: a cubin, or the path of a generated module as UTF-8; digest: SHA-256 of the code.
    """

    image: bytes
    digest: str
    resources: Resources
    log: str = ""


@dataclass(frozen=True)
class Placing:
    """How the memory of a CPU is laid under an array (see `CpuConfig`). arrays: equal parts that threads share each."""

    pages: str
    first_touch: str
    threads: int
    arrays: int


class CompileError(Exception):
    """The compiler refused the text; the message is its log."""


class TooManyResourcesError(Exception):
    """The kernel compiled but cannot be launched: registers, shared memory or threads."""


class OutOfMemoryError(Exception):
    """The device could not hold the buffers."""


class DeviceFaultError(Exception):
    """A kernel did something that leaves the device unusable for this process, such as an illegal address."""


class Executable(Protocol):
    """A loaded program."""

    @property
    def resources(self) -> Resources: ...

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Array | int | float]) -> None:
        """Enqueues one launch; arguments in the order of `launch.arguments`."""
        ...

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """What enqueues all launches of `run` at once, where the device can; they are not enqueued now."""
        ...


class Device(Protocol):
    """An open device of this process."""

    @property
    def xp(self) -> ModuleType:
        """Numpy or cupy: where the device's arrays live."""
        ...

    @property
    def limits(self) -> Limits: ...
    @property
    def environment(self) -> Environment: ...

    def empty(self, elements: int, dtype: str, placing: Placing | None = None, /) -> Array:
        """An uninitialised aligned one-dimensional array. Raises OutOfMemoryError.

        placing: said for a CPU alone, and where a configuration asks for other than the usual pages.
        """
        ...

    def host_empty(self, elements: int, dtype: str) -> Array:
        """The same in the host's memory, a numpy array, from and to which copies are as fast as can be."""
        ...

    def load(self, program: Program, binary: Binary) -> Executable:
        """Raises TooManyResourcesError."""
        ...

    def synchronize(self) -> None:
        """Waits for all that was enqueued and raises what went wrong in it."""
        ...

    def time_s(self, run: Callable[[], None]) -> float:
        """Seconds that `run` takes on the device, by device events or a monotonic clock."""
        ...

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        """Seconds of each of `count` runs, one after the other without a pause. `look` is called in between.

        A device that works on its own has the next run by then, so that it never waits.
        """
        ...

    def conditions(self) -> Conditions:
        """Clocks, power, temperature, throttle reasons now."""
        ...

    def datasheet_bytes_per_s(self) -> float | None:
        """What its memory could deliver at most by bus width and clock; None where it does not tell."""
        ...

    def marked(self, name: str, /) -> AbstractContextManager[None]:
        """A range of that name in the timeline of a profiler that looks on; nothing where there is none."""
        ...

    def looked_at(self) -> AbstractContextManager[None]:
        """What a profiler counts that waits until it is told to (`ncu --profile-from-start off`)."""
        ...

    def energy_j(self) -> float | None:
        """What it has drawn since some moment in the past; None where it does not tell."""
        ...


Compiler = Callable[[Program], Binary]
"""Compiles for one architecture; may run in a process that has no device. Raises CompileError."""


@dataclass(frozen=True, kw_only=True)
class BackendPackage:
    """What a backend's package registers as `BACKEND`.

    default_device: name of the device that is taken unless another one is named; accepts: whether a device name is
    one of this backend; devices: names of the devices that can be opened here; open_device: raises
    DeviceUnavailableError; compiler: the one for a device; reassembled: binaries of a program with fewer optimisations
    of the assembler, and the name of each way.
    """

    default_device: str
    accepts: Callable[[str], bool]
    devices: Callable[[], tuple[str, ...]]
    open_device: Callable[[str], Device]
    compiler: Callable[[Environment], Compiler]
    reassembled: Callable[[Environment, Program], Iterator[tuple[str, Binary]]]
