"""The importance of each knob for being among the fastest trials of a study, all knobs considered at once."""

import warnings
from collections.abc import Collection, Sequence
from math import ceil

from lbmtune.catalogue.config import KernelConfig, Scalar, knobs_by_name
from lbmtune.records import Trial

QUANTILE = 0.1
"""Share of the trials that count as the fastest."""
MOST = 1000
"""Trials that are looked at; of more every second, third, ... in their order."""
FEWEST = 50
"""Trials from which on five are among the fastest, which the estimate asks for."""


def importance(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the share of each knob that varies, the largest first; they add up to 1. Empty for too few trials.

    Source: PED-ANOVA, Watanabe, Bansal, Hutter 2023, as Optuna has it.
    """
    measured = [trial for trial in trials if trial.mlups is not None]
    measured = measured[:: ceil(len(measured) / MOST) or 1]
    if len(measured) < FEWEST:
        return {}
    import optuna  # here: it loads slowly, and few verbs make a page

    from lbmtune.search.optuna_view.storage import Shared, distributions

    configs = [trial.kernel_config for trial in measured]
    space = distributions(configs, Shared)
    acting = [_acting(config, space) for config in configs]
    if len(space) < 2:
        return {}
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    study.add_trials(
        [
            optuna.create_trial(value=trial.mlups, params=own, distributions={name: space[name] for name in own})
            for trial, own in zip(measured, acting, strict=True)
        ]
    )
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=QUANTILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of knobs that act in few trials, whose share is small
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


def _acting(config: KernelConfig, names: Collection[str]) -> dict[str, Scalar]:
    """Return the values of those knobs that act in a configuration; of others no share is meant."""
    flat, known = config.flat(), knobs_by_name(type(config))
    return {
        name: value
        for name, value in flat.items()
        if name in names and (name not in known or known[name].neutral(flat) is None)
    }
