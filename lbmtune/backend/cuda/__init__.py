"""NVIDIA GPUs: CuPy runs kernels, NVRTC compiles them. Both are loaded by what is called, not by importing this."""

from collections.abc import Iterator
from functools import partial

from lbmtune.backend.protocol import BackendPackage, Binary, Compiler, Device
from lbmtune.codegen.program import Program
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Environment


def _open(spec: str) -> Device:
    from lbmtune.backend.cuda.device import open_cuda

    return open_cuda(int(spec))


def _devices() -> tuple[str, ...]:
    from lbmtune.backend.cuda.attributes import device_count

    try:
        return tuple(map(str, range(device_count())))
    except DeviceUnavailableError:
        return ()


def _compiler(environment: Environment) -> Compiler:
    from lbmtune.backend.cuda.nvrtc import compile_cuda

    return partial(compile_cuda, architecture=environment.architecture)


def _reassembled(environment: Environment, program: Program) -> Iterator[tuple[str, Binary]]:
    from lbmtune.backend.cuda import nvrtc

    for level, binary in nvrtc.reassembled(program, environment.architecture):
        yield f"ptxas {level}", binary


def _reports_power(spec: str) -> bool:
    from lbmtune.backend.cuda.attributes import cupy, device_count
    from lbmtune.backend.cuda.nvml import Monitor

    device_count()  # says why there is none
    return Monitor(cupy().cuda.runtime.deviceGetPCIBusId(int(spec))).conditions().power_w is not None


def _link(one: str, other: str) -> str:
    from lbmtune.backend.cuda.attributes import cupy
    from lbmtune.backend.cuda.nvml import Monitor

    runtime = cupy().cuda.runtime
    here, there = (Monitor(runtime.deviceGetPCIBusId(int(spec))) for spec in (one, other))
    reached = runtime.deviceCanAccessPeer(int(one), int(other))
    return here.link_to(there) + ("" if reached else ", no peer access")


BACKEND = BackendPackage(
    default_device="0",
    accepts=str.isdecimal,
    devices=_devices,
    open_device=_open,
    compiler=_compiler,
    reassembled=_reassembled,
    reports_power=_reports_power,
    link=_link,
)
