"""Beside a saved model: its card, the labels it doubts, and the check of new rows."""

from __future__ import annotations

import csv

import numpy as np
import pytest


@pytest.fixture
def table(tmp_path):
    """Two groups; the first three given labels are wrong."""
    rng = np.random.default_rng(0)
    group = np.arange(120) % 2
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "v", "w", "answer"])
        for i, g in enumerate(group):
            label = ("no", "yes")[1 - g if i < 3 else g] if i < 60 else ""
            writer.writerow([f"r{i}", rng.normal() + 6 * g, rng.normal(), label])
    return "t.csv"


def test_doubted_labels_are_listed(command, table, tmp_path):
    args = ("fit", table, "-t", "answer", "--id", "name", "-o", "p.csv")
    ended = command(*args, "--doubts", "d.csv", "--report", "r.html")
    assert ended.code == 0, ended.err
    assert "3 given labels look wrong to the model" in ended.err
    rows = list(csv.DictReader((tmp_path / "d.csv").open()))
    assert sorted(row["name"] for row in rows) == ["r0", "r1", "r2"]
    assert rows[0].keys() >= {"label", "prediction", "probability of label"}
    page = (tmp_path / "r.html").read_text()
    assert "3 of the given labels may be wrong" in page
    document = command(*args, "--json", "-q").document
    assert document["doubted_labels"] == 3


def test_a_card_stands_beside_the_model(command, table, tmp_path):
    ended = command("fit", table, "-t", "answer", "--id", "name", "--model", "m.npz", "-o", "p.csv")
    assert ended.code == 0, ended.err
    card = (tmp_path / "m-card.md").read_text()
    stated = next(line for line in ended.err.splitlines() if line.startswith("accuracy: "))
    assert f"- {stated}" in card
    assert "120 rows, 60 labels, target answer" in card
    assert "| yes | 31 |" in card  # two of the wrong labels are yes, one is no
    assert "| v | number | 0 |" in card
    assert "numpy" in card


def test_new_rows_unlike_the_fit_are_counted(command, table, tmp_path):
    assert command("fit", table, "-t", "answer", "--id", "name", "--model", "m.npz", "-q").code == 0
    lines = ["name,v,w", *(f"n{i},{3 + (i % 7 - 3)},0.1" for i in range(9)), "odd,1000,0"]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    ended = command("predict", "m.npz", "new.csv", "-o", "p.csv")
    assert ended.code == 0, ended.err
    assert "1 rows are unlike those of the fit, first: odd" in ended.err
    document = command("predict", "m.npz", "new.csv", "--json", "-q").document
    assert document["unlike_fit"] == 1
    assert any("first row 10: '1000'" in note for note in document["drift"])


def test_a_metric_decides_predictions_and_is_kept_in_the_model(command, tmp_path):
    rng = np.random.default_rng(1)
    group = (np.arange(300) % 10 == 0).astype(int)
    lines = ["v,w,answer"]
    for i, g in enumerate(group):
        label = ("usual", "rare")[g] if i < 200 else ""
        lines.append(f"{rng.normal() + 1.3 * g},{rng.normal()},{label}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    fit = ("fit", "t.csv", "-t", "answer", "-o", "p.csv")
    plain = command(*fit, "--json", "-q").document
    ended = command(*fit, "--metric", "balanced", "--model", "m.npz")
    assert ended.code == 0, ended.err
    found = command(*fit, "--metric", "balanced", "--json", "-q").document
    assert found["predicted"]["rare"] > plain["predicted"]["rare"]
    assert found["metric"] == "balanced"
    value = found["evaluation"]["balanced_accuracy"]
    assert value > plain["evaluation"]["balanced_accuracy"]
    assert f"balanced accuracy: {100 * value:.1f} %" in ended.err
    (tmp_path / "new.csv").write_text("\n".join([lines[0], *lines[201:]]))
    again = command("predict", "m.npz", "new.csv", "--json", "-q").document
    assert again["predicted"]["rare"] == found["predicted"]["rare"]
    assert command(*fit, "--metric", "balance").code == 2
