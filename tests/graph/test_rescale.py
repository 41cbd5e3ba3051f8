"""The paper's two re-scalings."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gdpa.graph import rescale_minmax
from gdpa.graph.rescale import Rescaler, varying_columns

matrices = st.tuples(st.integers(2, 12), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-1e6, 1e6, width=32))
)


def rescale_standard(X, reference=None):
    return Rescaler.fit(X if reference is None else reference, "standard").transform(X)


@given(matrices)
def test_minmax_spans_zero_to_one(X):
    Z = rescale_minmax(X)
    varies = X.max(axis=0) > X.min(axis=0)
    assert np.isfinite(Z).all()
    if varies.any():
        assert Z.shape[1] == varies.sum()
        assert np.array_equal(Z.min(axis=0), np.zeros(Z.shape[1]))
        assert np.array_equal(Z.max(axis=0), np.ones(Z.shape[1]))
    else:
        assert Z.shape == X.shape
        assert not Z.any()


@given(matrices)
def test_standard_rows_have_unit_norm_or_are_zero(X):
    Z = rescale_standard(X)
    assert np.isfinite(Z).all()
    norms = np.linalg.norm(Z, axis=1)
    assert np.all((np.abs(norms - 1) < 1e-12) | (norms == 0))


def test_standard_is_the_formula_on_the_reference():
    rng = np.random.default_rng(0)
    X = rng.normal(3, 2, size=(20, 4))
    reference = X[:7]
    Z = (X - reference.mean(0)) / reference.std(0, ddof=1)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    assert np.allclose(rescale_standard(X, reference), Z, rtol=1e-13)
    assert not np.allclose(rescale_standard(X), Z)


def test_constant_columns_are_dropped():
    X = np.array([[1.0, 5, 0.1], [2, 5, 0.1], [4, 5, 0.1]])
    assert rescale_minmax(X).shape == (3, 1)
    assert rescale_standard(X).shape == (3, 1)
    # Constant where the scale is learnt, though not elsewhere.
    Y = np.array([[1.0, 5.0], [2.0, 6.0]])
    assert rescale_standard(Y, reference=[[1.0, 5.0], [3.0, 5.0]]).shape == (2, 1)


def test_a_sample_at_the_mean_stays_zero():
    Z = rescale_standard(np.array([[0.0, 0.0], [1.0, 2.0], [-1.0, -2.0]]))
    assert not Z[0].any()
    assert np.isfinite(Z).all()


@pytest.mark.parametrize("kind", ["min-max", "standard", "none"])
def test_fitted_form_equals_the_function_and_serves_new_samples(kind):
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    fitted = Rescaler.fit(X, kind)
    functions = {"min-max": rescale_minmax, "standard": rescale_standard, "none": np.asarray}
    assert np.array_equal(fitted.transform(X), functions[kind](X))
    together = fitted.transform(np.vstack([X, new]))
    assert np.array_equal(together[9:], fitted.transform(new))


def test_one_sample_is_no_scale():
    for kind in ("min-max", "standard"):
        assert not Rescaler.fit([[3.0, 4.0]], kind).transform([[3.0, 4.0]]).any()


def test_columns_that_vary_in_every_part():
    A, B = np.array([[0.0, 1, 2], [1, 1, 3]]), np.array([[0.0, 1, 2], [1, 2, 2]])
    assert varying_columns(A, B).tolist() == [True, False, False]
    with pytest.raises(ValueError, match="same features"):
        varying_columns(A, B[:, :2])


def test_integers_are_taken_and_input_is_kept():
    X = np.array([[0, 10], [5, 20]])
    assert np.array_equal(rescale_minmax(X), [[0, 0], [1, 1]])
    assert np.array_equal(X, [[0, 10], [5, 20]])


def test_sparse_is_taken_only_without_shifting():
    S = sp.csr_array(np.eye(3))
    for kind in ("min-max", "standard"):
        with pytest.raises(ValueError, match="sparse"):
            Rescaler.fit(S, kind)
    assert (Rescaler.fit(S, "none").transform(S) != S).nnz == 0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[np.nan, 1.0], [0.0, 1.0]], "row 0, column 0"),
        ([[0.0, 1.0], [0.0, np.inf]], "row 1, column 1"),
        ([1.0, 2.0], "two dimensions"),
        (np.zeros((0, 2)), "at least one sample"),
        (np.zeros((2, 0)), "at least one sample"),
        ([["a"], ["b"]], "real"),
        ([[-1e308], [1e308]], "range overflows"),
    ],
)
def test_bad_features_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        rescale_minmax(X)


def test_bad_kind_and_width_are_refused():
    with pytest.raises(ValueError, match="did you mean 'min-max'"):
        Rescaler.fit([[1.0]], "minmax")
    with pytest.raises(ValueError, match="3 features, but 2 are expected"):
        Rescaler.fit([[1.0, 2.0], [2.0, 3.0]]).transform(np.zeros((1, 3)))


@pytest.mark.parametrize("kind", ["min-max", "standard"])
@pytest.mark.parametrize("size", [1e100, 1e154, 1e200, 1.7e308])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_rows_of_any_size_keep_their_direction(kind, size, scale):
    X = np.array([[0.0, 1.0, 2.0], [1.0, 3.0, -2.0], [0.5, 0.0, 0.0]]) * scale
    rescaler = Rescaler.fit(X, kind)
    Z = rescaler.transform(np.array([[size, -size, 0.0], [-size, size, 0.0], X[1]]))
    assert np.isfinite(Z).all()
    assert np.isfinite(np.square(Z).sum())
    np.testing.assert_array_equal(Z[2], rescaler.transform(X[[1]])[0])
    if size > 1e50 * scale:
        assert Z[0, 0] > 0 > Z[0, 1]
        np.testing.assert_allclose(Z[1], -Z[0], rtol=1e-9, atol=1e-9 * np.abs(Z[0]).max())
        ratio = -rescaler.scale[1] / rescaler.scale[0]
        assert Z[0, 0] / Z[0, 1] == pytest.approx(ratio, rel=1e-9)


def test_logarithms_are_increasing_and_finite_for_any_number():
    x = np.concatenate([-np.logspace(308, -3, 50), [0.0], np.logspace(-3, 308, 50)])
    near, columns, one = np.abs(x) < 1e100, np.array([True, True]), np.ones(2)
    for unit in (2.0, 1e-300):
        logs = np.array([[0.0, 0.0], [unit, 0.0]])
        scaling = Rescaler("standard", columns, 0 * one, one, False, logs)
        Z = scaling.transform(np.column_stack([x, x]))
        assert np.isfinite(Z).all()
        assert (np.diff(Z[near, 0]) >= 0).all()
        np.testing.assert_array_equal(Z[near, 1], x[near])  # unit 0: only shifted and scaled
        if unit == 2.0:
            formula = np.sign(x) * np.log1p(np.abs(x) / unit)
            np.testing.assert_allclose(Z[near, 0], formula[near], rtol=1e-12)
