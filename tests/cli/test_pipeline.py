"""fit, predict and query, one after the other."""

from __future__ import annotations

import csv
import io

import pytest


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.slow
def test_fit_predict_query_in_a_pipeline(process, table, truth, tmp_path):
    ended = process(
        *("fit", "-", "--target", "answer", "--id", "name", "--model", "m.npz", "--out", "-"),
        text=table.read_text(),
    )
    assert ended.code == 0, ended.err
    rows = rows_of(ended.out)
    assert [r["prediction"] for r in rows] == truth.tolist()
    assert [r["name"] for r in rows] == [f"r{i}" for i in range(60)]
    assert sum(r["known"] == "yes" for r in rows) == 10
    assert all(0.5 <= float(r["probability"]) <= 1 for r in rows)
    assert "filled with the median" in ended.err
    again = process("predict", "m.npz", "-", "--quiet", text=table.read_text())
    assert [r["prediction"] for r in rows_of(again.out)] == truth.tolist()
    assert again.err == ""
    asked = process("query", "m.npz", "-n", "3", "--json", "--quiet")
    chosen = asked.document["rows"]
    assert len(chosen) == 3
    known = {f"r{i}" for i in range(10)}
    assert not known & {c["row"] for c in chosen}
    assert all(c["probability"] >= c["runner_up_probability"] for c in chosen)


@pytest.mark.slow
def test_a_table_without_labels_is_asked_about_too(process, table, truth):
    lines = table.read_text().splitlines()
    at = lines[0].split(",").index("answer")
    bare = [",".join(cell for j, cell in enumerate(line.split(",")) if j != at) for line in lines]
    (table.parent / "bare.csv").write_text("\n".join(bare) + "\n")
    asked = process("query", "bare.csv", "--target", "answer", "--id", "name", "-n", "4", "--quiet")
    assert asked.code == 0, asked.err
    rows = [int(r["name"][1:]) for r in rows_of(asked.out)]
    assert len(set(rows)) == 4
    assert set(truth[rows]) == set(truth)
    refused = process("query", str(table), "--target", "answer")
    assert refused.code == 2
    assert "10 rows have a label" in refused.err
