"""New parts by a finished folder, and a subset of it as an ordinary classifier."""

from __future__ import annotations

import numpy as np
import pytest
from parquet_parts import (
    clusters,
    content,
    fit,
    pa,
    pq,
    predict,
    predictions,
    table_columns,
    write_parts,
)

from gdpa import GraphClassifier
from gdpa.distributed import export
from gdpa.tables import TableEncoder, TableError

SYNC = {"scheduler": "synchronous"}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A finished fit of 1,800 of 2,200 rows; the rest, and the truth of all."""
    folder = tmp_path_factory.mktemp("fitted")
    X, truth, known = clusters(2200, 4)
    columns = table_columns(X, truth, known)
    table = pa.table(columns)
    pattern = write_parts(folder / "in", table.slice(0, 1800), [900, 900])
    result = fit(
        pattern, "y", work=folder / "work", out=folder / "out", id_column="id", n_parts=3,
        recall=1.0, metric="plain", **SYNC,
    )  # fmt: skip
    new = write_parts(folder / "new", table.slice(1800).drop_columns(["y"]), [150, 250])
    return folder, result, new, table, truth


@pytest.mark.slow
def test_new_rows_get_the_labels_of_one_machine(fitted, tmp_path):
    folder, result, new, table, truth = fitted
    made = predict(
        new, work=folder / "work", out=tmp_path / "out", id_column="id", class_probabilities=True,
        **SYNC,
    )  # fmt: skip
    found = predictions(tmp_path / "out")
    assert found.column("id").to_pylist() == table.column("id").to_pylist()[1800:]
    assert made.rows == 400
    assert sum(made.predicted.values()) == 400
    names = [f"f{j}" for j in range(4)]
    rows = table.select(names)
    encoder = TableEncoder().fit(rows.slice(0, 1800))
    model = GraphClassifier(
        n_neighbors=10, self_loop=result.self_loop, label_weight=np.inf, unlabeled=None
    )
    y = np.array(table.column("y").to_pylist()[:1800], dtype=object)
    model.fit(encoder.transform(rows.slice(0, 1800)), y)
    shares = model.predict_proba(encoder.transform(rows.slice(1800)))
    expected = model.classes_[shares.argmax(axis=1)]
    predicted = np.array(found.column("prediction").to_pylist())
    assert (predicted == expected).mean() > 0.99
    assert (predicted == np.array(["a", "b"])[truth[1800:]]).mean() > 0.9
    assert not (tmp_path / "out" / "_work").exists()
    again = predict(new, work=folder / "work", out=tmp_path / "out", id_column="id", **SYNC)
    assert again.predicted == made.predicted


def test_fitted_rows_keep_their_predictions(fitted, tmp_path):
    folder, *_ = fitted
    predict(
        f"{folder}/in/*.parquet", work=folder / "work", out=tmp_path / "out", id_column="id", **SYNC
    )
    before, after = predictions(folder / "out"), predictions(tmp_path / "out")
    assert before.column("prediction").to_pylist() == after.column("prediction").to_pylist()


def test_refusals(fitted, parts, tmp_path):
    folder, _, new, table, _ = fitted
    with pytest.raises(ValueError, match="has no finished fit"):
        predict(new, work=tmp_path / "nothing", out=tmp_path / "out", **SYNC)
    bad = write_parts(tmp_path / "bad", table.slice(0, 50).drop_columns(["f2"]), [50])
    with pytest.raises(TableError, match="has no column 'f2'"):
        predict(bad, work=folder / "work", out=tmp_path / "out", **SYNC)
    other = table.slice(0, 50).set_column(0, "f0", pa.array(["x"] * 50))
    with pytest.raises(TableError, match=r"column 'f0' is string in .*, but was double in the fit"):
        predict(
            write_parts(tmp_path / "text", other, [50]), work=folder / "work", out=tmp_path / "o",
            **SYNC,
        )  # fmt: skip
    with pytest.raises(ValueError, match="n_rows=1 must be"):
        export(folder / "work", tmp_path / "m.npz", n_rows=1)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["plain", "importance"])
def test_a_subset_is_an_ordinary_classifier(fitted, parts, tmp_path, metric):
    folder, _, new, table, truth = fitted
    work = tmp_path / "work"
    fit(
        f"{folder}/in/*.parquet", "y", work=work, out=tmp_path / "all", id_column="id", n_parts=2,
        metric=metric, **SYNC,
    )  # fmt: skip
    export(work, tmp_path / "model.npz", n_rows=900)
    model = GraphClassifier.load(tmp_path / "model.npz")
    assert model.graph_.shape == (900, 900)
    rows = table.select([f"f{j}" for j in range(4)]).slice(1800)
    predicted = model.predict(rows)
    assert (predicted == np.array(["a", "b"])[truth[1800:]]).mean() > 0.9
    predict(new, work=work, out=tmp_path / "out", id_column="id", **SYNC)
    whole = np.array(predictions(tmp_path / "out").column("prediction").to_pylist())
    assert (predicted == whole).mean() > 0.93
    assert content(tmp_path / "out")
    assert pq.read_table(folder / "in").num_rows == 1800
