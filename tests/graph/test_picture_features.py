"""Features learned from pictures: which rows are pictures, and what is computed from them."""

import numpy as np
import pytest

from gdpa.codec import pack, unpack
from gdpa.graph import picture_features
from gdpa.graph.picture_features import GRID, PATCH, PictureFeatures, picture_shape


def strokes(n, side, channels=1, seed=0):
    """Horizontal (class 0) and vertical (class 1) bars at random places, with noise."""
    rng = np.random.default_rng(seed)
    pictures = 0.1 * rng.random((n, side, side, channels))
    y = rng.integers(0, 2, n)
    for picture, vertical in zip(pictures, y, strict=True):
        start = rng.integers(0, side - 3)
        if vertical:
            picture[:, start : start + 3] += 0.8
        else:
            picture[start : start + 3] += 0.8
    return pictures.reshape(n, -1), y


@pytest.mark.parametrize(("side", "channels"), [(16, 1), (20, 1), (16, 3)])
def test_the_shape_of_pictures_is_found(side, channels):
    X, _ = strokes(60, side, channels)
    assert picture_shape(X) == (side, side, channels)


@pytest.mark.parametrize(
    "rows",
    [
        np.random.default_rng(0).random((50, 400)),  # an embedding
        np.cumsum(np.random.default_rng(0).normal(size=(200, 400)), axis=1),  # curves
        np.random.default_rng(0).random((50, 401)),  # not a square
        np.ones((50, 400)),
        np.ones((1, 400)),
    ],
    ids=["independent", "curves", "odd length", "constant", "one row"],
)
def test_other_rows_are_not_taken_for_pictures(rows):
    assert picture_shape(rows) is None


def test_small_pictures_stay_pixels():
    X, _ = strokes(60, 8)
    assert picture_shape(X) is None


@pytest.fixture(scope="module")
def learned():
    X, _ = strokes(40, 16)
    return X, PictureFeatures.fit(X, (16, 16, 1))


def test_features_by_their_definition(learned):
    X, features = learned
    side = 16 - PATCH + 1
    picture = (X[3].reshape(16, 16) - features.low) / (features.high - features.low)
    active = np.zeros((side, side, len(features.dictionary)))
    for i in range(side):
        for j in range(side):
            patch = picture[i : i + PATCH, j : j + PATCH].ravel()
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + picture_features.PATCH_NOISE)
            point = (patch - features.middle) @ features.whitening
            distance = np.linalg.norm(point - features.dictionary, axis=1)
            active[i, j] = np.maximum(distance.mean() - distance, 0.0)
    ends = np.linspace(0, side, GRID + 1).astype(int)
    cells = [
        active[ends[a] : ends[a + 1], ends[b] : ends[b + 1]].mean(axis=(0, 1))
        for a in range(GRID)
        for b in range(GRID)
    ]
    expected = (np.concatenate(cells) - features.shift) / features.scale
    np.testing.assert_allclose(features.transform(X[3:4])[0], expected, rtol=1e-3, atol=2e-3)


def test_features_of_a_picture_do_not_depend_on_the_others(learned):
    X, features = learned
    whole = features.transform(X)
    one_by_one = np.vstack([features.transform(X[i : i + 1]) for i in range(X.shape[0])])
    np.testing.assert_array_equal(one_by_one, whole)


def test_numbers_of_features_are_spread_over_their_pixels(learned):
    X, features = learned
    values = np.random.default_rng(0).random(features.shift.size)
    pixels = features.pixel_shares(values)
    assert pixels.shape == (X.shape[1],) == features.columns.shape
    assert pixels.sum() == pytest.approx(values.sum())
    of_cells = values.reshape(GRID * GRID, -1).sum(axis=1)
    corner = pixels.reshape(16, 16)[:5, :5]  # the first cell has 5 x 5 pixels
    np.testing.assert_allclose(corner, of_cells[0] / 25)


def test_scale_and_offset_of_the_pixels_do_not_matter(learned):
    X, features = learned
    other = PictureFeatures.fit(255.0 * X + 7.0, (16, 16, 1))
    np.testing.assert_allclose(
        other.transform(255.0 * X + 7.0), features.transform(X), rtol=0.05, atol=0.05
    )


def test_equal_seeds_give_equal_features(learned):
    X, features = learned
    again = PictureFeatures.fit(X, (16, 16, 1))
    np.testing.assert_array_equal(again.dictionary, features.dictionary)


def test_stored_features_are_the_same(learned):
    X, features = learned
    again = unpack(PictureFeatures, *pack(features))
    np.testing.assert_array_equal(again.transform(X), features.transform(X))


def test_large_pictures_are_read_at_fewer_positions():
    X = np.random.default_rng(0).random((3, 64 * 64))
    features = PictureFeatures.fit(X, (64, 64, 1))
    assert features.step > 1
    assert np.isfinite(features.transform(X)).all()


def test_flat_pictures_have_finite_features():
    X = np.full((5, 256), 3.0)
    assert np.isfinite(PictureFeatures.fit(X, (16, 16, 1)).transform(X)).all()


def test_bars_at_any_place_are_told_apart_by_few_labels():
    from sklearn.linear_model import LogisticRegression

    X, y = strokes(300, 16)
    Z = PictureFeatures.fit(X, (16, 16, 1)).transform(X)
    known = np.concatenate([np.flatnonzero(y == c)[:20] for c in (0, 1)])
    errors = []
    for rows in (X, Z):
        model = LogisticRegression(C=0.01, max_iter=500).fit(rows[known], y[known])
        errors.append(np.mean(model.predict(rows) != y))
    assert errors[1] < 0.5 * errors[0]
