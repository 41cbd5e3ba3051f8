"""The benchmark on real tables: how cells become features, labels are hidden, and rows compared."""

import importlib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def table_data(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.table_data")


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.tables")


def test_encoding_of_numbers_texts_and_missing_cells(table_data):
    X = table_data.encode([["1", "3", "", "5"], ["a", "b", "a", "?"], ["7", "7", "7", "7"]])
    assert X.shape == (4, 1 + 3)
    known = X[[0, 1, 3], 0]
    np.testing.assert_allclose([known.mean(), known.std()], [0.0, 1.0], atol=1e-12)
    assert X[2, 0] == 0.0
    assert np.array_equal(X[:, 1:].sum(axis=1), np.ones(4))


def test_labels_of_a_problem(table_data, tmp_path, monkeypatch):
    (tmp_path / "tables").mkdir()
    rows = [f"{i},{'rare' if i < 15 else 'xy'[i % 2]}" for i in range(100)]
    (tmp_path / "tables" / "toy.csv").write_text("c1,target\n" + "\n".join(rows))
    monkeypatch.setenv("GDPA_DATA_HOME", str(tmp_path))
    assert table_data.names() == ["toy"]
    p = table_data.problem("toy", 5, 0)
    assert p.truth.size == 85  # a class of 15 is left out
    assert np.bincount(p.codes[p.codes >= 0]).tolist() == [5, 5]
    assert (p.codes[p.codes >= 0] == p.truth[p.codes >= 0]).all()
    again = table_data.problem("toy", 5, 0)
    assert np.array_equal(p.codes, again.codes)
    assert not np.array_equal(p.codes, table_data.problem("toy", 5, 1).codes)


def test_without_tables_it_says_so(tables, monkeypatch, capsys):
    monkeypatch.delenv("GDPA_DATA_HOME", raising=False)
    assert tables.main([]) == 0
    assert "no tables" in capsys.readouterr().out


def test_calibration_error(tables):
    p = np.array([[0.85, 0.15]] * 10)
    truth = np.array([0] * 8 + [1] * 2)
    assert tables.calibration_error(p, truth) == pytest.approx(0.05)


def test_summary_ranks_and_counts(tables):
    results = {
        row: {f"{t}/5/0": [e, None, 0.1] for t, e in zip("ab", errors, strict=True)}
        for row, errors in {"one": (1.0, 2.0), "two": (1.0, 4.0), "three": (3.0, 1.0)}.items()
    }
    s = tables.summary(results, 5)
    assert [s[r]["best"] for r in results] == [1, 1, 1]
    assert [s[r]["rank"] for r in results] == [1.75, 2.25, 2.0]
    assert s["one"]["error"] == 1.5


def test_few_labels_store_and_page(table_data, tmp_path, monkeypatch, capsys):
    few = importlib.import_module("benchmarks.few_labels")
    (tmp_path / "tables").mkdir()
    rows = [f"{i},{'xy'[i // 40]}" for i in range(80)]
    (tmp_path / "tables" / "toy.csv").write_text("c1,target\n" + "\n".join(rows))
    monkeypatch.setenv("GDPA_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(few, "STORE", tmp_path / "store.json")
    told = []

    def perfect(X, codes, shares):
        told.append(shares)
        y = np.repeat([0, 1], 40)[np.argsort(X[:, 0], kind="stable").argsort()]
        return y, np.eye(2)[y]

    def wrong(X, codes, shares):
        return np.full(len(X), -1), None

    monkeypatch.setattr(few, "ROWS", {"gdpa": perfect, "other": wrong})
    asked = ["--sets", "toy", "--labels", "1", "--seeds", "2"]
    assert few.main(asked) == 0
    assert few.main(asked) == 0
    assert len(told) == 2  # the second run found both in the store
    np.testing.assert_array_equal(told[0], [0.5, 0.5])
    page = capsys.readouterr().out
    assert "| gdpa | 0.00 | 1.00 | 1.00 | 1 | +0.0 |" in page
    assert "| other | 100.00 | 2.00 | 2.00 | 0 | - |" in page
    assert "(sets: 1, seeds of a set: 2)" in page
    assert f"Commits: gdpa {few.commit()}." in page
    assert few.main([*asked, "--again"]) == 0
    assert len(told) == 4
    before = few.load(few.STORE)["gdpa"]
    few.forget(["gdpa"], ["toy"], few.STORE, [2])
    assert few.load(few.STORE)["gdpa"] == before  # none has two labels
    few.forget(["gdpa"], ["toy"], few.STORE, [1, 2])
    assert few.load(few.STORE)["gdpa"] == {}
