"""The rounds in which a kind of output is timed: how many, how long, and the seconds of all of them."""

from math import ceil

FEWEST, MOST, ENOUGH_S = 5, 15, 2.0
"""Rounds of a kind of output, and seconds after which there are no more than the fewest."""
_TIMES, _SHORTEST_S, _LONGEST_S = 2.0, 5e-3, 0.1
"""How much longer than an output the steps before it are, and their limits: noise of longer ones would hide it."""
_STEPS, _OUTPUTS, _BEFORE = 3, 2, 3
"""Times that a round takes the steps and the output, and outputs before the first round."""


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
