"""Weights of members: soft, unbiased about the user's models, sensible without held-out labels."""

import numpy as np
import pytest

from gdpa.estimators.committee import MEMBERS
from gdpa.estimators.trials import cross_validated_loss
from gdpa.estimators.weights import WeightRule, only_needed, read_rules, rule_for, weigh


def held_out(right, codes, seed, noise=0.3):
    """Probabilities that are right for a share of the labels."""
    rng = np.random.default_rng(seed)
    guess = np.where(rng.random(codes.size) < right, codes, 1 - codes)
    p = np.full((codes.size, 2), noise)
    p[np.arange(codes.size), guess] = 1.0 - noise
    return p


CODES = np.arange(60) % 2


PLAIN = WeightRule()


def test_weights_fall_with_the_loss_times_a_power_of_the_labels():
    losses = np.array([0.5, 0.6, 0.52])
    w = PLAIN.weights("abc", losses, 25)
    np.testing.assert_allclose(w / w[0], np.exp(-5.0 * (losses - 0.5)))
    w = WeightRule(prior={"b": 1.0}, b=2.0, c=0.25).weights("abc", losses, 16)
    np.testing.assert_allclose(w / w[0], np.exp([0.0, 1.0 - 2.0 * 2.0 * 0.1, -2.0 * 2.0 * 0.02]))
    assert PLAIN.weights("ab", np.array([0.1, 5.0]), 100).tolist() == [1.0, 0.0]


def test_small_weights_are_left_out_and_the_largest_never():
    losses = np.array([0.5, 0.7])
    assert PLAIN.weights("ab", losses, 25, least=0.3).tolist() == [1.0, 0.0]
    np.testing.assert_allclose(PLAIN.weights("abc", np.zeros(3), 25, least=0.5), 1 / 3)


def test_the_stored_rules_are_for_every_kind_and_name_only_members():
    rules, provenance = read_rules()
    kinds = {kind for member in MEMBERS for kind in member.kinds}
    assert set(rules) == kinds
    assert provenance
    for kind, rule in rules.items():
        members = {member.name for member in MEMBERS if kind in member.kinds}
        assert set(rule.prior) <= members
        assert rule.b > 0
        assert rule.c >= 0
        assert rule_for(kind) == rule


def test_the_better_member_carries_more_and_none_is_lost_by_little():
    close = {"neighbours": held_out(0.9, CODES, 0), "forest": held_out(0.88, CODES, 1)}
    found = weigh(close, CODES, PLAIN)
    assert found.losses is not None
    assert (found.weights > 0.2).all()
    far = {"neighbours": held_out(0.95, CODES, 0, 0.05), "forest": held_out(0.5, CODES, 1)}
    assert weigh(far, CODES, PLAIN).weights[0] > 0.9


def test_loss_of_the_ensemble_is_that_of_its_mixture():
    two = {"neighbours": held_out(0.8, CODES, 0), "forest": held_out(0.8, CODES, 1)}
    found = weigh(two, CODES, PLAIN)
    mixed = found.combine(two)
    np.testing.assert_allclose(mixed.sum(axis=1), 1.0)
    assert found.loss == cross_validated_loss(mixed, CODES)[0].mean()
    # Different errors: together they are better than each.
    assert found.loss < min(found.losses)


@pytest.mark.parametrize("right", [0.1, 0.3, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_a_model_of_the_user_never_makes_the_loss_worse(right, seed):
    own = {"neighbours": held_out(0.8, CODES, 10 + seed)}
    own["forest"] = held_out(0.7, CODES, 20 + seed)
    without = weigh(own, CODES, PLAIN)
    given = held_out(right, CODES, seed, 0.02)
    found = weigh({**own, "model": given}, CODES, PLAIN, models=["model"])
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
    without = weigh(own, codes, PLAIN)
    given = {"model": noise(), "model 2": noise()}
    found = weigh({**own, **given}, codes, PLAIN, models=given)
    assert found.loss <= without.loss + 1e-12
    assert found.loss_without_models == pytest.approx(without.loss)


def test_too_few_labels_have_the_weights_of_the_prior():
    rule = WeightRule(prior={"neighbours": np.log(2.0)})
    found = weigh(["neighbours", "forest", "linear"], np.array([0, 1]), rule)
    assert found.losses is None
    assert found.loss is None
    assert found.rule == "prior"
    np.testing.assert_allclose(found.weights, [0.5, 0.25, 0.25])


def test_only_members_are_kept_without_which_the_loss_is_higher():
    own = held_out(0.8, CODES, 0)
    same = {"neighbours": own, "whitened": own}
    assert only_needed(weigh(same, CODES, PLAIN), same, CODES).weights.max() == 1.0
    good = held_out(1.0, CODES, 3, 0.1)
    both = {"neighbours": own, "whitened": good}
    found = only_needed(weigh(both, CODES, PLAIN), both, CODES)
    assert found.of("whitened") == 1.0
    assert found.loss == cross_validated_loss(found.combine(both), CODES)[0].mean()
    rng = np.random.default_rng(0)
    half = rng.random(CODES.size) < 0.5  # each knows half of the labels
    left, right = (np.where(known[:, None], good, 0.5) for known in (half, ~half))
    parts = {"left": left, "right": right}
    weights = weigh(parts, CODES, PLAIN)
    assert only_needed(weights, parts, CODES) is weights


def test_weights_of_abstaining_members_go_to_the_others():
    both = {"neighbours": held_out(0.8, CODES, 0), "forest": held_out(0.8, CODES, 1)}
    found = weigh(both, CODES, PLAIN)
    a, b = np.array([[0.9, 0.1]] * 3), np.array([[0.2, 0.8]] * 3)
    said = {"neighbours": a, "forest": b}
    mixed = found.combine(said, {"neighbours": np.array([0, 2]), "forest": np.array([2])})
    np.testing.assert_allclose(mixed[0], found.combine({"forest": b})[0])
    np.testing.assert_allclose(mixed[1], found.combine(said)[1])
    np.testing.assert_allclose(mixed[2], found.combine(said)[2])  # nobody knows: all fall back
    assert "forest" in repr(found)
