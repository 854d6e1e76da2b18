"""A program with its fields on a device."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Binary, Device, Executable, TooManyResourcesError
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS, words
from lbmtune.catalogue.boundaries.cut_links import Window, solid_in, whole
from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.footprint import beyond_stride, bytes_per_update
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.codegen.program import FIRST_PLANE, LAST_PLANE, MACROSCOPICS, PARITY, STEPS, Launch, Program
from lbmtune.errors import InputError
from lbmtune.runtime.memory import allocate, other_buffers
from lbmtune.runtime.states import HostCopies, Sums, state_of, summed

Array = Any
Bound = tuple[Launch, tuple[int, int, int], list[Any]]
"""A launch with its grid and arguments."""
Plan = list[list[Bound]]
Single = Callable[[], tuple[Program, Binary]]
"""A function that makes the kernel of one step for launches that do several (`codegen.render.render_single`)."""

GRAPH_CYCLES = 64
"""Cycles of parity and buffers in the longest graph."""
PERSISTENT_STEPS, LONGEST_LAUNCH = 1 << 10, 1 << 14
"""Steps of a timed launch of a persistent kernel, enough that loading and storing the state hardly counts; and most
steps of a launch."""
_GRAPHED = ("graph", "dependent")


class Simulation:
    """A state of populations that a program advances.

    case: values of relaxation rate, force and wall velocity, and the domain; it may differ from the program's
    case only in those, which are launch arguments. single: makes the kernel of one step for steps that are no whole
    launch; it is called when the first such step is due.
    shares_state: whether its buffers hold what another simulation of the same storage format may go on with.
    """

    shares_state = True

    def __init__(
        self, program: Program, binary: Binary, device: Device, case: Case | None = None, single: Single | None = None
    ) -> None:
        """Load the program and allocate its buffers, poisoned. Raises OutOfMemoryError, TooManyResourcesError."""
        self.program, self.device = program, device
        self.case = case or program.case
        if reason := beyond_stride(self.case, program.config):
            raise TooManyResourcesError(reason)
        self.executable = device.load(program, binary)
        self.steps_done = 0
        self._singly, self._single = 0, single
        self._stored = program.config.stored
        self._exchanges = program.config.exchanges(self.case.stencil)
        elements, arrays = program.buffer_elements(self.case.domain), program.arrays
        self.buffers = {
            name: allocate(device, program.config, elements, self._stored.dtype, arrays) for name in program.buffers()
        }
        self.outputs = self._outputs()
        self._others = other_buffers(program, self.case, device)
        self.poison()
        self._bind()

    def _bind(self) -> None:
        """Bind the launches to the values of the case."""
        self.kept = state_of(self.case, self.program.config, self.xp)
        self.kept_on_host = state_of(self.case, self.program.config, np, self.xp)
        self._plan = self._planned(self.program.period)
        self._prologue = [[self._bound(launch, 0) for launch in step] for step in self.program.prologue]
        self._opened = False
        self._singles: Plan = []
        self._any: dict[tuple[int, int, int], list[Bound]] = {}
        self._graphs: dict[int, Callable[[], None]] = {}

    def change_case(self, case: Case) -> None:
        """Take relaxation rate, force and wall velocity of a case from the next step on.

        It must differ from the present one only in those. Nothing is compiled; graphs are recorded again.
        """
        self.case = case
        self._bind()

    @property
    def xp(self) -> ModuleType:
        """Return the array module of the device."""
        return self.device.xp

    def poison(self) -> None:
        """Fill every buffer with NaN, or a huge value if the format has none, so that missing stores show."""
        for buffer in self.buffers.values():
            buffer.fill(self._stored.poison)

    def initialise(self, populations: Array, window: Window | None = None, *, on_host: bool = False) -> None:
        """Set the state at time 0: f_i, not shifted, shape (q, nz, ny, nx), numpy or the device's module.

        window: set only its cells, so that a large state can be set part by part.
        on_host: convert numpy arrays of few cells there (`population_blocks`).
        """
        self.steps_done = self._singly = 0
        self._opened = False
        kept = self.kept_on_host if on_host else self.kept
        kept.put(populations, self._seen(self.buffers["f0"], on_host=on_host), window)

    def step(self, steps: int) -> None:
        """Enqueue time steps, as graphs or launches of many if the configuration has them and a cycle begins.

        Steps that are no whole launch come last, one by one. Raises InputError if there is no kernel for them.
        """
        rest = self._left_over(steps)
        last = self.steps_done + steps - rest
        self._open()
        while self.steps_done < last:
            together = self._together(last - self.steps_done)
            if together:
                self._graph(together)()
                self.steps_done += together
            elif self.program.any_steps:
                most = LONGEST_LAUNCH if self.program.persistent else self.program.steps
                self._advance_by(min(most, last - self.steps_done))
            else:
                self._advance(self._plan)
        for _ in range(rest):
            self._advance_singly()

    def _open(self) -> None:
        """Enqueue the prologue of the next step, unless that has been done."""
        if self._prologue and not self._opened:
            self._launch_all(self._prologue[self._launches % len(self._prologue)])
        self._opened = True

    def _left_over(self, steps: int) -> int:
        """Return how many of the steps are no whole launch. Raises InputError if there is no kernel for them."""
        rest = 0 if self.program.any_steps else steps % self.program.steps
        if rest and self._single is None:
            raise InputError(
                f"steps={steps} is not supported for this kernel (use a multiple of {self.program.steps}): it does "
                f"{self.program.steps} steps per launch; lbmtune export writes a best.json with a kernel for the rest."
            )
        return rest

    def prepare(self, steps: int) -> None:
        """Make the graphs and kernels that steps from the beginning of a cycle need, so that none is made while timed.

        Raises InputError as `step` does.
        """
        if self._left_over(steps):
            _ = self._one_step
        while self._graphed and steps >= self.parity_steps:
            together = _whole(steps, self.parity_steps)
            self._graph(together)
            steps -= together

    @property
    def steps_at_once(self) -> int:
        """Return the time steps of a launch."""
        return self.program.steps

    @property
    def place_text(self) -> str:
        """Return the name of the device."""
        return self.device.environment.device

    def time_s(self, steps: int) -> float:
        """Return the seconds of time steps. Raises InputError as `step` does."""
        self.prepare(steps)
        return self.device.time_s(lambda: self.step(steps))

    def populations(self) -> Array:
        """Return all f_i as float64, not shifted, shape (q, nz, ny, nx), in the device's array module."""
        return self.xp.concatenate(list(self.population_blocks()))

    def macroscopic(self) -> tuple[Array, Array]:
        """Return density (nz, ny, nx) and velocity (3, nz, ny, nx), float64, in the device's array module.

        The velocity of solid cells is zero: what is stored there is of the force at time 0, or reversed.
        """
        rho, momentum = self._sums()
        velocity = self.xp.stack([(m + 0.5 * force) / rho for m, force in zip(momentum, self.case.force, strict=True)])
        if self.case.geometry:
            velocity = self.xp.where(solid_in(self.case, whole(self.case.domain), self.xp), 0.0, velocity)
        return rho, velocity

    def _sums(self) -> Sums:
        """Return density and momentum as before the collision of a step, completed at inlets and outlets."""
        if not conditions(self.case):
            self.device.synchronize()
            return self.kept.sums(self.state, self.parity)
        from lbmtune.catalogue.boundaries.completion import reconstructed  # here: SymPy takes its time to come

        return summed(reconstructed(self.populations(), self.case, self.xp), self.case.stencil)

    def population_blocks(self, window: Window | None = None, *, on_host: bool = False) -> Iterator[Array]:
        """Yield all f_i in order as float64, not shifted, of the domain or a window, k at a time: (k, nz, ny, nx).

        on_host: as numpy arrays, for few cells: an operation on them takes a GPU longer, and its kernel has to be
        compiled once.
        """
        self.device.synchronize()
        kept = self.kept_on_host if on_host else self.kept
        return kept.blocks(self._seen(self.state, on_host=on_host), self.parity, window)

    def _seen(self, buffer: Array, *, on_host: bool) -> Any:
        return HostCopies(buffer, self.device) if on_host and self.xp is not np else buffer

    @property
    def parity(self) -> int:
        """Return the parity of the time step that the state is before."""
        return self.steps_done % self.program.config.propagation.period

    @property
    def state(self) -> Array:
        """Return the buffer that holds the state now."""
        return self.buffers["f1" if self._exchanges and self._launches % 2 else "f0"]

    @property
    def _launches(self) -> int:
        """Launches since the state was set, of several steps or of one; the buffers swap after each."""
        return (self.steps_done - self._singly) // self.program.steps + self._singly

    @property
    def walls(self) -> Walls:
        """Return the rule of solid cells."""
        return Walls.IMPLICIT if self.program.config.implicit else Walls(self.case.walls)

    @property
    def bytes_per_update(self) -> float:
        """Return the bytes of an update by the model of traffic."""
        return bytes_per_update(self.case, self.program.config)

    @property
    def cycle_steps(self) -> int:
        """Return the time steps of a cycle; timed runs are multiples of it."""
        return PERSISTENT_STEPS if self.program.persistent else self.parity_steps

    @property
    def parity_steps(self) -> int:
        """Return the time steps after which parity and buffers repeat."""
        return len(self._plan) * self.program.steps

    @property
    def _graphed(self) -> bool:
        return getattr(self.program.config, "launch", "call") in _GRAPHED

    def _together(self, steps: int) -> int:
        """Return how many of the next steps one graph enqueues; 0: none."""
        if not self._graphed or self._launches % len(self._plan):
            return 0
        return _whole(steps, self.parity_steps)

    def _graph(self, steps: int) -> Callable[[], None]:
        """Return the graph of steps from the beginning of a cycle, recorded at its first use."""
        if steps not in self._graphs:
            launches = steps // self.program.steps
            bound = [one for t in range(launches) for one in self._plan[t % len(self._plan)]]
            self._graphs[steps] = self.executable.recorded(lambda: self._launch_all(bound))
        return self._graphs[steps]

    def _launch_all(self, bound: Sequence[Bound], executable: Executable | None = None) -> None:
        for launch, grid, arguments in bound:
            (executable or self.executable).launch(launch, grid, arguments)

    def _outputs(self) -> dict[str, Array]:
        """Return the buffers of density and velocity, if every step writes them, by name."""
        elements = self.program.other_buffers(self.case.domain).get(MACROSCOPICS)
        if elements is None:
            return {}
        fields = self.device.empty(elements, self.program.dtype_of(MACROSCOPICS))
        fields.fill(np.nan)
        return {MACROSCOPICS: fields}

    def _advance(self, plan: Plan) -> None:
        self._launch_all(plan[self._launches % len(plan)])
        self.steps_done += self.program.steps

    def _advance_singly(self) -> None:
        """Enqueue one step that is no whole launch."""
        executable, period = self._one_step
        self._singles = self._singles or self._planned(period)
        self._launch_all(self._singles[self._launches % len(self._singles)], executable)
        self.steps_done += 1
        self._singly += 1

    @cached_property
    def _one_step(self) -> tuple[Executable, tuple[tuple[Launch, ...], ...]]:
        """The kernel for steps that are no whole launch; it takes the arguments of the other one."""
        assert self._single
        program, binary = self._single()
        return self.device.load(program, binary), program.period

    def _advance_by(self, steps: int) -> None:
        """Enqueue launches of some steps, at most those of a launch, from any parity on."""
        flip = self.steps_done % 2 if self._exchanges else 0
        of = flip, self.parity, steps
        if of not in self._any:
            self._any[of] = [self._bound(launch, *of) for launch in self.program.period[0]]
        self._launch_all(self._any[of])
        self.steps_done += steps

    def plan_of(self, planes: range, of_block: int = 0) -> Plan:
        """Return the launches that update some planes, for each step of a cycle (`place`). Kernels take planes then.

        of_block: planes that a thread block goes through at most; 0: those of the kernel.
        """
        limits = {FIRST_PLANE: planes.start, LAST_PLANE: planes.stop}
        domain = (*self.case.domain[:2], len(planes))
        found = [[self._bound(one, flip) for one in self.program.period[parity]] for parity, flip in self._cycle()]
        return [[self._limited(one, domain, limits, of_block) for one in step] for step in found]

    def _limited(self, bound: Bound, domain: tuple[int, int, int], limits: dict[str, int], of_block: int) -> Bound:
        launch, _, arguments = bound
        x, y, z = launch.covers
        taken = zip(launch.arguments, arguments, strict=True)
        grid = self.program.grid(replace(launch, covers=(x, y, of_block or z)), domain)
        return launch, grid, [np.int32(limits[name]) if name in limits else value for name, value in taken]

    @property
    def place(self) -> int:
        """Return the place of the next step in a cycle."""
        return self._launches % len(self._plan)

    @property
    def places(self) -> int:
        """Return the launches of a cycle."""
        return len(self._plan)

    @property
    def whole_plan(self) -> Plan:
        """Return the launches that update all planes, for each step of a cycle."""
        return self._plan

    def parity_at(self, place: int) -> int:
        """Return the parity of the step at a place of a cycle."""
        return self._cycle()[place][0]

    def state_at(self, place: int) -> Array:
        """Return the buffer that holds the state before the step at a place of a cycle."""
        return self.buffers["f1" if self._cycle()[place][1] else "f0"]

    def enqueue(self, step: Sequence[Bound]) -> None:
        """Enqueue launches, which may be those of a part of a step; `advance` counts the whole."""
        self._launch_all(step)

    def advance(self, launches: int = 1) -> None:
        """Count the steps of launches that have been enqueued."""
        self.steps_done += launches * self.program.steps

    def _planned(self, period: Sequence[Sequence[Launch]]) -> Plan:
        return [[self._bound(launch, flip) for launch in period[parity]] for parity, flip in self._cycle()]

    def _cycle(self) -> list[tuple[int, int]]:
        """Return (parity, whether the buffers are swapped) of each step until both repeat."""
        parities, flips = len(self.program.period), 1 + self._exchanges
        return [(t % parities, t % flips) for t in range(max(parities, flips))]

    def _bound(self, launch: Launch, flip: int, parity: int = 0, steps: int = 1) -> Bound:
        """Return a launch with its arguments. parity, steps: for launches that take any number of steps."""
        values: dict[str, Any] = self.program.scalars(self.case) | self.outputs | self._others
        tables = (name for name in (WORDS, MOVING_WORDS) if name in self.program.arguments)
        values |= {name: words(self.case, name, self.xp) for name in tables}
        names = self.program.buffers()
        values |= {name: self.buffers[names[(place + flip) % len(names)]] for place, name in enumerate(names)}
        values |= self._slots() | {PARITY: parity, STEPS: steps}
        real = np.dtype(self.program.config.computed.dtype).type
        arguments = [_typed(values[name], real) for name in launch.arguments]
        return launch, self.program.grid(launch, self.case.domain), arguments

    def _slots(self) -> dict[str, Any]:
        """Return the starts of slots that launches take: pointers, or numbers of elements."""
        starts = self.program.slot_starts(self.case.domain)
        if BACKENDS[self.program.target].slot_pointers:
            return {name: self.buffers["f0"][start:] for name, start in starts.items()}
        return {name: np.int64(start) for name, start in starts.items()}


def _whole(steps: int, cycle: int) -> int:
    """Return the steps of the largest power of two of cycles within some steps, so that few graphs serve any number."""
    cycles = min(steps // cycle, GRAPH_CYCLES)
    return cycle * (1 << cycles.bit_length() - 1) if cycles else 0


def _typed(value: Any, real: Any) -> Any:
    """Return floats in the compute precision, integers in 32 bits, arrays as they are."""
    return real(value) if isinstance(value, float) else np.int32(value) if isinstance(value, int) else value
