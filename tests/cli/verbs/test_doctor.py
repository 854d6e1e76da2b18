"""`lbmtune doctor`: each state of a machine is found, with what to do about it."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from lbmtune.api.machines import doctor
from lbmtune.api.machines.doctor import State, examined
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.calibration.machines import CONFIG_VARIABLE, machine_path
from lbmtune.measure.profiling.perf_events import PerfError
from lbmtune.model.machine.toml import write_machine
from lbmtune.quotas import Memory
from tests.support.studies.fake_study import machine

WITHOUT = "a GPU needs CuPy, but Python has no module 'cupy'; install lbmtune[cuda13] or [cuda12], or use --device cpu."


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A machine in order, without a GPU: what is found of each thing in a root of files."""
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path / "settings"))
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    environment = replace(machine().environment, backend="cpu", device="Processor")
    devices = {"cpu": environment, "0": DeviceUnavailableError(WITHOUT)}

    def opened(name):
        if isinstance(devices[name], Exception):
            raise devices[name]
        return SimpleNamespace(environment=devices[name])

    monkeypatch.setattr(doctor, "open_device", opened)
    gone = Exception
    monkeypatch.setattr(doctor, "available", lambda: [n for n, one in devices.items() if not isinstance(one, gone)])
    monkeypatch.setattr(doctor, "counted", lambda _: {})
    monkeypatch.setattr(doctor, "nvrtc_version", lambda: (13, 0))
    monkeypatch.setattr(doctor, "usable_cores", lambda: 4)
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: 4)
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    monkeypatch.setattr(doctor.quotas, "cores", lambda: None)
    monkeypatch.setattr(doctor.quotas, "memory", lambda: Memory(8 << 30, 4 << 30, limited=False))
    root = tmp_path / "root"
    files = {
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "proc/loadavg": "0.04 0.02 0.00 1/100 1\n",
    }

    def found(changed=()):
        for name, text in (files | dict(changed)).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return {one.what: one for one in examined(root)}

    return SimpleNamespace(found=found, devices=devices, environment=environment)


def test_a_machine_in_order_needs_a_calibration_alone(here):
    found = here.found()
    assert {name: one.state for name, one in found.items() if one.state is not State.OK} == {
        "device 0": State.NOTE,
        "description of cpu": State.NOTE,
    }
    assert found["device 0"].todo == "install lbmtune[cuda13] or [cuda12], or use --device cpu"
    assert found["description of cpu"].todo.endswith("lbmtune devices --device cpu --calibrate")
    assert found["huge pages"].found == "madvise"
    assert "GPU counters" not in found


@pytest.mark.parametrize(
    ("name", "text", "what", "todo"),
    [
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave", "CPU governor", "-g performance"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]", "huge pages", "echo madvise >"),
        ("proc/loadavg", "2.00 0.5 0.1 1/100 1", "load", "end other programs"),
    ],
)
def test_a_file_of_the_system_that_says_otherwise_is_told(here, name, text, what, todo):
    found = here.found({name: text})[what]
    assert found.state is State.NOTE
    assert todo in found.todo


def test_counters_quotas_and_a_missing_compiler_are_told(here, monkeypatch):
    def refused(_):
        raise PerfError("the system does not permit perf events")

    def none():
        raise DeviceUnavailableError("NVRTC was not found; install it with: pip install nvidia-cuda-nvrtc")

    monkeypatch.setattr(doctor, "counted", refused)
    monkeypatch.setattr(doctor, "nvrtc_version", none)
    monkeypatch.setattr(doctor, "usable_cores", lambda: 2)
    monkeypatch.setattr(doctor.quotas, "cores", lambda: 2)
    found = here.found()
    assert found["CPU counters"].todo == "sysctl kernel.perf_event_paranoid=2"
    assert found["CUDA compiler"].todo.startswith("install it with: pip install")
    assert found["processors"].found == "2 of 4, by a quota of the control group"
    monkeypatch.setattr(doctor.quotas, "cores", lambda: None)
    assert here.found()["processors"].found == "2 of 4, by the affinity of this process"


def test_a_gpu_is_told_with_driver_counters_and_description(here, monkeypatch):
    gpu = replace(here.environment, backend="cuda", device="NVIDIA H200", device_id="GPU-1", driver="580.1")
    here.devices["0"] = gpu
    write_machine(machine_path(gpu), replace(machine("cuda"), environment=gpu))
    found = here.found()
    assert found["device 0"].found.endswith(", driver 580.1")
    assert "not on PATH" in found["GPU counters"].found
    assert found["description of 0"].found.endswith("not calibrated")
    monkeypatch.setattr(doctor.shutil, "which", lambda _: "/usr/bin/ncu")
    assert found.keys() - here.found().keys() == set()
    assert here.found()["GPU counters"].state is State.OK
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    params = {"proc/driver/nvidia/params": "RmProfilingAdminOnly: 1\n"}
    assert "NVreg_RestrictProfilingToAdminUsers=0" in here.found(params)["GPU counters"].todo


def test_a_cache_that_others_may_write_and_a_full_disk_are_told(here, monkeypatch, tmp_path):
    assert here.found()["kernel cache"].state is State.OK
    (tmp_path / "cache").chmod(0o777)
    assert here.found()["kernel cache"].state is State.FAULT
    full = SimpleNamespace(free=1 << 20)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: full)
    assert here.found()["temporary files"].todo == "set TMPDIR to a folder with more room"


def test_the_verb_tells_all_and_ends_with_three_without_a_device(here, run):
    here.found()
    code, out, _ = run("doctor")
    assert code == 0
    assert "install lbmtune[cuda13] or [cuda12], or use --device cpu" in out, "brackets are no markup"
    facts = json.loads(run("doctor", "--json")[1])
    assert [one["what"] for one in facts["findings"]][:2] == ["device cpu", "device 0"]
    here.devices["cpu"] = DeviceUnavailableError("Numba's compiler is turned off; unset it.")
    code, out, err = run("doctor")
    assert (code, err) == (3, "lbmtune: no device can be used here: Numba's compiler is turned off; unset it.\n")
    assert re.search(r"^device cpu +fault ", out, re.MULTILINE)
