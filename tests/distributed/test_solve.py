"""The solve on parts is the solve on one machine; only halos move; filling reaches what it can."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from parquet_parts import clusters

from gdpa.distributed import fit
from gdpa.distributed import solve as solving
from gdpa.distributed.chebyshev import coefficients, steps_needed
from gdpa.distributed.groups import Group
from gdpa.distributed.manifest import Manifest, Output
from gdpa.distributed.rows import places, write_shard
from gdpa.distributed.runner import Runner
from gdpa.distributed.solve import solve
from gdpa.distributed.steps import Column, Spec, checkpoint_file, forget
from gdpa.distributed.store import open_folder
from gdpa.graph import laplacian, neighbor_graph


def cut(folder, W, codes, n_parts):
    """Write a graph and its labels as the stages before the solve would."""
    n = W.shape[0]
    starts = np.linspace(0, n, n_parts + 1).astype(int).tolist()
    output = Output(folder)
    counts = np.zeros((n_parts, n_parts), dtype=np.int64)
    labeled = np.flatnonzero(codes >= 0)
    for p in range(n_parts):
        low, high = starts[p : p + 2]
        rows = W[low:high].tocoo()
        column = rows.coords[1]
        inside = (column >= low) & (column < high)
        halo = np.unique(column[~inside]).astype(np.int64)
        place = places(column, low, high, halo)
        shape = (high - low, high - low + halo.size)
        shard = sp.csr_array((rows.data, (rows.coords[0], place)), shape=shape)
        shard.sort_indices()
        counts[:, p] = np.diff(write_shard(output, p, shard, halo, starts)["halo"])
        mine = np.flatnonzero((labeled >= low) & (labeled < high))
        output.array(f"parts/{p:05d}.labeled.npy", labeled[mine] - low)
        output.array(f"parts/{p:05d}.label.npy", mine)
    output.array("rows/counts.npy", counts)
    output.array("plan/codes.npy", codes[labeled].astype(np.int32))
    output.array("plan/folds.npy", np.arange(labeled.size, dtype=np.int32) % 3)
    return starts, counts


class Workers(Runner):
    """Runs calls in this process as if there were several workers."""

    n_workers = 1

    def __init__(self, folder, n_workers):
        manifest = Manifest(folder)
        manifest.open({})
        super().__init__(folder, manifest)
        self.n_workers = n_workers


def run(tmp_path, W, codes, n_parts, spec, tol, n_workers=None):
    """Solve on parts, each on a worker of its own unless told otherwise."""
    forget()
    folder = open_folder(str(tmp_path / f"work-{n_parts}-{n_workers}"))
    runner = Workers(folder, n_workers or n_parts)
    starts, counts = cut(folder, W, codes, n_parts)
    solved = solve(runner, spec, starts, tol)
    return scores(folder, spec.name, solved.step, n_parts), solved, counts


def scores(folder, name, step, n_parts):
    parts = range(n_parts)
    return np.vstack([folder.read_array(checkpoint_file(name, step, p, "x")) for p in parts])


@pytest.fixture(scope="module")
def graph():
    X, truth, known = clusters(900, 3, 0.05, seed=3)
    order = np.argsort(X[:, 0])
    return neighbor_graph(X[order], 8), np.where(known, truth, -1)[order]


def direct(W, codes, columns, weight):
    """The system by a dense factorisation."""
    L = laplacian(W, "normalized").toarray()
    n, labeled = codes.size, np.flatnonzero(codes >= 0)
    out = np.empty((n, len(columns)))
    for j, column in enumerate(columns):
        mine = labeled[np.arange(labeled.size) % 3 != column.fold]
        y = np.where(codes[mine] == 0, 1.0, -1.0)
        if column.target >= 0:
            y = (codes[mine] == column.target).astype(float)
        K = L + column.self_loop * np.eye(n)
        if np.isinf(weight):
            free = np.setdiff1d(np.arange(n), mine)
            out[mine, j] = y
            out[free, j] = np.linalg.solve(K[np.ix_(free, free)], -K[np.ix_(free, mine)] @ y)
        else:
            b = np.zeros(n)
            b[mine] = weight * y
            K[mine, mine] += weight
            out[:, j] = np.linalg.solve(K, b)
    return out


@pytest.mark.parametrize("weight", [np.inf, 0.7])
@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
def test_scores_are_those_of_one_machine(tmp_path, graph, n_parts, weight):
    W, codes = graph
    columns = (Column(0.01, 0), Column(0.01, 1), Column(0.1, -1, 0), Column(1.0, 1, 2))
    expected = direct(W, codes, columns, weight)
    x, solved, _ = run(tmp_path, W, codes, n_parts, Spec("s", columns, weight), 1e-8)
    assert solved.converged
    assert np.abs(x - expected).max() < 1e-6


def test_default_tolerance_is_enough_for_six_digits(tmp_path, graph):
    W, codes = graph
    columns = (Column(0.01, 0), Column(0.01, 1))
    tol = inspect.signature(fit).parameters["tol"].default
    x, solved, _ = run(tmp_path, W, codes, 3, Spec("s", columns), tol)
    assert solved.residual <= tol
    assert np.abs(x - direct(W, codes, columns, np.inf)).max() < 1e-6


def test_a_step_takes_its_halo_and_nothing_else(tmp_path, graph, monkeypatch):
    W, codes = graph
    read = []
    kind = type(open_folder(str(tmp_path)))
    whole, piece = kind.read, kind.read_into

    def counting(self, name, start=0, stop=None):
        got = whole(self, name, start, stop)
        if name.endswith(".bin"):
            read.append(len(got))
        return got

    def counting_into(self, name, start, out):
        got = piece(self, name, start, out)
        if name.endswith(".bin"):
            read.append(got)
        return got

    monkeypatch.setattr(kind, "read", counting)
    monkeypatch.setattr(kind, "read_into", counting_into)
    spec = Spec("s", (Column(0.1, 0), Column(0.1, 1), Column(1.0, 0)))
    _, solved, counts = run(tmp_path, W, codes, 7, spec, 1e-3)
    assert counts.sum() > 0
    # Two columns take all steps, one is done sooner; at a round's begin in double precision.
    steps = steps_needed(0.1, 1e-3), steps_needed(1.0, 1e-3)
    assert solved.step == steps[0] + 1
    numbers = 2 * steps[0] + steps[1] + 3 + 3 + 3
    assert sum(read) == solved.halo_bytes == counts.sum() * 4 * numbers


def test_which_parts_are_together_changes_no_digit(tmp_path, graph):
    W, codes = graph
    spec = Spec("s", (Column(0.03, 0), Column(0.03, 1)))
    together = [run(tmp_path, W, codes, 7, spec, 1e-7, workers)[0] for workers in (1, 2, 3, 7)]
    assert all(np.array_equal(x, together[0]) for x in together[1:])


def test_small_halos_allow_several_steps_per_call(tmp_path, monkeypatch):
    """The same digits, from fewer calls; what moves is the halo of all levels, once per call."""
    monkeypatch.setattr(solving, "FRINGE", 0.25)
    monkeypatch.setattr("gdpa.distributed.groups.FRINGE", 0.25)
    rng = np.random.default_rng(0)
    X = rng.random((1500, 2)) * [30.0, 1.0]
    X = X[np.argsort(X[:, 0])]
    codes = np.full(1500, -1)
    codes[::70] = np.arange(22) % 2
    W = neighbor_graph(X, 6)
    columns = (Column(0.01, 0), Column(0.01, 1), Column(0.1, -1, 0))
    taken = []
    original = solving.take_steps
    monkeypatch.setattr(
        solving, "take_steps", lambda **call: taken.append(call) or original(**call)
    )
    for weight in (np.inf, 0.7):
        spec = Spec("s", columns, weight)
        alone, solved, _ = run(tmp_path / str(weight), W, codes, 4, spec, 1e-6, 1)
        taken.clear()
        deep, again, _ = run(tmp_path / str(weight), W, codes, 4, spec, 1e-6, 4)
        assert np.array_equal(deep, alone)
        groups = {call["place"].group for call in taken}
        depth = {group.depth for group in groups}
        assert depth <= {3, 4, 5, 6, 7, 8}
        assert len(taken) < 4 * solved.step / 2
        folder = open_folder(str(tmp_path / str(weight) / "work-4-4"))
        halos = 0
        for group in groups:
            nodes, level = folder.read_array(f"deep/00004.{group.number:05d}.npy")
            near = neighbors_within(W, np.arange(group.low, group.high), group.depth)
            assert np.array_equal(nodes[level <= group.depth], near)
            halos += near.size
        (length,) = {call["place"].spec.rounds.length for call in taken}
        (short,) = {call["place"].spec.rounds.steps[2] for call in taken}
        firsts = {call["first"] for call in taken}
        numbers = sum(
            (2 + (first % length < short)) * 8 for first in firsts
        )  # scores in double, or changes and residuals in single precision
        assert again.halo_bytes == halos * numbers


def neighbors_within(W, nodes, depth):
    """Nodes at most `depth` edges from some, without these."""
    reached = np.zeros(W.shape[0], dtype=bool)
    reached[nodes] = True
    for _ in range(depth):
        reached |= W @ reached.astype(float) > 0
    reached[nodes] = False
    return np.flatnonzero(reached)


def test_parts_without_a_halo_take_all_steps_in_one_call(tmp_path):
    block = neighbor_graph(clusters(60, 2)[0], 5)
    W = sp.csr_array(sp.block_diag([block, block, block], format="csr"))
    codes = np.full(180, -1)
    codes[[3, 20, 63, 80, 123]] = [0, 1, 0, 1, 1]
    spec = Spec("s", (Column(0.1, 0), Column(0.1, 1)))
    groups = [Group(g, (0, 1, 2, 3), (0, 60, 120, 180)) for g in range(3)]
    calls = solving._calls("", spec, groups, np.zeros((3, 3), dtype=np.int64), 0, 8)
    assert [call.arguments["last"] - call.arguments["first"] for call in calls] == [8, 8, 8]
    x, solved, counts = run(tmp_path, W, codes, 3, spec, 1e-9)
    assert not counts.any()
    assert solved.converged
    assert np.abs(x - direct(W, codes, spec.columns, np.inf)).max() < 1e-8


def test_lost_state_is_repeated_from_the_checkpoint(tmp_path, graph, monkeypatch):
    """Parts that a worker has forgotten between any two steps come out the same to the last bit."""
    W, codes = graph
    spec = Spec("s", (Column(0.03, 0), Column(0.03, 1)))
    expected, _, _ = run(tmp_path, W, codes, 3, spec, 1e-5)
    calls = []
    original = solving.take_steps

    def forgetful(**arguments):
        calls.append(arguments)
        if len(calls) % 4 == 0:
            forget()
        return original(**arguments)

    monkeypatch.setattr(solving, "take_steps", forgetful)
    again, solved, _ = run(tmp_path / "b", W, codes, 3, spec, 1e-5)
    assert len(calls) == 3 * solved.step
    assert np.array_equal(again, expected)


def test_steps_and_coefficients():
    """The residual polynomial is the Chebyshev polynomial of the interval, and small in it."""
    for gamma in (0.01, 0.3):
        n = steps_needed(gamma, 1e-4)
        radius = 1 / (1 + gamma)
        t = np.linspace(1 - radius, 1 + radius, 501)
        x, d = np.zeros_like(t), np.zeros_like(t)
        for step in range(n):
            momentum, length = coefficients((gamma,), step)
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
    spec = Spec("s", (Column(3.0, 0), Column(3.0, 1)))
    x, solved, _ = run(tmp_path, W, codes, 3, spec, 1e-6)
    assert (x.sum(axis=1) < 1e-4).sum() > 20
    folder = open_folder(str(tmp_path / "work-3-None"))
    fill = Spec("fill", spec.columns, fill=(("s", solved.step),), threshold=1e-4)
    starts = np.linspace(0, n + 3, 4).astype(int).tolist()
    done = solve(Workers(folder, 3), fill, starts, 0.5)
    filled = scores(folder, "fill", done.step, 3)
    assert np.allclose(filled[:n].sum(axis=1), 1.0)
    assert not filled[n:].any()
