"""One configuration of one case: render, predict, verify, measure, accuracy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lbmtune.api.configs import Config, backend_of_knobs, legal_config, parse_values
from lbmtune.api.machines import devices, measured_machines
from lbmtune.api.machines.devices import LOG, chosen, doubt, limits_of
from lbmtune.api.machines.shipped import as_machine
from lbmtune.api.predicted.estimates import predictor
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen import render as rendering
from lbmtune.codegen.program import Program
from lbmtune.errors import NothingValidError
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.model.machine.description import Machine
from lbmtune.records import Accuracy, Prediction, Resources, Trial, Verification
from lbmtune.records.spec import TimingProtocol
from lbmtune.search.lock import device_lock


def render(case: Case, config: Config, device: str | None = None, *, machine: Machine | str | None = None) -> Program:
    """Return the program of a kernel: its texts, buffers, launches and digest. Needs no device.

    config: a record, a dict of knobs, or 'scheme=aa,block=256x1x1'. device: 'cpu' or the index of a GPU; machine: as
    in `predict`. They say which limits hold, and the backend if the configuration names none.
    Raises InputError if the configuration is illegal.

        >>> case = Case("box", "d3q19", "bgk", (32, 32, 32), 1.6)
        >>> "__global__" in render(case, "backend=cuda,scheme=aa,block=8x8x1").source
        True
    """
    known = None if machine is None else as_machine(machine)
    where = _device(config, device, known)
    return rendering.render(case, legal_config(config, case, devices.bounds(where, known).limits, backend_of(where)))


def predict(
    case: Case, config: Config, machine: Machine | str | Path | None = None, *, resources: Resources | None = None
) -> Prediction:
    """Return what the model expects of a kernel: MLUPS, bytes per update, footprint in bytes, times of its terms.

    machine: a description, the name of a shipped one ('h200'), or a file that `lbmtune devices` wrote; None: the
    device that is here, which is measured first. resources: registers and spills of the compiled kernel, estimated
    if they are left out. Raises InputError if the configuration is illegal there.

        >>> case = Case("box", "d3q19", "bgk", (128, 128, 128), 1.6)
        >>> predict(case, {"scheme": "aa", "block": "128x1x1"}, "h200").bytes_per_update
        152.0
    """
    known = measured_machines.measured_machine(_device(config)) if machine is None else as_machine(machine)
    found = legal_config(config, case, limits_of(known), known.environment.backend)
    if remark := doubt(known):
        LOG.warning(remark)
    return predictor(case, known)(found, resources=resources)


def verify(
    case: Case,
    config: Config,
    device: str | None = None,
    *,
    full_size: bool = False,
    protocol: TimingProtocol | None = None,
) -> Verification:
    """Return the deviation of a kernel from the NumPy oracle on small domains, for one to three periods.

    device: 'cpu' or the index of a GPU; full_size: also on the domain of the case. `passed` says if the error is
    within its bound. Raises InputError if the configuration is illegal, NothingValidError if the kernel did not run,
    DeviceUnavailableError.

        >>> verify(Case("box", "d3q19", "bgk", (32, 32, 32), 1.6), "scheme=aa", "cpu").passed
        True
    """
    trials = prove(case, config, device, full_size, protocol)
    failed = next((trial for trial in trials if not trial.verification), None)
    if failed:
        raise NothingValidError(f"the kernel cannot be verified: {failed.outcome}: {failed.reason}")
    found = [trial.verification for trial in trials if trial.verification]
    return next((one for one in found if not one.passed), found[-1])


def prove(
    case: Case, config: Config, device: str | None, full_size: bool, protocol: TimingProtocol | None
) -> list[Trial]:
    """Return the trials of a verification: on small domains, then at full size if that is wanted (`verify`)."""
    where, found = _legal(case, config, device)
    with alone(Evaluator(case, where, protocol or TimingProtocol())) as evaluator:
        trials = [evaluator.verify(found)]
        if full_size and trials[0].verification:
            trials.append(evaluator.verify(found, full=True))
    return trials


def measure(
    case: Case,
    config: Config,
    device: str | None = None,
    *,
    machine: Machine | None = None,
    protocol: TimingProtocol | None = None,
) -> Trial:
    """Return the trial of a kernel that is verified, then timed on the domain of the case.

    device: 'cpu' or the index of a GPU; machine: the description for the prediction, measured if left out.
    `mlups` is the median in million updates per second, None if the kernel failed (`outcome`, `reason`);
    `measurement` has samples in seconds and the 95 % interval.
    Raises InputError if the configuration is illegal, DeviceUnavailableError.

        >>> trial = measure(Case("box", "d3q19", "bgk", (32, 32, 32), 1.6), "scheme=aa", "cpu")
        >>> trial.outcome, trial.mlups > 0
        (<Outcome.OK: 'ok'>, True)
    """
    where, found = _legal(case, config, device)
    expected = predictor(case, machine or measured_machines.measured_machine(where))
    with alone(Evaluator(case, where, protocol or TimingProtocol(), expected)) as evaluator:
        evaluator.submit(0, found)
        return evaluator.next()


def accuracy(
    case: Case, config: Config, device: str | None = None, *, protocol: TimingProtocol | None = None
) -> Accuracy:
    """Return relative L2 errors of a Taylor-Green vortex in the precision of a kernel, against float64.

    Raises InputError if the configuration is illegal, NothingValidError if it cannot be measured,
    DeviceUnavailableError.
    """
    where, found = _legal(case, config, device)
    with alone(Evaluator(case, where, protocol or TimingProtocol())) as evaluator:
        return evaluator.accuracy(found)


@contextmanager
def alone(evaluator: Evaluator) -> Iterator[Evaluator]:
    """Lock the device of an evaluator, and close that in the end. Raises InputError if the device is in use."""
    with evaluator, device_lock(evaluator.environment):
        yield evaluator


def _device(config: Config, device: str | None = None, machine: Machine | None = None) -> str:
    """Return the device: the named one, the one of a machine, or the first of the configuration's backend."""
    if isinstance(config, KernelConfig):
        return chosen(device, config.backend, machine)
    return chosen(device, backend_of_knobs(parse_values(config) if isinstance(config, str) else config), machine)


def _legal(case: Case, config: Config, device: str | None) -> tuple[str, KernelConfig]:
    where = _device(config, device)
    return where, legal_config(config, case, devices.bounds(where).limits, backend_of(where))
