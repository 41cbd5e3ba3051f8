"""gdpa fit and predict with --edges: rows that are linked."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def network(tmp_path):
    """Two groups, linked within; a column of noise and one that says a little; names with zeros."""
    rng = np.random.default_rng(0)
    n = 60
    group = np.arange(n) % 2
    names = [f"{i:03d}" for i in rng.permutation(n)]
    side = ["left", "right"]
    lines = ["id,size,noise,side"]
    for i in range(n):
        known = side[group[i]] if i < 16 else ""
        lines.append(f"{names[i]},{group[i] + rng.normal():.3f},{rng.normal():.3f},{known}")
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("\n".join(lines[: n - 4 + 1]) + "\n")
    new = tmp_path / "new.csv"
    new.write_text("\n".join(lines[:1] + lines[n - 4 + 1 :]) + "\n")
    within, across = [], []
    for i in range(n):
        # Neighbours in a ring of the own group, and one more.
        for j in ((i + 2) % n, (i + 10) % n):
            (within if max(i, j) < n - 4 else across).append(f"{names[i]} {names[j]}")
    edges = tmp_path / "edges.txt"
    edges.write_text("\n".join(within) + "\n")
    later = tmp_path / "later.txt"
    later.write_text("\n".join(across) + "\n")
    return nodes, edges, new, later, dict(zip(names, (side[g] for g in group), strict=True))


def test_fit_and_predict_by_names(command, network, tmp_path):
    nodes, edges, new, later, truth = network
    model, page = tmp_path / "m.npz", tmp_path / "r.html"
    fitted = command(
        *("fit", nodes, "--target", "side", "--id", "id", "--edges", edges, "--json"),
        *("--out", tmp_path / "p.csv", "--model", model, "--report", page),
    )
    assert fitted.code == 0, fitted.err
    told = fitted.document
    assert set(told["members"]) >= {"links", "smoothed", "links and features", "neighbours"}
    assert told["graph_share"] > 0.5
    assert told["edges"] == len(edges.read_text().split()) // 2
    rows = rows_of((tmp_path / "p.csv").read_text())
    assert [row["id"] for row in rows] == [n.split(",")[0] for n in nodes.read_text().split()[1:]]
    assert all(0 <= float(row["links"]) <= 1 for row in rows)
    assert np.mean([row["prediction"] == truth[row["id"]] for row in rows]) > 0.9
    text = page.read_text()
    assert "averaged over links" in text
    assert "Links account for" in text
    assert f"--edges {edges}" in text
    by_links = command("predict", model, new, "--edges", later, "--out", "-")
    assert by_links.code == 0, by_links.err
    rows = rows_of(by_links.out)
    assert [row["prediction"] for row in rows] == [truth[row["id"]] for row in rows]
    assert min(float(row["links"]) for row in rows) > 0
    alone = command("predict", model, new, "--out", "-")
    assert alone.code == 0
    assert "links" not in rows_of(alone.out)[0]


def test_row_numbers_are_names_without_a_column_of_them(command, tmp_path):
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.write_text(
        "v,y\n" + "".join(f"{i % 2},{'ab'[i % 2] if i < 10 else ''}\n" for i in range(20))
    )
    edges.write_text("".join(f"{i},{i + 2},1.5\n" for i in range(1, 19)))
    ended = command("fit", nodes, "--target", "y", "--edges", edges, "--json", "--out", "-")
    assert ended.code == 0, ended.err
    edges.write_text("0,1\n")
    ended = command("fit", nodes, "--target", "y", "--edges", edges)
    assert ended.code == 2
    assert "'0'" in ended.err
    assert "'1' to '20'" in ended.err


def test_what_is_wrong_with_edges_is_said(command, network, tmp_path):
    nodes, edges, *_ = network
    bad = tmp_path / "bad.csv"
    bad.write_text(edges.read_text() + "000 nobody\n")
    base = ("fit", nodes, "--target", "side", "--id", "id", "--out", tmp_path / "p.csv")
    ended = command(*base, "--edges", bad)
    assert ended.code == 2
    assert "'nobody'" in ended.err
    assert "--skip-unknown" in ended.err
    assert not (tmp_path / "p.csv").exists()
    ended = command(*base, "--edges", bad, "--skip-unknown", "--json")
    assert ended.code == 0
    assert any("1 edges to 1 names" in note for note in ended.document["notes"])
    assert command(*base, "--edges", edges, "--duplicates", "mean").code == 2
    assert command(*base, "--edges", tmp_path / "missing.csv").code == 2
    ended = command(*base[:-1], edges, "--edges", edges)
    assert ended.code == 2
    assert "overwrite the input" in ended.err


def test_new_links_need_a_model_that_knows_names_and_links(command, network, tmp_path):
    nodes, _, new, later, _ = network
    model = tmp_path / "m.npz"
    assert command("fit", nodes, "--target", "side", "--id", "id", "--model", model).code == 0
    ended = command("predict", model, new, "--edges", later)
    assert ended.code == 2
    assert "fitted with --edges" in ended.err
    numbered = tmp_path / "numbers.txt"
    numbered.write_text("1 3\n2 4\n")
    made = command(
        "fit", nodes, "--target", "side", "--drop", "id", "--edges", numbered, "--model", model
    )
    assert made.code == 0, made.err
    ended = command("predict", model, new, "--edges", later)
    assert ended.code == 2
    assert "--id" in ended.err


def test_ids_are_in_the_model_file(command, network, tmp_path):
    nodes, edges, *_ = network
    model = tmp_path / "m.npz"
    fitted = command(
        "fit", nodes, "--target", "side", "--id", "id", "--edges", edges, "--model", model
    )
    assert fitted.code == 0, fitted.err
    from gdpa import CommitteeClassifier

    table = CommitteeClassifier.load(model).extra_["table"]
    assert table["ids"] == [line.split(",")[0] for line in nodes.read_text().split()[1:]]
    assert json.dumps(table)
