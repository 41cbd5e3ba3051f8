"""Weights of members: soft, unbiased about the user's models, sensible without held-out labels."""

import numpy as np
import pytest

from gdpa.estimators.ensemble import PRIOR_WEIGHTS, is_redundant, soft_weights, weigh
from gdpa.estimators.members.base import cross_validated_loss


def held_out(right, codes, seed, noise=0.3):
    """Probabilities that are right for a share of the labels."""
    rng = np.random.default_rng(seed)
    guess = np.where(rng.random(codes.size) < right, codes, 1 - codes)
    p = np.full((codes.size, 2), noise)
    p[np.arange(codes.size), guess] = 1.0 - noise
    return p


CODES = np.arange(60) % 2


def test_weights_fall_with_the_root_of_the_labels_times_the_loss():
    losses = np.array([0.5, 0.6, 0.52])
    w = soft_weights(losses, 25)
    np.testing.assert_allclose(w / w[0], np.exp(-5.0 * (losses - 0.5)))
    assert soft_weights(np.array([0.1, 5.0]), 100).tolist() == [1.0, 0.0]


def test_the_better_member_carries_more_and_none_is_lost_by_little():
    close = {"neighbours": held_out(0.9, CODES, 0), "forest": held_out(0.88, CODES, 1)}
    found = weigh(close, CODES)
    assert found.losses is not None
    assert (found.weights > 0.2).all()
    far = {"neighbours": held_out(0.95, CODES, 0, 0.05), "forest": held_out(0.5, CODES, 1)}
    assert weigh(far, CODES).weights[0] > 0.9


def test_loss_of_the_ensemble_is_that_of_its_mixture():
    two = {"neighbours": held_out(0.8, CODES, 0), "forest": held_out(0.8, CODES, 1)}
    found = weigh(two, CODES)
    mixed = found.combine(list(two.values()))
    np.testing.assert_allclose(mixed.sum(axis=1), 1.0)
    assert found.loss == cross_validated_loss(mixed, CODES)[0].mean()
    # Different errors: together they are better than each.
    assert found.loss < min(found.losses)


@pytest.mark.parametrize("right", [0.1, 0.3, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_a_model_of_the_user_never_makes_the_loss_worse(right, seed):
    own = {"neighbours": held_out(0.8, CODES, 10 + seed)}
    own["forest"] = held_out(0.7, CODES, 20 + seed)
    without = weigh(own, CODES)
    found = weigh({**own, "model": held_out(right, CODES, seed, 0.02)}, CODES, 1)
    assert found.loss <= without.loss + 1e-12
    assert found.loss_without_models == pytest.approx(without.loss)
    if right == 0.95:
        assert found.weights[-1] > 0.1
    np.testing.assert_allclose(found.weights.sum(), 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_random_models_never_make_the_loss_worse(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, 40)
    sharp = rng.uniform(0.1, 5.0)

    def noise():
        return rng.dirichlet(np.full(3, sharp), 40)

    own = {"neighbours": noise(), "forest": noise()}
    without = weigh(own, codes)
    found = weigh({**own, "model": noise(), "model 2": noise()}, codes, 2)
    assert found.loss <= without.loss + 1e-12
    assert found.loss_without_models == pytest.approx(without.loss)


def test_the_forest_is_not_blamed_for_the_few_trees_that_see_no_label():
    same = held_out(0.8, CODES, 0)
    found = weigh({"neighbours": same, "forest": same, "linear": same}, CODES)
    assert found.losses[0] == found.losses[1] == found.losses[2]
    np.testing.assert_allclose(found.weights[0], found.weights[2])
    ratio = found.weights[1] / found.weights[0]
    np.testing.assert_allclose(ratio, np.exp(np.sqrt(60) * 0.05))
    many = np.arange(4000) % 2
    same = held_out(0.8, many, 0)
    found = weigh({"neighbours": same, "forest": same}, many)
    np.testing.assert_allclose(found.weights[1] / found.weights[0], np.e)


def test_too_few_labels_have_prior_weights():
    names = ["neighbours", "forest", "linear"]
    found = weigh(dict.fromkeys(names), np.array([0, 1]))
    assert found.losses is None
    assert found.loss is None
    expected = np.array([PRIOR_WEIGHTS.get(n, 1.0) for n in names])
    np.testing.assert_allclose(found.weights, expected / expected.sum())


def test_a_member_that_adds_nothing_is_redundant():
    own = held_out(0.8, CODES, 0)
    same = {"neighbours": own, "whitened": own}
    assert is_redundant(weigh(same, CODES), same, CODES, "whitened")
    close = {"neighbours": own, "whitened": np.clip(own, 0.299, 0.701)}
    assert is_redundant(weigh(close, CODES), close, CODES, "whitened")
    good = {"neighbours": own, "whitened": held_out(1.0, CODES, 3, 0.1)}
    assert not is_redundant(weigh(good, CODES), good, CODES, "whitened")
    alone = {"neighbours": own}
    assert not is_redundant(weigh(alone, CODES), alone, CODES, "neighbours")


def test_weights_of_abstaining_members_go_to_the_others():
    found = weigh({"neighbours": held_out(0.8, CODES, 0), "forest": held_out(0.8, CODES, 1)}, CODES)
    a, b = np.array([[0.9, 0.1]] * 3), np.array([[0.2, 0.8]] * 3)
    none = np.empty(0, dtype=np.intp)
    mixed = found.combine([a, b], [np.array([0, 2]), np.array([2])])
    np.testing.assert_allclose(mixed[0], found.combine([None, b], [none, none])[0])
    np.testing.assert_allclose(mixed[1], found.combine([a, b])[1])
    np.testing.assert_allclose(mixed[2], found.combine([a, b])[2])  # nobody knows: all fall back
    assert "forest" in repr(found)
