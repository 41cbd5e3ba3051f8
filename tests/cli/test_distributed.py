"""``gdpa distributed``: fit, predict, export."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gdpa.cli.app import run as main

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("distributed")


@pytest.fixture
def parts(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)
    X = 3.0 * truth[:, None] + rng.normal(size=(600, 3))
    known = rng.random(600) < 0.1
    table = pa.table(
        {
            **{f"f{j}": X[:, j] for j in range(3)},
            "y": pa.array(np.array(["no", "yes"])[truth], mask=~known),
        }
    )
    pq.write_table(table.slice(0, 400), tmp_path / "a.parquet")
    pq.write_table(table.slice(400), tmp_path / "b.parquet")
    return tmp_path, truth


def test_fit_predict_export(parts, capsys):
    folder, truth = parts
    common = ["--work", f"{folder}/work", "--scheduler", "synchronous"]
    data = f"{folder}/*.parquet"
    fit = ["distributed", "fit", data, "--target", "y", *common, "--out", f"{folder}/out"]
    assert main([*fit, "--json", "--self-loop", "0.1"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows"] == 600
    assert said["converged"]
    assert 0.9 < said["accuracy"] <= 1.0
    found = pq.read_table(folder / "out" / "a.parquet")
    assert found.column_names == ["row", "prediction", "probability"]
    right = np.array(found.column("prediction").to_pylist()) == np.array(["no", "yes"])[truth[:400]]
    assert right.mean() > 0.95
    more = ["--out", f"{folder}/more", "--all-classes", "--quiet"]
    assert main(["distributed", "predict", f"{folder}/b.parquet", *common, *more]) == 0
    assert pq.read_table(folder / "more" / "b.parquet").num_rows == 200
    model = f"{folder}/model.npz"
    assert main(["distributed", "export", "--work", f"{folder}/work", "--model", model]) == 0
    capsys.readouterr()
    assert main(["predict", model, f"{folder}/b.parquet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 201


def test_progress_says_stage_parts_and_estimate(parts, capsys):
    folder, _ = parts
    code = main(
        ["distributed", "fit", f"{folder}/*.parquet", "--target", "y", "--work", f"{folder}/work",
         "--out", f"{folder}/out", "--scheduler", "synchronous", "--self-loop", "0.1"]
    )  # fmt: skip
    assert code == 0
    lines = capsys.readouterr().err
    for stage in ("sample rows", "encode rows", "search neighbours", "build graph", "final scores"):
        assert f"\n{stage}: " in lines
    assert "(2 of 2)" in lines
    assert "held-out accuracy: " in lines
    assert "`gdpa fit` is usually more accurate" in lines


def test_errors_are_one_line(parts, capsys):
    folder, _ = parts
    base = ["distributed", "fit", f"{folder}/*.parquet", "--work", f"{folder}/w"]
    code = main([*base, "--target", "why", "--out", f"{folder}/o", "--scheduler", "synchronous"])
    assert code == 2
    assert "has no target column 'why'" in capsys.readouterr().err
    code = main(
        [*base, "--target", "y", "--out", f"{folder}/o", "--self-loop", "0.001",
         "--scheduler", "synchronous"]
    )  # fmt: skip
    assert code == 2
    assert "self_loop=0.001" in capsys.readouterr().err
