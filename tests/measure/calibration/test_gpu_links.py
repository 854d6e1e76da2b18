"""Links between GPUs, measured on made-up devices whose copies, launches and waits take given times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

from lbmtune.api.several_devices import links as api_links
from lbmtune.backend.protocol import Binary, PeerDevice
from lbmtune.cli.format.description import print_links
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import streams_digest
from lbmtune.errors import InputError
from lbmtune.measure.calibration import gpu_ends, gpu_exchanges, gpu_links, links
from lbmtune.measure.calibration import machines as calibration
from lbmtune.measure.calibration.gpu_links import LinksBench
from lbmtune.measure.calibration.machines import CONFIG_VARIABLE, keep, machine_path
from lbmtune.measure.parts import host_turns
from lbmtune.model.machine.description import Links, Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Conditions, Environment, Resources
from lbmtune.search.lock import device_lock
from tests.measure.calibration.test_machines import InThisProcess
from tests.support.studies import fake_study

COPIES = {1 << 10: 20, 1 << 14: 20, 1 << 16: 10}
PEER, OWN, LAUNCH_S, START_S, WAIT_S, FIRST_S = 4e11, 3e12, 2e-6, 1e-6, 9e-6, 3e-6
"""Bytes per second between devices, and in one; seconds of a launch, of a copy beside its bytes, of a wait, and what a
copy takes longer behind one."""


HOST, TO_HOST = -1, 5e10
"""Place of arrays of the host, and bytes per second to and from there."""


@dataclass
class Clock:
    """The time of a host's devices, which do one thing after another."""

    now_s: float = 0.0


@dataclass
class MadeUpPeer:
    """A device whose arrays know where they are. slow: factor of what it exchanges with a device of a number."""

    number: int
    clock: Clock
    slow: dict[int, float] = field(default_factory=dict)
    jitter: Iterator[float] | None = None
    moves: bool = True
    waited: bool = False
    others: tuple[str, ...] = ()
    xp: ModuleType = np

    @property
    def environment(self) -> Environment:
        return replace(fake_study.environment("cuda"), device_id=f"GPU-{self.number}")

    def conditions(self) -> Conditions:
        return Conditions(others=self.others)

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def empty(self, elements: int, dtype: str, _: object = None) -> Any:
        return np.zeros(elements, dtype).view(_on(self.number))

    def host_empty(self, elements: int, dtype: str) -> Any:
        return np.zeros(elements, dtype).view(_on(HOST))

    def load(self, program: Program, binary: Binary) -> Any:
        return self

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        source, target, *along, count = arguments
        moved = 16 * int(along[0].reshape(count, 3)[:, 2].sum() if along else count)
        assert along or grid[0] * launch.block[0] >= count
        rate = min(self._rate(source), self._rate(target))
        self._move(target[: moved // 4], source[: moved // 4])
        self.clock.now_s += LAUNCH_S + moved / rate
        self.waited = False

    def copy(self, target: Any, source: Any) -> None:
        self._move(target, source)
        self.clock.now_s += FIRST_S if self.waited else 0.0
        self.waited = False
        self.clock.now_s += START_S + source.nbytes / min(self._rate(source), self._rate(target))

    def _move(self, target: Any, source: Any) -> None:
        if self.moves:
            target[...] = source

    def _rate(self, array: Any) -> float:
        place = type(array).place
        rates = {self.number: OWN, HOST: TO_HOST}
        return rates.get(place, PEER / self.slow.get(place, 1.0))

    def reaches(self, other: Any) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def queue(self, *, first: bool = False) -> MadeUpQueue:
        return MadeUpQueue(self)

    def recorded_in(self, queue: MadeUpQueue, run: Callable[[], None]) -> Callable[[], None]:
        return run

    def time_s(self, run: Callable[[], None]) -> float:
        begin = self.clock.now_s
        run()
        spent = self.clock.now_s - begin
        return spent * (next(self.jitter) if self.jitter else 1.0)


@dataclass
class MadeUpQueue:
    """Does its work at once, or after a while if it waits for a mark of another device."""

    device: MadeUpPeer

    def run(self, work: Callable[[], None]) -> None:
        work()

    def mark(self) -> int:
        return self.device.number

    def wait(self, mark: int) -> None:
        if mark != self.device.number:
            self.device.clock.now_s += WAIT_S
            self.device.waited = True


def _on(number: int) -> type[np.ndarray[Any, Any]]:
    """The arrays of a device."""
    return ARRAYS.setdefault(number, type(f"Array{number}", (np.ndarray,), {"place": number}))


ARRAYS: dict[int, type[np.ndarray[Any, Any]]] = {}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (gpu_links, gpu_ends, gpu_exchanges):
        if hasattr(module, "COPIES"):
            monkeypatch.setattr(module, "COPIES", COPIES)
        if hasattr(module, "ARRAY_BYTES"):
            monkeypatch.setattr(module, "ARRAY_BYTES", 1 << 18)


def compiler(_: Program) -> Binary:
    return Binary(b"", "", Resources())


def measured(devices: Sequence[MadeUpPeer]) -> list[Links]:
    peers = [cast("PeerDevice", device) for device in devices]
    said: list[str] = []
    found = LinksBench(peers, compiler, lambda one, other: f"link {one}{other}").measure(said.append)
    assert len(said) == len(devices) * (len(devices) - 1)
    return found


def test_the_links_of_two_devices_have_the_times_of_copies_and_of_waits() -> None:
    clock = Clock()
    one, other = measured([MadeUpPeer(0, clock), MadeUpPeer(1, clock)])
    assert (one.name, other.name) == ("link 01", "link 10")
    assert one.copy_s == {str(size): pytest.approx(START_S + size / PEER) for size in COPIES}
    assert one.wait_s == pytest.approx(WAIT_S)
    assert one.met_wait_s == pytest.approx(WAIT_S)
    # one thing after another: eight waits for the other device and four messages, of which a half is of each device
    for size in COPIES:
        copied_s, stored_s = START_S + size / PEER + FIRST_S, LAUNCH_S + size / PEER
        waited_s = (8 - 2) * WAIT_S
        assert one.message_copy_s[str(size)] == pytest.approx((waited_s + 4 * copied_s) / 2, rel=0.1)
        assert one.message_store_s[str(size)] == pytest.approx((waited_s + 4 * stored_s) / 2, rel=0.1)
        through_s = 2 * (START_S + size / TO_HOST) + 2 * FIRST_S
        assert one.message_host_s[str(size)] == pytest.approx((waited_s + 4 * (WAIT_S + through_s)) / 2, rel=0.1)
        assert one.busy_copy_s[str(size)] == pytest.approx(one.copy_s[str(size)], rel=0.2)
        for busy, idle in (
            (one.busy_message_copy_s, one.message_copy_s),
            (one.busy_message_store_s, one.message_store_s),
        ):
            assert busy[str(size)] == pytest.approx(idle[str(size)], rel=0.1)
    assert one.call_s.keys() == {"launch", "copy", "run", "mark", "wait", "turn"}
    assert all(0 < seconds < 1e-2 for seconds in one.call_s.values())
    bytes_s = (1 << 18) / (LAUNCH_S + (1 << 18) / PEER)
    assert one.store_bytes_per_s == pytest.approx(bytes_s)
    assert one.load_bytes_per_s == pytest.approx(bytes_s)
    # the made-up devices do one thing after another: both ways take twice as long, and two waits in all samples
    both_s = 2 * (START_S + (1 << 16) / PEER) + (2 * WAIT_S + FIRST_S) / 10
    assert one.both_ways_bytes_per_s == pytest.approx(2 * (1 << 16) / both_s)
    assert one.peers == {"GPU-1": "link 01"}
    assert one.peer_copy_bytes_per_s == {"GPU-1": pytest.approx((1 << 16) / one.copy_s["65536"])}
    assert one.peer_both_ways_bytes_per_s == {"GPU-1": one.both_ways_bytes_per_s}
    assert one.peer_small_s == {"GPU-1": one.copy_s["1024"]}
    assert one.peer_wait_s == {"GPU-1": one.wait_s}
    assert one.spread == pytest.approx(0.0, abs=1e-6)
    assert (one.assumed, one.others, other.peers) == ("", (), {"GPU-0": "link 10"})


def test_the_model_has_the_figures_of_the_peer_that_takes_longest() -> None:
    clock = Clock()
    first, *_ = found = measured([MadeUpPeer(0, clock, {2: 4.0}), MadeUpPeer(1, clock), MadeUpPeer(2, clock, {0: 4.0})])
    assert first.name == "link 02"
    assert first.copy_s["65536"] == pytest.approx(START_S + 4 * (1 << 16) / PEER)
    assert set(first.peers) == {"GPU-1", "GPU-2"}
    assert first.peer_copy_bytes_per_s == {
        f"GPU-{n}": pytest.approx((1 << 16) / (START_S + slower * (1 << 16) / PEER)) for n, slower in ((1, 1), (2, 4))
    }
    assert found[1].copy_s["65536"] == pytest.approx(START_S + (1 << 16) / PEER)


def test_rounds_that_lie_apart_and_programs_of_others_are_noted() -> None:
    clock, rounds = Clock(), (round_ for _ in range(1000) for round_ in (1.3, 1.0, 1.3, 1.3, 1.2))
    one, other = measured([MadeUpPeer(0, clock, jitter=rounds, others=("python (8)",)), MadeUpPeer(1, clock)])
    assert one.spread == pytest.approx(0.3)
    assert one.copy_s["1024"] == pytest.approx(START_S + (1 << 10) / PEER)
    assert one.others == other.others == ("python (8)",)


def test_a_copy_that_moves_nothing_is_no_figure() -> None:
    clock = Clock()
    with pytest.raises(RuntimeError, match="did not move what it should"):
        measured([MadeUpPeer(0, clock, moves=False), MadeUpPeer(1, clock)])


CALLS_S = {"launch": 5e-6, "copy": 4e-6, "run": 2e-6, "mark": 3e-6, "wait": 1e-6}


@dataclass
class Host:
    """The time of a host whose calls take given times."""

    now_s: float = 0.0

    def took(self, name: str) -> None:
        self.now_s += CALLS_S[name]


class HostQueue(NamedTuple):
    host: Host

    def run(self, work: Callable[[], None]) -> None:
        self.host.took("run")
        work()

    def mark(self) -> object:
        self.host.took("mark")
        return object()

    def wait(self, mark: object) -> None:
        assert mark
        self.host.took("wait")


class HostEnd:
    """A device of which only the calls take time."""

    source = target = np.zeros(1)

    def __init__(self, host: Host) -> None:
        self._host, self.device, self.queue = host, self, HostQueue(host)

    def queue_of(self, *, first: bool = False) -> HostQueue:
        return self.queue

    def synchronize(self) -> None:
        pass

    def moves(self, *_: object) -> Callable[[], None]:
        return partial(self._host.took, "launch")

    def copies(self, *_: object) -> Callable[[], None]:
        return partial(self._host.took, "copy")


def test_calls_of_the_host_are_timed_on_both_devices_and_what_it_does_besides(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host()
    ends = [cast("Any", HostEnd(host)) for _ in range(2)]
    for end in ends:
        end.device = SimpleNamespace(queue=end.queue_of, synchronize=end.synchronize)
    monkeypatch.setattr(gpu_exchanges.time, "perf_counter", lambda: host.now_s)
    monkeypatch.setattr(gpu_exchanges, "turn_s", lambda: 4e-6)
    found = gpu_exchanges.call_s(*ends)
    wanted = {**CALLS_S, "turn": 4e-6}
    assert found == {name: pytest.approx(seconds, rel=0.01, abs=0.03e-6) for name, seconds in wanted.items()}


def test_a_turn_is_that_of_the_schedule_of_two_parts_with_four_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here each call of a queue takes a microsecond: 3 launches, waits and marks of a part, and 4 of a message."""
    host = Host()
    for name in ("run", "wait", "mark"):
        real = getattr(host_turns._Silent, name)

        def timed(*given: Any, real: Any = real) -> Any:
            host.now_s += 1e-6
            return real(*given)

        monkeypatch.setattr(host_turns._Silent, name, timed)
    monkeypatch.setattr(host_turns.time, "perf_counter", lambda: host.now_s)
    # a part: runs and marks of two queues, waits for four messages, its interior, and edges; a message: waits for both
    assert host_turns.turn_s() == pytest.approx((2 * (2 + 2 + 4 + 1 + 1) + 4 * (2 + 1 + 1)) / 6 * 1e-6, rel=0.01)


def machines(count: int = 2) -> dict[str, Machine]:
    made = fake_study.machine("cuda")
    return {str(n): replace(made, environment=replace(made.environment, device_id=f"GPU-{n}")) for n in range(count)}


def in_this_process(monkeypatch: pytest.MonkeyPatch, devices: Sequence[MadeUpPeer]) -> list[tuple[str, ...]]:
    """Let the made-up devices be measured without a worker; return the names of those that were, each time."""
    asked: list[tuple[str, ...]] = []

    class Worker:
        def send(self, *_: object) -> None:
            pass

    @contextmanager
    def worker(_name: str, opener: Any, _limit_s: float) -> Iterator[Worker]:
        opened, names = opener.args
        assert opened is links.open_device
        asked.append(names)
        yield Worker()

    def answer(_worker: Worker, progress: Callable[[str], None] | None, *_: object) -> list[Links] | None:
        return measured(devices) if progress else None

    monkeypatch.setattr(links, "temporary_worker", worker)
    monkeypatch.setattr(links, "await_answer", answer)
    return asked


def test_links_are_kept_with_each_device_and_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path))
    clock = Clock()
    asked = in_this_process(monkeypatch, [MadeUpPeer(n, clock) for n in range(3)])
    two, three = ({**machines(count), "cpu": fake_study.machine("cpu")} for count in (2, 3))
    found = api_links.measured_links(three)
    assert list(found) == list(three)
    assert found["cpu"] == three["cpu"]
    for name in ("0", "1", "2"):
        kept = read_machine(machine_path(found[name].environment))
        assert kept == found[name]
        assert replace(kept, links=None) == three[name]
        assert kept.links
        assert kept.links.date
    assert api_links.measured_links(found) == found
    fewer = {name: found[name] for name in two}
    assert api_links.measured_links(fewer) == fewer, "they hold more than was asked for"
    assert asked == [("0", "1", "2")]
    api_links.measured_links(found, refresh=True)
    api_links.measured_links({**found, "1": three["1"]})
    assert asked == [("0", "1", "2")] * 3


def test_one_gpu_has_no_links(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = in_this_process(monkeypatch, [])
    alone = {**machines(1), "cpu": fake_study.machine("cpu")}
    assert api_links.measured_links(alone, refresh=True) == alone
    print_links(api_links.linked(alone))
    assert not asked
    assert capsys.readouterr().out == ""


def test_nobody_else_measures_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machines()
    asked = in_this_process(monkeypatch, [])
    with device_lock(found["1"].environment), pytest.raises(InputError, match=r"^Made-up 1 is in use by process"):
        api_links.measured_links(found)
    assert not asked


def printed(capsys: pytest.CaptureFixture[str], found: dict[str, Machine]) -> list[str]:
    print_links(api_links.linked(found))
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_links_are_printed_as_far_as_they_are_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lbmtune.cli.format.description.link", lambda one, other: f"wire {one}{other}")
    found = machines()
    unknown = ["0 1 wire 01 - - - -", "1 0 wire 10 - - - -"]
    assert printed(capsys, found)[2:] == [*unknown, "not all are measured (run: lbmtune devices --links)"]
    made = Links(
        name="NVLink 4, 18 links",
        copy_s={"65536": 2.7e-6},
        both_ways_bytes_per_s=7.48e11,
        source="",
        peers={"GPU-1": "NVLink 4, 18 links"},
        peer_copy_bytes_per_s={"GPU-1": 3.81e11},
        peer_both_ways_bytes_per_s={"GPU-1": 7.48e11},
        peer_small_s={"GPU-1": 2.7e-6},
        peer_wait_s={"GPU-1": 8.04e-6},
        spread=0.02,
    )
    known = {"0": replace(found["0"], links=made), "1": found["1"]}
    row = "0 1 NVLink 4, 18 links 381 GB/s 748 GB/s 2.7 us 8.0 us"
    assert printed(capsys, known)[2:4] == [row, unknown[1]]
    assert not caplog.messages
    for changes, why in (
        ({"spread": 0.31}, "rounds of a figure lay up to 31% apart"),
        ({"others": ("python (8)",)}, "other processes used the GPUs (python (8))"),
    ):
        printed(capsys, {**known, "0": replace(found["0"], links=replace(made, **changes))})  # type: ignore[arg-type]
        wanted = f"links of device 0: {why}; lbmtune devices --links --refresh measures them again."
        assert caplog.messages == [wanted]
        caplog.clear()


def test_a_worker_measures_the_devices_that_it_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, opened = Clock(), list[str]()
    monkeypatch.setattr(links, "compiler_for", lambda _: compiler)
    monkeypatch.setattr(links, "link", lambda one, other: f"{one} to {other}")

    def opener(name: str) -> Any:
        opened.append(name)
        return MadeUpPeer(int(name), clock)

    _, session = links.open_links(opener, ("3", "5"))
    found = session(None, lambda _: None)
    assert opened == ["3", "5"]
    assert [(one.name, list(one.peers)) for one in found] == [("3 to 5", ["GPU-5"]), ("5 to 3", ["GPU-3"])]


def test_bandwidths_that_are_measured_again_leave_links_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(tmp_path))
    kept = replace(
        fake_study.machine(),
        streams_digest=streams_digest("cpu"),
        links=Links(name="a wire", copy_s={"65536": 2.7e-6}, both_ways_bytes_per_s=7e11, source="made up"),
    )
    keep(kept, None)
    InThisProcess.asked.clear()
    monkeypatch.setattr(calibration, "temporary_worker", lambda *_: nullcontext(InThisProcess()))
    monkeypatch.setattr(calibration, "await_answer", lambda worker, _: worker.answers.pop())
    found = calibration.describe("cpu", refresh=True)
    assert InThisProcess.asked == ["bandwidths"]
    assert found.links == kept.links
    assert found.copy_bytes_per_s != kept.copy_bytes_per_s
