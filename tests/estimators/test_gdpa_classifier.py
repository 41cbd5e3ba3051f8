"""The paper's system as an estimator: recovery, its reason, the dual point, and large data."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from gdpa import GDPAClassifier


def clouds(n, *, share, distance, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 5))
    X[:, 0] += distance * (2 * truth - 1)
    return X, np.where(rng.random(n) < share, truth, -1), truth


@pytest.mark.parametrize(
    ("share", "distance", "recovery"), [(0.5, 2.0, "eigenvector"), (0.03, 1.5, "linear")]
)
def test_the_recovery_follows_the_theorem(share, distance, recovery):
    X, y, truth = clouds(800, share=share, distance=distance)
    model = GDPAClassifier().fit(X, y)
    assert model.recovery_ == recovery
    assert "lambda / mu" in model.recovery_reason_
    free = y < 0
    error = np.mean(model.transduction_[free] != truth[free])
    harmonic = gdpa.GraphClassifier(n_neighbors=10, self_loop=0.0, label_weight=np.inf).fit(X, y)
    assert error <= np.mean(harmonic.transduction_[free] != truth[free]) + 0.02


def test_it_does_not_lose_to_either_recovery():
    """Where "auto" takes the eigenvector, that has nearly the labels of slackness."""
    for share in (0.05, 0.2, 0.5):
        for distance in (1.0, 2.0, 3.0):
            X, y, truth = clouds(500, share=share, distance=distance, seed=1)
            free = y < 0
            errors = {
                recovery: np.mean(
                    GDPAClassifier(recovery=recovery).fit(X, y).transduction_[free] != truth[free]
                )
                for recovery in ("auto", "linear")
            }
            assert errors["auto"] <= errors["linear"] + 0.02


def test_the_dual_point_and_its_discs():
    X, y, _ = clouds(300, share=0.5, distance=2.0)
    model = GDPAClassifier(laplacian="combinatorial").fit(X, y)
    n = y.size
    assert model.H_bar_.shape == (n + 2, n + 2)
    assert np.allclose(model.discs_.left_ends, 0.0, atol=1e-6 * model.discs_.centers.max())
    assert np.linalg.eigvalsh(model.H_bar_.toarray())[0] > -1e-6 * model.discs_.centers.max()
    assert model.n_programs_ == 1
    assert model.dual_.y.shape == (n + 1,)
    assert model.dual_.z.shape == ((y >= 0).sum(),)
    assert model.solution_.bound_status == "certified"


def test_the_paper_to_the_letter():
    """Combinatorial Laplacian, a = 1, first label: the labels of gdpa.paper."""
    from gdpa import paper

    X, y, _ = clouds(40, share=0.4, distance=3.0)
    model = GDPAClassifier(
        graph="full", laplacian="combinatorial", recovery="eigenvector", label_weight=1,
        sign="first", start="paper",
    ).fit(X, y)  # fmt: skip
    x_hat = np.where(y < 0, 0.0, 2.0 * y - 1.0)
    L = paper.laplacian(model.graph_.toarray())
    known = x_hat != 0
    start_y = np.append(known.astype(float), known.sum())
    expected = paper.extract_labels(L, x_hat, start_y, -x_hat[known])
    assert np.array_equal(2 * model.transduction_ - 1, expected)


def test_the_published_variant_is_the_authors_program():
    pytest.importorskip("clarabel", reason="the published variant needs the extra sdp")
    X, y, truth = clouds(80, share=0.5, distance=2.0)
    model = GDPAClassifier(graph="full", variant="published").fit(X, y)
    assert model.solution_.method == "gdpa-published"
    assert np.mean(model.transduction_ == truth) > 0.9


def test_several_classes_have_one_recovery_each():
    rng = np.random.default_rng(0)
    truth = np.arange(150) % 3
    X = rng.normal(size=(150, 2)) + 6.0 * np.eye(3)[truth][:, :2]
    y = np.where(rng.random(150) < 0.3, truth, -1)
    model = GDPAClassifier().fit(X, y)
    assert len(model.recovery_) == 2
    assert np.mean(model.transduction_ == truth) > 0.95
    with pytest.raises(AttributeError, match="two classes"):
        _ = model.H_bar_


def test_reported_accuracy_is_its_own():
    X, y, truth = clouds(600, share=0.5, distance=1.0)
    model = GDPAClassifier().fit(X, y)
    checked = model.evaluate()
    true = np.mean(model.transduction_[y < 0] == truth[y < 0])
    assert abs(checked.accuracy.estimate - true) < 0.08


def test_files_and_further_labels(tmp_path):
    X, y, truth = clouds(200, share=0.3, distance=2.0)
    model = GDPAClassifier(sign="first").fit(X, y)
    other = GDPAClassifier.load(model.save(tmp_path / "m.npz"))
    assert (other.transduction_ == model.transduction_).all()
    assert other.sign == "first"
    assert (other.predict(X[:20]) == model.predict(X[:20])).all()
    row = int(np.flatnonzero(y < 0)[0])
    model.add_labels([row], [truth[row]])
    assert model.transduction_[row] == truth[row]
    assert model.H_bar_.shape == (202, 202)


@pytest.mark.parametrize(
    "bad",
    [{"recovery": "best"}, {"label_weight": 0}, {"sign": "last"}, {"variant": "authors"},
     {"bandwidth": -1.0}, {"start": "zero"}],
)  # fmt: skip
def test_bad_options_are_refused(bad):
    X, y, _ = clouds(30, share=0.5, distance=3.0)
    with pytest.raises(ValueError, match=next(iter(bad))):
        GDPAClassifier(**bad).fit(X, y)


@pytest.mark.slow
def test_100000_samples():
    X, y, truth = clouds(100_000, share=0.5, distance=2.0)
    model = GDPAClassifier().fit(X, y)
    assert np.mean(model.transduction_[y < 0] == truth[y < 0]) > 0.95
    assert model.H_bar_.nnz < 5_000_000
