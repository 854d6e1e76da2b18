"""The legal set: the product of the axes, filtered by the rules, each kernel once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from lbmtune.catalogue.axes import AXES, completed, neutral
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CONFIGS, KernelConfig, Scalar, from_flat
from lbmtune.catalogue.rules import RULES, Limits
from lbmtune.errors import InputError
from lbmtune.search.verdicts import Point, Remembered

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
    left = list(points(backend, axes, limits))
    several = _several(left)
    illegal: dict[str, int] = {}
    reason = "an axis has no values"
    for rule in RULES[backend]:
        remembered = Remembered(rule, case, limits, several)
        reasons = [remembered(point) for point in left]
        against = [one for one in reasons if one is not None]
        if against:
            reason = against[0]
            illegal[reason] = illegal.get(reason, 0) + len(against)
            left = [point for point, one in zip(left, reasons, strict=True) if one is None]
    if not left:
        # the points that broke the last rule kept all others
        raise InputError(f"no configuration of these axes is legal: {reason}; change the axis or the case.")
    most_first = dict(sorted(illegal.items(), key=lambda item: -item[1]))
    return Space(tuple(map(from_flat, left)), most_first)


def points(backend: str, axes: Axes, limits: Limits) -> Iterator[Point]:
    """Every distinct point of the product, first axis slowest. Axes that do not act are not varied."""
    names = [axis.name for axis in AXES[backend] if axis.name in axes]
    distinct = {name: _distinct(backend, name, axes[name], limits) for name in names}
    for values in _product(names, distinct, {"backend": backend}):
        yield completed(values, limits)


def _distinct(backend: str, name: str, values: Sequence[Scalar], limits: Limits) -> tuple[Scalar, ...]:
    """Values of an axis without those that say the same on this device, so that all points differ."""
    return tuple(dict.fromkeys(completed({"backend": backend, name: value}, limits)[name] for value in values))


def _several(space: Sequence[Point]) -> frozenset[str]:
    """Names of the axes that do not stand at one value in all points."""
    if not space:
        return frozenset()
    same = set(space[0].items()).intersection(*(point.items() for point in space))
    return frozenset().union(*space) - {name for name, _ in same}


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
