"""Queues of host devices whose work is done later, in any order that their marks leave open."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any


class Mark:
    """A place in a queue; `reached` at the time when all work before it is done."""

    reached = 0.0


class LateQueue:
    """A queue that keeps its work until the devices are synchronised."""

    def __init__(self, host: Host) -> None:
        self._host, self.work = host, deque[Any]()

    def run(self, work: Callable[[], None]) -> None:
        self.work.append(work)

    def mark(self, *, timed: bool = False) -> Mark:
        made = Mark()
        self.work.append(made)
        return made

    def wait(self, mark: Mark) -> None:
        self.work.append((mark,))

    def seconds(self, first: Mark, last: Mark) -> float:
        self._host.synchronize()
        return last.reached - first.reached

    def advance(self) -> bool:
        """Do the next item; False if there is none that can be done."""
        if not self.work:
            return False
        item = self.work[0]
        if isinstance(item, tuple) and not item[0].reached:
            return False
        self.work.popleft()
        if isinstance(item, Mark):
            item.reached = time.perf_counter()
        elif not isinstance(item, tuple):
            item()
        return True


class Host:
    """All queues of some host devices.

    order: which queue is looked at first: 'random', 'first', 'last', or the number of the one that is looked at last.
    """

    def __init__(self, order: str | int = "random", seed: int = 1) -> None:
        self._order, self._random, self._queues = order, random.Random(seed), list[LateQueue]()

    def queue(self) -> LateQueue:
        self._queues.append(LateQueue(self))
        return self._queues[-1]

    def synchronize(self) -> None:
        """Do all work: one item at a time, of the first queue in an order of which one can be done."""
        while any(one.work for one in self._queues):
            queues = list(self._queues)
            if self._order == "random":
                queues = [one for one in queues if one.work]  # most have none: a variant after the other is timed
                self._random.shuffle(queues)
            elif self._order == "last":
                queues.reverse()
            elif isinstance(self._order, int):
                queues.append(queues.pop(self._order))
            assert any(one.advance() for one in queues), "queues wait for each other"
