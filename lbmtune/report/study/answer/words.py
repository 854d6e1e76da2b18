"""Kernels in the words of the field."""

from collections.abc import Sequence

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.own_kernel.config import is_own
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.search.kinds import kind_of, steps_per_launch

_NAMED = 3
"""Trials that are named, of several."""


def words(config: KernelConfig) -> str:
    """Name a kernel: 'temporal blocking, moments, 3 steps per launch, fp32'; one of a user by its name."""
    if is_own(config.family):
        return f"kernel {config.scheme}"
    kind = kind_of(config)
    family = config.family.replace("-", " ")
    if kind.on_chip or kind.place or (kind.steps == 1 and kind.representation == "populations"):
        parts = [family, kind.pattern]
    elif kind.steps == 1:  # its family is named after several steps
        parts = [kind.pattern, steps_per_launch(1)]
    else:
        parts = [family, kind.pattern, steps_per_launch(kind.steps)]
    return ", ".join([*parts, precision(config)])


def meaning(config: KernelConfig) -> str:
    """Say what the words of a kernel mean: its family, then its scheme with its source; empty for one of a user."""
    if is_own(config.family):
        return ""
    said = [(type(config).__doc__ or "").partition("\n")[0].rstrip(".")]
    found = SCHEMES.get(str(config.flat().get("scheme")))
    said += [f"{found.name}: {found.title} ({found.source})"] if found else []
    return ". ".join(said)


def named(numbers: Sequence[int]) -> str:
    """Return the numbers of one trial or several, after the word 'trial'."""
    return named_as(list(map(str, numbers)))


def named_as(told: Sequence[str]) -> str:
    """Return one trial or several, told in some way, after the word 'trial'."""
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return f"{'s' if len(told) > 1 else ''} {', '.join(told[:_NAMED])}{more}"


def config_text(trial: Trial) -> str:
    """Return a configuration as text, in which scheme, steps and storage stand even if they are at their defaults."""
    said = trial.kernel_config.said
    shown = {part.partition("=")[0] for part in said.split(",")}
    named = {name: trial.config[name] for name in ("scheme", "steps", "storage") if name in trial.config}
    return ",".join([said, *(f"{name}={value}" for name, value in named.items() if name not in shown)])


def precision(config: KernelConfig) -> str:
    """Name the number formats: 'fp32', or 'fp16s stored, fp32 computed'."""
    stored, computed = config.storage, config.compute
    return stored if stored == computed else f"{stored} stored, {computed} computed"


def device_option(study: StudyRecord) -> str:
    """Return the device of a command on a machine like that of the study: its first GPU, or the processor."""
    return "cpu" if BACKENDS[study.header.backend].shares_host else "0"


def device_words(study: StudyRecord) -> str:
    """Name the device: a processor with its cores, of which a study may have had few."""
    environment = study.header.environment
    if not BACKENDS[study.header.backend].shares_host or not environment.cores:
        return environment.device
    return f"{environment.cores} core{'s' * (environment.cores != 1)} of {environment.device}"
