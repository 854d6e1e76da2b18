"""Measure the kernel of a best.json again, in turns with the default configuration: does its speed hold here."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from lbmtune.api.configs import config_of, legal_config
from lbmtune.api.kernels import alone
from lbmtune.api.machines import devices
from lbmtune.api.machines.devices import LOG, chosen
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.patch_checks import settled
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import InputError, NothingValidError
from lbmtune.measure.calibration.machines import machine_path
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Environment
from lbmtune.records.best_json.document import Best, read_best
from lbmtune.records.regression.remeasured import Here, Remeasured, remeasured
from lbmtune.records.spec import TimingProtocol


def remeasure(
    path: Path | str,
    device: str | None = None,
    *,
    geometry: Path | str | None = None,
    protocol: TimingProtocol | None = None,
) -> Remeasured:
    """Return whether the speed of a best.json holds on a device, and if not, what may have changed it.

    The kernel that this version makes of the configuration is verified on the whole domain, then timed in turns with
    the default configuration of the same precision. No text of the file runs. device: 'cpu' or the index of a GPU;
    geometry: path of the voxel file of the case, if it is not where it was.
    Raises InputError if the kernel cannot run here, NothingValidError if it is wrong or fails, DeviceUnavailableError.
    """
    best = read_best(Path(path))
    case = settled(best.case, geometry)
    where = chosen(device, best.config.backend)
    limits = devices.bounds(where).limits
    kernel = _fitting(best.config, case, limits)
    default = default_of(kernel, case, limits)
    with alone(Evaluator(case, where, protocol or TimingProtocol())) as evaluator:
        first, *others = evaluator.finals([kernel, *([default] if default else [])])
        here = Here(
            environment=evaluator.environment,
            between_runs=_between_runs(evaluator.environment),
            same_text=render(case, best.config).digest == _recorded(best).digest,
        )
    if first.final is None:
        raise NothingValidError(f"the kernel of {path} has no speed here: {first.outcome}: {first.reason}")
    second = others[0] if others and others[0].final else None
    return remeasured(best, here, first.final, second.final if second else None, second.key if second else "")


def default_of(kernel: KernelConfig, case: Case, limits: Limits) -> KernelConfig | None:
    """Return the default configuration in the precision of a kernel; None if it is that kernel, or illegal here."""
    precision = {"storage": kernel.storage, "compute": kernel.compute}
    found = config_of({"backend": kernel.backend, **precision}, case, limits, kernel.backend)
    return None if found.key == kernel.key or broken(case, found, limits) else found


def _fitting(config: KernelConfig, case: Case, limits: Limits) -> KernelConfig:
    """Return a configuration with as many threads as there are cores, if it has more. Raises InputError."""
    threads = getattr(config, "threads", 1)
    if threads > limits.cores > 0:
        LOG.warning("the kernel was recorded with %d threads and gets %d cores here.", threads, limits.cores)
        changes: dict[str, Any] = {"threads": limits.cores}
        config = replace(config, **changes)
    return legal_config(config, case, limits, config.backend)


def _between_runs(environment: Environment) -> float | None:
    """Return the spread between runs by the description that is kept of a device; None if none is."""
    with suppress(InputError):  # none is kept, or it is of another version
        return read_machine(machine_path(environment)).between_runs
    return None


def _recorded(best: Best) -> Program:
    """Return the recorded text, of which nothing but the digest is used."""
    return Program(best.config.backend, best.case, best.config, best.kernel.source, best.kernel.options, ())
