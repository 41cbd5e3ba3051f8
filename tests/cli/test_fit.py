"""``gdpa fit`` and ``predict`` on tables as people have them."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest

from gdpa.tables import read_table


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def grouped(n=90, labels=10, seed=0):
    """Columns of every kind that tell two groups apart, and the target."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    return {
        "id": [f"r{i}" for i in range(n)],
        "width": [f"{v:.3f}" for v in rng.normal(size=n) + 5 * group],
        "price": [f"{1000 * v:,.2f}" for v in rng.random(n) + group],
        "colour": [("red", "blue")[g] if rng.random() < 0.9 else "green" for g in group],
        "day": [
            f"{1 + int(d)}.{1 + g * 6}.2020"
            for d, g in zip(rng.integers(0, 27, n), group, strict=True)
        ],
        "note": [
            ("a quiet river, no ", "a loud engine, no ")[g] + str(rng.integers(1000)) for g in group
        ],
        "answer": [("no", "yes")[g] if i < labels else "" for i, g in enumerate(group)],
    }


def write(path, columns, delimiter=","):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.fixture
def people(tmp_path):
    write(tmp_path / "t.csv", grouped())
    return tmp_path / "t.csv"


TRUTH = [("no", "yes")[i % 2] for i in range(90)]


def test_every_decision_is_in_the_document(command, people):
    ended = command("fit", people, "-t", "answer", "--compare", "--json", "--out", "p.csv", "-q")
    assert ended.code == 0, ended.err
    kinds = {c["name"]: c["kind"] for c in ended.document["columns"]}
    assert kinds == {
        "id": "left out",
        "width": "number",
        "price": "number",
        "colour": "category",
        "day": "date",
        "note": "text",
    }
    assert ended.document["labeled"] == 10
    assert set(ended.document["baseline"]) == {
        *("gdpa", "logistic_regression", "random_forest", "gradient_boosting"),
        *("majority", "labels", "words"),
    }
    assert ended.document["baseline"]["gdpa"] == ended.document["held_out_accuracy"]
    assert ended.document["baseline"]["labels"] == ended.document["held_out"]
    assert ended.document["baseline"]["majority"] == pytest.approx(0.5, abs=0.2)
    assert set(ended.document["seconds"]) >= {"starting", "reading", "encoding", "checking"}


def test_baselines_are_fitted_only_when_asked_for(command, people):
    ended = command("fit", people, "-t", "answer", "--json", "--out", "p.csv")
    assert ended.document["baseline"] is None
    assert ended.document["held_out"] == ended.document["labeled"]
    assert 0.0 <= ended.document["held_out_accuracy"] <= 1.0
    assert "logistic regression" not in ended.err


def test_a_report_compares_once(command, people, monkeypatch):
    monkeypatch.setattr("gdpa.report.data.baselines", lambda *_: pytest.fail("compared twice"))
    ended = command("fit", people, "-t", "answer", "--report", "r.html", "--json", "--out", "p.csv")
    assert ended.code == 0, ended.err
    assert "logistic regression" in ended.document["baseline"]["words"]
    assert "largest class" in Path("r.html").read_text()


def test_terminal_report_document_and_python_show_the_same_numbers(command, people, tmp_path):
    import html

    import gdpa
    from gdpa.tables import read_target

    rng = np.random.default_rng(0)
    width = rng.normal(size=90) + np.arange(90) % 2
    answers = grouped(labels=40)["answer"]
    write(people, {"width": width.tolist(), "depth": rng.normal(size=90), "answer": answers})
    args = ("fit", people, "-t", "answer", "--out", "p.csv", "--model", "m.npz", "--compare")
    ended = command(*args, "--report", "r.html")
    assert ended.code == 0, ended.err
    document = command(*args, "--json", "-q").document
    page = html.unescape((tmp_path / "r.html").read_text()).replace("\n", "")
    loaded = gdpa.CommitteeClassifier.load(tmp_path / "m.npz")
    table = read_table(str(people))
    labels, _ = read_target(table, "answer")
    fitted = gdpa.CommitteeClassifier(unlabeled=None).fit(table.without(["answer"]), labels)
    accuracy = fitted.accuracy_
    assert 0.55 < accuracy.estimate < 0.95
    words = f"accuracy: {accuracy}"
    assert words in ended.err
    assert repr(fitted).endswith(words)
    assert repr(loaded).endswith(words)
    assert str(accuracy) in html.unescape(fitted._repr_html_())
    assert f"{100 * accuracy.estimate:.1f} %" in ended.err
    assert f"gdpa {100 * accuracy.estimate:.1f} %" in ended.err  # beside the other classifiers
    shown = [accuracy.estimate, accuracy.low, accuracy.high]
    assert [document["evaluation"][name] for name in ("accuracy", "low", "high")] == shown
    assert document["held_out_accuracy"] == accuracy.estimate
    assert document["held_out"] == document["evaluation"]["labels"] == accuracy.n_labels == 40
    for share in shown:
        assert f"{100 * share:.1f} %" in page
    assert "measured on 40 held-out labels" in page
    found = fitted.evaluate()
    assert document["evaluation"] == found.plain()
    for name, value in found.averages()[1:]:
        assert f'>{name}</th><td class="n">{value}</td>' in page
        assert value in repr(found)
        assert value in html.unescape(found._repr_html_())
    for score in found.per_class:
        for value in score.percentages():
            assert f">{value}</td>" in page


def test_without_held_out_labels_no_row_is_sure(command, tmp_path):
    write(tmp_path / "few.csv", grouped(labels=2))
    ended = command("fit", "few.csv", "-t", "answer", "--model", "m.npz", "--out", "p.csv")
    assert ended.code == 0, ended.err
    rows = rows_of((tmp_path / "p.csv").read_text())
    assert all((row["unsure"] == "yes") == (row["known"] == "no") for row in rows)
    ended = command("predict", "m.npz", "few.csv", "--sure", "0", "--out", "new.csv")
    assert {row["unsure"] for row in rows_of((tmp_path / "new.csv").read_text())} == {"yes"}


def test_predictions_have_probability_margin_and_the_columns_of_the_input(
    command, people, tmp_path
):
    assert (
        command("fit", people, "-t", "answer", "--keep", "-o", "p.csv", "--model", "m.npz").code
        == 0
    )
    rows = rows_of((tmp_path / "p.csv").read_text())
    given = rows_of(people.read_text())
    assert [row["prediction"] for row in rows] == TRUTH
    for row, before in zip(rows, given, strict=True):
        assert row["note"] == before["note"]
        assert row["price"] == before["price"]
        assert float(row["width"]) == float(before["width"])
        p, margin = float(row["probability"]), float(row["margin"])
        assert margin == pytest.approx(2 * p - 1, abs=2e-4)  # two classes
    again = command("predict", "m.npz", people, "--keep", "-q")
    assert again.code == 0, again.err
    assert [row["prediction"] for row in rows_of(again.out)] == TRUTH
    assert list(rows_of(again.out)[0])[:7] == list(given[0])


def test_predictions_of_an_earlier_run_are_no_features(command, people, tmp_path):
    assert command("fit", people, "-t", "answer", "--keep", "--out", "first.csv").code == 0
    again = command("fit", "first.csv", "-t", "answer", "--keep", "--out", "second.csv", "--json")
    used = {column["name"] for column in again.document["columns"]}
    assert not used & {"prediction", "probability", "margin", "unsure", "known"}
    assert any("earlier run: 'prediction'" in note for note in again.document["notes"])
    assert (tmp_path / "second.csv").read_text() == (tmp_path / "first.csv").read_text()


def test_columns_are_overridden_by_name(command, people):
    fit = ("fit", people, "-t", "answer", "--json", "-q", "--out", "p.csv")
    ended = command(*fit, "--column", "note=drop", "--column", "width=category")
    kinds = {c["name"]: c["kind"] for c in ended.document["columns"]}
    assert (kinds["note"], kinds["width"]) == ("left out", "category")
    for wrong, words in (
        ("note=words", "KIND one of"),
        ("note", "NAME=KIND"),
        ("nte=text", "'note'"),
    ):
        ended = command(*fit, "--column", wrong)
        assert ended.code == 2
        assert words in ended.document["message"]


def test_other_delimiters_encodings_and_decimal_commas_say_so(command, tmp_path):
    columns = grouped()
    columns["width"] = [w.replace(".", ",") for w in columns["width"]]
    columns["note"] = [n + " \u00e9t\u00e9" for n in columns["note"]]
    write(tmp_path / "s.csv", columns, delimiter=";")
    raw = (tmp_path / "s.csv").read_text()
    (tmp_path / "s.csv").write_bytes(raw.encode("cp1252"))
    ended = command("fit", "s.csv", "-t", "answer", "-o", "p.csv")
    assert ended.code == 0, ended.err
    for words in ("delimiter is a semicolon", "Windows-1252", "'width': number (decimal comma)"):
        assert words in ended.err
    rows = rows_of((tmp_path / "p.csv").read_text())
    assert [row["prediction"] for row in rows] == TRUTH


def test_a_model_reads_numbers_as_the_table_of_fit_wrote_them(command, tmp_path):
    rng = np.random.default_rng(0)
    group = np.arange(60) % 2
    value = 1000 * (1 + group) + rng.integers(0, 100, 60)
    text = [f"{v // 1000}.{v % 1000:03d},5" for v in value]  # 1.234,5
    label = [("a", "b")[g] if i < 12 else "" for i, g in enumerate(group)]
    write(tmp_path / "t.csv", {"v": text, "y": label}, delimiter=";")
    assert command("fit", "t.csv", "-t", "y", "--model", "m.npz", "-q").code == 0
    # Alone, 1.050 could be a plain number; to this model it is a thousand and fifty.
    (tmp_path / "n.csv").write_text("v\n1.050\n2.050\n")
    ended = command("predict", "m.npz", "n.csv", "-q")
    assert [row["prediction"] for row in rows_of(ended.out)] == ["a", "b"]


def test_cells_of_the_input_stay_and_computed_ones_are_escaped_on_request(command, tmp_path):
    n = 40
    group = np.arange(n) % 2
    evil = [f'=HYPERLINK("http://x/{i}")' if i % 3 else f"@SUM({i})" for i in range(n)]
    label = [("-a", "+5")[g] if i < 10 else "" for i, g in enumerate(group)]
    columns = {"name": evil, "v": np.random.default_rng(0).normal(size=n) + 9 * group, "y": label}
    write(tmp_path / "t.csv", columns)
    fit = ("fit", "t.csv", "-t", "y", "--id", "name", "-q", "-o", "p.csv")
    assert command(*fit).code == 0
    rows = rows_of((tmp_path / "p.csv").read_text())
    assert [row["name"] for row in rows] == evil
    assert {row["prediction"] for row in rows} == {"-a", "+5"}
    assert command(*fit, "--escape-formulas").code == 0
    rows = rows_of((tmp_path / "p.csv").read_text())
    assert [row["name"] for row in rows] == evil
    assert {row["prediction"] for row in rows} == {"'-a", "+5"}  # a number runs nothing


@pytest.mark.parametrize("name", ["p.tsv", "p.parquet", "p.feather", "p.xlsx", "p.jsonl"])
def test_the_extension_decides_the_format(command, tmp_path, name):
    write(tmp_path / "t.csv", grouped())
    fit = ("fit", "t.csv", "-t", "answer", "--keep", "--id", "id", "-q", "--out")
    assert command(*fit, "p.csv").code == 0
    assert command(*fit, name).code == 0
    wanted = read_table(tmp_path / "p.csv", as_text=frozenset(["id"]))
    found = read_table(tmp_path / name, as_text=frozenset(["id"]))
    assert found.names == wanted.names
    for column in ("id", "width", "colour", "note", "prediction"):
        assert found.column(column).cells() == wanted.column(column).cells()
    assert (tmp_path / name).read_bytes() != (tmp_path / "p.csv").read_bytes()


def test_an_unknown_extension_is_refused_before_the_fit(command, tmp_path, refused):
    write(tmp_path / "t.csv", grouped())
    refused(
        command("fit", "t.csv", "-t", "answer", "--out", "p.docx"), "cannot be written as .docx"
    )
    assert not (tmp_path / "p.docx").exists()


def test_a_class_called_none_is_kept(command, tmp_path):
    columns = grouped(labels=30)
    columns["answer"] = ["None" if cell == "no" else cell for cell in columns["answer"]]
    write(tmp_path / "t.csv", columns)
    ended = command("fit", "t.csv", "-t", "answer", "--out", "p.csv")
    assert "15 cells 'None' are read as a class; use --unlabeled None" in ended.err
    assert "30 of 90 rows had a label" in ended.err
    rows = rows_of((tmp_path / "p.csv").read_text())
    right = sum((row["prediction"] == "None") == (i % 2 == 0) for i, row in enumerate(rows))
    assert right > 80


def test_notes_about_a_wide_table_are_summarised(command, tmp_path):
    columns = grouped() | {f"same {j}": ["1"] * 90 for j in range(200)}
    write(tmp_path / "wide.csv", columns)
    ended = command("fit", "wide.csv", "-t", "answer", "--out", "p.csv")
    assert ended.code == 0, ended.err
    assert "200 columns ignored: " in ended.err
    assert len([line for line in ended.err.splitlines() if "same" in line]) <= 2
    document = command("fit", "wide.csv", "-t", "answer", "--json", "--out", "p.csv").document
    assert len(document["columns"]) == len(columns) - 1


def test_the_summary_lists_all_classes(command, tmp_path):
    n, k = 240, 12
    group = np.arange(n) % k
    v = np.random.default_rng(0).normal(size=n, scale=0.1) + group
    label = [f"class{g}" if i < 60 else "" for i, g in enumerate(group)]
    write(tmp_path / "t.csv", {"v": v, "w": v**2, "y": label})
    ended = command("fit", "t.csv", "-t", "y", "-o", "p.csv")
    for c in range(k):
        assert f"class{c} " in ended.err


def test_hostile_headers_are_survived_or_refused_in_one_line(command, tmp_path):
    body = "".join(f"{i},{np.sin(i):.3f},{'ab'[i % 2] if i < 12 else ''}\n" for i in range(40))
    for header, code in (
        ("", 0),
        ("x" * 10_000, 0),
        ("a\x1b[31m\x07", 0),
        ("=cmd()", 0),
        ("v", 2),
    ):
        (tmp_path / "t.csv").write_text(f"{header},v,y\n{body}")
        ended = command("fit", "t.csv", "-t", "y", "-o", "p.csv", "--report", "r.html", "--keep")
        assert ended.code == code, (header[:20], ended.err[-500:])
        assert "\x1b" not in ended.err
        assert max(map(len, ended.err.splitlines())) < 500


@pytest.mark.slow
@pytest.mark.parametrize("known", ["20 a class", "a third"])
def test_penguins(command, tmp_path, known):
    home = Path(os.environ.get("GDPA_DATA_HOME", "")) / "tables" / "penguins.csv"
    if not home.is_file():
        pytest.skip("needs penguins.csv in $GDPA_DATA_HOME/tables")
    rows = rows_of(home.read_text())
    truth = np.array([row["species"] for row in rows])
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        given = np.zeros(truth.size, dtype=bool)
        if known == "a third":
            given[rng.permutation(truth.size)[: truth.size // 3]] = True
        else:
            for c in np.unique(truth):
                given[rng.permutation(np.flatnonzero(truth == c))[:20]] = True
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        columns["species"] = np.where(given, truth, "").tolist()
        write(tmp_path / "p.csv", columns)
        ended = command("fit", "p.csv", "-t", "species", "-o", "o.csv", "-q")
        assert ended.code in (0, 1), ended.err
        found = np.array([row["prediction"] for row in rows_of((tmp_path / "o.csv").read_text())])
        shares.append((found == truth)[~given].mean())
    assert np.mean(shares) >= 0.96


def test_a_solver_reports_its_own_accuracy(command, tmp_path):
    """Half of breast cancer is labelled; the paper's algorithm predicts one class."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = data.target_names[data.target]
    known = np.random.default_rng(0).permutation(names.size) % 2 == 0
    columns = {f"c{j}": data.data[:, j].tolist() for j in range(10)}
    columns["class"] = [str(c) if k else "" for c, k in zip(names, known, strict=True)]
    write(tmp_path / "bc.csv", columns)
    ended = command(
        "fit", tmp_path / "bc.csv", "--target", "class", "--method", "gdpa",
        "--out", "p.csv", "--report", "r.html", "--json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert max(ended.document["predicted"].values()) == (~known).sum()
    largest = float(np.unique(names[known], return_counts=True)[1].max() / known.sum())
    accuracy = ended.document["held_out_accuracy"]
    assert accuracy <= largest + 1e-12
    page = (tmp_path / "r.html").read_text()
    assert f"about {100 * accuracy:.1f}" in page
