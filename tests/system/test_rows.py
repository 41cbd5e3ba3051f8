"""Scores of new rows: each solves its own equation, with the scores of the nodes fixed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.system import LabeledSystem, rows
from gdpa.system.rows import attached_scores, new_row_scores, with_far_nodes
from tests.system.small_systems import dense, graph, ring

SCORES = np.array([[1.0, 0.0], [0.25, 0.5], [0.0, 2.0]])
DEGREES = np.array([2.0, 5.0, 3.0])


@pytest.mark.parametrize("self_loop", [0.0, 0.7])
@pytest.mark.parametrize("evidence_weight", [0.0, 1.5])
@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_a_new_row_satisfies_its_equation(laplacian, evidence_weight, self_loop):
    """Appending the row to the Laplacian gives a row of zeros in (L + gamma + e) F = e T."""
    w = np.array([[0.5, 0.0, 2.0], [0.0, 3.0, 0.0]])
    T = np.array([[0.2, 0.9], [0.6, 0.1]])
    found = new_row_scores(
        sp.csr_array(w), SCORES, degrees=DEGREES, laplacian=laplacian, self_loop=self_loop,
        evidence_weight=evidence_weight, evidence=T,
    )  # fmt: skip
    for row, f, t in zip(w, found, T, strict=True):
        d = row.sum()
        if laplacian == "combinatorial":
            left = d * f - row @ SCORES
        else:
            left = f - (row / np.sqrt(d * DEGREES)) @ SCORES
        left = left + (self_loop + evidence_weight) * f
        np.testing.assert_allclose(left, evidence_weight * t, atol=1e-12)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_rows_without_links_have_no_score_and_huge_weights_are_finite(laplacian):
    options = {"degrees": DEGREES, "laplacian": laplacian, "self_loop": 0.0}
    w = sp.csr_array(np.array([[0.0, 0.0, 0.0], [1e308, 1e308, 1e308], [2.0, 2.0, 2.0]]))
    found = new_row_scores(w, SCORES, **options)
    assert (found[0] == 0.0).all()
    assert np.isfinite(found).all()
    # Without a self-loop a combinatorial score is a mean: the scale of the weights cancels.
    if laplacian == "combinatorial":
        np.testing.assert_allclose(found[1], found[2])
        np.testing.assert_allclose(found[2], SCORES.mean(axis=0))


def test_rows_that_coincide_with_nodes_take_their_labels_or_their_mean():
    options = {"degrees": DEGREES, "laplacian": "combinatorial", "self_loop": 0.0}
    w = sp.csr_array(np.ones((4, 3)))
    same = sp.csr_array(np.array([[0, 1, 1.0], [1, 0, 0], [0, 0, 0], [0, 1, 0]]))
    codes = np.array([1, -1, -1])
    shares = np.full((3, 2), 0.5)
    found = attached_scores(w, same, SCORES, shares, codes, 1e-12, **options)
    np.testing.assert_allclose(found[0], SCORES[1:].mean(axis=0))
    np.testing.assert_allclose(found[1], [0.0, 1.0])  # the label of node 0, not its score
    np.testing.assert_allclose(found[2], SCORES.mean(axis=0))
    np.testing.assert_allclose(found[3], SCORES[1])
    alone = attached_scores(w, None, SCORES, shares, codes, 1e-12, **options)
    np.testing.assert_allclose(alone, np.tile(SCORES.mean(axis=0), (4, 1)))


def test_rows_whose_scores_vanish_take_the_shares():
    options = {"degrees": DEGREES, "laplacian": "combinatorial", "self_loop": 0.0}
    w = sp.csr_array(np.eye(3))
    scores = np.array([[1e-30, 1e-31], [0.4, 0.1], [1e-6, 0.0]])
    shares = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    codes = np.full(3, -1)
    found = attached_scores(w, None, scores, shares, codes, 1e-6, **options)
    np.testing.assert_allclose(found, [shares[0], scores[1], shares[2]])  # up to the threshold


def test_far_nodes_take_the_harmonic_extension():
    """On a path the harmonic extension beyond the last near node is constant."""
    n = 8
    W = sp.csr_array(sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1]))
    diagonal = np.asarray(W.sum(axis=1)).ravel()
    scores = np.zeros((n, 2))
    scores[:4] = [[1.0, 0.0], [0.5, 0.25], [0.25, 0.25], [0.06, 0.02]]
    scores[4:7] = 1e-20
    scores[7] = 3.0  # an unreached node has no score, whatever is given
    unreached = np.array([7])
    W = W.tolil()
    W[6, 7] = W[7, 6] = 0.0
    W = sp.csr_array(W.tocsr())
    W.eliminate_zeros()
    diagonal = np.asarray(W.sum(axis=1)).ravel()
    found = with_far_nodes(W, diagonal, np.array([0]), scores, unreached, 1e-3)
    np.testing.assert_array_equal(found[:4], scores[:4])
    np.testing.assert_allclose(found[4:7], 1e-3 * np.tile([0.75, 0.25], (3, 1)), rtol=1e-4)
    assert (found[7] == 0.0).all()
    # Nothing is far, or nothing is near: only unreached nodes change.
    for threshold in (1e-30, 100.0):
        kept = with_far_nodes(W, diagonal, np.array([0]), scores, unreached, threshold)
        np.testing.assert_array_equal(kept[:7], scores[:7])
        assert (kept[7] == 0.0).all()


def test_a_labelled_node_is_never_far():
    W = sp.csr_array(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    diagonal = np.asarray(W.sum(axis=1)).ravel()
    scores = np.array([[1.0], [0.5], [1e-9]])
    none = np.zeros(0, dtype=np.intp)
    found = with_far_nodes(W, diagonal, np.array([0, 2]), scores, none, 1e-3)
    np.testing.assert_array_equal(found, scores)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_a_row_without_links_has_only_its_evidence(laplacian):
    T = np.array([[0.2, 0.9]])
    found = new_row_scores(
        sp.csr_array((1, 3)), SCORES, degrees=DEGREES, laplacian=laplacian, self_loop=0.5,
        evidence_weight=1.5, evidence=T,
    )  # fmt: skip
    np.testing.assert_allclose(found, 1.5 * T / (0.5 + 1.5), rtol=1e-14)


def test_far_nodes_start_strictly_below_the_threshold():
    W = ring(6)
    scores = np.array([[1.0], [0.25], [0.25 - 1e-12], [0.1], [0.25], [0.5]])
    none = np.zeros(0, dtype=np.intp)
    found = rows.with_far_nodes(W, np.ones(6), np.array([0]), scores, none, 0.25)
    np.testing.assert_array_equal(found[[0, 1, 4, 5]], scores[[0, 1, 4, 5]])
    np.testing.assert_allclose(found[[2, 3]], 0.25)
    level = np.full((6, 1), 0.1)
    level[0] = 0.25  # one node is at the threshold, so there is something to extend
    found = rows.with_far_nodes(W, np.ones(6), np.array([0]), level, none, 0.25)
    np.testing.assert_allclose(found, 0.25)


@pytest.mark.parametrize("n", [40, 700])  # by a factorisation, and by iteration
def test_the_harmonic_extension_is_accurate(n):
    W = graph(n, 3, density=8 / n)
    d = np.asarray(W.sum(axis=1))
    scores = np.zeros((n, 2))
    scores[:5] = np.random.default_rng(0).random((5, 2)) - 0.1
    scores[:5, 0] += 0.5
    none = np.zeros(0, dtype=np.intp)
    found = rows.with_far_nodes(W, d, np.arange(2), scores, none, 1e-3)
    shares = np.maximum(scores[:5], 0)
    shares /= shares.sum(axis=1, keepdims=True)
    exact = dense(LabeledSystem(W, d, np.arange(5), shares))
    np.testing.assert_allclose(found[5:], 1e-3 * exact[5:], atol=1e-7)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_faint_weights_are_links_too(laplacian):
    W = sp.csr_array(np.array([[1e-3, 2e-3, 0.0], [0.0, 0.5, 0.25]]))
    F, d = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]]), np.array([2.0, 0.0, 4.0])
    found = rows.new_row_scores(W, F, degrees=d, laplacian=laplacian, self_loop=0.1)
    w = W.toarray()
    total = w.sum(axis=1)
    if laplacian == "combinatorial":
        expected = w @ F / (total + 0.1)[:, None]
    else:
        root = np.array([1 / np.sqrt(2), 0.0, 0.5])
        expected = (w * root) @ F / np.sqrt(total)[:, None] / 1.1
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_only_weights_whose_sum_may_overflow_are_scaled():
    assert rows.HEAVIEST == 1e100
    W = sp.csr_array(np.array([[1e100, 1.0], [2.0, 0.0]]))
    assert rows._addable(W) is W
    W = sp.csr_array(np.array([[1e104, 1e103], [2.0, 0.0], [1e100, 1.0]]))
    scaled = rows._addable(W).toarray()
    np.testing.assert_allclose(scaled, [[1e100, 1e99], [2.0, 0.0], [1e100, 1.0]], rtol=1e-12)
