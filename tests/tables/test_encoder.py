"""Columns to features: what is decided, that a column counts as one, that nothing is guessed."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from gdpa.tables import TableEncoder, TableError, read_table, table_of

N = 300


def stored(data, column, kind):
    """Fields of one object in the plain data of a column."""
    return dict(data["columns"][column]["objects"])[kind]


def kinds(encoder):
    return {plan.name: plan.kind for plan in encoder.columns_}


def test_every_kind_of_column_is_found(mixed):
    rows = mixed
    rows["copy"] = rows["whole"].copy()
    rows["empty"] = [None] * N
    encoder = TableEncoder().fit(rows)
    assert kinds(encoder) == {
        "id": "left out",
        "number": "number",
        "whole": "number",
        "colour": "category",
        "size": "ordered",
        "flag": "category",
        "when": "date",
        "note": "text",
        "same": "left out",
        "price": "number",
        "code": "left out",
        "customer_id": "left out",
        "copy": "left out",
        "empty": "left out",
    }
    reasons = {plan.name: plan.reason for plan in encoder.columns_}
    assert reasons["same"] == "constant"
    assert reasons["copy"] == "the same cells as column 'whole'"
    assert "name" in reasons["customer_id"]
    notes = "\n".join(encoder.notes_)
    for name in ("id", "same", "code", "customer_id", "copy", "empty"):
        assert f"column '{name}': left out" in notes
    assert "'number': number, 1 missing cell filled with the median" in notes
    assert "number is missing" not in encoder.get_feature_names_out()  # one of three hundred
    X = encoder.transform(rows)
    assert X.shape == (N, encoder.get_feature_names_out().size)
    assert np.isfinite(X).all()
    assert "note" in repr(encoder.columns_)


def test_one_column_counts_as_one_column():
    rng = np.random.default_rng(0)
    n = 3000
    rows = {
        "number": rng.normal(loc=1e6, scale=1e-3, size=n),
        "two": rng.choice(["a", "b"], n),
        "ten": rng.choice(list("abcdefghij"), n),
        "uneven": rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1]),
        "scale": rng.choice(["low", "medium", "high"], n),
        "text": [" ".join(rng.choice(["north", "south", "east", "west"], 6)) for _ in range(n)],
        "date": np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]"),
    }
    encoder = TableEncoder().fit(rows)
    variance = encoder.transform(rows).var(axis=0)
    start = 0
    for plan in encoder.columns_:
        part = variance[start : start + plan.n_features].sum()
        assert part == pytest.approx(1.0, abs=0.15), plan.name
        start += plan.n_features


def test_outliers_neither_set_the_scale_nor_run_away():
    values = np.append(np.random.default_rng(0).normal(size=500), 1e12)
    X = TableEncoder().fit_transform({"v": values})
    assert 0.7 < X[:-1].std() < 1.3
    assert abs(X[-1, 0]) < 10
    huge = TableEncoder().fit_transform({"v": np.linspace(-1, 1, 50) * 1.7e308})
    assert np.isfinite(huge).all()


@pytest.mark.parametrize("kind", ["number", "category", "text", "date", "drop"])
def test_a_decision_can_be_overridden(kind):
    rows = {"v": [f"{2000 + i % 20}0{1 + i % 9}0{1 + i % 7}" for i in range(60)], "w": range(60)}
    rows["w"] = np.sin(np.arange(60))
    encoder = TableEncoder(columns={"v": kind}).fit(rows)
    assert kinds(encoder)["v"] == {"drop": "left out"}.get(kind, kind)
    assert np.isfinite(encoder.transform(rows)).all()


def test_wrong_options_are_named():
    rows = {"v": [1.0, 2.0, 3.5]}
    with pytest.raises(TableError, match=r"X has no column 'u'"):
        TableEncoder(columns={"u": "text"}).fit(rows)
    with pytest.raises(ValueError, match="'v' has the kind 'numbr'; did you mean 'number'"):
        TableEncoder(columns={"v": "numbr"}).fit(rows)
    with pytest.raises(ValueError, match="scale='robst'"):
        TableEncoder(scale="robst").fit(rows)
    with pytest.raises(ValueError, match="max_categories=1"):
        TableEncoder(max_categories=1).fit(rows)
    with pytest.raises(TableError, match="no usable feature column"):
        TableEncoder().fit({"v": [1.0, 1.0]})


def test_identifiers_need_more_than_being_whole_numbers():
    rng = np.random.default_rng(0)
    rows = {
        "shuffled": rng.permutation(N),
        "year": np.arange(N) + 1700,
        "sparse": np.sort(rng.choice(10**8, N, replace=False)),
        "count": rng.poisson(40, N),
        "store_id": rng.integers(1, 8, N),
    }
    found = kinds(TableEncoder().fit(rows))
    assert found == {
        "shuffled": "left out",
        "year": "number",
        "sparse": "number",
        "count": "number",
        "store_id": "category",
    }


def test_later_rows_are_encoded_the_same_way(mixed):
    rows = mixed
    encoder = TableEncoder().fit(rows)
    X = encoder.transform(rows)
    some = {name: np.asarray(cells, dtype=object)[40:60] for name, cells in rows.items()}
    some["when"] = rows["when"][40:60]
    assert np.allclose(encoder.transform(some), X[40:60], rtol=0, atol=1e-6)
    extra = {**some, "more": np.zeros(20)}
    assert np.array_equal(encoder.transform(extra), encoder.transform(some))
    del some["id"]  # what is left out may be missing
    encoder.transform(some)
    del some["whole"]
    with pytest.raises(TableError, match="has no column 'whole'"):
        encoder.transform(some)


def test_new_rows_may_have_unseen_categories_but_not_text_for_numbers():
    encoder = TableEncoder().fit({"c": ["a", "b", "c"] * 10, "v": np.sin(np.arange(30.0))})
    with pytest.warns(UserWarning, match="1 cells have an unknown category"):
        X = encoder.transform({"c": ["a", "z"], "v": [1.0, 2.0]})
    assert X[1, :3].tolist() == [0, 0, 0]
    with pytest.raises(TableError, match="column 'v', row 2: 'tall' is not a finite number"):
        encoder.transform({"c": ["a", "b"], "v": ["1.5", "tall"]})
    with pytest.raises(TableError, match="column 'v', row 1: 'inf' is not a finite number"):
        encoder.transform({"c": ["a"], "v": [np.inf]})


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([*map(str, range(50)), "4o"], "50 cells are numbers, but row 51 has '4o'"),
        (["1.5", "2,5"] * 20, "row 2: decimal marks are mixed: '1.5' and '2,5'"),
        (["5 kg"] * 20 + ["6 lb"], "row 21: units are mixed"),
        ([f"2020-01-{d:02d}" for d in range(1, 29)] + ["2020-02-30"], "row 29 has '2020-02-30'"),
        ([1.0, 2.0, np.inf], "row 3: 'inf' is not a finite number"),
    ],
)
def test_cells_that_contradict_their_column_are_named(cells, message):
    with pytest.raises(TableError, match=f"column 'v'.*{message}"):
        TableEncoder().fit({"v": cells, "w": np.sin(np.arange(len(cells)))})


def test_text_from_row_90000_on_is_named(tmp_path):
    lines = "".join(f"{0.1 * i:.1f}\n" for i in range(89_999))
    (tmp_path / "t.csv").write_text("v\n" + lines + "broken\n" * 20_001)
    with pytest.raises(TableError, match="column 'v': 89999 cells are numbers, but row 90000 has"):
        TableEncoder().fit(read_table(tmp_path / "t.csv"))


def test_few_words_among_few_numbers_are_categories():
    cells = ["0", "1", "2", "3+"] * 20
    assert kinds(TableEncoder().fit({"v": cells})) == {"v": "ordered"}
    assert kinds(TableEncoder().fit({"v": ["0", "1", "2", "many"] * 20})) == {"v": "category"}


def test_texts_that_share_pieces_are_near_each_other():
    rng = np.random.default_rng(0)
    stems = ["carpenter", "physician", "librarian"]
    texts = [
        f"{'senior ' * rng.integers(2)}{s}{'s' * rng.integers(2)} {i}"
        for i in range(80)
        for s in stems
    ]
    X = TableEncoder().fit_transform({"t": texts})
    group = np.arange(X.shape[0]) % 3
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    same = group[:, None] == group[None]
    assert distance[same].mean() < 0.7 * distance[~same].mean()


def test_plain_data_hold_the_encoder(mixed):
    rows = mixed
    encoder = TableEncoder().fit(rows)
    text = json.dumps(encoder.to_plain())
    again = TableEncoder.from_plain(json.loads(text))
    assert np.array_equal(encoder.transform(rows), again.transform(rows))
    assert again.notes_ == encoder.notes_
    assert repr(again.columns_) == repr(encoder.columns_)
    assert np.array_equal(
        pickle.loads(pickle.dumps(encoder)).transform(rows), again.transform(rows)
    )
    assert clone(encoder).get_params() == encoder.get_params()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("columns"),
        lambda d: d.update(columns=[3]),
        lambda d: d.update(scale="?"),
        lambda d: stored(d, 1, "number-encoding").update(scale=0),
        lambda d: stored(d, 1, "number-encoding").update(fill=float("nan")),
        lambda d: stored(d, 1, "number-encoding").update(gap=-1.0),
        lambda d: stored(d, 1, "number-format").update(decimal="x"),
        lambda d: stored(d, 1, "column-plan").update(kind="text"),
        lambda d: stored(d, 1, "column-plan").update(kind="drop"),
        lambda d: stored(d, 4, "column-plan").update(ranks={"$tuple": []}),
        lambda d: stored(d, 6, "date-encoding").update(cycles={"$tuple": ["month"]}),
        lambda d: stored(d, 1, "column-plan").update(name=7),
        lambda d: stored(d, 3, "category-encoding").update(categories={"$tuple": ["a", "a"]}),
        lambda d: stored(d, 7, "text-encoding").update(
            buckets=stored(d, 7, "text-encoding")["rarity"]
        ),
        lambda d: stored(d, 7, "text-encoding").update(scale=-1.0),
        lambda d: next(iter(d["columns"][7]["arrays"].values())).__setitem__(2, "!!"),
        lambda d: next(iter(d["columns"][7]["arrays"].values())).__setitem__(0, "|O"),
        lambda d: stored(d, 2, "column-plan").update(name="number"),
    ],
)
def test_forged_plain_data_are_refused(mixed, change):
    data = json.loads(json.dumps(TableEncoder().fit(mixed).to_plain()))
    change(data)
    with pytest.raises(ValueError, match="description"):
        TableEncoder.from_plain(data)


def test_wide_tables_are_linear_in_columns(monkeypatch):
    import gdpa.tables.table as module

    calls = []
    original = module.Table.column
    monkeypatch.setattr(module.Table, "column", lambda s, *a: calls.append(1) or original(s, *a))
    values = np.random.default_rng(0).normal(size=(20, 2000))
    table = table_of({f"c{j}": values[:, j] for j in range(2000)})
    encoder = TableEncoder().fit(table)
    assert encoder.transform(table).shape == (20, 2000)
    assert len(calls) == 2000  # one look-up per column, each by a dictionary


def test_large_tables_are_kept_in_single_precision(mixed, monkeypatch):
    import gdpa.tables.encoder as module

    monkeypatch.setattr(module, "HALF_PRECISION", 100)
    encoder = TableEncoder().fit(mixed)
    assert encoder.transform(mixed).dtype == np.float32
    assert TableEncoder.from_plain(encoder.to_plain()).transform(mixed).dtype == np.float32


def test_a_unit_of_the_header_may_come_back_in_cells():
    rows = {"weight (kg)": np.linspace(40.0, 90.0, 30) ** 1.01, "v": np.sin(np.arange(30.0))}
    encoder = TableEncoder(scale="none").fit(rows)
    later = {"weight (kg)": ["55 kg", "60.5"], "v": [0.0, 0.0]}
    assert encoder.transform(later)[:, 0].tolist() == [55.0, 60.5]
    with pytest.raises(TableError, match="'120 lb' is not a finite number"):
        encoder.transform({"weight (kg)": ["120 lb"], "v": [0.0]})


def test_gaps_are_marked_once_where_they_are_not_rare():
    rng = np.random.default_rng(0)
    rows = {name: rng.normal(size=300) for name in "abcd"}
    for name in "ab":
        rows[name][:30] = np.nan  # missing together
    rows["c"][100:140] = np.nan
    rows["d"][7] = np.nan
    encoder = TableEncoder().fit(rows)
    names = encoder.get_feature_names_out().tolist()
    assert names == ["a", "a is missing", "b", "c", "c is missing", "d"]
    X = encoder.transform(rows)
    assert np.isfinite(X).all()
    assert (X[:, 1] > 0).tolist() == [i < 30 for i in range(300)]
    said = "\n".join(encoder.notes_)
    assert "'a': number, 30 missing cells filled with the median" in said
    assert said.count("and marked") == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("id", "customer_id", "CustomerID", "Unnamed: 0", "row number")),
        *((name, False) for name in ("width", "idea", "paid", "humid", "keyboard", "David")),
    ],
)
def test_columns_named_like_identifiers_are_left_out(name, expected):
    values = np.random.default_rng(0).integers(0, 10**9, 30)
    encoder = TableEncoder().fit({name: values, "v": np.sin(np.arange(30.0))})
    assert (kinds(encoder)[name] == "left out") is expected


def test_features_know_their_column():
    rng = np.random.default_rng(0)
    words = ["red fox runs", "blue sea and sky", "old green house", "a quiet river bank"]
    rows = {
        "id": list(range(60)),
        "cm": rng.normal(size=60).tolist(),
        "colour": [("red", "blue", "green")[i % 3] for i in range(60)],
        "remark": [f"{words[i % 4]} {i} {words[(i // 4) % 4]}" for i in range(60)],
    }
    encoder = TableEncoder(columns={"remark": "text"}).fit(rows)
    groups = encoder.columns_.feature_groups
    assert groups.size == encoder.columns_.n_features == encoder.transform(rows).shape[1]
    names = encoder.get_feature_names_out()
    for name, group in zip(names, groups, strict=True):
        assert name.startswith(encoder.columns_[group].name)
    sizes = np.unique(groups, return_counts=True)[1]
    assert sizes[:2].tolist() == [1, 3]  # the number and three colours
    assert sizes[2] == encoder.columns_[3].n_features


def test_words_among_numbers_are_missing_if_asked():
    cells = [f"{i / 7:.2f}" for i in range(60)]
    cells[5] = "broken"
    cells[17] = cells[33] = "see note"
    rows = {"v": cells, "w": np.sin(np.arange(60.0))}
    with pytest.raises(TableError, match=r"57 cells are numbers, but row 6 has 'broken'.*--coerce"):
        TableEncoder().fit(rows)
    encoder = TableEncoder(coerce=True).fit(rows)
    plan = encoder.columns_[0]
    assert plan.kind == "number"
    assert encoder.notes_[-1].endswith(
        "3 cells that are no numbers are read as missing: 'broken', 'see note'"
    )
    gaps = dict(rows, v=[None if cell[0].isalpha() else float(cell) for cell in cells])
    expected = TableEncoder().fit(gaps).transform(gaps)
    np.testing.assert_allclose(encoder.transform(rows), expected)
    again = TableEncoder.from_plain(encoder.to_plain())
    new = {"v": ["1.5", "lost"], "w": [0.0, 0.0]}
    np.testing.assert_allclose(again.transform(new), encoder.transform(new), atol=1e-6)
    asked = TableEncoder(coerce=True, columns={"v": "number"}).fit(rows)
    np.testing.assert_allclose(asked.transform(rows), expected)
