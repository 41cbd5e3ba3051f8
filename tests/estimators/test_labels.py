"""Labels of any kind, and what marks an unknown one."""

from __future__ import annotations

from collections import deque

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from gdpa.estimators.labels import encode_labels, encode_more


@pytest.mark.parametrize(
    ("y", "unlabeled", "codes", "classes"),
    [
        ([3, -1, 7, 3], -1, [0, -1, 1, 0], [3, 7]),
        ([1.0, np.nan, 2.0], np.nan, [0, -1, 1], [1.0, 2.0]),
        ([1.0, np.nan, 2.0], None, [0, -1, 1], [1.0, 2.0]),
        (["b", None, "a"], None, [1, -1, 0], ["a", "b"]),
        (["b", "?", "a"], "?", [1, -1, 0], ["a", "b"]),
        (np.array(["b", -1, "a"], dtype=object), -1, [1, -1, 0], ["a", "b"]),
        (["b", -1, "a"], -1, [1, -1, 0], ["a", "b"]),  # NumPy makes "-1" of it
        ([-1, 1, 0], 0, [0, 1, -1], [-1, 1]),
        ([-1, 0, 1], 99, [0, 1, 2], [-1, 0, 1]),
        ([True, False], -1, [1, 0], [False, True]),
        (pd.Series([5, None, 6], dtype="Int64"), None, [0, -1, 1], [5, 6]),
        (pd.Series(["x", pd.NA, "y"], dtype="string"), pd.NA, [0, -1, 1], ["x", "y"]),
        (pd.Categorical(["x", None, "y"]), None, [0, -1, 1], ["x", "y"]),
        (pd.Series([True, pd.NA], dtype="boolean"), None, [0, -1], [True]),
    ],
)
def test_every_kind_of_label(y, unlabeled, codes, classes):
    coding = encode_labels(y, unlabeled)
    assert coding.codes.tolist() == codes
    assert coding.classes.tolist() == classes
    assert coding.labeled.tolist() == [i for i, c in enumerate(codes) if c >= 0]


@pytest.mark.parametrize("y", [[-1, 1, 1], [-1.0, 1.0], np.array([1, -1], dtype=object)])
def test_only_plus_and_minus_one_is_ambiguous(y):
    with pytest.raises(ValueError, match="unlabeled=0"):
        encode_labels(y)
    assert encode_labels(y, unlabeled=0).classes.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("y", "unlabeled", "message"),
    [
        ([-1, -1], -1, "no known label"),
        ([None, None], None, "no known label"),
        ([0.0, np.nan], -1, r"y\[1\] is missing.*unlabeled=None"),
        ([0.5, 1.7, 2.2], -1, "Unknown label type"),
        ([0.0, np.inf, 1.0], -1, "infinity"),
        (np.array(["a", 1, 2.5], dtype=object), -1, "mixes|Unknown label type"),
        ([[0, 1], [1, 0]], -1, "1d array"),
        (None, -1, "y is None"),
    ],
)
def test_bad_labels_are_refused(y, unlabeled, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y, unlabeled)


def test_a_column_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning):
        assert encode_labels(np.array([[0], [1]])).codes.tolist() == [0, 1]


def test_more_labels_of_known_classes():
    classes = encode_labels(["a", "b", None], None).classes
    assert encode_more("b", classes).tolist() == [1]
    assert encode_more(["b", "a"], classes).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"labels\[1\] is 'c'.*refit"):
        encode_more(["a", "c"], classes)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (b"a", b"b", "type bytes .* decode it"),
        ((1, 2), (3, 4), "type tuple|sequences"),
        (np.datetime64("2020-01-01"), np.datetime64("2020-01-02"), "type datetime64"),
    ],
)
def test_labels_of_other_kinds_are_named(first, second, words):
    y = np.empty(8, dtype=object)
    for i in range(4):
        y[i] = (first, second)[i % 2]
    with pytest.raises(ValueError, match=words):
        encode_labels(y, None)
    with pytest.raises(ValueError, match=words):
        encode_labels([first, second, None], None)


def test_gaps_among_texts_are_unknown_labels():
    coding = encode_labels(np.array(["a", None, "b", np.nan], dtype=object))
    assert coding.codes.tolist() == [0, -1, 1, -1]
    with pytest.raises(ValueError, match="contains NaN"):
        encode_labels([1.0, np.nan, 2.0])


def test_integers_beside_missing_values_stay_integers_in_every_column():
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    y = [2**53 + 1, 2**53, None, 2**53]  # a float cannot tell the first two apart
    objects = pd.Series(y, dtype=object)
    columns = [y, deque(y), objects, pd.Series(y, dtype="Int64"), objects.astype("category")]
    columns += [polars.Series(y), arrow.array(y), arrow.chunked_array([y[:1], y[1:]])]
    columns += [arrow.array(y).dictionary_encode()]
    for column in columns:
        coding = encode_labels(column, None)
        assert coding.classes.tolist() == [2**53, 2**53 + 1]
        assert coding.codes.tolist() == [1, 0, -1, 0]


@pytest.mark.parametrize("container", [list, tuple, deque])
def test_mixed_types_are_refused_in_every_sequence(container):
    with pytest.raises(ValueError, match="mixes labels of different types"):
        encode_labels(container(["a", 2, "b", -1]))
