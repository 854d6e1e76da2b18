"""Output of a simulation besides its state: how often, what it costs, how that is timed, and rates that predict it."""

from dataclasses import asdict, dataclass, field
from math import ceil

from lbmtune.records.quantities import NotNegative, Number, OneOrMore, Positive
from lbmtune.units import format_rate

MACROSCOPICS, SAVE, RESIDUAL = "macroscopics", "save", "residual"
FEWEST, MOST, ENOUGH_S = 5, 15, 2.0
"""Rounds of a kind of output, and seconds after which there are no more than the fewest."""
_TIMES, _SHORTEST_S, _LONGEST_S = 2.0, 5e-3, 0.1
"""How much longer than an output the steps before it are, and their limits: noise of longer ones would hide it."""
_STEPS, _OUTPUTS, _BEFORE = 3, 2, 3
"""Times that a round takes the steps and the output, and outputs before the first round."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """Time steps from one output of a kind to the next; 0: none.

    macroscopics: density and velocity are written to memory of the device; save: and to a file on a disk of the host;
    residual: and the host compares the velocity with that of the output before (de Oliveira, Lugarini, Franco 2019).
    """

    macroscopics: int = 0
    save: int = 0
    residual: int = 0

    def __bool__(self) -> bool:
        return bool(self.intervals)

    @property
    def intervals(self) -> dict[str, int]:
        """Return the intervals of the kinds that are wanted, by name."""
        return {kind: every for kind, every in asdict(self).items() if every}


@dataclass(frozen=True, kw_only=True)
class OutputRates:
    """Measured rates in bytes per second: copy to page-locked memory of the host, file with fsync, and residual.

    copy: None on a CPU, whose memory is that of the host; residual: of velocities, one thread of a host, or all of a
    CPU that computes; folder: of the file. Of the pass that computes density and velocity, None on a GPU, where it is
    as fast as memory: pass: of whole rows, all threads; thread_pass: one; pass_values: values per second that all
    threads read in groups of cells ("groups"), one by one ("cells") and by a list ("list"); threads: how many.
    """

    file_bytes_per_s: Positive
    residual_bytes_per_s: Positive
    copy_bytes_per_s: Positive | None = None
    pass_bytes_per_s: Positive | None = None
    thread_pass_bytes_per_s: Positive | None = None
    pass_values_per_s: dict[str, Positive] = field(default_factory=dict)
    threads: OneOrMore = 1
    folder: str = ""

    def told(self) -> list[str]:
        """Return each rate in words."""
        return [
            f"a file in {self.folder}, synchronised (fsync), at {format_rate(self.file_bytes_per_s)}",
            f"a residual at {format_rate(self.residual_bytes_per_s)} of velocities",
            *([f"copies to the host at {format_rate(self.copy_bytes_per_s)}"] if self.copy_bytes_per_s else []),
            *([f"the pass at {format_rate(self.pass_bytes_per_s)} or less"] if self.pass_bytes_per_s else []),
            *(
                f"values of it ({name}) at {rate / 1e9:.3g} billion a second"
                for name, rate in self.pass_values_per_s.items()
            ),
        ]


@dataclass(frozen=True, kw_only=True)
class OutputCost:
    """Time that an output of one kind adds to the steps, in seconds.

    every: steps from one to the next: those asked for, or the next whole number of launches; apart: steps between them
    when it was measured, fewer if those would have taken long; event_s: median of the rounds, low_s and high_s the
    range; step_s: of a step without output; predicted_s: of the model, in parts by name; None: not predicted.
    """

    kind: str
    every: OneOrMore
    apart: OneOrMore
    event_s: Number
    low_s: Number
    high_s: Number
    step_s: Positive
    predicted_s: dict[str, NotNegative] | None = None

    @property
    def share(self) -> float:
        """Return the share of the time of a run that the output takes."""
        return self._share(max(0.0, self.event_s))

    @property
    def range(self) -> tuple[float, float]:
        """Return the share by the fastest and the slowest round."""
        return self._share(max(0.0, self.low_s)), self._share(max(0.0, self.high_s))

    @property
    def predicted_share(self) -> float | None:
        """Return the share that the model predicts, beside the measured steps; None: not predicted."""
        return None if self.predicted_s is None else self._share(sum(self.predicted_s.values()))

    def _share(self, event_s: float) -> float:
        return event_s / (self.every * self.step_s + event_s)


def steps_apart(event_s: float, step_s: float, every: int, hidden_s: float = 0.0) -> int:
    """Return the steps from one output to the next in a round.

    event_s: seconds of an output by itself; every: steps in a run; hidden_s: seconds that the steps must hide.
    """
    wanted_s = max(hidden_s, min(_LONGEST_S, max(_SHORTEST_S, _TIMES * event_s)))
    return min(every, ceil(wanted_s / step_s))


def rounds_s(event_s: float, step_s: float, every: int) -> float:
    """Return the seconds of the rounds of a kind of output, or those that they take at most; see `steps_apart`."""
    round_s = _STEPS * steps_apart(event_s, step_s, every) * step_s + _OUTPUTS * event_s
    return _BEFORE * event_s + max(FEWEST * round_s, min(MOST * round_s, ENOUGH_S + round_s))
