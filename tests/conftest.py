"""Fixtures of all tests: the hypothesis profile, a kernel cache of their own, and when a test may be skipped.

LBMTUNE_REQUIRE_ALL=1 (set by CI) turns every skip into a failure, except for want of hardware: a missing compiler or
browser, which can be installed, must not pass for a success.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import os
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.support import durations, once
from tests.support.thinning import Fact, drawn, facts, few

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)
SPARED = ("gpu", "peer")
"""Marks of tests that may be skipped everywhere: of want of a GPU, and of lbmpy, an extra that CI does without."""
HAS_PEER = importlib.util.find_spec("lbmpy") is not None
REQUIRE_ALL = os.environ.get("LBMTUNE_REQUIRE_ALL") == "1"
HARDWARE = ("this processor has no", "one processor", "no transparent huge pages")
"""How the reason of a skip begins that nothing which is installed would spare; beside the tests marked gpu."""

gc.disable()  # until what stays to the end has been imported and collected
os.environ.setdefault("LBMTUNE_CACHE", str(Path(__file__).resolve().parent.parent / ".pytest_cache" / "kernels"))
# runs of other programs and of the tests beside each other need not have the device to themselves
os.environ["LBMTUNE_LOCKS"] = f"tests of {os.getpid()}"
if "PYTEST_XDIST_WORKER" not in os.environ:  # the process that begins the others, whose folder they inherit
    SHARE = tempfile.TemporaryDirectory(prefix="lbmtune-tests-")
    os.environ[once.FOLDER] = SHARE.name
# no machine loses its power here, and each file would be waited for
os.fsync = lambda _: None  # type: ignore[assignment]
# before anything loads NumPy: threads of its library would wait for each other beside the other workers of the tests
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# and threads of a parallel loop that spin until all are there would keep those from their processors that they wait for
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
settings.register_profile(
    "lbmtune",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],  # which is a matter of what else the machine does
)
settings.load_profile("lbmtune")


PROCESSOR_S = pytest.StashKey[float]()
"""Processor seconds of this process and of those that it has waited for, up to the last report."""
EACH_S = pytest.StashKey[dict[str, float]]()
"""Processor seconds of each collected sample, as far as they are known."""
EVERY_DAY_S = pytest.StashKey[float]()
"""Processor seconds that the collected tests of every day are known to take."""
THINNED = pytest.StashKey[dict[str, tuple[list[frozenset[Fact]], set[int]]]]()
"""Of each thinned test: what its samples say, and the numbers of those for every day."""


def pytest_addoption(parser: pytest.Parser) -> None:
    how = f"write {durations.DURATIONS.name}: anew, or what takes longer than known"
    parser.addoption("--store-durations", choices=("anew", "longer"), help=how)


def pytest_configure(config: pytest.Config) -> None:
    let_children_be_interrupted()
    config.pluginmanager.register(_LongestFirst())
    if (how := config.getoption("--store-durations")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Durations({} if how == "anew" else durations.read()))


def let_children_be_interrupted() -> None:
    """Have programs that tests start end on Ctrl-C and hang-up, which jobs in the background of a shell ignore.

    A signal that is ignored stays so in a program that is started; one with a handler does not.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


class _Durations:
    """Sums up the processor seconds of each test over its samples, and writes them at the end of a run."""

    def __init__(self, known: Mapping[str, float]) -> None:
        self._known, self._took = known, defaultdict[str, float](float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[durations.test_of(report.nodeid)] += getattr(report, "processor_s", 0.0)

    def pytest_sessionfinish(self) -> None:
        names = self._known.keys() | self._took.keys()
        durations.write({name: max(self._known.get(name, 0.0), self._took.get(name, 0.0)) for name in names})


class _LongestFirst:
    """Has the longest files begin first, so that none is left alone at the end; before them new ones, maybe long."""

    @pytest.hookimpl(trylast=True)  # of what other hooks have left
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        each, seconds = config.stash[EACH_S], dict[str, float]()
        for item in items:
            file = durations.file_of(item.nodeid)
            seconds[file] = seconds.get(file, 0.0) + each[item.nodeid]
        items.sort(key=lambda item: -seconds[durations.file_of(item.nodeid)])


def pytest_collection(session: pytest.Session) -> None:
    """Of all test files, each worker first imports some: what it compiles, the others find as bytecode."""
    count, worker = (os.environ.get(f"PYTEST_XDIST_WORKER{what}", "") for what in ("_COUNT", ""))
    if worker and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        root = Path(__file__).parent
        found = (path.relative_to(root.parent).with_suffix("").parts for path in root.rglob("test_*.py"))
        files = sorted(".".join(parts) for parts in found)
        number, of = int(worker.removeprefix("gw")), int(count)
        for name in (name for first in range(number, number + of) for name in files[first % of :: of]):
            with suppress(Exception, pytest.skip.Exception):  # which collection meets again, and reports
                importlib.import_module(name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _thin(config, items)
    _spare(items)
    config.stash[EACH_S] = each = durations.each(
        [item.nodeid for item in items if not item.get_closest_marker("slow")], durations.read()
    )
    every_day = (item.nodeid for item in items if not item.get_closest_marker("landing"))
    config.stash[EVERY_DAY_S] = sum(each.get(name, 0.0) for name in every_day)
    each.update({item.nodeid: 0.0 for item in items if item.nodeid not in each})
    missing = _why_no_gpu() if any(item.get_closest_marker("gpu") for item in items) else ""
    for item in items:
        if item.get_closest_marker("peer") and not HAS_PEER:
            item.add_marker(pytest.mark.skip(reason="lbmpy is not installed; make test-peer installs and runs these"))
        if missing and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """What collection made stays to the end: the garbage collector need not go through it again and again.

    It looks for more at a time than usually: hypothesis takes the time whenever it begins and ends.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()
    session.config.stash[PROCESSOR_S] = _processor_s()


def pytest_unconfigure() -> None:
    """Nor at the end, when pytest and Python go through everything several times, which all ends with the process."""
    gc.freeze()


def _thin(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Samples of thinned tests that are not for every day are slow."""
    tests: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if isinstance(item, pytest.Function) and "thinned" in marks and "slow" not in marks:
            tests[item.nodeid.partition("[")[0]].append(item)
    config.stash[THINNED] = {}
    for name, samples in tests.items():
        said = [facts(sample.callspec.params) for sample in samples]
        kept = drawn(said, samples[0].get_closest_marker("thinned").args[0])  # type: ignore[union-attr]
        config.stash[THINNED][name] = said, kept
        for number, sample in enumerate(samples):
            if number not in kept:
                sample.add_marker(pytest.mark.slow)


def _spare(items: list[pytest.Item]) -> None:
    """Leave to landings what tests that take long have no time for every day: the others of their samples."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not any(map(item.get_closest_marker, ("slow", "landing"))):
            tests[durations.test_of(item.nodeid)].append(item)
    known = durations.read()
    for name in known.keys() & tests.keys():
        samples = tests[name]
        kept = few([facts(_parameters(one)) for one in samples], durations.for_every_day(known[name], len(samples)))
        for number, sample in enumerate(samples):
            if number not in kept:
                sample.add_marker(pytest.mark.landing)


def _parameters(item: pytest.Item) -> Mapping[str, Any]:
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A kernel with pinned threads leaves the main one on one core, which all tests after it would have to share."""
    if threads := sys.modules.get("lbmtune.backend.cpu.placement.threads"):
        threads.bind(0, "none")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    before, item.config.stash[PROCESSOR_S] = item.config.stash[PROCESSOR_S], _processor_s()
    report.processor_s = item.config.stash[PROCESSOR_S] - before  # travels to the process that began the others
    return _refuse_skip(report) if REQUIRE_ALL and not any(map(item.get_closest_marker, SPARED)) else report


def _processor_s() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _refuse_skip(report) if REQUIRE_ALL else report


def _refuse_skip(report: Report) -> Report:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if reason.removeprefix("Skipped: ").startswith(HARDWARE):
            return report
        report.outcome = "failed"
        report.longrepr = f"skipped although LBMTUNE_REQUIRE_ALL=1: {reason}"
    return report


def _why_no_gpu() -> str:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no NVIDIA driver (libcuda.so.1)"
    if driver.cuInit(0):
        return "no NVIDIA GPU that the driver can use"
    return "" if importlib.util.find_spec("cupy") else "CuPy is not installed"
