"""The parts of the labelled system against their definitions, on small dense examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, shortest_path

from gdpa.linalg.spd import solve_spd
from gdpa.policy import Policy
from gdpa.system import LabeledSystem, closed_form, labeled, left_out, rows, update
from gdpa.system.labeled import arrange, is_scattered
from gdpa.system.left_out import FOLD_TOL, SCREENING_TOL, FirstFold, fold_scores
from gdpa.system.update import relax_locally, update_scores


def graph(n: int, seed: int = 0, density: float = 0.2) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    W = np.triu((rng.random((n, n)) < density) * rng.uniform(0.5, 1.5, (n, n)), 1)
    W += np.diag(np.full(n - 1, 0.3), 1)  # connected
    return sp.csr_array(W + W.T)


def ring(n: int, weight: float = 0.5) -> sp.csr_array:
    """All nodes have degree ``2 * weight``."""
    offsets = [-1, 1, n - 1, 1 - n]
    return sp.csr_array(sp.diags_array([weight] * 4, offsets=offsets, shape=(n, n)))


def system(n: int = 40, m: int = 5, columns: int = 2, seed: int = 0, **options) -> LabeledSystem:
    rng = np.random.default_rng(seed)
    W = graph(n, seed)
    nodes = np.sort(rng.permutation(n)[:m])
    targets = rng.standard_normal((m, columns))
    return LabeledSystem(W, np.asarray(W.sum(axis=1)), nodes, targets, **options)


def dense(given: LabeledSystem) -> np.ndarray:
    """Solve the definition with all rows."""
    n, nodes = given.diagonal.size, given.labeled
    h = given.evidence
    e = given.evidence_weight
    if e is None:
        e = 0.0 if h is None else np.abs(h).reshape(n, -1).sum(axis=1)
    K = np.diag(given.diagonal + given.self_loop + e) - given.adjacency.toarray()
    b = np.zeros((n, given.targets.shape[1])) if h is None else h.reshape(n, -1).copy()
    if np.isinf(given.label_weight).all():
        K[nodes] = np.eye(n)[nodes]
        b[nodes] = given.targets
    else:
        K[nodes, nodes] += given.label_weight
        b[nodes] += np.reshape(given.label_weight, (-1, 1)) * given.targets
    return np.linalg.solve(K, b)


# Leave-one-out in closed form


def block(given: LabeledSystem, shift: float) -> np.ndarray:
    L = np.diag(given.diagonal) - given.adjacency.toarray()
    return np.linalg.inv(L + shift * np.eye(L.shape[0]))[np.ix_(given.labeled, given.labeled)]


@pytest.mark.parametrize("weight", [np.inf, 0.5, 30.0])
@pytest.mark.parametrize("columns", [1, 3])
def test_leave_one_out_scores_are_those_of_the_formula(weight, columns):
    given = system(columns=columns)
    K = block(given, 0.3)
    C = np.linalg.inv(K + (0.0 if np.isinf(weight) else 1 / weight) * np.eye(5))
    expected = given.targets - (C @ given.targets) / np.diagonal(C)[:, None]
    ((found, scores),) = closed_form.left_out_by_one(K, given.targets, [weight])
    assert found == weight
    np.testing.assert_allclose(scores, expected, atol=1e-11)


def test_a_singular_block_has_finite_scores():
    """Two labels on one node: each predicts the other exactly."""
    K = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    Y = np.array([[1.0], [3.0], [5.0]])
    ((_, scores),) = closed_form.left_out_by_one(K, Y, [np.inf])
    np.testing.assert_allclose(scores, [[3.0], [1.0], [0.0]], atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["ordinary", "tiny", "dependent", "uneven", "zero", "part"])
def test_orthonormal_factors_of_a_block(dtype, kind):
    Z = np.random.default_rng(0).standard_normal((30, 4))
    ranks = {"dependent": 2, "zero": 0, "part": 3}
    if kind == "tiny":
        Z *= 1e-3
    elif kind == "dependent":
        Z[:, 2], Z[:, 3] = Z[:, 0] - Z[:, 1], 3 * Z[:, 1]
    elif kind == "uneven":
        Z[:, 1] = Z[:, 0] + 1e-3 * Z[:, 1]
    elif kind == "zero":
        Z[:] = 0.0
    elif kind == "part":
        Z[:, 1] = 0.0
    Q, R = closed_form._orthonormal(Z.astype(dtype))
    assert Q.dtype == dtype
    assert Q.shape == (30, ranks.get(kind, 4))
    assert R.shape == (ranks.get(kind, 4), 4)
    error = 1e-9 if dtype == np.float64 else 3e-3
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=error)
    np.testing.assert_allclose(Q @ R, Z, atol=1e-10 if dtype == np.float64 else 3e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("single", [False, True])
def test_every_shift_has_its_own_block(seed, single):
    policy = Policy(single_block=0 if single else 10**9)
    given = system(60, 6, seed=seed, policy=policy)
    shifts = [given.unit * s for s in (0.005, 0.3, 2.0)]
    found = closed_form.labeled_blocks(given, shifts)
    assert len(found) == 3
    for K, s in zip(found, shifts, strict=True):
        exact = block(given, s)
        # Corrections below 1e-6 of the sum are left out; single precision adds its own error.
        error = 2e-5 if single else 3e-6
        np.testing.assert_allclose(K, exact, rtol=0, atol=error * np.abs(exact).max())


def test_the_space_may_be_exhausted_first():
    """Three nodes with two labels: the second step has one column, the third none."""
    W = sp.csr_array(np.array([[0, 1.0, 0.5], [1.0, 0, 0.2], [0.5, 0.2, 0]]))
    given = LabeledSystem(W, np.asarray(W.sum(axis=1)), np.array([0, 2]), np.ones((2, 1)))
    for s in (0.01, 1.0):
        (K,) = closed_form.labeled_blocks(given, [s])
        np.testing.assert_allclose(K, block(given, s), rtol=1e-9)


def test_one_elimination_step_is_a_schur_complement():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    T = A @ A.T + np.eye(4)
    recursion = closed_form._Recursion(0.5, 2)
    recursion.add(T[:2, :2], None)
    np.testing.assert_allclose(recursion.sum, np.linalg.inv(T[:2, :2] + 0.5 * np.eye(2)))
    assert not recursion.failed
    recursion.add(T[2:, 2:], T[2:, :2])
    whole = np.linalg.inv(T + 0.5 * np.eye(4))[:2, :2]
    np.testing.assert_allclose(recursion.sum, whole)
    assert not recursion.done
    recursion.add(1e9 * np.eye(2), 1e-3 * np.eye(2))  # adds next to nothing
    assert recursion.done
    recursion.add(-np.eye(2), np.zeros((2, 2)))
    assert recursion.failed


@pytest.mark.parametrize("unit", [0.125, 1.0, 8.0])
@pytest.mark.parametrize(
    ("largest", "shift", "many", "expected"),
    [
        (1.0, 1.0, True, np.float32),
        (1.0, 1.0, False, np.float64),
        (1.0, 1.01e-3, True, np.float32),
        (1.0, 1e-3, True, np.float64),
        (1.0, 1.01e-6, True, np.float64),
        (1.0, 1e-6, True, None),
        (999.0, 1.0, True, np.float32),
        (1000.0, 1.0, True, np.float64),
        (9.99e5, 1.0, True, np.float64),
        (1e6, 1.0, True, None),
    ],
)
def test_when_lanczos_is_used_and_in_which_precision(
    monkeypatch, unit, largest, shift, many, expected
):
    """Limits are relative to the mean diagonal."""
    n, seen = 10, []
    W = ring(n, 0.5 * unit)
    given = LabeledSystem(W, np.full(n, unit), np.array([0, 5]), np.ones((2, 1)))
    given = replace(given, policy=Policy(single_block=20 if many else 21))
    monkeypatch.setattr(LabeledSystem, "unit", property(lambda _: unit))
    given = replace(given, diagonal=np.append(np.full(n - 1, unit), largest * unit))
    monkeypatch.setattr(closed_form, "_lanczos", lambda s, r, dtype: seen.append(dtype))
    columns = []
    monkeypatch.setattr(
        closed_form, "_by_columns", lambda s, v: columns.append(v) or np.array([[1.0, 2], [0, 1]])
    )
    blocks = closed_form.labeled_blocks(given, [100 * unit, shift * unit, 0.0][:2])
    assert seen == ([] if expected is None else [expected])
    assert columns == [100 * unit, shift * unit]  # nothing was computed, so each is solved for
    np.testing.assert_array_equal(blocks[0], [[1.0, 1.0], [1.0, 1.0]])
    closed_form.labeled_blocks(given, [0.0])
    assert columns[-1] == 1e-9 * unit


@pytest.mark.parametrize("shift", [0.01, 2.0])
def test_columns_are_solved_accurately(shift):
    given = system(label_weight=3.0, self_loop=7.0)
    K = closed_form._by_columns(given, shift)
    exact = block(given, shift)
    np.testing.assert_allclose(K, exact, atol=1e-6 * np.abs(exact).max())
    large = replace(system(60), policy=Policy(dense_below=0))  # by iteration
    K = closed_form._by_columns(large, shift)
    exact = block(large, shift)
    np.testing.assert_allclose(K, exact, atol=1e-5 * np.abs(exact).max())


# The system


def test_the_unit_is_the_mean_degree():
    given = system()
    assert given.unit == pytest.approx(given.diagonal.mean(), rel=1e-14)
    assert replace(given, diagonal=np.zeros(40)).unit == 1.0
    huge = replace(given, diagonal=np.full(40, 1e308))
    assert huge.unit == pytest.approx(1e308, rel=1e-12)


@pytest.mark.parametrize("weight", [np.inf, 2.0, "each"])
@pytest.mark.parametrize("evidence", [None, "one", "many"])
@pytest.mark.parametrize("loop", [0.0, 0.4])
def test_matrix_and_right_hand_side_are_those_of_the_definition(weight, evidence, loop):
    rng = np.random.default_rng(1)
    columns = 1 if evidence == "one" else 3
    options = {"self_loop": loop, "label_weight": weight}
    if weight == "each":
        options["label_weight"] = rng.uniform(0.5, 2.0, 5)
    if evidence is not None:
        options["evidence"] = rng.standard_normal(40 if evidence == "one" else (40, 3))
    given = system(columns=columns, **options)
    exact = dense(given)
    kept = given.labeled if weight is np.inf else given.labeled[:0]
    free = np.setdiff1d(np.arange(40), kept)
    np.testing.assert_array_equal(given.kept, kept)
    np.testing.assert_array_equal(given.unknown, free)
    left = given.matrix() @ exact[free]
    np.testing.assert_allclose(left, given.rhs[free], atol=1e-11)
    np.testing.assert_allclose(given.matrix().diagonal(), given.total[free])
    for preconditioner in (None, "auto", "jacobi", "two-level", lambda R: R):
        iterated = replace(given, policy=Policy(dense_below=0))
        found = iterated.solve(tol=1e-11, preconditioner=preconditioner)
        np.testing.assert_allclose(found.x, exact, atol=1e-8)
    flat = replace(given, targets=given.targets[:, 0])
    if evidence != "many":
        assert flat.solve(tol=1e-11).x.shape == (40,)
        np.testing.assert_allclose(flat.solve(tol=1e-11).x, exact[:, 0], atol=1e-8)


def test_nothing_to_solve():
    given = system(4, 4)
    found = given.solve()
    np.testing.assert_array_equal(found.x, given.targets)
    assert (found.iterations, found.matvecs, found.residual, found.converged) == (0, 0, 0.0, True)
    assert (found.method, found.message) == ("none", "nothing to solve")


@pytest.mark.parametrize(
    ("kept", "preconditioner", "stored"),
    [
        (2, "auto", False), (2, "jacobi", False), (2, "two-level", False), (2, None, False),
        (2, lambda R: R, True), (3, "auto", True), (3, None, True),
    ],
)  # fmt: skip
def test_when_the_matrix_is_stored(monkeypatch, kept, preconditioner, stored):
    given, seen = system(8, kept), []
    monkeypatch.setattr(
        labeled, "solve_spd", lambda A, b, **options: seen.append((A, b, options)) or
        solve_spd(A, b, **options)
    )  # fmt: skip
    start = np.ones((8, 2))
    given.solve(tol=1e-3, max_iter=7, x0=start, preconditioner=preconditioner)
    ((A, b, options),) = seen
    assert sp.issparse(A) is stored
    assert b.shape == options["x0"].shape == (8 - kept if stored else 8, 2)
    assert (options["tol"], options["max_iter"]) == (1e-3, 7)
    assert options["preconditioner"] is preconditioner
    if not stored:
        assert (A.total[given.kept] == 0).all()
        assert (b[given.kept] == 0).all()
        assert (given.rhs[given.kept] != 0).any()  # a copy was changed


@pytest.mark.parametrize("bad", [[np.inf, 1.0], [1.0, np.inf]])
def test_mixed_weights_are_refused(bad):
    with pytest.raises(ValueError, match="infinite on all"):
        system(m=2, label_weight=np.array(bad)).solve()


# Orders of the nodes


@pytest.mark.parametrize(("near", "far", "expected"), [(20, 80, False), (19, 81, True)])
def test_graphs_with_a_fifth_of_near_entries_are_not_scattered(near, far, expected):
    """On 100 nodes, an entry is near if it is next to the diagonal."""
    rows_ = np.concatenate([np.arange(near), np.arange(far) % 90])
    columns = np.concatenate([np.arange(near) + 1, np.arange(far) % 90 + 2 + np.arange(far) // 90])
    A = sp.csr_array((np.ones(100), (rows_, columns)), shape=(100, 100))
    assert A.nnz == 100
    assert is_scattered(A) is expected
    # Strictly below a fiftieth of the nodes.
    assert not is_scattered(sp.csr_array(sp.diags_array([1.0], offsets=[1], shape=(101, 101))))
    assert is_scattered(sp.csr_array(sp.diags_array([1.0], offsets=[2], shape=(100, 100))))
    assert not is_scattered(sp.csr_array(sp.diags_array([1.0], offsets=[2], shape=(101, 101))))
    assert not is_scattered(sp.csr_array((100, 100)))


def test_the_sample_spans_all_entries(monkeypatch):
    monkeypatch.setattr(labeled, "SAMPLE", 2)
    A = np.zeros((100, 100))
    A[0, 1] = A[50, 0] = A[50, 90] = A[99, 98] = 1.0  # only the first and the last are near
    assert not is_scattered(sp.csr_array(A))
    A[98, 50], A[99] = 1.0, 0.0
    monkeypatch.setattr(labeled, "NEAR_SHARE", 0.6)
    assert is_scattered(sp.csr_array(A))


def test_rows_of_equal_length_are_together():
    n = 2500
    rng = np.random.default_rng(0)
    ends = rng.integers(0, n - 20, (2, 4000))  # the last nodes are isolated
    W = sp.csr_array((np.ones(4000), (ends[0], ends[1])), shape=(n, n))
    W = sp.csr_array(W + W.T)
    found = arrange(W, Policy(order_rows=n))
    assert arrange(W, Policy(order_rows=n + 1)).order is None
    lengths = np.diff(W.indptr)
    first = breadth_first_order(W, int(np.argmax(lengths)), return_predecessors=False)
    order = np.concatenate([first, np.setdiff1d(np.arange(n), first)])
    assert found.order.dtype == np.int32
    for a in (0, 1024, 2048):
        b = min(a + 1024, n)
        part = order[a:b]
        if b - a == 1024:
            part = part[np.argsort(lengths[part], kind="stable")]
        np.testing.assert_array_equal(found.order[a:b], part)
    expected = W[found.order][:, found.order]
    assert abs(found.matrix.matrix - expected).max() == 0


# Held-out folds


@pytest.mark.parametrize("weight", [np.inf, 2.0])
def test_fold_scores_are_solved_without_the_fold(weight, monkeypatch):
    monkeypatch.setattr(left_out, "FOLD_TOL", 1e-11)
    given = system(40, 9, 3, self_loop=0.2)
    fold = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2], dtype=np.int32)
    ((found, scores), (other, _)) = fold_scores(given, fold, [weight, 1.0])
    assert (found, other) == (weight, 1.0)
    for number in range(3):
        held = fold == number
        rest = replace(
            given, labeled=given.labeled[~held], targets=given.targets[~held], label_weight=weight
        )
        np.testing.assert_allclose(scores[held], dense(rest)[given.labeled[held]], atol=1e-8)


@pytest.mark.parametrize("columns", [2, 3])
def test_one_fold_is_screened_and_solved(columns, monkeypatch):
    given = system(60, 12, columns, policy=Policy(dense_below=0))
    held = np.arange(12) % 3 == 0
    fold, tols, starts = FirstFold(given, held), [], []
    whole = LabeledSystem.solve

    def spy(self, *, tol, x0=None, **options):
        tols.append(tol)
        starts.append(x0)
        return whole(self, tol=1e-11, x0=x0, **options)

    monkeypatch.setattr(LabeledSystem, "solve", spy)
    np.testing.assert_array_equal(fold.nodes, given.labeled[held])
    np.testing.assert_array_equal(fold.targets, given.targets[held])
    exact = {loop: dense(replace(fold.rest, self_loop=loop))[fold.nodes] for loop in (0.05, 0.5)}
    for loop, scores in fold.screened([0.05, 0.5]):
        centred = exact[loop] - (exact[loop].mean(axis=1, keepdims=True) if columns == 2 else 0.0)
        np.testing.assert_allclose(scores, centred, atol=1e-8)
    np.testing.assert_allclose(fold.scores(0.5), exact[0.5], atol=1e-8)
    np.testing.assert_allclose(fold.scores(0.5), exact[0.5], atol=1e-8)
    assert tols == [SCREENING_TOL] * 2 + [FOLD_TOL] * 2
    assert [start is not None for start in starts] == [False, False, columns == 2, False]
    if columns == 2:
        full = dense(replace(fold.rest, self_loop=0.5))
        np.testing.assert_array_equal(starts[2][:, 0], 0.0)
        np.testing.assert_allclose(starts[2][:, 1], full[:, 0] - full[:, 1], atol=1e-8)


# New rows


def test_far_nodes_start_strictly_below_the_threshold():
    W = ring(6)
    scores = np.array([[1.0], [0.25], [0.25 - 1e-12], [0.1], [0.25], [0.5]])
    none = np.zeros(0, dtype=np.intp)
    found = rows.with_far_nodes(W, np.ones(6), np.array([0]), scores, none, 0.25)
    np.testing.assert_array_equal(found[[0, 1, 4, 5]], scores[[0, 1, 4, 5]])
    np.testing.assert_allclose(found[[2, 3]], 0.25)
    level = np.full((6, 1), 0.1)
    level[0] = 0.25  # one node is at the threshold, so there is something to extend
    found = rows.with_far_nodes(W, np.ones(6), np.array([0]), level, none, 0.25)
    np.testing.assert_allclose(found, 0.25)


@pytest.mark.parametrize("n", [40, 700])  # by a factorisation, and by iteration
def test_the_harmonic_extension_is_accurate(n):
    W = graph(n, 3, density=8 / n)
    d = np.asarray(W.sum(axis=1))
    scores = np.zeros((n, 2))
    scores[:5] = np.random.default_rng(0).random((5, 2)) - 0.1
    scores[:5, 0] += 0.5
    none = np.zeros(0, dtype=np.intp)
    found = rows.with_far_nodes(W, d, np.arange(2), scores, none, 1e-3)
    shares = np.maximum(scores[:5], 0)
    shares /= shares.sum(axis=1, keepdims=True)
    exact = dense(LabeledSystem(W, d, np.arange(5), shares))
    np.testing.assert_allclose(found[5:], 1e-3 * exact[5:], atol=1e-7)


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
def test_faint_weights_are_links_too(laplacian):
    W = sp.csr_array(np.array([[1e-3, 2e-3, 0.0], [0.0, 0.5, 0.25]]))
    F, d = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]]), np.array([2.0, 0.0, 4.0])
    found = rows.new_row_scores(W, F, degrees=d, laplacian=laplacian, self_loop=0.1)
    w = W.toarray()
    total = w.sum(axis=1)
    if laplacian == "combinatorial":
        expected = w @ F / (total + 0.1)[:, None]
    else:
        root = np.array([1 / np.sqrt(2), 0.0, 0.5])
        expected = (w * root) @ F / np.sqrt(total)[:, None] / 1.1
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_only_weights_whose_sum_may_overflow_are_scaled():
    assert rows.HEAVIEST == 1e100
    W = sp.csr_array(np.array([[1e100, 1.0], [2.0, 0.0]]))
    assert rows._addable(W) is W
    W = sp.csr_array(np.array([[1e104, 1e103], [2.0, 0.0], [1e100, 1.0]]))
    scaled = rows._addable(W).toarray()
    np.testing.assert_allclose(scaled, [[1e100, 1e99], [2.0, 0.0], [1e100, 1.0]], rtol=1e-12)


# Updates


@pytest.mark.parametrize("weight", [np.inf, 2.0])
@pytest.mark.parametrize("evidence", [False, True])
@pytest.mark.parametrize("change", ["add", "remove", "correct", "all", "none"])
def test_an_update_is_the_solution_of_the_new_system(monkeypatch, weight, evidence, change):
    monkeypatch.setattr(  # count only what is read before the relaxation
        update, "relax_locally", lambda *a, **o: replace(relax_locally(*a, **o), edge_visits=0)
    )
    options = {"self_loop": 0.2, "label_weight": weight}
    if evidence:
        options["evidence"] = 0.1 * np.random.default_rng(5).standard_normal((60, 3))
    before = system(60, 8, 3, **options)
    nodes, targets = before.labeled, before.targets.copy()
    spare = np.setdiff1d(np.arange(60), nodes)[:2]
    if change in ("correct", "all"):
        targets[3, 1] += 1.0
    if change in ("remove", "all"):
        nodes, targets = np.delete(nodes, [0, 5]), np.delete(targets, [0, 5], axis=0)
    if change in ("add", "all"):
        nodes = np.append(nodes, spare)
        targets = np.vstack([targets, np.ones((2, 3))])
    after = replace(before, labeled=nodes, targets=targets)
    scores = dense(before)
    found = update_scores(before, after, scores, tol=1e-11)
    exact = dense(after)
    np.testing.assert_allclose(found.values, exact, atol=1e-8)
    np.testing.assert_allclose(scores, dense(before), atol=0)
    assert found.converged
    assert found.residual <= 1e-11
    if change == "none":
        assert (found.rounds, found.iterations, found.edge_visits, found.active) == (0, 0, 0, 0)
    elif weight is np.inf:
        # Labels that stay are not read: only rows of given and removed labels are.
        old = dict(zip(before.labeled.tolist(), before.targets.tolist(), strict=True))
        new = dict(zip(nodes.tolist(), targets.tolist(), strict=True))
        changed = [i for i in range(60) if old.get(i) != new.get(i)]
        read = 3 * int(np.diff(after.adjacency.indptr)[changed].sum())
        assert found.edge_visits == read


@pytest.mark.parametrize("weight", [np.inf, 0.02])
def test_the_goal_of_an_update_is_relative_to_the_scaled_right_hand_side(monkeypatch, weight):
    W = sp.csr_array(0.01 * graph(40))
    before = LabeledSystem(
        W, np.asarray(W.sum(axis=1)), np.array([1, 5, 9]), np.eye(3), label_weight=weight
    )
    after = replace(before, targets=before.targets[::-1])
    sizes = []

    def spy(adjacency, diagonal, free, residual, size, **options):
        sizes.append(size)
        return relax_locally(adjacency, diagonal, free, residual, size, **options)

    monkeypatch.setattr(update, "relax_locally", spy)
    update_scores(before, after, dense(before), tol=1e-6)
    rows_ = after.unknown
    b = after.rhs[rows_] / np.sqrt(after.total[rows_])[:, None]
    np.testing.assert_allclose(sizes, [np.linalg.norm(b, axis=0)], rtol=1e-12)


def test_the_reported_residual_is_that_of_the_correction():
    W = graph(50, 2)
    d = np.asarray(W.sum(axis=1)) + 0.3
    free = np.arange(50) % 9 != 0
    b = np.zeros((50, 2))
    b[[1, 30], [0, 1]] = 1.0, -2.0
    size = np.array([3.0, 5.0])
    for tol in (1e-1, 1e-3, 1e-8):
        left = b.copy()
        found = relax_locally(W, d, free, left, size, tol=tol)
        K = np.diag(d) - W.toarray()
        true = np.where(free[:, None], b - K @ found.values, 0.0)
        np.testing.assert_allclose(left, true, atol=1e-12)
        norms = np.linalg.norm(true / np.sqrt(d)[:, None], axis=0) / size
        assert found.residual == pytest.approx(norms.max(), rel=1e-6)
        assert found.converged
        assert found.residual <= tol
        assert (found.values[~free] == 0).all()
    loose = relax_locally(W, d, free, b.copy(), size, tol=10.0)
    assert (loose.rounds, loose.iterations, loose.edge_visits, loose.active) == (0, 0, 0, 0)
    assert loose.converged


def test_a_limited_number_of_rounds_is_reported(monkeypatch):
    """A solver that does nothing never converges, so all rounds are made."""
    W = graph(20, 2)
    d = np.asarray(W.sum(axis=1)) + 0.3
    calls = []

    def idle(A, b, **options):
        calls.append(options["tol"])
        result = solve_spd(A, b, **options)
        return replace(result, x=np.zeros_like(b), method="cg", iterations=5, matvecs=7)

    monkeypatch.setattr(update, "solve_spd", idle)
    b = np.zeros((20, 2))
    b[3] = 1.0
    found = relax_locally(W, d, np.ones(20, bool), b, np.ones(2), tol=1e-3)
    assert (found.rounds, found.iterations, len(calls)) == (100, 500, 100)
    assert set(calls) == {update.REDUCTION}
    assert not found.converged
    assert found.residual == pytest.approx(1 / np.sqrt(d[3]))
    # The rings are read once; each round reads the inner entries 7 times and the rows 3 times.
    inside = shortest_path(W, unweighted=True, indices=3) <= update.RINGS
    assert found.active == inside.sum()
    inner, outer = int(W[inside][:, inside].nnz), int(W[inside].nnz)
    hops = shortest_path(W, unweighted=True, indices=3)
    once = int(np.diff(W.indptr)[hops < update.RINGS].sum())
    assert found.edge_visits == once + 100 * (7 * inner + 3 * outer)


def test_a_factorisation_counts_as_one_read_per_column():
    W = ring(12)
    b = np.zeros((12, 2))
    b[0] = 1.0
    found = relax_locally(W, np.full(12, 1e3), np.ones(12, bool), b, np.ones(2), tol=1e-4)
    # One round on the seven nodes around the change: 12 inner entries, 14 in their rows.
    assert (found.rounds, found.iterations, found.active) == (1, 0, 7)
    assert found.edge_visits == (2 + 4 + 4) + 2 * 12 + 3 * 14


def test_the_smallest_residuals_are_ignored_together():
    """They may add up to 0.8 of the goal."""
    scaled = np.array([[0.0], [0.4], [-0.3], [0.5], [9.0]])
    goal = np.array([1.0])
    # 0.3^2 + 0.4^2 + 0.5^2 = 0.5 < 0.64
    np.testing.assert_array_equal(update._carriers(scaled, goal), [4])
    # 0.4^2 + 0.3^2 + 0.9^2 > 0.64
    scaled[3] = 0.9
    np.testing.assert_array_equal(update._carriers(scaled, goal), [3, 4])
    np.testing.assert_array_equal(update._carriers(scaled, goal / 100), [2, 1, 3, 4])
    np.testing.assert_array_equal(update._carriers(scaled * [[1.0, 0.0]], np.ones(2)), [3, 4])


@pytest.mark.parametrize("seed", range(3))
def test_the_active_set_grows_by_rings_of_free_nodes(seed):
    n = 80
    W = graph(n, seed, density=0.01)
    free = np.random.default_rng(seed).random(n) < 0.9
    start = np.flatnonzero(free)[[3, 40]]
    active = np.zeros(n, dtype=bool)
    visits = update._enlarge(W, active, start, free)
    inner = W.toarray() * free * free[:, None]
    hops = shortest_path(sp.csr_array(inner), unweighted=True, indices=start).min(axis=0)
    np.testing.assert_array_equal(active, hops <= update.RINGS)
    assert visits == np.diff(W.indptr)[hops < update.RINGS].sum()
    assert update._enlarge(W, active, start, free) == 0  # they are active already
