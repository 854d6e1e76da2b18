"""Events that a worker process sends to its parent, and outcomes that the parent finds itself."""

from dataclasses import dataclass
from typing import Any

from lbmtune.errors import LbmtuneError, TimeOverError

STAGE_START = "start"
"""The first stage of a worker, which ends with its greeting."""


@dataclass(frozen=True)
class Greeting:
    """The worker is ready."""

    value: Any


@dataclass(frozen=True)
class Stage:
    """The worker enters a stage."""

    name: str


@dataclass(frozen=True)
class Answer:
    """The result of a request. job: the parent's own record of the request."""

    value: Any
    job: Any = None


@dataclass(frozen=True)
class Death:
    """The worker is gone. timed_out: the parent killed it; killed: something else did, with SIGKILL.

    starved: the system did, for want of memory in the control group.
    error: of the machine or the input, not of the kernel, to raise in the parent. stage_s: seconds since the stage
    began.
    """

    stage: str
    reason: str
    stage_s: float = 0.0
    timed_out: bool = False
    killed: bool = False
    starved: bool = False
    error: LbmtuneError | TimeOverError | None = None


Event = Greeting | Stage | Answer | Death
