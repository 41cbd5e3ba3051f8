"""``gdpa paper``: every step of the paper's system on one page, with errors that are held out."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_wine

from gdpa import GraphProblem
from gdpa.gershgorin import discs
from gdpa.problem.dual import build_H_bar, optimal_value
from gdpa.report.paper import AS_WRITTEN, CHOSEN, HEAVY_LABELS, METHODS, hold_out, run_paper


def two_moons(n=60):
    rng = np.random.default_rng(0)
    truth = np.repeat([1, -1], n // 2).astype(np.int8)
    angle = rng.uniform(0, np.pi, n)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[truth < 0] = [1.0, 0.4] - X[truth < 0]
    return X + 0.05 * rng.normal(size=X.shape), truth


@pytest.fixture(scope="module")
def result():
    X, truth = two_moons()
    return run_paper(X, truth, hold_out(truth), n_neighbors=6)


def test_no_method_sees_a_held_out_label(result):
    X, truth = two_moons()
    flipped = np.where(result.hidden, -truth, truth)
    again = run_paper(X, flipped, result.hidden, n_neighbors=6)
    total = int(result.hidden.sum())
    for one, other in zip(result.rows, again.rows, strict=True):
        assert (one.solution.labels == other.solution.labels).all()
        assert one.errors + other.errors == total


def test_errors_are_those_of_the_solutions(result):
    assert result.hidden.sum() == 30
    assert (result.problem.labels[result.hidden] == 0).all()
    for row in result.rows:
        assert row.errors == (row.solution.labels != result.truth)[result.hidden].sum()
        assert row.solution.objective >= result.optimum - 1e-9
        if row.solution.bound_status == "certified":
            assert row.solution.lower_bound <= result.optimum + 1e-9
    assert {row.name for row in result.rows} <= {name for name, _, _ in METHODS}


def test_programs_show_discs_objectives_and_eigenvalues(result):
    written = [p for p in result.programs if p.loop == AS_WRITTEN]
    heavy = [p for p in result.programs if p.loop == HEAVY_LABELS]
    assert [p.number for p in written] == list(range(1, len(written) + 1))
    for p in result.programs:
        assert p.after <= p.before + 1e-9
        assert p.aligned.left_ends == pytest.approx(p.lambda_H_bar, abs=1e-6)
        assert p.discs.lower_bound <= p.lambda_H_bar + 1e-9
        assert p.lambda_H_bar <= p.lambda_H + 1e-9  # Lemma 1: H is psd at these points
    assert written[-1].weights == pytest.approx((0.0, 0.0), abs=1e-9)  # simplex erases the labels
    assert heavy[-1].weights[0] > 0
    assert heavy[-1].after == pytest.approx(optimal_value(result.problem), abs=1e-8)


def test_discs_are_those_of_H_bar(result):
    dual = result.row(CHOSEN).solution.dual
    expected = discs(build_H_bar(result.problem, dual))
    (last,) = (p for p in result.programs if p.loop == HEAVY_LABELS)
    assert last.discs.left_ends == pytest.approx(expected.left_ends)
    assert last.discs.centers == pytest.approx(expected.centers)


def test_the_full_graph_is_the_papers():
    X, truth = two_moons(20)
    found = run_paper(X, truth, hold_out(truth), graph="full")
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    W = np.exp(-squares)
    np.fill_diagonal(W, 0.0)
    expected = GraphProblem(W, found.problem.labels, laplacian="normalized")
    assert np.allclose(found.problem.adjacency.toarray(), expected.adjacency.toarray())


def test_each_class_needs_two_labels():
    _, truth = two_moons(10)
    truth[truth < 0] = 0
    truth[-1] = -1
    with pytest.raises(ValueError, match="each class needs at least two labels"):
        hold_out(truth)


@pytest.fixture
def wine(tmp_path):
    data = load_wine()
    lines = [",".join(["kind", *data.feature_names])]
    for kind, row in zip(data.target, data.data, strict=True):
        lines.append(",".join([f"class {kind}", *map(repr, row.tolist())]))
    path = tmp_path / "wine <b>.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_table_with_three_classes(process, wine, tmp_path):
    out = tmp_path / "page.html"
    ended = process("paper", wine, "--target", "kind", "--rows", 60, "--out", out, "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    assert document["rows"] == 60
    assert document["labeled"] + document["held_out"] == 60
    assert 0 <= document["error"] < 0.2
    assert document["lower_bound"] <= document["optimum"] <= document["objective"] + 1e-9
    page = out.read_text()
    assert "all other classes (-1)" in page
    assert f"Error on the held-out labels: {100 * document['error']:.1f} %" in page
    for heading in ("Similarity graph", "Balanced graph", "Aligned discs", "Labels", "Bound"):
        assert heading in page
    for row in document["methods"]:
        assert row["name"] in page
        assert f"{row['milliseconds']:.3g}" in page
    assert page.count('class="disc"') >= 4
    assert "<script" not in page
    assert "wine <b>" not in page
    assert not re.search(r'(?:src|href)="http', page)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--graph", "complete"], "must be knn or full"),
        (["--target", "kind", "--positive", "wood"], "'wood' is not a class"),
        (["--target", "missing"], "missing"),
    ],
)
def test_bad_options_are_refused(process, wine, tmp_path, options, message):
    ended = process("paper", wine, *options, "--out", tmp_path / "page.html")
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.slow
def test_without_a_table_it_uses_embedded_data(process, tmp_path):
    out = tmp_path / "page.html"
    ended = process("paper", "--rows", 80, "--out", out)
    assert ended.code == 0, ended.err
    assert "breast cancer" in out.read_text()
    assert "GDPA as written" in ended.out
