"""Data frames in the estimator: encoded, remembered, the same from every library and file."""

from __future__ import annotations

import csv
import itertools
import warnings

import numpy as np
import pytest

from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.errors import ScaleWarning
from gdpa.estimators import GraphOptions
from gdpa.tables import TableEncoder, TableError, read_table, read_target

N = 120


def people(seed=0):
    """Columns of every kind that tell two groups apart."""
    rng = np.random.default_rng(seed)
    group = np.arange(N) % 2
    width = rng.normal(size=N) + 3.0 * group
    width[7] = np.nan
    colour = np.where(rng.random(N) < 0.8, np.where(group == 1, "red", "blue"), "green").astype(
        object
    )
    colour[9] = None
    return {
        "id": np.arange(1000, 1000 + N),
        "width": width,
        "income": np.exp(rng.normal(10 + group, 0.7)),
        "colour": colour,
        "member": rng.random(N) < 0.2 + 0.6 * group,
        "size": rng.choice(["low", "medium", "high"], N),
        "since": (np.datetime64("2019-01-01") + rng.integers(0, 700, N)).astype("datetime64[us]"),
        "note": [
            ("a quiet river, no ", "a loud engine, no ")[g] + str(rng.integers(50)) for g in group
        ],
    }, group


def labels(group, known=16):
    y = np.array([("no", "yes")[g] for g in group], dtype=object)
    y[known:] = None
    return y


@pytest.fixture(scope="module")
def proba(tmp_path_factory):
    """Probabilities by one table in every form; the files go through what ``gdpa fit`` does."""
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("forms")
    rows, group = people()
    y = labels(group)
    frame = pandas.DataFrame(rows)
    target = frame.assign(answer=y)
    target.to_csv(folder / "t.csv", index=False)
    target.to_parquet(folder / "t.parquet")
    found = {}
    for form, X in (("mapping", rows), ("pandas", frame), ("polars", polars.from_pandas(frame))):
        model = CommitteeClassifier(unlabeled=None).fit(X, y)
        found[form] = model.predict_proba(X)
    for form in ("csv", "parquet"):
        table = read_table(folder / f"t.{form}")
        again, _ = read_target(table, "answer")
        table = table.without(["answer"])
        model = CommitteeClassifier(unlabeled=None).fit(table, again)
        found[form] = model.predict_proba(table)
    return found


FORMS = ("mapping", "pandas", "polars", "csv", "parquet")


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(FORMS, 2)))
def test_predictions_are_identical_in_every_form(proba, first, second):
    assert np.array_equal(proba[first], proba[second])


def test_a_frame_of_every_kind_is_classified():
    rows, group = people()
    model = CommitteeClassifier(unlabeled=None).fit(rows, labels(group))
    truth = np.array(["no", "yes"])[group]
    assert (model.transduction_ == truth).mean() > 0.9
    assert (model.predict(rows) == model.transduction_).all()
    kinds = {plan.name: plan.kind for plan in model.columns_}
    assert kinds["id"] == "left out"
    assert kinds["note"] == "text"
    assert model.n_features_in_ == len(rows)
    assert model.feature_names_in_.tolist() == list(rows)


def test_the_scale_of_a_column_does_not_matter():
    rows, group = people()
    y = labels(group)
    first = CommitteeClassifier(unlabeled=None).fit(rows, y).predict_proba(rows)
    rows["income"] = rows["income"] * 2.0**20
    again = CommitteeClassifier(unlabeled=None).fit(rows, y).predict_proba(rows)
    assert np.allclose(first, again, atol=1e-8)


def test_columns_are_overridden_by_a_mapping_or_an_encoder():
    rows, group = people()
    y = labels(group)
    model = CommitteeClassifier(unlabeled=None, columns={"note": "drop", "id": "number"}).fit(
        rows, y
    )
    kinds = {plan.name: plan.kind for plan in model.columns_}
    assert (kinds["note"], kinds["id"]) == ("left out", "number")
    encoder = TableEncoder(scale="minmax")
    model = CommitteeClassifier(unlabeled=None, columns=encoder).fit(rows, y)
    assert model.encoder_.scale == "minmax"
    assert not hasattr(encoder, "columns_")  # a copy was fitted
    model = CommitteeClassifier(unlabeled=None, options=GraphOptions(rescale="minmax")).fit(rows, y)
    assert model.encoder_.scale == "minmax"
    with pytest.raises(ValueError, match="'note' has the kind 'words'"):
        CommitteeClassifier(unlabeled=None, columns={"note": "words"}).fit(rows, y)


def test_later_rows_are_checked_by_name():
    pandas = pytest.importorskip("pandas")
    rows, group = people()
    frame = pandas.DataFrame(rows)
    model = CommitteeClassifier(unlabeled=None).fit(frame, labels(group))
    with pytest.raises(ValueError, match="yet now missing:\n- note"):
        model.predict(frame.drop(columns="note"))
    with pytest.raises(ValueError, match="unseen at fit time:\n- more"):
        model.predict(frame.assign(more=1.0))
    some = frame.head(3).copy()
    some["colour"] = "purple"
    with pytest.warns(UserWarning, match="3 cells have an unknown category"):
        assert model.predict(some).shape == (3,)
    some["width"] = "wide"
    with pytest.raises(TableError, match="column 'width', row 1: 'wide' is not a finite number"):
        model.predict(some)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        plain = model.predict(frame.to_numpy(dtype=object))
    assert (plain == model.predict(frame)).all()


def test_a_saved_model_holds_the_encoding(tmp_path):
    rows, group = people()
    model = CommitteeClassifier(unlabeled=None, columns={"size": "category"}).fit(
        rows, labels(group)
    )
    model.save(tmp_path / "m.npz")
    again = CommitteeClassifier.load(tmp_path / "m.npz")
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))
    assert repr(again.columns_) == repr(model.columns_)
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file.files)


def test_a_refit_on_an_array_forgets_the_columns():
    rows, group = people()
    y = labels(group)
    model = CommitteeClassifier(unlabeled=None).fit(rows, y)
    X = np.column_stack([np.nan_to_num(rows["width"]), group])
    model.fit(X, y)
    assert model.predict(X).shape == (N,)
    with pytest.raises(AttributeError, match="on a data frame"):
        _ = model.columns_


def test_a_failed_fit_leaves_the_old_one():
    rows, group = people()
    y = labels(group)
    model = CommitteeClassifier(unlabeled=None).fit(rows, y)
    before = model.predict_proba(rows)
    broken = {**rows, "width": [*map(str, range(N - 1)), "wide"]}
    with pytest.raises(TableError):
        model.fit(broken, y)
    assert np.array_equal(model.predict_proba(rows), before)


def test_arrays_are_taken_as_they_are_with_a_word_about_scales():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) < 10, np.arange(60) % 2, -1)
    X = rng.normal(size=(60, 3)) * [1.0, 5e3, 1.0]
    with pytest.warns(ScaleWarning, match="column 1 of X is .* times that of"):
        CommitteeClassifier().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScaleWarning)
        CommitteeClassifier(options=GraphOptions(rescale="minmax")).fit(X, y)
        CommitteeClassifier().fit(X / [1.0, 50.0, 1.0], y)
        CommitteeClassifier().fit({"a": X[:, 0], "b": X[:, 1]}, y)


def test_the_command_and_the_estimator_say_the_same(tmp_path):
    pytest.importorskip("typer", reason="the command line needs the extra cli")
    from gdpa.cli.app import run

    rows, group = people()
    y = labels(group)
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*rows, "answer"])
        for i in range(N):
            cells = ["" if c[i] is None else c[i] for c in rows.values()]
            writer.writerow([*cells, y[i] or ""])
    out = tmp_path / "o.csv"
    assert run(["fit", str(tmp_path / "t.csv"), "-t", "answer", "-o", str(out), "-q"]) == 0
    with out.open(newline="") as file:
        found = list(csv.DictReader(file))
    model = CommitteeClassifier(unlabeled=None).fit(rows, y)
    assert [row["prediction"] for row in found] == model.transduction_.tolist()


def test_a_text_column_without_any_text_in_new_rows():
    rows, group = people()
    model = GraphClassifier().fit(rows, labels(group))
    new = {name: list(values[:3]) for name, values in rows.items()}
    new["note"] = [None, None, None]
    found = model.predict_proba(new)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def coordinates_and_codes(seed, n=800):
    """Two numbers that decide between eight regions, beside random short strings."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(size=(n, 2))
    region = np.floor(4 * place[:, 0]).astype(int) + 4 * (place[:, 1] > 0.5)
    letters = np.array(list("ABCDEFGHJKLMNPQRSTUVWXYZ"))
    table = {
        "code": ["".join(rng.choice(letters, 3)) for _ in range(n)],
        "name": [f"{rng.choice(letters)}{rng.integers(1000)} field" for _ in range(n)],
        "town": [f"town {i}" for i in rng.zipf(1.5, n) % 300],
        "north": place[:, 0],
        "east": place[:, 1],
    }
    return table, np.array([f"region {r}" for r in region], dtype=object)


@pytest.mark.parametrize("n_labels", [40, 160])
def test_random_short_strings_do_not_hide_numbers_that_decide(n_labels):
    from sklearn.ensemble import RandomForestClassifier

    table, truth = coordinates_and_codes(0)
    rng = np.random.default_rng(1)
    known = np.isin(np.arange(truth.size), rng.choice(truth.size, n_labels, replace=False))
    y = np.where(known, truth, None)
    model = CommitteeClassifier(unlabeled=None).fit(table, y)
    used = {plan.name for plan in model.columns_ if plan.encoding is not None}
    assert {"north", "east"} <= used
    assert not {"code", "name"} & used
    right = (model.transduction_ == truth)[~known].mean()
    numbers = {name: table[name] for name in ("north", "east")}
    alone = CommitteeClassifier(unlabeled=None).fit(numbers, y)
    assert right >= (alone.transduction_ == truth)[~known].mean() - 0.02
    X = np.column_stack(list(numbers.values()))
    forest = RandomForestClassifier(random_state=0).fit(X[known], truth[known])
    assert right >= (forest.predict(X) == truth)[~known].mean() - 0.05


def test_a_table_whose_labels_have_another_length_is_refused():
    table, truth = coordinates_and_codes(0, 60)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CommitteeClassifier(unlabeled=None).fit(table, truth[:50])


@pytest.mark.parametrize("rescale", ["minmax", "standard"])
@pytest.mark.parametrize("estimator", [GraphClassifier, CommitteeClassifier])
def test_frames_and_arrays_of_numbers_are_rescaled_alike(rescale, estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [1.0, 20.0, 0.3] + [0.0, 5.0, 2.0]
    y = np.where(np.arange(80) < 24, X[:, 0] + X[:, 2] > 2.0, -1)
    frame = {name: X[:, j] for j, name in enumerate("abc")}
    options = GraphOptions(rescale=rescale)
    models = [estimator(options=options).fit(given, y) for given in (X, frame)]
    shares = [model.predict_proba(given) for model, given in zip(models, (X, frame), strict=True)]
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-6)
    np.testing.assert_allclose(*(model.label_scores_ for model in models), atol=1e-6)
    if rescale == "standard":
        lengths = np.linalg.norm(models[1].ensemble_.first.graph.features, axis=1)
        np.testing.assert_allclose(lengths, 1.0)
