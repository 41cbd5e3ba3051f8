"""Accuracy that is promised: digits with the defaults, and a part of the paper's table."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from gdpa import CommitteeClassifier, GraphClassifier

pytestmark = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(("per_class", "least", "seeds"), [(1, 84.0, 5), (5, 95.0, 4)])
def test_digits_with_defaults(per_class, least, seeds):
    """Where neighbours are best the others must not spoil it (all 20 seeds: benchmarks)."""
    X, y = load_digits(return_X_y=True)
    scores = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        known = np.concatenate(
            [rng.choice(np.flatnonzero(y == c), per_class, replace=False) for c in range(10)]
        )
        labels = np.full(y.size, -1)
        labels[known] = y[known]
        test = labels < 0
        row = [make().fit(X, labels) for make in (CommitteeClassifier, GraphClassifier)]
        scores.append([100 * np.mean(m.transduction_[test] == y[test]) for m in row])
    ours, one_graph = np.mean(scores, axis=0)
    assert ours >= least
    assert ours >= one_graph - 0.5


@pytest.mark.slow
def test_better_than_the_one_step_vote(paper_set):
    """Mean error over three sets, min-max, first split of each fold.

    The published results amount to a one-step vote on the full graph; the classifier, with
    everything chosen on the labelled half, must beat that vote on the same runs.
    """
    import gdpa
    from reproduction.protocol import paper_problems

    ours, theirs = [], []
    for name in ("australian", "monk1", "voting"):
        mine, vote = [], []
        for run in paper_problems(paper_set(name), "min-max", splits=[1]):
            test = run.labels == 0
            model = CommitteeClassifier(unlabeled=0).fit(run.X, run.labels)
            mine.append(np.mean(model.transduction_[test] != run.y[test]))
            problem = gdpa.GraphProblem(run.W, run.labels, laplacian="normalized")
            vote.append(np.mean(gdpa.solve(problem, "vote").labels[test] != run.y[test]))
        ours.append(100 * np.mean(mine))
        theirs.append(100 * np.mean(vote))
    assert np.mean(ours) < np.mean(theirs) - 1.0
