"""The CUDA backend against a scripted CuPy: which sentence for which missing part, which error for which status."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from lbmtune.backend import registry
from lbmtune.backend.cuda import nvml, programmatic_launch, queues
from lbmtune.backend.cuda.device import CudaDevice, open_cuda
from lbmtune.backend.protocol import Binary, DeviceFaultError, OutOfMemoryError, TooManyResourcesError
from lbmtune.codegen.program import Program
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from tests.support.devices.fake_device import CASE, config, renderer

ATTRIBUTES = {
    "MaxThreadsPerBlock": (1, 1024),
    "MaxBlockDimX": (2, 1024),
    "MaxBlockDimY": (3, 1024),
    "MaxBlockDimZ": (4, 64),
    "MaxGridDimX": (5, 2**31 - 1),
    "MaxGridDimY": (6, 65535),
    "MaxGridDimZ": (7, 65535),
    "MultiProcessorCount": (16, 132),
    "EccEnabled": (32, 1),
    "L2CacheSize": (38, 50 << 20),
    "MaxThreadsPerMultiProcessor": (39, 2048),
    "MaxSharedMemoryPerMultiprocessor": (81, 228 << 10),
    "CooperativeLaunch": (95, 1),
    "MaxSharedMemoryPerBlockOptin": (97, 227 << 10),
}


class CudaError(RuntimeError):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class CUDARuntimeError(CudaError):
    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(status, text or f"status {status}")


class CUDADriverError(CudaError): ...


class CupyOutOfMemoryError(MemoryError): ...


@dataclass
class FakeCupy:
    """What the backend uses of CuPy; `raises` maps a function's name to the error it raises."""

    count: int = 1
    driver_version: int = 13000
    capability: tuple[int, int] = (9, 0)
    raises: dict[str, Exception] = field(default_factory=dict)
    launched: list[Any] = field(default_factory=list)
    settings: list[Any] = field(default_factory=list)
    graphs: dict[int, list[Any]] = field(default_factory=dict)
    before: list[Any] = field(default_factory=list)
    instantiated: int = 0
    stream: int = 0

    def module(self) -> ModuleType:
        cupy: Any = ModuleType("cupy")
        attributes = dict(ATTRIBUTES.values()) | dict(zip((75, 76), self.capability, strict=True))
        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=self._does("getDeviceCount", self.count),
            driverGetVersion=lambda: self.driver_version,
            runtimeGetVersion=lambda: 13020,
            free=self._does("free"),
            deviceGetPCIBusId=lambda index: "0000:0A:00.0",
            deviceGetAttribute=lambda number, index: attributes[number],
            getDeviceProperties=lambda index: {"name": b"NVIDIA Fake"},
            memGetInfo=lambda: (7 << 30, 8 << 30),
            deviceSynchronize=self._does("deviceSynchronize"),
            streamEndCapture=self._end_capture,
            graphDestroy=lambda graph: None,
            graphLaunch=self._does("graph", None, lambda graph, stream: self.launched.extend(self.graphs[graph])),
            graphExecDestroy=lambda graph: None,
            **{f"cudaDevAttr{name}": number for name, (number, _) in ATTRIBUTES.items()},
        )
        driver = SimpleNamespace(
            CUDADriverError=CUDADriverError,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            funcSetAttribute=lambda *arguments: self.settings.append(arguments),
        )
        event = SimpleNamespace(record=lambda: None, synchronize=self._does("synchronize"))
        cupy.cuda = SimpleNamespace(
            runtime=runtime,
            driver=driver,
            function=SimpleNamespace(Module=self._module),
            memory=SimpleNamespace(OutOfMemoryError=CupyOutOfMemoryError),
            Device=lambda index: SimpleNamespace(use=lambda: None),
            Event=lambda: event,
            get_elapsed_time=lambda start, end: 2.5,
            get_current_stream=lambda: SimpleNamespace(ptr=self.stream),
            Stream=self._stream,
        )
        cupy.empty = self._does("empty", None, np.empty)
        cupy.asarray = np.asarray
        return cupy

    def _stream(self) -> Any:
        """A stream that takes launches away while it captures."""
        fake = self

        class Stream:
            ptr = 77

            def __enter__(self) -> Stream:
                return self

            def __exit__(self, *_: Any) -> None:
                pass

            def begin_capture(self) -> None:
                fake.before, fake.launched, fake.stream = fake.launched, [], self.ptr

        return Stream()

    def _end_capture(self, stream: int) -> int:
        """End the capture of a stream; return the graph, which is a number from 1 on."""
        assert stream == self.stream
        captured, self.launched, self.stream = self.launched, self.before, 0
        self.graphs[len(self.graphs) + 1] = captured
        return len(self.graphs)

    def cuGraphInstantiateWithFlags(self, handle: Any, graph: Any, flags: Any) -> int:  # noqa: N802
        """The driver's, with the priority of each launch; an executable graph has the number of its graph."""
        assert flags.value == 8
        ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))[0] = graph.value
        return self.instantiated

    def _module(self) -> Any:
        def launch(*arguments: Any, **settings: Any) -> None:
            self.launched.append(arguments)
            self.settings += settings.items()

        function = self._does("launch", None, launch)
        function.ptr = 5
        return SimpleNamespace(load=self._does("load"), get_function=lambda entry: function)

    def _does(self, name: str, value: Any = None, call: Any = None) -> Any:
        def does(*arguments: Any, **settings: Any) -> Any:
            if name in self.raises:
                raise self.raises[name]
            return call(*arguments, **settings) if call else value

        return does


def device(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> tuple[CudaDevice, FakeCupy]:
    fake = FakeCupy(**settings)
    monkeypatch.setitem(sys.modules, "cupy", fake.module())
    monkeypatch.setattr(queues, "driver", lambda: fake)
    return open_cuda(0), fake


ABILITIES = ("asynchronous", "bulk", "dependent")
BINARY = Binary(b"cubin", "digest", Resources(registers=40))
PROGRAM = renderer(CASE, config("right", "cuda"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"raises": {"getDeviceCount": CUDARuntimeError(35, "insufficient")}, "driver_version": 0},
            "CuPy is installed, but there is no NVIDIA driver here",
        ),
        (
            {"raises": {"getDeviceCount": CUDARuntimeError(35, "insufficient")}, "driver_version": 12020},
            "the NVIDIA driver supports CUDA 12.2, CuPy was built for 13.2; update the driver",
        ),
        ({"raises": {"getDeviceCount": CUDARuntimeError(100, "none")}}, "the NVIDIA driver sees no GPU here"),
        (
            {"raises": {"getDeviceCount": CUDARuntimeError(999, "unknown error")}, "driver_version": 13020},
            "999|unknown",
        ),
        ({"count": 0}, "GPU 0 does not exist: this machine has 0"),
        (
            {"raises": {"free": CUDARuntimeError(46, "all devices are busy")}},
            "GPU 0 cannot be used: all devices are busy",
        ),
    ],
)
def test_each_missing_part_has_its_sentence(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(DeviceUnavailableError, match=sentence) as caught:
        device(monkeypatch, **settings)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceUnavailableError, match=r"lbmtune\[cuda13\]"):
        registry.open_device("0")
    assert registry.available() == ("cpu",)


def test_available_counts_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", FakeCupy(count=2).module())
    assert registry.available() == ("0", "1", "cpu")


def test_an_unknown_device_is_bad_input() -> None:
    with pytest.raises(InputError, match=r"device=gpu is not supported \(use cpu, or the index of a GPU"):
        registry.open_device("gpu")


def test_limits_and_environment_come_from_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, _ = device(monkeypatch)
    assert opened.limits.block == (1024, 1024, 64)
    assert opened.limits.grid == (2**31 - 1, 65535, 65535)
    assert opened.limits.memory_bytes == 7 << 30
    assert opened.limits.shared_bytes_per_block == 227 << 10
    assert opened.limits.shared_bytes_per_multiprocessor == 228 << 10
    assert (opened.limits.multiprocessors, opened.limits.cooperative, opened.limits.dependent) == (132, True, True)
    assert opened.multiprocessors == 132
    assert opened.caches_bytes == {"L2": 50 << 20}
    found = opened.environment
    assert (found.backend, found.device, found.architecture) == ("cuda", "NVIDIA Fake", "sm_90")
    assert (found.runtime, found.ecc, found.memory_bytes) == ("CUDA 13.2", True, 8 << 30)
    assert registry.compiler_for(found).keywords == {"architecture": "sm_90"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("capability", "able"),
    [((7, 5), ()), ((8, 6), ("asynchronous",)), ((9, 0), ABILITIES), ((11, 0), ABILITIES)],
)
def test_what_an_architecture_can_do(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], able: tuple[str, ...]
) -> None:
    opened, _ = device(monkeypatch, capability=capability)
    assert tuple(name for name in ABILITIES if getattr(opened.limits, name)) == able


def test_a_launch_passes_grid_block_and_typed_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, fake = device(monkeypatch)
    Simulation(PROGRAM, BINARY, opened).step(1)
    ((grid, block, arguments, shared_bytes),) = fake.launched
    assert (grid, block, shared_bytes) == ((16, 12, 1), (1, 1, 1), 0)
    assert [type(a).__name__ for a in arguments] == ["ndarray", "ndarray", "int32", "int32", "int32"]


@pytest.mark.parametrize("status", [1, 701])
def test_too_large_a_launch_is_told_from_a_fault(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    opened, _ = device(monkeypatch, raises={"launch": CUDADriverError(status, "too many resources requested")})
    with pytest.raises(TooManyResourcesError, match="step with 1x1x1 threads"):
        Simulation(PROGRAM, BINARY, opened).step(1)


def test_faults_carry_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "cudaErrorIllegalAddress: an illegal memory access was encountered"
    error = CUDARuntimeError(700, text)
    opened, _ = device(monkeypatch, raises={"deviceSynchronize": error, "synchronize": error})
    with pytest.raises(DeviceFaultError, match=text):
        opened.synchronize()
    with pytest.raises(DeviceFaultError, match=text):
        opened.time_s(lambda: None)
    opened, _ = device(monkeypatch, raises={"launch": CUDADriverError(700, text)})
    with pytest.raises(DeviceFaultError, match=text):
        Simulation(PROGRAM, BINARY, opened).step(1)


def test_memory_and_binaries_fail_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, _ = device(monkeypatch, raises={"empty": CupyOutOfMemoryError("Out of memory allocating 9 bytes")})
    with pytest.raises(OutOfMemoryError, match="9 bytes"):
        opened.empty(9, "uint8")
    opened, _ = device(monkeypatch, raises={"load": CUDADriverError(209, "no kernel image for this device")})
    with pytest.raises(DeviceFaultError, match="refused the binary"):
        opened.load(PROGRAM, BINARY)


def test_time_is_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device(monkeypatch)[0].time_s(lambda: None) == 2.5e-3


def test_slices_follow_each_other_and_one_is_enqueued_when_the_device_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    opened, _ = device(monkeypatch)
    assert opened.slices_s(lambda: seen.append("run"), 3, lambda: seen.append("look")) == [2.5e-3] * 3
    assert seen == ["run", "look"] * 3


def test_clock_reasons_have_names() -> None:
    assert nvml.reason_names(0x1) == ()
    assert nvml.reason_names(0x4 | 0x40) == ("software power cap", "hardware thermal slowdown")
    assert nvml.reason_names(0x1000) == ("reason 0x1000",)


def test_a_machine_without_nvml_has_no_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_nvml", lambda: None)
    found = nvml.Monitor("0000:0A:00.0").conditions()
    assert (found.sm_clock_hz, found.power_w, found.throttle) == (None, None, ())


def test_nvml_is_read_in_base_units(monkeypatch: pytest.MonkeyPatch) -> None:
    class NVMLError(Exception): ...

    def unsupported(*_: object) -> int:
        raise NVMLError

    library = SimpleNamespace(
        NVMLError=NVMLError,
        nvmlDeviceGetHandleByPciBusId=lambda bus: "handle",
        nvmlDeviceGetClockInfo=lambda handle, kind: {1: 1980, 2: 3201}[kind],
        nvmlDeviceGetPowerUsage=lambda handle: 650_000,
        nvmlDeviceGetTemperature=unsupported,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x4,
    )
    monkeypatch.setattr(nvml, "_nvml", lambda: library)
    found = nvml.Monitor("0000:0A:00.0").conditions()
    assert (found.sm_clock_hz, found.memory_clock_hz, found.power_w) == (1.98e9, 3.201e9, 650.0)
    assert found.temperature_c is None
    assert found.throttle == ("software power cap",)


def test_processes_of_others_on_a_gpu_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that ended since the last look; not this process, what its parent started, nor ancestors."""
    running: list[int] = []
    library = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlDeviceGetHandleByPciBusId=lambda bus: "handle",
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [SimpleNamespace(pid=number) for number in running],
    )
    monkeypatch.setattr(nvml, "_nvml", lambda: library)
    monitor, unseen = nvml.Monitor("0000:0A:00.0"), 4_194_304
    with subprocess.Popen(["sleep", "60"]) as child, subprocess.Popen(STRANGER, stdout=subprocess.PIPE) as between:
        assert between.stdout
        stranger = int(between.stdout.read())
        while psutil.Process(stranger).name() != "sleep":
            time.sleep(0.01)
        running += [child.pid, os.getppid(), unseen]
        assert monitor.conditions().others == (), "without this process they are numbers outside of a container"
        running += [os.getpid(), stranger]
        assert monitor.conditions().others == (f"process {unseen}", f"sleep ({stranger})")
        running.remove(stranger)
        assert monitor.conditions().others == (f"process {unseen}", f"sleep ({stranger})")
        assert monitor.conditions().others == (f"process {unseen}",)
        child.kill()
        os.kill(stranger, signal.SIGKILL)


STRANGER = ["sh", "-c", "sleep 60 >/dev/null & echo $!"]
"""A process whose parent has ended."""


def test_recorded_launches_are_made_when_they_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, fake = device(monkeypatch)
    executable = opened.load(PROGRAM, BINARY)
    launch = PROGRAM.period[0][0]
    replay = executable.recorded(lambda: [executable.launch(launch, (n, 1, 1), []) for n in (1, 2)] and None)
    assert fake.launched == []
    replay()
    replay()
    assert [arguments[0] for arguments in fake.launched] == [(1, 1, 1), (2, 1, 1)] * 2
    fake.raises["graph"] = CUDARuntimeError(700, "illegal address")
    with pytest.raises(DeviceFaultError, match="illegal address"):
        replay()
    fake.raises["launch"] = CUDADriverError(701, "too many resources requested")
    with pytest.raises(TooManyResourcesError, match="too many resources"):
        executable.recorded(lambda: executable.launch(launch, (1, 1, 1), []))
    assert fake.stream == 0, "the capture has ended"


def test_a_graph_that_the_driver_refuses_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, _ = device(monkeypatch, instantiated=2)
    with pytest.raises(DeviceFaultError, match="2"):
        opened.recorded(lambda: None)


def _with_mode(mode: str) -> Program:
    return replace(
        PROGRAM, period=tuple(tuple(replace(launch, mode=mode) for launch in step) for step in PROGRAM.period)
    )


def test_blocks_that_wait_for_one_another_are_launched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, fake = device(monkeypatch)
    Simulation(_with_mode("cooperative"), BINARY, opened).step(1)
    assert fake.settings == [("enable_cooperative_groups", True)]


@pytest.mark.parametrize(
    "error", [ValueError("The specified grid size exceeds the limit"), CUDADriverError(720, "cooperative too large")]
)
def test_more_blocks_than_a_device_holds_at_once(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    opened, _ = device(monkeypatch, raises={"launch": error})
    with pytest.raises(TooManyResourcesError, match=str(error)):
        Simulation(_with_mode("cooperative"), BINARY, opened).step(1)


class _Driver:
    """Takes what a launch passes to the driver, as C sees it."""

    def __init__(self, status: int) -> None:
        self.status, self.seen = status, []

    def cuLaunchKernelEx(self, config: Any, function: Any, pointers: Any, extra: Any) -> int:  # noqa: N802
        words = ctypes.cast(config, ctypes.POINTER(ctypes.c_uint))
        stream, attributes, count = ctypes.cast(config, ctypes.POINTER(ctypes.c_uint64))[4:7]
        attribute = ctypes.cast(attributes, ctypes.POINTER(ctypes.c_uint))
        number = ctypes.cast(pointers[2], ctypes.POINTER(ctypes.c_int))[0]
        buffer = ctypes.cast(pointers[0], ctypes.POINTER(ctypes.c_void_p))[0]
        self.seen.append((words[0:7], stream, attribute[0], attribute[2], count & 0xFFFFFFFF, number, buffer))
        return self.status


class _OnDevice:
    data = SimpleNamespace(ptr=1 << 40)


def test_a_launch_that_begins_early_says_so_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the structures of cuda.h lie in memory: seven words, a stream, a list of 72-byte attributes and its length."""
    driver = _Driver(0)
    monkeypatch.setattr(programmatic_launch, "driver", lambda: driver)
    opened, fake = device(monkeypatch)
    executable = opened.load(PROGRAM, BINARY)
    launch = replace(PROGRAM.period[0][0], mode="dependent", shared_bytes=48)
    arguments = [_OnDevice(), np.float32(1.5), np.int32(-3)]
    executable.recorded(lambda: executable.launch(launch, (16, 12, 1), arguments))
    assert driver.seen == [([16, 12, 1, 1, 1, 1, 48], 77, 6, 1, 1, -3, 1 << 40)]
    assert fake.launched == []
    executable.launch(launch, (16, 12, 1), arguments)
    assert len(fake.launched) == 1, "a call of its own depends on nothing"
