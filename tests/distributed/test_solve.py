"""The solve on parts is the solve on one machine; only halos move; filling reaches what it can."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from parquet_parts import clusters

from gdpa.distributed import solve as solving
from gdpa.distributed.cluster import InProcess, Runner
from gdpa.distributed.folder import Folder
from gdpa.distributed.manifest import Manifest, Output
from gdpa.distributed.pipeline import TOL
from gdpa.distributed.rows import columns_of, write_rows
from gdpa.distributed.solve import Solve, Solver, coefficients, score_file, steps_needed
from gdpa.graph import laplacian, neighbor_graph


def cut(folder, W, codes, n_parts):
    """Write a graph and its labels as the stages before the solve would."""
    n = W.shape[0]
    starts = np.linspace(0, n, n_parts + 1).astype(int).tolist()
    output = Output(folder)
    halos = []
    labeled = np.flatnonzero(codes >= 0)
    for p in range(n_parts):
        low, high = starts[p : p + 2]
        rows = W[low:high].tocoo()
        column = rows.coords[1]
        inside = (column >= low) & (column < high)
        halo = np.unique(column[~inside]).astype(np.int64)
        place = columns_of(column, low, high, halo)
        shape = (high - low, high - low + halo.size)
        own = sp.csr_array((rows.data, (rows.coords[0], place)), shape=shape)
        own.sort_indices()
        halos.append(write_rows(output, p, own, halo, starts)["halo"])
        mine = np.flatnonzero((labeled >= low) & (labeled < high))
        output.array(f"parts/{p:05d}.labeled.npy", labeled[mine] - low)
        output.array(f"parts/{p:05d}.label.npy", mine)
    output.array("plan/plan.codes.npy", codes[labeled].astype(np.int32))
    output.array("plan/plan.folds.npy", np.arange(labeled.size, dtype=np.int32) % 3)
    return starts, halos


class Workers(Runner):
    """Runs calls in this process as if there were several workers."""

    n_workers = 1

    def __init__(self, folder, n_workers):
        manifest = Manifest(folder)
        manifest.open({})
        super().__init__(InProcess(), manifest)
        self.n_workers = n_workers


def make_solver(tmp_path, W, codes, n_parts, n_workers=None):
    """Cut a graph into parts, each on a worker of its own unless told otherwise."""
    folder = Folder(str(tmp_path / f"work-{n_parts}-{n_workers}"))
    runner = Workers(folder, n_workers or n_parts)
    return Solver(runner, *cut(folder, W, codes, n_parts))


def run(tmp_path, W, codes, n_parts, solve, tol, n_workers=None):
    """Scores of all nodes, and how the solve ended."""
    solver = make_solver(tmp_path, W, codes, n_parts, n_workers)
    result = solver.scores(solve, tol)
    return scores(solver, solve.name), result


def scores(solver, name):
    parts = range(len(solver.starts) - 1)
    return np.vstack([solver.runner.folder.read_array(score_file(name, p)) for p in parts])


@pytest.fixture(scope="module")
def graph():
    X, truth, known = clusters(900, 3, 0.05, seed=3)
    order = np.argsort(X[:, 0])
    return neighbor_graph(X[order], 8), np.where(known, truth, -1)[order]


def direct(W, codes, solve):
    """The system by a dense factorisation."""
    n, labeled = codes.size, np.flatnonzero(codes >= 0)
    K = laplacian(W, "normalized").toarray() + solve.self_loop * np.eye(n)
    out = np.empty((n, len(solve.columns)))
    for j, (code, fold) in enumerate(solve.columns):
        mine = labeled[np.arange(labeled.size) % 3 != fold]
        y = (codes[mine] == code).astype(float)
        free = np.setdiff1d(np.arange(n), mine)
        out[mine, j] = y
        out[free, j] = np.linalg.solve(K[np.ix_(free, free)], -K[np.ix_(free, mine)] @ y)
    return out


@pytest.mark.parametrize("self_loop", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
def test_scores_are_those_of_one_machine(tmp_path, graph, n_parts, self_loop):
    W, codes = graph
    solve = Solve("some scores", self_loop, ((0, -1), (1, -1), (0, 0), (1, 2)))
    expected = direct(W, codes, solve)
    x, result = run(tmp_path, W, codes, n_parts, solve, 1e-8)
    assert result["converged"]
    assert np.abs(x - expected).max() < 1e-6


def test_scores_of_labels_come_in_the_order_of_the_labels(tmp_path, graph):
    W, codes = graph
    solve = Solve("held out", 0.1, ((0, 0), (1, 1)))
    solver = make_solver(tmp_path, W, codes, 4, 3)
    held_out = solver.label_scores(solve, 1e-8)
    assert np.abs(held_out - direct(W, codes, solve)[codes >= 0]).max() < 1e-6
    assert np.array_equal(solver.label_scores(solve, 1e-8), held_out)  # read, not solved again


def test_default_tolerance_is_enough_for_six_digits(tmp_path, graph):
    W, codes = graph
    solve = Solve("s", 0.01, ((0, -1), (1, -1)))
    x, result = run(tmp_path, W, codes, 3, solve, TOL)
    assert result["residual"] <= TOL
    assert np.abs(x - direct(W, codes, solve)).max() < 1e-6


def test_only_the_halo_moves(tmp_path, graph, monkeypatch):
    """In single precision between steps, in double precision where a round begins or ends."""
    W, codes = graph
    moved = []
    original = solving.share

    def counting(*arguments):
        moved.append(original(*arguments))
        return moved[-1]

    monkeypatch.setattr(solving, "share", counting)
    solver = make_solver(tmp_path, W, codes, 7)
    halo = np.sum(solver.halo)
    assert halo > 0
    result = solver.scores(Solve("s", 0.1, ((0, -1), (1, -1))), 1e-3)
    steps = steps_needed(0.1, 1e-3)
    assert result["steps"] == steps
    # The first step of a round needs no change; the residual is computed at its begin and end.
    assert sum(values.nbytes for values in moved) == halo * 2 * (4 * (steps - 1) + 8 * 2)


def test_which_parts_are_together_changes_no_digit(tmp_path, graph):
    W, codes = graph
    solve = Solve("s", 0.03, ((0, -1), (1, -1)))
    together = [run(tmp_path, W, codes, 7, solve, 1e-7, workers)[0] for workers in (1, 2, 3, 7)]
    assert all(np.array_equal(x, together[0]) for x in together[1:])


def test_parts_without_a_halo_exchange_nothing(tmp_path, monkeypatch):
    block = neighbor_graph(clusters(60, 2)[0], 5)
    W = sp.csr_array(sp.block_diag([block, block, block], format="csr"))
    codes = np.full(180, -1)
    codes[[3, 20, 63, 80, 123]] = [0, 1, 0, 1, 1]
    solve = Solve("s", 0.1, ((0, -1), (1, -1)))
    monkeypatch.setattr(solving, "share", None)
    x, result = run(tmp_path, W, codes, 3, solve, 1e-9)
    assert result["converged"]
    assert np.abs(x - direct(W, codes, solve)).max() < 1e-8


def test_steps_and_coefficients():
    """The residual polynomial is the Chebyshev polynomial of the interval, and small in it."""
    for gamma in (0.01, 0.3):
        n = steps_needed(gamma, 1e-4)
        radius = 1 / (1 + gamma)
        t = np.linspace(1 - radius, 1 + radius, 501)
        x, d = np.zeros_like(t), np.zeros_like(t)
        for momentum, length in coefficients(gamma, n):
            d = momentum * d + length * (1 - t * x)
            x = x + d
        assert np.abs(1 - t * x).max() <= 1e-4
        exact = np.cos(n * np.arccos(np.clip((1 - t) / radius, -1, 1)))
        exact /= np.cosh(n * np.arccosh(1 / radius))
        assert np.allclose(1 - t * x, exact, atol=1e-9)
    assert 65 <= steps_needed(0.01, 1e-4) <= 75


def test_filling_gives_every_linked_node_shares(tmp_path):
    """A path with labels at one end, and an island that nothing reaches."""
    n = 40
    path = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[1, -1]).tocsr()
    island = sp.csr_array(np.ones((3, 3)) - np.eye(3))
    W = sp.csr_array(sp.block_diag([path, island], format="csr"))
    codes = np.full(n + 3, -1)
    codes[0], codes[1] = 1, 0
    solve = Solve("s", 3.0, ((0, -1), (1, -1)))
    solver = make_solver(tmp_path, W, codes, 3)
    solver.scores(solve, 1e-6)
    assert (scores(solver, "s").sum(axis=1) < 1e-4).sum() > 20
    assert solver.fill("filled", ["s"], 1e-4)
    filled = scores(solver, "filled")
    assert np.allclose(filled[:n].sum(axis=1), 1.0)
    assert not filled[n:].any()
