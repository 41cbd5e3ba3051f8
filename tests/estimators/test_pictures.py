"""Rows that are pictures: learned features, chosen by held-out labels, stored with the model."""

import numpy as np
import pytest

from gdpa import CommitteeClassifier
from gdpa.estimators.labels import encode_labels
from gdpa.estimators.options import CheckedOptions
from gdpa.estimators.pictures import learn_pictures
from gdpa.graph.picture_features import PictureFeatures


def strokes(n=160, side=16, seed=0):
    """Horizontal (class 0) and vertical (class 1) bars at random places, with noise."""
    rng = np.random.default_rng(seed)
    pictures = 0.1 * rng.random((n, side, side))
    y = np.arange(n) % 2
    for picture, vertical in zip(pictures, y, strict=True):
        start = rng.integers(0, side - 3)
        if vertical:
            picture[:, start : start + 3] += 0.8
        else:
            picture[start : start + 3] += 0.8
    return pictures.reshape(n, -1), y


@pytest.fixture(scope="module")
def fitted():
    X, y = strokes()
    labels = np.where(np.arange(y.size) < 40, y, -1)
    return X, y, labels, CommitteeClassifier(n_jobs=1).fit(X, labels)


def test_pictures_are_seen_through_learned_features(fitted):
    X, y, labels, model = fitted
    assert isinstance(model.ensemble_.rescaler, PictureFeatures)
    free = labels < 0
    assert np.mean(model.transduction_[free] == y[free]) > 0.9
    assert model.n_features_in_ == X.shape[1] == model.feature_importances_.size
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def test_new_pictures_and_stored_models(fitted, tmp_path):
    X, _, _, model = fitted
    np.testing.assert_array_equal(model.predict(X[50:60]), model.transduction_[50:60])
    new, y = strokes(60, seed=9)
    again = CommitteeClassifier.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    assert np.mean(again.predict(new) == y) > 0.9


def test_pixels_stay_where_held_out_labels_prefer_them():
    """The class is the brightness, which patches of normalised contrast do not show."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = np.kron(rng.random((120, 4, 4)), np.ones((1, 4, 4))).reshape(120, -1)
    X += 2.0 * y[:, None]
    options = CheckedOptions()
    assert learn_pictures(X, encode_labels(y, -1), options) is None
    assert learn_pictures(strokes()[0], encode_labels(strokes()[1], -1), options) is not None


def test_tables_are_not_taken_for_pictures():
    X = np.random.default_rng(0).random((80, 400))
    labels = np.where(np.arange(80) < 20, np.arange(80) % 2, -1)
    model = CommitteeClassifier(n_jobs=1).fit(X, labels)
    assert model.ensemble_.rescaler is None
