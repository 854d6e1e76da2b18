"""The domain that teaches most: where it is least known which kernel is the fastest (active learning)."""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, exp, pi, sqrt

import numpy as np

from lbmtune.api.portfolios.laws import Laws
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.search.regression.features import Array


def most_doubtful(laws: Laws, measured: Sequence[MeasuredDomain], domains: Sequence[Int3], keys: Sequence[str]) -> Int3:
    """Return the domain on which the choice between some kernels by their laws may lose most.

    Source: Jones et al. 1998 (expected improvement), of each other kernel over that with the least time.
    """
    places = [laws.contenders.keys.index(key) for key in keys]
    speeds, doubts = (one(domains, measured)[:, places] for one in (laws.speeds, laws.doubts))
    return domains[int(np.argmax([*map(expected_loss, speeds, doubts)]))]


def expected_loss(speeds: Array, doubts: Array) -> float:
    """Return what the fastest kernel may lose to another one. speeds: 0: illegal; doubts: relative errors of these."""
    best = int(np.argmax(speeds))
    gaps = zip(np.log(speeds[best] / np.where(speeds > 0, speeds, 1e-9)), np.hypot(doubts, doubts[best]), strict=True)
    return max((_exceeding(gap, sd) for n, (gap, sd) in enumerate(gaps) if n != best and speeds[n] > 0), default=0.0)


def _exceeding(gap: float, sd: float) -> float:
    """Return the mean by which a normal number with mean -gap and some deviation exceeds 0; none counts below."""
    if sd <= 0:
        return max(-gap, 0.0)
    far = gap / sd
    return sd * exp(-(far**2) / 2) / sqrt(2 * pi) - gap * (1 - erf(far / sqrt(2))) / 2
