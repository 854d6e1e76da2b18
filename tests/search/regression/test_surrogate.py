import numpy as np
import pytest

from lbmtune.search.regression import surrogate


def test_the_regression_reproduces_what_it_saw_and_doubts_what_it_did_not():
    points = np.linspace(0, 1, 9)[:, None]
    values = 0.3 * np.sin(2 * points[:, 0])
    found = surrogate.condition(points, values, np.full(9, 0.002))
    mean, deviation = found.predict(points)
    assert np.abs(mean - values).max() < 0.02
    between, doubt = found.predict(np.array([[0.3], [3.0]]))
    assert abs(between[0] - 0.3 * np.sin(0.6)) < 0.02
    assert doubt[1] > 4 * deviation.max()


def test_one_combination_is_the_textbook_formula():
    """Mean and variance of a Gaussian process of offset, slopes and function; each value has its own noise."""
    random = np.random.default_rng(1)
    points, there, values = random.random((7, 3)), random.random((5, 3)), random.normal(size=7)
    noise, scales = 0.01 + 0.1 * random.random(7), surrogate.Scales(slopes=(0.3,), curves=(0.2,), rests=(0.05,))

    def covariance(a, b):
        centred = (a - points.mean(0)) @ (b - points.mean(0)).T
        r = np.sqrt(5) / 1.5 * np.linalg.norm(a[:, None] - b[None], axis=-1)
        return 0.5**2 + 0.3**2 * centred + 0.2**2 * (1 + r + r**2 / 3) * np.exp(-r)

    inverse = np.linalg.inv(covariance(points, points) + np.diag(noise**2 + 0.05**2))
    cross = covariance(there, points)
    mean, deviation = surrogate.condition(points, values, noise, scales=scales).predict(there)
    assert mean == pytest.approx(cross @ inverse @ values)
    variance = np.diag(covariance(there, there) - cross @ inverse @ cross.T) + 0.05**2
    assert deviation == pytest.approx(np.sqrt(variance))


def test_a_noisy_value_weighs_less():
    points = np.array([[0.0], [0.0], [1.0]])
    values = np.array([0.2, 0.0, 0.1])
    for doubtful, expected in ((np.array([0.01, 1.0, 0.01]), 0.2), (np.array([1.0, 0.01, 0.01]), 0.0)):
        found = surrogate.condition(points, values, doubtful)
        assert found.predict(np.zeros((1, 1)))[0][0] == pytest.approx(expected, abs=0.03)


def test_main_effects_are_found_and_doubted_where_nothing_was_seen():
    random = np.random.default_rng(1)
    points = np.column_stack([random.random((40, 2)), np.zeros(40)])
    values = points @ np.array([0.3, -0.2, 0.0]) + 0.01 * random.normal(size=40)
    found = surrogate.condition(points, values, np.full(40, 0.002))
    ends = np.array([[0.0, 0.5, 0.0], [1.0, 0.5, 0.0], [0.5, 0.0, 0.0], [0.5, 1.0, 0.0]])
    low_x, high_x, low_y, high_y = found.trend(ends)
    assert (high_x - low_x, high_y - low_y) == pytest.approx((0.3, -0.2), abs=0.04)
    _, (seen, unseen) = found.predict(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 1.0]]))
    assert unseen > 2 * seen


def test_what_no_point_describes_is_not_learned():
    """Values without a pattern change little elsewhere; a slope of the same size does."""
    random = np.random.default_rng(2)
    points, there = random.random((40, 10)), random.random((100, 10))
    scatter, slope = 0.05 * random.normal(size=40), 0.2 * (points[:, 0] - 0.5)
    without, _ = surrogate.condition(points, scatter, np.full(40, 0.002)).predict(there)
    along, _ = surrogate.condition(points, slope, np.full(40, 0.002)).predict(there)
    assert without.std() < 0.4 * scatter.std()
    assert np.corrcoef(along, there[:, 0])[0, 1] > 0.9


def test_a_believed_point_leaves_the_mean_and_narrows_what_is_near():
    random = np.random.default_rng(3)
    points, values, near = random.random((6, 2)), 0.1 * random.normal(size=6), np.array([[0.9, 0.1]])
    alone = surrogate.condition(points, values, np.full(6, 0.002))
    believed = surrogate.condition(points, values, np.full(6, 0.002), near)
    there = random.random((20, 2))
    assert believed.predict(there)[0] == pytest.approx(alone.predict(there)[0])
    assert believed.predict(near)[1][0] < alone.predict(near)[1][0]


def test_what_is_a_points_own_is_known_where_it_was_seen_and_nowhere_else():
    """A kernel of an earlier study brings its own error along; of one that is under way it stays unknown."""
    points = np.random.default_rng(4).random((30, 3))
    values = np.where(np.arange(30) == 7, 0.2, 0.0)
    found = surrogate.condition(points, values, np.full(30, 0.002), points[:1] + 0.01)
    (here, beside), (sure, unsure) = found.predict(np.array([points[7], points[7] + 0.001]))
    assert here > 0.15 > 2 * beside
    assert unsure > 5 * sure
    assert found.predict(points[:1] + 0.01)[1][0] > 5 * sure


def test_combinations_count_by_how_likely_they_make_the_values():
    random = np.random.default_rng(3)
    points, there, values = random.random((6, 2)), random.random((4, 2)), 0.3 * random.normal(size=6)
    noise, rests = np.full(6, 0.01), (0.2, 0.4)

    def of(*rests):
        return surrogate.condition(points, values, noise, scales=surrogate.Scales((0.1,), (0.1,), rests)).predict(there)

    apart = points[:, None] - points[None]
    root = np.sqrt(5) / 1.5 * np.linalg.norm(apart, axis=-1)
    centred = (points - points.mean(0)) @ (points - points.mean(0)).T
    smooth = 0.5**2 + 0.1**2 * centred + 0.1**2 * (1 + root + root**2 / 3) * np.exp(-root)
    covariances = [smooth + np.eye(6) * (0.01**2 + rest**2) for rest in rests]
    densities = [np.exp(-0.5 * values @ np.linalg.solve(k, values)) / np.sqrt(np.linalg.det(k)) for k in covariances]
    shares = np.array(densities) / sum(densities)
    assert shares.min() > 0.02
    assert of(*rests)[0] == pytest.approx(shares[0] * of(0.2)[0] + shares[1] * of(0.4)[0])


def test_many_that_hardly_can_be_better_one_by_one_are_likely_to_be_together():
    mean, deviation = np.zeros(200), np.full(200, 0.01)
    one = surrogate.any_beyond(mean[:1], deviation[:1], 0.025)
    assert one == pytest.approx(0.0062, abs=1e-4)
    assert surrogate.any_beyond(mean, deviation, 0.025) == pytest.approx(1 - (1 - one) ** 200)
    assert surrogate.any_beyond(np.array([5.0]), np.array([0.01]), 0.0) == pytest.approx(1)


@pytest.mark.parametrize("best", [0.0, 0.02, 0.05])
def test_what_may_be_gained_is_exceeded_with_the_doubt_alone(best):
    random = np.random.default_rng(1)
    mean, deviation = 0.01 * random.normal(size=50), 0.005 + 0.005 * random.random(50)
    gained = surrogate.most_gained(mean, deviation, best, 0.05)
    assert surrogate.any_beyond(mean, deviation, best + gained) <= 0.05
    assert not gained or surrogate.any_beyond(mean, deviation, best + gained - 2e-4) > 0.05
    largest = (mean + deviation * random.normal(size=(4000, 50))).max(axis=1)
    assert np.mean(largest > best + gained) <= 0.065


def test_the_improvement_is_that_of_a_normal_distribution_and_of_its_tail():
    random = np.random.default_rng(3)
    mean, deviation = np.array([0.1, 0.0, -0.02]), np.array([0.05, 0.1, 0.02])
    drawn = np.maximum(mean + deviation * random.normal(size=(200_000, 3)) - 0.02, 0.0).mean(0)
    assert np.exp(surrogate.log_improvement(mean, deviation, 0.02)) == pytest.approx(drawn, rel=0.05)
    near, far = surrogate.log_improvement(np.array([-4.999, -5.001]), np.ones(2), 0.0)
    assert near > far == pytest.approx(near, abs=0.02)


def test_one_that_is_surely_slower_is_worth_less_than_one_that_is_in_doubt():
    """One standard deviation above its mean the first is the better one; both are below the best."""
    mean, deviation = np.array([-0.06, -0.15]), np.array([0.01, 0.05])
    assert np.argmax(mean + deviation) == 0
    assert np.argmax(surrogate.log_improvement(mean, deviation, 0.0)) == 1
