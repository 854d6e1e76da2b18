"""Legality, said once: the rules of each family, in order, and the first reason against a configuration."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lbmtune.catalogue.domain_conditions import Condition, DomainRule
from lbmtune.catalogue.families import cpu, cuda
from lbmtune.catalogue.families.common_rules import FIRST, LAST, LAYOUTS, value_rules
from lbmtune.catalogue.knobs import cached
from lbmtune.catalogue.limits import Limits, cuda_limits
from lbmtune.catalogue.own_kernel.config import OwnConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.case import domain_conditions as conditions_of_case
from lbmtune.catalogue.record import KernelConfig

__all__ = ["Limits", "Rule", "broken", "cuda_limits", "domain_conditions", "rules"]

Rule = Callable[[Case, Any, Limits], str | None]
_OWN: Mapping[type[KernelConfig], tuple[Rule, ...]] = {**cuda.RULES, **cpu.RULES}


@cached
def rules(record: type[KernelConfig]) -> tuple[Rule, ...]:
    """Return the rules of a family in order: each may rely on those before it."""
    if issubclass(record, OwnConfig):
        return (*value_rules(record), *next(_OWN[one] for one in record.__mro__ if one in _OWN))
    return (*FIRST, *value_rules(record), *LAYOUTS, *_OWN[record], *LAST)


def domain_conditions(case: Case, config: KernelConfig, limits: Limits) -> Iterator[Condition]:
    """Yield what a domain must obey: that of the case, and that of the rules for a legal configuration."""
    yield from conditions_of_case(case)
    for rule in rules(type(config)):
        if isinstance(rule, DomainRule):
            yield from rule.conditions(case, config, limits)


def broken(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Return the first reason why the configuration is illegal for the case on a device with these limits, or None."""
    return next((reason for rule in rules(type(config)) if (reason := rule(case, config, limits))), None)
