"""The legal set: the product of the axes, filtered by the rules, each kernel once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from lbmtune.catalogue.axes import AXES, completed, neutral
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CONFIGS, KernelConfig, Scalar, from_flat
from lbmtune.catalogue.rules import RULES, Limits, Rule
from lbmtune.errors import InputError

Axes = Mapping[str, Sequence[Scalar]]


@dataclass(frozen=True)
class Space:
    """What a study may try. configs: legal and distinct, in a deterministic order.

    illegal: an example of each kind of reason -> how many points it removed; products: all distinct points.
    """

    configs: tuple[KernelConfig, ...]
    illegal: dict[str, int]

    @property
    def products(self) -> int:
        """Distinct points of the product of the axes, legal or not."""
        return len(self.configs) + sum(self.illegal.values())


def legal_set(case: Case, backend: str, axes: Axes, limits: Limits) -> Space:
    """The legal configurations for a case on a device. Axes that are not given keep their default.

    Raises InputError for an unknown name, and where no configuration is legal.
    """
    legal: list[KernelConfig] = []
    examples: dict[Rule, str] = {}
    counts: dict[Rule, int] = {}
    for config in points(backend, axes, limits):
        verdict = _first_broken(case, config, limits)
        if verdict is None:
            legal.append(config)
            continue
        rule, reason = verdict
        examples.setdefault(rule, reason)
        counts[rule] = counts.get(rule, 0) + 1
    illegal = {examples[rule]: count for rule, count in sorted(counts.items(), key=lambda item: -item[1])}
    if not legal:
        # the points that broke the last rule kept all others
        reason = examples[max(examples, key=RULES.index)] if examples else "an axis has no values"
        raise InputError(f"no configuration of these axes is legal: {reason}; change the axis or the case.")
    return Space(tuple(legal), illegal)


def points(backend: str, axes: Axes, limits: Limits) -> Iterator[KernelConfig]:
    """Every distinct point of the product, first axis slowest. Axes that do not act are not varied."""
    names = [axis.name for axis in AXES[backend] if axis.name in axes]
    seen: set[KernelConfig] = set()
    for values in _product(names, axes, {"backend": backend}):
        config = from_flat(completed(values, limits))
        if config not in seen:
            seen.add(config)
            yield config


def varied(configs: Sequence[KernelConfig]) -> tuple[str, ...]:
    """Names of the axes that take more than one value."""
    cls = CONFIGS[configs[0].backend]
    return tuple(f.name for f in fields(cls) if len({getattr(config, f.name) for config in configs}) > 1)


def _product(names: Sequence[str], axes: Axes, chosen: dict[str, Scalar]) -> Iterator[dict[str, Scalar]]:
    chosen = dict(chosen)
    for place, name in enumerate(names):
        fixed = neutral(name, chosen)
        values = axes[name] if fixed is None else (fixed,)
        if len(values) != 1:
            for value in values:
                yield from _product(names[place + 1 :], axes, {**chosen, name: value})
            return
        chosen[name] = values[0]
    yield chosen


def _first_broken(case: Case, config: KernelConfig, limits: Limits) -> tuple[Rule, str] | None:
    for rule in RULES:
        reason = rule(case, config, limits)
        if reason:
            return rule, reason
    return None
