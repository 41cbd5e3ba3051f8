"""Columns that could be several things are encoded as held-out labels decide."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa.tables import TableEncoder
from gdpa.tables.choice import choose_variants, labelled_sample, row_losses
from gdpa.tables.encoder import class_codes

N = 400


def words(rng, n, letters="abcdefghij"):
    return ["".join(rng.choice(list(letters), size=3)) for _ in range(n)]


@pytest.fixture
def table():
    """A number that tells four classes apart, and short strings of every sort."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, N)
    known = np.where(rng.random(N) < 0.5, group, -1)
    starts = np.array(["Alpha", "Beta", "Gamma", "Delta"])[group]
    places = np.array(["Oslo", "Rome", "Lima", "Bonn"])[group]
    return {
        "number": (group + 0.8 * rng.normal(size=N)).tolist(),
        "noise": [f"{a}{b}" for a, b in zip(words(rng, N), words(rng, N, "xyz"), strict=True)],
        "prefix": [f"{s} {w}" for s, w in zip(starts, words(rng, N), strict=True)],
        "place": [
            str(p) if rng.random() < 0.4 else w
            for p, w in zip(places, words(rng, N, "klmnopq"), strict=True)
        ],
        "zip": (10_000 * (group + 1) + rng.permutation(9_000)[:N]).tolist(),
        "row": list(range(100, 100 + N)),
        "key": rng.permutation(3000)[:N].tolist(),
    }, known


def kinds(encoder):
    return {plan.name: plan.kind for plan in encoder.columns_}


def test_without_labels_the_cells_decide(table):
    found = kinds(TableEncoder().fit(table[0]))
    assert found["noise"] == found["prefix"] == "text"
    assert found["row"] == found["key"] == "left out"


def test_with_labels_what_predicts_is_kept_and_noise_is_not(table):
    columns, known = table
    columns = {name: cells for name, cells in columns.items() if name != "zip"}
    encoder = TableEncoder().fit(columns, known)
    found = kinds(encoder)
    assert found["number"] == "number"
    assert found["noise"] == "left out"
    assert found["prefix"] == "text"
    assert found["place"] in ("category", "text")
    assert found["row"] == "left out"  # the order of the file is no measurement
    assert found["key"] == "left out"
    reasons = {plan.name: plan.reason for plan in encoder.columns_}
    assert reasons["noise"] == "held-out labels are predicted no better with it"
    again = TableEncoder.from_plain(encoder.to_plain())
    np.testing.assert_allclose(again.transform(columns), encoder.transform(columns), atol=1e-6)


def test_an_identifier_that_predicts_is_a_number(table):
    columns, known = table
    few = {name: columns[name] for name in ("number", "zip", "key")}
    (plan,) = (p for p in TableEncoder().fit(few).columns_ if p.name == "zip")
    if plan.kind != "left out":
        few["zip id"] = few.pop("zip")  # an identifier by its name
    found = kinds(TableEncoder().fit(few, known))
    assert found.get("zip", found.get("zip id")) == "number"
    assert found["key"] == "left out"


def test_codes_that_look_like_identifiers_are_used_if_they_predict(table):
    columns, known = table
    group = (np.array(columns["zip"]) // 10_000).tolist()
    few = {
        "number": columns["number"],
        "plate": [f"{'WXYZ'[g - 1]}-{k}" for g, k in zip(group, columns["key"], strict=True)],
        "part": [f"P-{k}" for k in columns["key"]],
    }
    assert kinds(TableEncoder().fit(few))["plate"] == "left out"
    found = kinds(TableEncoder().fit(few, known))
    assert found["plate"] == "text"
    assert found["part"] == "left out"


def test_what_the_user_says_is_not_questioned(table):
    columns, known = table
    wanted = {"noise": "text", "key": "number"}
    found = kinds(TableEncoder(columns=wanted).fit(columns, known))
    assert found["noise"] == "text"
    assert found["key"] == "number"


def test_frequent_values_are_categories_and_the_rest_is_one_more():
    rng = np.random.default_rng(1)
    cells = [f"city {i % 6}" if rng.random() < 0.8 else f"x{i}" for i in range(600)]
    encoder = TableEncoder().fit({"a": rng.normal(size=600).tolist(), "city": cells})
    plan = encoder.columns_[1]
    assert plan.kind == "category"
    assert plan.done().startswith("6 frequent categories and the rest")
    Z, notes = encoder.encode({"a": [0.0] * 3, "city": ["city 0", "x1", "never seen"]})
    assert notes == ()
    np.testing.assert_array_equal(Z[1, 1:], Z[2, 1:])
    assert (Z[1, 1:] != 0).sum() == 1
    assert (Z[0, 1:] != Z[1, 1:]).any()


def test_with_few_labels_short_strings_that_seldom_repeat_are_left_out(table):
    columns, known = table
    few = np.where(np.arange(N) < 30, known, -1)
    assert labelled_sample(few, 0) is None
    found = kinds(TableEncoder().fit(columns, few))
    unseen = kinds(TableEncoder().fit(columns))
    assert {name for name in found if found[name] != unseen[name]} == {
        name for name in unseen if unseen[name] == "text"
    }
    assert found["noise"] == "left out"
    only = {"prefix": columns["prefix"], "row": columns["row"]}
    assert kinds(TableEncoder().fit(only, few))["prefix"] == "text"  # there is nothing else


def test_many_ambiguous_columns_share_the_comparisons():
    codes = np.arange(3000) % 3
    assert labelled_sample(codes, 0, 12).size == 1000
    assert labelled_sample(codes, 0, 30).size == 400
    assert labelled_sample(codes, 0, 3000).size == 200


@pytest.mark.slow
def test_the_statistic_of_a_column_that_says_nothing_is_about_standard_normal():
    # The share that passes at two standard errors is small, whatever else is in the table.
    rng = np.random.default_rng(0)
    passed = 0
    for seed in range(40):
        codes = rng.integers(0, 3, 120)
        helpful = codes[:, None] + rng.normal(size=(120, 1))
        noise = [rng.normal(size=(120, 5))]
        passed += choose_variants([helpful], [noise], [2.0], codes, seed) != [None]
    assert passed <= 6  # 2.3 % expected; 7 or more of 40 have a probability of 1e-4


def test_losses_are_those_of_rows_that_a_tree_has_not_seen():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 300)
    chance = row_losses([rng.normal(size=(300, 5))], codes, 0).mean()
    signal = row_losses([codes[:, None] + 0.1 * rng.normal(size=(300, 1))], codes, 0).mean()
    assert chance > 0.6  # a leak would give less than log 2
    assert signal < 0.2
    noise = rng.normal(size=(300, 8))
    column = codes[:, None] + 0.7 * rng.normal(size=(300, 1))
    assert choose_variants([column], [[noise]], [2.0], codes, 0) == [None]
    assert choose_variants([noise], [[noise[:, :3], column]], [2.0], codes, 0) == [1]


def test_classes_of_any_type():
    assert class_codes(["b", "a", None, "", "b"], 5).tolist() == [1, 0, -1, -1, 1]
    assert class_codes(np.array([3, -1, 5]), 3).tolist() == [1, -1, 2]  # equal or not counts
    assert class_codes(np.array([0.5, 1.5, np.nan]), 3).tolist() == [-1, -1, -1]
    with pytest.raises(ValueError, match="y has 2 values, the table has 3 rows"):
        class_codes([1, 2], 3)
