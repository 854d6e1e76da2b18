"""Links between the GPUs of a host: measured in a process of its own, and kept in the description of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import cast

from lbmtune.backend.protocol import Device, PeerDevice
from lbmtune.backend.registry import compiler_for, link, open_device
from lbmtune.measure.calibration.gpu_links import LinksBench
from lbmtune.measure.calibration.machines import keep
from lbmtune.measure.processes.worker import Progress, Session, await_answer, temporary_worker
from lbmtune.model.machine.description import Links, Machine
from lbmtune.records import Environment

_STEP_LIMIT_S = 120.0


def describe_links(
    machines: Mapping[str, Machine],
    progress: Progress,
    opener: Callable[[str], Device] = open_device,
    alone: Callable[[Sequence[Environment]], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> dict[str, Machine]:
    """Return the descriptions of several GPUs with their links, measured now.

    machines: by the names of the GPUs; alone: holds them meanwhile. Raises DeviceUnavailableError, InputError.
    """
    environments = [machine.environment for machine in machines.values()]
    with (
        alone(environments),
        temporary_worker("links", partial(open_links, opener, tuple(machines)), _STEP_LIMIT_S) as worker,
    ):
        await_answer(worker, None)
        worker.send(None, None)
        measured: list[Links] = await_answer(worker, progress)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    pairs = zip(machines.items(), measured, strict=True)
    found = {name: replace(machine, links=replace(one, date=date)) for (name, machine), one in pairs}
    for machine in found.values():
        keep(machine, progress)
    return found


def open_links(opener: Callable[[str], Device], names: Sequence[str]) -> tuple[None, Session]:
    """Open a session that measures the links of some GPUs."""
    devices = [cast("PeerDevice", opener(name)) for name in names]

    def named(one: int, other: int) -> str:
        return link(names[one], names[other])

    def session(_: None, progress: Progress) -> list[Links]:
        return LinksBench(devices, compiler_for(devices[0].environment), named).measure(progress)

    return None, session
