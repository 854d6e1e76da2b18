"""Claims of published documents: their tables, and that a measurement can answer and refute them."""

from collections.abc import Mapping
from math import inf
from typing import Any, get_args

from lbmtune.errors import suggestion
from lbmtune.files.source import Source
from lbmtune.files.trees import checked
from lbmtune.measure.verification.accuracy import VELOCITIES
from lbmtune.records.claims import ERRORS, Claim, Kind

BACKENDS = ("cuda", "cpu")
"""Backends of experiments and of reasons why a claim cannot be tested."""
_POSSIBLE: Mapping[Kind, tuple[float, float]] = {
    **dict.fromkeys(("loss", "fewer-stores"), (-inf, 1.0)),
    "interval-loss": (0.0, 1.0),
}
"""Least and greatest value of a kind of claim, of others 0 and infinity."""
_NO_EFFECT: Mapping[Kind, float] = {
    **dict.fromkeys(("ratio", "footprint", "moved-sectors"), 1.0),
    **dict.fromkeys(("loss", "interval-loss", "spread", "fewer-stores"), 0.0),
}
"""Value of a kind of claim where nothing differs."""
_VELOCITIES = "some of " + ", ".join(map(str, VELOCITIES))


def claim_of(name: str, entry: Mapping[str, Any], variants: set[str], source: Source) -> Claim:
    """Return the claim of a table. Raises InputError.

    variants: names of all variants, alone and with each experiment.
    """
    key, kind, kinds = f"claims.{name}", entry.get("kind"), get_args(Kind)
    if isinstance(kind, str) and kind not in kinds:
        source.fail(f"{key}.kind", f"unknown kind {kind!r}; {suggestion(kind, kinds)}")
    claim = checked(_in_full(entry), Claim, key, source, name=name)
    for place, names in (("of", claim.of), ("over", claim.over)):
        for one in names:
            if one not in variants:
                source.fail(f"{key}.{place}", f"unknown variant {one!r}; {suggestion(one, variants)}")
    if not set(claim.untestable) >= set(BACKENDS):
        _check_askable(claim, key, source)
    return claim


def _in_full(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a claim with lists where one variant or figure may stand for them, and a reason for each backend."""
    tree = dict(entry)
    for key in ("of", "over"):
        if isinstance(tree.get(key), str):
            tree[key] = [tree[key]]
    if isinstance(tree.get("published"), (int, float)):
        tree["published"] = [tree["published"]] * 2
    if isinstance(tree.get("untestable"), str):
        tree["untestable"] = dict.fromkeys(BACKENDS, tree["untestable"])
    return tree


def _check_askable(claim: Claim, key: str, source: Source) -> None:
    """Check that a claim that some backend can test says what is measured and when it holds."""
    if not claim.of:
        source.fail(f"{key}.of", "is missing; name the variants that the claim is about, or say why none can tell.")
    if bool(claim.velocities) != (claim.kind in ERRORS):
        source.fail(f"{key}.velocities", f"are given where an error is asked for, and there alone: {_VELOCITIES}.")
    if not set(claim.velocities) <= set(VELOCITIES):
        source.fail(f"{key}.velocities", f"{list(claim.velocities)}: errors are measured at {_VELOCITIES}.")
    if bool(claim.over) == (claim.kind in ("spread", "bandwidth", "counted-bytes", *ERRORS)):
        takes = "no over" if claim.over else "over, the variants that it is compared with"
        source.fail(f"{key}.over", f"a {claim.kind} takes {takes}; correct the claim.")
    if claim.at_least is None and claim.at_most is None:
        source.fail(f"{key}.at_least", "neither at_least nor at_most is given; say when the claim holds.")
    _check_can_fail(claim, key, source)


def _check_can_fail(claim: Claim, key: str, source: Source) -> None:
    """Check that a measurement can refute a claim, and that the printed figures do not.

    A bound that every value satisfies says nothing. A printed effect needs a bound that the lack of any effect misses,
    "at most" aside; so does a printed range that begins at no effect ("up to 25 times").
    """
    least, most = _POSSIBLE.get(claim.kind, (0.0, inf))
    at_least = -inf if claim.at_least is None else claim.at_least
    at_most = inf if claim.at_most is None else claim.at_most
    if at_least <= least and at_most >= most:
        source.fail(f"{key}.at_least", f"no {claim.kind} can miss it; give a bound that a measurement can miss.")
    if claim.published is None:
        return
    low, high = claim.published
    if high < at_least or low > at_most:
        source.fail(f"{key}.published", "the printed figure itself misses the bounds; correct one of them.")
    none = _NO_EFFECT.get(claim.kind)
    if none is None or low == high == none:
        return
    is_gain = at_most == inf and low >= none and (at_least < none or at_least == none == low)
    if is_gain or (at_least == -inf and high < none < at_most):
        place = "at_least" if is_gain else "at_most"
        source.fail(f"{key}.{place}", f"a {claim.kind} of {none:g}, no effect, holds; give a bound that it misses.")
