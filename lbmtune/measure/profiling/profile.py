"""A profile of one kernel: the ladder in a process of its own, then the counters of the hardware in another one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from lbmtune.backend.protocol import Device
from lbmtune.backend.registry import open_device
from lbmtune.codegen.render import render
from lbmtune.measure.calibration.machines import heard
from lbmtune.measure.calibration.microbench import Say
from lbmtune.measure.profiling.counters import counted
from lbmtune.measure.profiling.loss_breakdown import Asked, climb
from lbmtune.measure.workers.processes import Report, Session, Worker, scratch_folder
from lbmtune.records import Environment
from lbmtune.records.profile import Profile

_STAGE_LIMIT_S = 180.0


def profile(
    spec: str,
    asked: Asked,
    say: Say,
    opener: Callable[[str], Device] = open_device,
    alone: Callable[[Environment], AbstractContextManager[None]] = lambda _: nullcontext(),
    sources: str = "",
) -> Profile:
    """The ladder of a kernel on a device, and what counters say of it where they are asked for.

    alone: holds the device meanwhile; sources: a folder for the text of the kernel
    (`measure.profiling.profiler_target`). Raises NothingValidError where the kernel is wrong or cannot run,
    DeviceUnavailableError, InputError.
    """
    folder = scratch_folder()
    worker = Worker(
        "profile", partial(open_profiler, partial(opener, spec)), {}, folder / "profile.log", _STAGE_LIMIT_S
    )
    try:
        environment: Environment = heard(worker, None)
        with alone(environment):
            worker.ask(spec, asked)
            found: Profile = heard(worker, say)
            if environment.backend == "cpu" or not asked.counters:
                return found
            worker.end()  # its memory goes before the profiler keeps that of the kernel
            say("counters of the hardware")
            return replace(found, counters=counted(render(asked.case, asked.config), spec, sources))
    finally:
        worker.end()
        shutil.rmtree(folder, ignore_errors=True)


def open_profiler(opener: Callable[[], Device]) -> tuple[Environment, Session]:
    """A session that answers Asked with a Profile."""
    device = opener()

    def session(asked: Asked, report: Report) -> Profile:
        return climb(device, asked, report)

    return device.environment, session
