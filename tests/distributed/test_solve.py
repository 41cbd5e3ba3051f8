"""The solve on parts is the solve on one machine; only halos move; filling reaches what it can."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from parquet_parts import clusters

from gdpa.distributed import conjugate_gradients as steps
from gdpa.distributed.cluster import InProcess, Runner
from gdpa.distributed.conjugate_gradients import Solve
from gdpa.distributed.folder import Folder
from gdpa.distributed.manifest import Manifest, Output
from gdpa.distributed.neighbor_rows import columns_of
from gdpa.distributed.pipeline import TOL
from gdpa.distributed.rows import write_rows
from gdpa.distributed.solve import PartSolver, score_file
from gdpa.graph import laplacian, neighbor_graph
from gdpa.graph.adjacency import degrees, laplacian_parts
from gdpa.system import LabeledSystem


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
        written = write_rows(
            output,
            p,
            own,
            nodes=np.arange(low, high),
            halo=halo,
            halo_ends=np.searchsorted(halo, starts),
            degree=degrees(own),
        )
        halos.append(written["halo"])
        mine = np.flatnonzero((labeled >= low) & (labeled < high))
        output.array(f"parts/{p:05d}.labeled.npy", labeled[mine] - low)
        output.array(f"parts/{p:05d}.label.npy", mine)
    output.array("plan/plan.codes.npy", codes[labeled].astype(np.int32))
    output.array("plan/plan.folds.npy", np.arange(labeled.size, dtype=np.int32) % 3)
    return halos, np.diff(starts).tolist()


class Workers(Runner):
    """Runs calls in this process as if there were several workers."""

    n_workers = 1

    def __init__(self, folder, n_workers):
        manifest = Manifest(folder)
        manifest.open({})
        super().__init__(InProcess(), manifest)
        self.n_workers = n_workers


def make_solver(tmp_path, W, codes, n_parts, n_workers=None, memory=np.inf, interval=60.0):
    """Cut a graph into parts, each on a worker of its own unless told otherwise."""
    folder = Folder(str(tmp_path / f"work-{n_parts}-{n_workers}"))
    runner = Workers(folder, n_workers or n_parts)
    halo, nodes = cut(folder, W, codes, n_parts)
    return PartSolver(runner, halo, nodes, memory=memory, interval=interval)


def run(tmp_path, W, codes, n_parts, solve, tol, n_workers=None, memory=np.inf):
    """Scores of all nodes, and how the solve ended."""
    solver = make_solver(tmp_path, W, codes, n_parts, n_workers, memory)
    result = solver.scores(solve, tol)
    return scores(solver, solve.name), result


def scores(solver, name):
    parts = range(len(solver.halo))
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


@pytest.mark.slow
@pytest.mark.parametrize("self_loop", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
def test_scores_are_those_of_one_machine(tmp_path, graph, n_parts, self_loop):
    W, codes = graph
    solve = Solve("some scores", self_loop, ((0, -1), (1, -1), (0, 0), (1, 2)))
    expected = direct(W, codes, solve)
    x, result = run(tmp_path, W, codes, n_parts, solve, 1e-8)
    assert result.converged
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
    assert result.residual <= TOL
    assert np.abs(x - direct(W, codes, solve)).max() < 1e-6


def test_only_the_halo_moves(tmp_path, graph, monkeypatch):
    """In every step, and at the beginning and the end of a round."""
    W, codes = graph
    moved = []
    original = steps.values_to_send

    def counting(*arguments):
        moved.append(original(*arguments))
        return moved[-1]

    monkeypatch.setattr(steps, "values_to_send", counting)
    solver = make_solver(tmp_path, W, codes, 7)
    halo = np.sum(solver.halo)
    assert halo > 0
    result = solver.scores(Solve("s", 0.1, ((0, -1), (1, -1))), 1e-3)
    assert result.converged
    assert sum(values.nbytes for values in moved) == halo * 2 * 8 * (result.steps + 2)


def test_rows_read_in_every_step_give_the_same_scores(tmp_path, graph):
    """Whether the rows of all parts, of some or of none are in memory."""
    W, codes = graph
    solve = Solve("s", 0.03, ((0, -1), (1, -1)))
    found = [
        run(tmp_path / str(memory), W, codes, 5, solve, 1e-7, 2, memory)[0]
        for memory in (np.inf, 8 * W.nnz, 0)
    ]
    assert np.array_equal(found[1], found[0])
    assert np.array_equal(found[2], found[0])


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
    monkeypatch.setattr(steps, "values_to_send", None)
    x, result = run(tmp_path, W, codes, 3, solve, 1e-9)
    assert result.converged
    assert np.abs(x - direct(W, codes, solve)).max() < 1e-8


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


def grid(side):
    """A square grid with a label in two corners, whose system is badly conditioned."""
    path = sp.diags_array([np.ones(side - 1), np.ones(side - 1)], offsets=[1, -1])
    one = sp.eye_array(side)
    W = sp.csr_array(sp.kron(path, one) + sp.kron(one, path))
    codes = np.full(side * side, -1)
    codes[0], codes[-1] = 0, 1
    return W, codes


SLOW = Solve("slow", 0.0, ((0, -1), (1, -1)), laplacian="combinatorial")


@pytest.mark.parametrize("n_parts", [1, 3])
@pytest.mark.parametrize("laplacian_kind", ["combinatorial", "normalized"])
def test_the_coarse_level_saves_steps_and_changes_no_score(tmp_path, n_parts, laplacian_kind):
    W, codes = grid(60)
    solve = Solve("slow", 0.0, ((0, -1), (1, -1)), laplacian=laplacian_kind)
    x, result = run(tmp_path, W, codes, n_parts, solve, 1e-10)
    assert result.converged
    assert result.coarse
    adjacency, diagonal = laplacian_parts(W, laplacian_kind)
    labeled = np.flatnonzero(codes >= 0)
    system = LabeledSystem(adjacency, diagonal, labeled, np.eye(2)[codes[labeled]])
    assert np.abs(x - system.solve(tol=1e-12).x).max() < 1e-6
    plain = system.solve(tol=1e-10, preconditioner="jacobi")
    assert result.steps < plain.iterations


class Stop(Exception):
    """Stands for whatever ends a client."""


def test_a_stopped_solve_goes_on_to_the_same_digits(tmp_path):
    """With and without the coarse level; a damaged state is not used."""
    W, codes = grid(60)
    expected, whole = run(tmp_path, W, codes, 3, SLOW, 1e-10, 2)
    solver = make_solver(tmp_path, W, codes, 3, 3, interval=0.0)
    folder = solver.runner.folder

    def stop(event):
        if event.stage == "slow" and event.done > seen[-1]:
            seen.append(event.done)
            raise Stop

    solver.runner._report = stop
    seen = [0]
    stops = 0
    for _ in range(200):
        try:
            result = solver.scores(SLOW, 1e-10)
            break
        except Stop:
            stops += 1
            solver._groups = None
            record = "checkpoint/slow.json"
            if stops == 3 and record in folder.names():
                slot = folder.read_json(record)["slot"]
                path = tmp_path / "work-3-3" / "checkpoint" / f"slow.{slot}.00001.npy"
                path.write_bytes(path.read_bytes()[:-9])
                seen = [0]
    assert stops > 5
    assert result.steps == whole.steps
    assert result.residual == whole.residual
    assert result.converged
    assert np.array_equal(scores(solver, "slow"), expected)
    assert not [name for name in folder.names() if name.startswith("checkpoint/")]
