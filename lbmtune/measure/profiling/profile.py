"""Profile one kernel: the loss breakdown in a process of its own, then the hardware counters in another one."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from lbmtune.backend.protocol import Device
from lbmtune.backend.registry import open_device
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.codegen.render import render
from lbmtune.measure.processes.worker import Progress, Session, await_answer, temporary_worker
from lbmtune.measure.profiling.counters import counted
from lbmtune.measure.profiling.loss_breakdown import ProfileRequest, measure_losses
from lbmtune.records import Environment
from lbmtune.records.profile import Profile

_STAGE_LIMIT_S = 180.0


def profile(
    spec: str,
    request: ProfileRequest,
    progress: Progress,
    opener: Callable[[str], Device] = open_device,
    alone: Callable[[Environment], AbstractContextManager[None]] = lambda _: nullcontext(),
    sources: str = "",
) -> Profile:
    """Measure the loss breakdown of a kernel on a device, and its hardware counters if requested.

    alone: holds the device meanwhile; sources: folder for the kernel text (`measure.profiling.profiler_target`).
    Raises NothingValidError if the kernel is wrong or cannot run, DeviceUnavailableError, InputError.
    """
    with temporary_worker("profile", partial(open_profiler, partial(opener, spec)), _STAGE_LIMIT_S) as worker:
        environment: Environment = await_answer(worker, None)
        with alone(environment):
            worker.send(spec, request)
            found: Profile = await_answer(worker, progress)
            if BACKENDS[environment.backend].shares_host or not request.counters:
                return found
            worker.end()  # release its device memory before the profiler saves that of the kernel
            progress("hardware counters")
            return replace(found, counters=counted(render(request.case, request.config), spec, sources))


def open_profiler(opener: Callable[[], Device]) -> tuple[Environment, Session]:
    """Open a session that answers a ProfileRequest with a Profile."""
    device = opener()

    def session(request: ProfileRequest, progress: Progress) -> Profile:
        return measure_losses(device, request, progress)

    return device.environment, session
