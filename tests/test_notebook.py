"""Cards for notebooks: small, safe, without script, in the colours of the page."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gdpa
from gdpa.notebook import card


def problem():
    W = np.array([[0, 1, 0, 0], [1, 0, 0.1, 0], [0, 0.1, 0, 1], [0, 0, 1, 0]])
    return gdpa.GraphProblem(W, [1, 0, 0, -1])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (problem, ["GraphProblem", "nodes", "1 of +1, 1 of -1"]),
        (lambda: gdpa.solve(problem()), ["Solution by harmonic", "objective", "lower bound"]),
        (lambda: gdpa.certify(problem(), [1, 1, -1, -1]), ["Certificate", "optimum", "gap"]),
    ],
)
def test_results_have_a_card(make, words):
    html = make()._repr_html_()
    assert len(html) < 3000
    for word in words:
        assert word in html
    for never in ("<script", "http", "#fff", "onload"):
        assert never not in html


def test_text_is_escaped_and_cut():
    html = card("<b>", [("<i>", "x" * 1000), ("bell", "\x07\x1b[0m")], note="<script>")
    assert "<script>" not in html
    assert "&lt;b&gt;" in html
    assert "x" * 200 not in html
    assert "\x1b" not in html


def test_a_solution_is_one_short_line():
    text = repr(gdpa.solve(problem()))
    assert text.startswith("<Solution of 4 nodes by harmonic: objective")
    assert len(text) < 250
    assert "\n" not in text


def test_the_number_of_iterations_is_shown():
    solution = dataclasses.replace(gdpa.solve(problem()), iterations=1)
    assert "converged, iterations: 1, " in str(solution)
    assert "yes, iterations: 1" in solution._repr_html_()
