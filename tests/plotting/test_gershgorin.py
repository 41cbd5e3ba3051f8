"""Discs as they are drawn: centres, radii and left ends by definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.patches import Circle

import gdpa
from gdpa.gershgorin import align, discs
from gdpa.plotting import GershgorinDisplay

PAPER = np.array([[2.0, -2.0, -1.0], [-2.0, 5.0, -2.0], [-1.0, -2.0, 4.0]])


def test_circles_are_the_discs_and_touch_at_the_smallest_eigenvalue():
    display = GershgorinDisplay.from_alignment(PAPER)
    circles = [p for p in display.ax_.patches if isinstance(p, Circle)]
    drawn = sorted((c.center[0], c.radius) for c in circles)
    assert len(circles) == 6
    expected = [*zip(*_parts(discs(PAPER)), strict=True)]
    expected += [*zip(*_parts(discs(PAPER, v=align(PAPER).v)), strict=True)]
    np.testing.assert_allclose(drawn, sorted(expected))
    lowest = np.linalg.eigvalsh(PAPER)[0]
    aligned = [c for c in circles if c.get_linestyle() == "-"]
    np.testing.assert_allclose([c.center[0] - c.radius for c in aligned], lowest, atol=1e-9)
    assert display.lambda_min == pytest.approx(lowest)


def _parts(d):
    return d.centers, d.radii


def test_intervals_show_every_row_or_an_even_choice_with_the_outermost(random_graph):
    L = gdpa.graph.laplacian(random_graph(30, 0)) + sp.diags_array(np.linspace(0, 1, 30))
    display = GershgorinDisplay.from_matrix(L)
    left = display.ax_.lines[0].get_xdata()
    np.testing.assert_allclose(left, discs(L).left_ends)
    few = GershgorinDisplay.from_matrix(L, max_rows=10).ax_.lines[0].get_xdata()
    assert few.size == 10
    assert few.min() == left.min()
    assert few.max() == left.max()


def test_a_given_alignment_and_scaling_are_used():
    a = align(PAPER)
    given = GershgorinDisplay.from_alignment(PAPER, a)
    np.testing.assert_array_equal(given.discs["aligned"].left_ends, discs(PAPER, v=a.v).left_ends)
    scaled = GershgorinDisplay.from_matrix(PAPER, v=a.v, kind="intervals")
    np.testing.assert_allclose(scaled.discs["discs"].left_ends, a.left_ends)
