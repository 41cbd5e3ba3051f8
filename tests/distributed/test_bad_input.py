"""Input that people have: a clear error before long work, or the right answer."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from parquet_parts import clusters, content, fit, pa, pq, predictions, table_columns, write_parts

from gdpa.distributed.cluster import Workers, connect
from gdpa.distributed.folder import Folder
from gdpa.tables import TableError


def run(pattern, tmp_path, name="run", **options):
    options = {"scheduler": "synchronous", "id_column": "id", "n_parts": 2, **options}
    out = tmp_path / f"{name}-out"
    return fit(pattern, "y", work=tmp_path / f"{name}-work", out=out, **options), out


def rewrite(path, change):
    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.drop_columns(["f1"]),
            r"'f1' is missing in .*part-1\.parquet and double in .*part-0",
        ),
        (
            lambda t: t.append_column("more", t.column("f1")),
            r"'more' is double in .*part-1\.parquet and missing",
        ),
        (
            lambda t: t.set_column(1, "f1", t.column("f1").cast("float32")),
            r"column 'f1' is float in .*part-1\.parquet and double in .*part-0\.parquet",
        ),
        (
            lambda t: t.select(["f1", "f0", *t.column_names[2:]]),
            r"columns of .*part-1\.parquet are not in the same order",
        ),
        (
            lambda t: t.set_column(1, "f1", pa.array(np.where(np.arange(700) == 20, np.inf, 1.0))),
            r"part-1\.parquet, row 21, column 'f1': not a finite number",
        ),
        (
            lambda t: t.set_column(5, "id", pa.array(np.arange(700) * 7)),
            r"part-1\.parquet, row 1: identifier '0' in column 'id' already occurs in .*, row 1;",
        ),
        (
            lambda t: t.set_column(5, "id", pa.array([None, *range(10**6, 10**6 + 699)])),
            r"part-1\.parquet, row 1: the identifier in column 'id' is missing",
        ),
    ],
)
def test_parts_that_do_not_fit_are_named(parts, tmp_path, change, message):
    rewrite(tmp_path / "in" / "part-1.parquet", change)
    with pytest.raises(TableError, match=message):
        run(parts[0], tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"self_loop": 0.001}, r"self_loop=0\.001 .* at least 0\.01; .*omit it"),
        ({"self_loop": np.nan}, "self_loop=nan"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number"),
        ({"n_parts": 2.5}, r"n_parts=2\.5"),
        ({"n_workers": -1}, "n_workers=-1"),
        ({"recall": 0}, "recall=0"),
        ({"random_state": -1}, "random_state=-1"),
        ({"scale": "robst"}, "did you mean 'robust'"),
        ({"metric": "plan"}, "did you mean 'plain'"),
        ({"id_column": "ids"}, "has no column 'ids'; did you mean 'id'"),
        ({"drop": ["f0", "f1", "f2", "f3"]}, "has no column besides"),
    ],
)
def test_options_are_checked(parts, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(parts[0], tmp_path, **options)


def test_a_scheduler_that_does_not_answer_is_named():
    pytest.importorskip("distributed")
    address = "tcp://127.0.0.1:1"
    with (
        pytest.raises(ValueError, match=f"no scheduler responds at '{address}'"),
        connect(Workers(scheduler=address), timeout="1s"),
    ):
        pass


def test_target_and_files_are_checked(parts, tmp_path):
    common = {"work": tmp_path / "w", "out": tmp_path / "o", "scheduler": "synchronous"}
    with pytest.raises(TableError, match="has no target column 'z'"):
        fit(parts[0], "z", **common)
    with pytest.raises(TableError, match="no file matches"):
        fit(str(tmp_path / "nothing" / "*.parquet"), "y", **common)
    (tmp_path / "in" / "part-9.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(TableError, match=r"part-9\.parquet is not a readable Parquet file"):
        fit(parts[0], "y", **common)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([None], "no row has a label"),
        ([None, "a"], "the only class is 'a'"),
        ([f"name {i}" for i in range(300)], "look like numbers or names, not classes"),
    ],
)
def test_labels_that_are_no_classes(tmp_path, labels, message):
    X, truth, known = clusters(300, 2)
    columns = table_columns(X, truth, known)
    columns["y"] = pa.array((labels * 300)[:300])
    pattern = write_parts(tmp_path / "in", columns, [300])
    with pytest.raises(TableError, match=message):
        run(pattern, tmp_path)


def test_labels_of_other_kinds_keep_their_type(tmp_path):
    X, truth, known = clusters(500, 3)
    for kind, values in (
        ("int", pa.array(truth + 3, mask=~known)),
        ("float", pa.array(np.where(known, truth + 3.0, np.nan))),
        ("bool", pa.array(truth == 1, mask=~known)),
        ("words", pa.array(np.where(known, np.array(["", "x"])[truth], "?"))),
    ):
        columns = table_columns(X, truth, known)
        columns["y"] = values
        if kind == "words":
            columns["y"] = pa.array(np.where(known, np.array(["no", "yes"])[truth], "?"))
            columns["y"] = columns["y"].dictionary_encode()
        pattern = write_parts(tmp_path / kind, columns, [250, 250])
        result, out = run(pattern, tmp_path, kind, unlabeled="?", self_loop=0.1)
        assert result.labeled == known.sum()
        found = predictions(out).column("prediction")
        if kind != "words":
            assert found.type == values.type
        expected = {"int": truth + 3, "float": truth + 3.0, "bool": truth == 1}
        expected["words"] = np.array(["no", "yes"])[truth]
        assert (np.array(found.to_pylist())[known] == expected[kind][known]).all()


def test_an_empty_part_and_a_part_without_labels(parts, tmp_path):
    pattern, X, truth, known = parts
    first = tmp_path / "in" / "part-0.parquet"
    known = known.copy()
    known[:700] = False
    write_parts(tmp_path / "in", table_columns(X, truth, known), [700, 700, 400])
    _, out = run(pattern, tmp_path)
    assert predictions(out).num_rows == 1800
    pq.write_table(pq.read_table(first).slice(0, 0), tmp_path / "in" / "part-00.parquet")
    _, again = run(pattern, tmp_path, "empty")
    assert content(again) == content(out)
    right = (
        np.array(predictions(out).column("prediction").to_pylist()) == np.array(["a", "b"])[truth]
    )
    assert right.mean() > 0.9


def test_all_labels_and_a_class_in_one_part_only(parts, tmp_path):
    """Labels of three classes, all in the last part, the third class nowhere else."""
    pattern, X, truth, _ = parts
    truth = truth.copy()
    X = X.copy()
    X[-80:] += 40.0
    truth[-80:] = 2
    known = np.zeros(1800, dtype=bool)
    known[1400::7] = True
    write_parts(tmp_path / "in", table_columns(X, truth, known), [700, 700, 400])
    result, out = run(pattern, tmp_path)
    assert set(result.classes) == {"a", "b", "c"}
    predicted = np.array(predictions(out).column("prediction").to_pylist())
    assert (predicted[-80:] == "c").all()
    assert (predicted[:-80] != "c").all()
    assert (predicted == np.array(["a", "b", "c"])[truth]).mean() > 0.9


def test_missing_cells_are_filled_as_one_machine_fills_them(parts, tmp_path):
    pattern, X, truth, known = parts
    X = X.copy()
    X[5:1800:90, 1] = np.nan
    write_parts(tmp_path / "in", table_columns(X, truth, known), [700, 700, 400])
    result, out = run(pattern, tmp_path)
    right = (
        np.array(predictions(out).column("prediction").to_pylist()) == np.array(["a", "b"])[truth]
    )
    assert right.mean() > 0.9
    assert any("f1" in note and "missing" in note for note in result.notes)


def test_half_of_all_points_identical(tmp_path):
    X, truth, known = clusters(1600, 3)
    X[::2] = X[0]
    truth[::2] = 0
    pattern = write_parts(tmp_path / "in", table_columns(X, truth, known), [800, 800])
    result, out = run(pattern, tmp_path, n_parts=4)
    predicted = np.array(predictions(out).column("prediction").to_pylist())
    assert (predicted[::2] == "a").all()
    assert (predicted == np.array(["a", "b"])[truth]).mean() > 0.9
    assert result.unreached == 0


def test_columns_of_any_kind(tmp_path):
    X, truth, known = clusters(900, 2)
    rng = np.random.default_rng(0)
    columns = table_columns(X, truth, known)
    columns["colour"] = pa.array(np.array(["red", "green"])[truth ^ (rng.random(900) < 0.2)])
    columns["when"] = pa.array(np.datetime64("2024-01-01") + rng.integers(0, 300, 900))
    columns["empty"] = pa.nulls(900, pa.string())
    pattern = write_parts(tmp_path / "in", columns, [450, 450])
    result, out = run(pattern, tmp_path)
    right = (
        np.array(predictions(out).column("prediction").to_pylist()) == np.array(["a", "b"])[truth]
    )
    assert right.mean() > 0.8
    assert result.features >= 4
    assert any("empty" in note for note in result.notes)


def test_a_full_disk_is_named_and_the_run_goes_on_later(parts, tmp_path):
    pattern = parts[0]
    _, out = run(pattern, tmp_path, "whole")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, before[1]))
    try:
        with pytest.raises(OSError, match="the disk is full; free some space and run the same"):
            run(pattern, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    _, again = run(pattern, tmp_path)
    assert content(again) == content(out)


def test_work_that_does_not_fit_on_the_disk_is_refused(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(Folder, "free_bytes", lambda self: 1_000)
    with pytest.raises(OSError, match=r"needs about .* GB, but only 1e-06 GB are free"):
        run(parts[0], tmp_path)


def test_two_runs_in_one_folder(parts, tmp_path):
    def second(event):
        with pytest.raises(ValueError, match="another run is using"):
            run(parts[0], tmp_path)
        raise RuntimeError("seen")

    with pytest.raises(RuntimeError, match="seen"):
        run(parts[0], tmp_path, callback=second)


def test_a_worker_killed_while_the_cluster_starts_is_a_clear_error(tmp_path, monkeypatch, capsys):
    distributed = pytest.importorskip("distributed")
    from gdpa.cli.app import run

    def killed(**options):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", killed)
    pattern = write_parts(tmp_path / "in", table_columns(*clusters(60, 2)), [60])
    words = ["--target", "y", "--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    assert run(["distributed", "fit", str(pattern), *words]) == 2
    assert "did not start (Nanny failed to start.)" in capsys.readouterr().err
