import numpy as np
import pytest

from lbmtune.search import surrogate
from lbmtune.search.features import Features


def test_the_process_reproduces_what_it_saw_and_doubts_what_it_did_not():
    points = Features(np.linspace(0, 1, 9)[:, None], np.array([0]))
    values = np.sin(4 * points.values[:, 0])
    process = surrogate.condition(points, values, surrogate.fit(points, values, surrogate.start(1)))
    mean, deviation = process.predict(points.values)
    assert np.abs(mean - values).max() < 0.02
    between, doubt = process.predict(np.array([[0.3], [3.0]]))
    assert abs(between[0] - np.sin(1.2)) < 0.02
    assert doubt[1] > 10 * deviation.max()


def test_the_gradient_is_that_of_the_density():
    random = np.random.default_rng(1)
    points, values = random.random((12, 3)), random.normal(size=12)
    by_axis = (points[None, :, :] - points[:, None, :]).transpose(2, 0, 1) ** 2
    theta = np.array([0.2, -0.5, 0.1, -3.0])
    slope = surrogate._gradient(theta, by_axis, values, np.ones(12))
    for k in range(4):
        step = 1e-5 * np.eye(4)[k]
        rise = density(theta + step, by_axis, values) - density(theta - step, by_axis, values)
        assert slope[k] == pytest.approx(rise / 2e-5, rel=1e-4)


def density(theta, by_axis, values):
    """Negative log posterior density, from the textbook formula."""
    r = np.sqrt(5 * np.tensordot(np.exp(-2 * theta[:-1]), by_axis, 1))
    kernel = (1 + r + r**2 / 3) * np.exp(-r) + (np.exp(theta[-1]) + 1e-9) * np.eye(len(values))
    inverse = np.linalg.inv(kernel)
    mean = (inverse @ values).sum() / inverse.sum()
    variance = (values - mean) @ inverse @ (values - mean) / len(values)
    prior = 0.5 * (theta[:-1] ** 2).sum() + (theta[-1] - np.log(1e-3)) ** 2 / 18
    return 0.5 * len(values) * np.log(variance) + 0.5 * np.linalg.slogdet(kernel)[1] + prior


def test_a_noisy_value_weighs_less():
    points = Features(np.array([[0.0], [0.0], [1.0]]), np.array([0]))
    values = np.array([1.0, 0.0, 0.5])
    for doubtful, expected in ((np.array([1.0, 99.0, 1.0]), 0.99), (np.array([99.0, 1.0, 1.0]), 0.01)):
        process = surrogate.condition(points, values, surrogate.Hyperparameters(np.zeros(1), np.log(1e-4)), doubtful)
        assert process.predict(np.zeros((1, 1)))[0][0] == pytest.approx(expected, abs=0.02)


def test_main_effects_are_found_and_doubted_where_nothing_was_seen():
    random = np.random.default_rng(1)
    columns = np.column_stack([random.normal(size=(40, 2)), np.zeros(40)])
    values = columns @ np.array([0.3, -0.2, 0.0]) + 0.01 * random.normal(size=40)
    line = surrogate.regress(columns, values, np.full(3, 0.1), np.full(40, 0.01))
    assert line.weights == pytest.approx([0.3, -0.2, 0.0], abs=0.01)
    mean, deviation = line.predict(np.eye(3))
    assert mean == pytest.approx(line.weights)
    assert deviation[2] == pytest.approx(0.1)
    assert max(deviation[:2]) < 0.003
