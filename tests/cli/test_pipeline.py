"""fit, predict and query, one after the other."""

from __future__ import annotations

import csv
import io


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


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
    lead = [c["probability"] - c["runner_up_probability"] for c in chosen]
    assert lead == sorted(lead)
