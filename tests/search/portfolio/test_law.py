"""Laws of the time of kernels: fitted to times that follow one, with noise, and with predictions that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.records.best_json.law import Correction, LawTerm, extents_of, picoseconds
from lbmtune.search.portfolio.law import Excess, Times, error_of, fitted, nonnegative, scale
from lbmtune.search.portfolio.law import excess_of as interpolated


def numbers(count: int, seed: int = 1) -> np.ndarray:
    """Return ones, cells and rows of some domains."""
    x, y, z = np.random.default_rng(seed).integers(64, 512, (3, count)).astype(float)
    return np.stack([np.ones(count), x * y * z, y * z], axis=1)


LAW = np.array([3e-6, 5e-11, 2e-9])


def test_a_law_is_found_from_few_measurements_with_noise_and_holds_elsewhere() -> None:
    known, new = numbers(12), numbers(200, seed=2)
    noise = np.random.default_rng(3).normal(1, 0.003, 12)
    found = fitted(Times(known, known @ LAW * noise, np.ones(12)))
    assert (found >= 0).all()
    assert np.abs(new @ found / (new @ LAW) - 1).max() < 0.02


def test_measurements_count_more_than_predictions() -> None:
    """The model misses the time of rows."""
    every, measured = numbers(30), np.arange(30) < 12
    seconds = np.where(measured, every @ LAW, every @ (LAW * [1, 1, 0]))
    found = fitted(Times(every, seconds, measured.astype(float)))
    assert np.abs(every @ found / (every @ LAW) - 1).max() < 0.03
    alone = fitted(Times(every, seconds, np.zeros(30)))
    assert np.abs(every @ alone / (every @ LAW) - 1).max() > 0.1


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_least_squares_are_the_best_of_all_sets_of_columns(seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, target = random.normal(size=(8, 4)), random.normal(size=8)
    found = nonnegative(matrix, target)
    assert (found >= 0).all()
    left = [float(target @ target)]
    for count in range(1, 5):
        for some in combinations(range(4), count):
            part = np.linalg.lstsq(matrix[:, some], target, rcond=None)[0]
            if (part >= 0).all():
                left.append(float(np.sum((matrix[:, some] @ part - target) ** 2)))
    assert np.sum((matrix @ found - target) ** 2) == pytest.approx(min(left), rel=1e-6, abs=1e-9)


def test_the_error_of_the_model_is_a_factor() -> None:
    assert scale(np.array([2.0, 8.0]), np.array([1.0, 1.0])) == pytest.approx(4.0)
    assert scale(np.zeros(0), np.zeros(0)) == 1.0


def excess_of(domains: Sequence[Sequence[int]], relative: np.ndarray) -> Excess:
    """Return what a law leaves, with the error that follows from it."""
    return interpolated(domains, relative, error_of(relative))


def smooth(domain: Sequence[float]) -> float:
    """Return an error of a law that changes slowly with the extents."""
    x, y, z = np.log2(domain)
    return 0.05 * float(np.sin(x) + np.cos(1.3 * y) - np.sin(0.7 * z))


def drawn(count: int, seed: int) -> np.ndarray:
    return np.exp2(np.random.default_rng(seed).uniform(6, 9, (count, 3))).round()


def test_what_a_law_leaves_is_less_by_half_near_measured_domains() -> None:
    known, new = drawn(60, 1), drawn(200, 2)
    found = excess_of(known, np.array([*map(smooth, known)]))
    errors = np.array([*map(smooth, new)])
    left = errors + 1 - found.factors(new)
    assert left.std() < 0.5 * errors.std()


def test_a_law_is_doubted_the_less_the_nearer_it_was_measured() -> None:
    """By 8 % or so without a measurement, and less after some that it agrees with."""
    none = excess_of((), np.zeros(0))
    assert none.factors([(64, 64, 64)]) == [1]
    assert 0.05 < none.doubts([(64, 64, 64)])[0] < 0.1
    known = drawn(12, 1)
    found = excess_of(known, np.full(12, 0.004))
    assert found.doubts([(64, 64, 64)]) < 0.5 * none.doubts([(64, 64, 64)])
    near, far = found.doubts([known[0], (16, 4000, 16)])
    assert near < far
    wrong = excess_of(known, np.linspace(-0.3, 0.3, 12))
    assert wrong.doubts(known[:1]) > found.doubts(known[:1])


def test_the_factor_is_that_of_the_file() -> None:
    known = drawn(5, 1)
    found = excess_of(known, np.linspace(-0.1, 0.1, 5))
    pairs = zip(known.astype(int).tolist(), found.shares.tolist(), strict=True)
    corrections = tuple(Correction(domain=(x, y, z), share=share) for (x, y, z), share in pairs)
    law = (LawTerm(picoseconds=2.0, count="nx"),)
    for domain in ((64, 65, 66), (512, 70, 300)):
        expected = 2.0 * domain[0] * found.factors([domain])[0]
        assert picoseconds(law, corrections, extents_of(domain)) == pytest.approx(expected)
