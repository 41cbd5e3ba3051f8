"""Weights of members: soft, honest about evidence, sensible without any label to judge by."""

import numpy as np
import pytest
from gdpa.estimators.committee.committee import PRIOR_WEIGHTS, judge, soft_weights, unnoticed
from gdpa.estimators.committee.member import Trial, log_loss


def trial(name, right, codes, seed, noise=0.3):
    """Shares that are right for a share of the labels."""
    rng = np.random.default_rng(seed)
    guess = np.where(rng.random(codes.size) < right, codes, 1 - codes)
    p = np.full((codes.size, 2), noise)
    p[np.arange(codes.size), guess] = 1.0 - noise
    return Trial(name, p, lambda task: None)


CODES = np.arange(60) % 2


def test_weights_fall_with_the_root_of_the_labels_times_the_loss():
    losses = np.array([0.5, 0.6, 0.52])
    w = soft_weights(losses, 25)
    np.testing.assert_allclose(w / w[0], np.exp(-5.0 * (losses - 0.5)))
    assert soft_weights(np.array([0.1, 5.0]), 100).tolist() == [1.0, 0.0]


def test_the_better_member_carries_more_and_none_is_lost_by_a_hair():
    found = judge([trial("neighbours", 0.9, CODES, 0), trial("forest", 0.88, CODES, 1)], CODES)
    assert found.losses is not None
    assert (found.weights > 0.2).all()
    far = judge([trial("neighbours", 0.95, CODES, 0, 0.05), trial("forest", 0.5, CODES, 1)], CODES)
    assert far.weights[0] > 0.9


def test_loss_of_the_committee_is_that_of_its_mixture():
    trials = [trial("neighbours", 0.8, CODES, 0), trial("forest", 0.8, CODES, 1)]
    found = judge(trials, CODES)
    mixed = found.mix([t.left_out for t in trials])
    np.testing.assert_allclose(mixed.sum(axis=1), 1.0)
    assert found.loss == log_loss(mixed, CODES)[0]
    # Unlike errors: together they are better than each.
    assert found.loss < min(found.losses)


@pytest.mark.parametrize("right", [0.1, 0.3, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_evidence_never_makes_the_loss_worse(right, seed):
    own = [trial("neighbours", 0.8, CODES, 10 + seed), trial("forest", 0.7, CODES, 20 + seed)]
    without = judge(own, CODES)
    found = judge([*own, trial("model", right, CODES, seed, 0.02)], CODES, 1)
    assert found.loss <= without.loss + 1e-12
    assert found.without_evidence == pytest.approx(without.loss)
    if right == 0.95:
        assert found.weights[-1] > 0.1
    np.testing.assert_allclose(found.weights.sum(), 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_random_evidence_never_makes_the_loss_worse(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, 40)
    sharp = rng.uniform(0.1, 5.0)

    def noise(name):
        return Trial(name, rng.dirichlet(np.full(3, sharp), 40), lambda task: None)

    own = [noise("neighbours"), noise("forest")]
    without = judge(own, codes)
    found = judge([*own, noise("model"), noise("model 2")], codes, 2)
    assert found.loss <= without.loss + 1e-12
    assert found.without_evidence == pytest.approx(without.loss)


def test_the_forest_is_not_blamed_for_the_trees_that_judge_it():
    same = trial("neighbours", 0.8, CODES, 0)
    other = [Trial(name, same.left_out, same.build) for name in ("forest", "linear")]
    found = judge([same, *other], CODES)
    assert found.losses[0] == found.losses[1] == found.losses[2]
    np.testing.assert_allclose(found.weights[0], found.weights[2])
    ratio = found.weights[1] / found.weights[0]
    np.testing.assert_allclose(ratio, np.exp(np.sqrt(60) * 0.05))
    many = np.arange(4000) % 2
    same = trial("neighbours", 0.8, many, 0)
    found = judge([same, Trial("forest", same.left_out, same.build)], many)
    np.testing.assert_allclose(found.weights[1] / found.weights[0], np.e)


def test_too_few_labels_have_prior_weights():
    names = ["neighbours", "forest", "importance"]
    found = judge([Trial(n, None, lambda task: None) for n in names], np.array([0, 1]))
    assert found.losses is None
    assert found.loss is None
    expected = np.array([PRIOR_WEIGHTS.get(n, 1.0) for n in names])
    np.testing.assert_allclose(found.weights, expected / expected.sum())


def test_what_nobody_would_miss():
    own = trial("neighbours", 0.8, CODES, 0)
    same = Trial("importance", own.left_out, own.build)
    found = judge([own, same], CODES)
    assert unnoticed(found, [own, same], CODES, "importance")
    hair = Trial("importance", np.clip(own.left_out, 0.299, 0.701), own.build)
    found = judge([own, hair], CODES)
    assert unnoticed(found, [own, hair], CODES, "importance")
    good = trial("importance", 1.0, CODES, 3, 0.1)
    found = judge([own, good], CODES)
    assert not unnoticed(found, [own, good], CODES, "importance")
