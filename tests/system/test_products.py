"""The system that is not stored has the solution of the stored one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph.adjacency import laplacian_parts
from gdpa.linalg.operator import Difference, Matrix, UnitDiagonal
from gdpa.linalg.spd import choose_preconditioner
from gdpa.policy import Policy
from gdpa.system import LabeledSystem, ReorderedGraph

ALWAYS = Policy(dense_below=0, slow_rows=0)


@pytest.fixture(params=["jacobi", "two-level", "cholesky-cg"])
def engine(request):
    """Each of the ways that "auto" may take."""
    steps = 10**9 if request.param == "jacobi" else 0
    policy = replace(ALWAYS, jacobi_steps=steps)
    if request.param == "cholesky-cg":
        policy = replace(policy, full_least=0, full_most=100, factor_products=-(10**9))
    return request.param, policy


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize(
    "system",
    [
        {"self_loop": 0.0},
        {"self_loop": 0.3},
        {"self_loop": 0.1, "label_weight": 2.0},
        {"self_loop": "per node", "label_weight": "per label"},
        {"self_loop": 0.0, "evidence": "one", "label_weight": np.inf},
        {"self_loop": 0.1, "evidence": "one", "evidence_weight": "none", "label_weight": 1.0},
    ],
)
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_scores_solve_the_definition(engine, random_graph, laplacian, system, columns):
    n, rng = 80, np.random.default_rng(0)
    W = random_graph(n, 3)
    A, d = laplacian_parts(W, laplacian)
    labeled = np.sort(rng.permutation(n)[:12])
    targets = rng.normal(size=(12, columns))
    options = dict(system)
    loop = rng.uniform(0.05, 1.0, n) if system["self_loop"] == "per node" else system["self_loop"]
    options["self_loop"] = loop
    weight = system.get("label_weight", np.inf)
    if isinstance(weight, str):
        weight = options["label_weight"] = rng.uniform(0.5, 2.0, 12)
    h = np.zeros((n, columns))
    e = np.zeros(n)
    if "evidence" in system:
        h = options["evidence"] = rng.normal(size=(n, columns))
        e = np.abs(h).sum(axis=1)
    if "evidence_weight" in system:
        e = options["evidence_weight"] = np.zeros(n)
    found = LabeledSystem(A, d, labeled, targets, policy=engine[1], **options).solve(tol=1e-12)
    assert found.method == ("cholesky-cg" if engine[0] == "cholesky-cg" else "cg")
    assert found.converged
    # The definition, densely: rows of clamped labels are replaced by their targets.
    K = np.diag(d + loop + e) - A.toarray()
    b = h.copy()
    if np.isinf(weight).all():
        K[labeled] = np.eye(n)[labeled]
        b[labeled] = targets
    else:
        K[labeled, labeled] += weight
        b[labeled] += np.reshape(weight, (-1, 1)) * targets
    expected = np.linalg.solve(K, b)
    np.testing.assert_allclose(found.x, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_a_start_at_the_solution_needs_no_step(random_graph):
    A, d = laplacian_parts(random_graph(60, 1), "normalized")
    system = LabeledSystem(A, d, np.array([3, 40]), np.array([1.0, -1.0]), policy=ALWAYS)
    first = system.solve(tol=1e-10)
    again = system.solve(tol=1e-8, x0=first.x)
    assert again.iterations == 0
    np.testing.assert_allclose(again.x, first.x, atol=1e-12)


def test_a_node_without_any_weight_is_left_to_the_stored_system():
    A = np.zeros((4, 4))
    A[0, 1] = A[1, 0] = 1.0
    W = sp.csr_array(A)
    diagonal = W.sum(axis=1)
    found = LabeledSystem(W, diagonal, np.array([0]), np.array([1.0]), policy=ALWAYS).solve()
    np.testing.assert_allclose(found.x, [1.0, 1.0, 0.0, 0.0], atol=1e-12)


def test_few_labels_and_no_self_loop_get_the_stronger_preconditioner(random_graph):
    A, d = laplacian_parts(random_graph(60, 1), "normalized")
    total = np.where(np.arange(60) == 3, 0.0, d)
    unit = UnitDiagonal(Difference(Matrix(A), total))
    assert choose_preconditioner(unit, 1e-6, 1, Policy(slow_rows=0, jacobi_steps=10**9)) == "jacobi"
    assert choose_preconditioner(unit, 1e-6, 1, Policy(slow_rows=0, jacobi_steps=0)) == "two-level"


@pytest.mark.parametrize("columns", [1, 4])
def test_what_is_not_stored_is_the_difference_without_what_is_left_out(random_graph, columns):
    A, d = laplacian_parts(random_graph(40, 5), "combinatorial")
    total = np.where(np.arange(40) % 9 == 4, 0.0, d + 0.5)
    K = np.diag(total) - A.toarray()
    K[total == 0], K[:, total == 0] = 0.0, 0.0
    unit = UnitDiagonal(Difference(Matrix(A), total))
    Y = np.random.default_rng(0).normal(size=(40, columns))
    stored = UnitDiagonal(Matrix(K))
    np.testing.assert_allclose(unit.toarray(), stored.toarray(), atol=1e-14)
    assert unit.smallest() == pytest.approx(K.sum() / np.trace(K))
    inside = np.where(total[:, None] == 0, 0.0, Y)
    np.testing.assert_allclose(unit.dot(inside), stored.dot(inside), atol=1e-13)


@pytest.mark.parametrize("columns", [1, 3])
def test_the_order_of_the_nodes_does_not_show(random_graph, columns):
    n, rng = 300, np.random.default_rng(2)
    A, d = laplacian_parts(random_graph(n, 2), "normalized")
    labeled, targets = np.arange(0, n, 20), rng.normal(size=(15, columns))
    order = rng.permutation(n).astype(np.int32)
    arranged = ReorderedGraph(Matrix(sp.csr_array(A[order][:, order])), order)
    system = LabeledSystem(A, d, labeled, targets, self_loop=0.1, policy=ALWAYS)
    plain = system.solve(tol=1e-12)
    other = replace(system, arranged=arranged).solve(tol=1e-12, x0=0.5 * plain.x)
    np.testing.assert_allclose(other.x, plain.x, atol=1e-10)
