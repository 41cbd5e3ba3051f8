"""The system that is not stored has the solution of the stored one."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa.graph import laplacian_parts
from gdpa.linalg.preconditioners import TwoLevel
from gdpa.solvers import implicit_system, recovery


@pytest.fixture
def always_implicit(monkeypatch):
    monkeypatch.setattr(implicit_system, "IMPLICIT_NODES", 0)
    # Small systems would be factorised: only the iteration takes an operator as it is.
    solve = recovery.solve_spd
    monkeypatch.setattr(
        recovery, "solve_spd", lambda *args, **kwargs: solve(*args, dense_below=0, **kwargs)
    )


@pytest.fixture(params=["jacobi", "two-level", "cholesky-cg"])
def engine(request, monkeypatch, always_implicit):
    """Each of the ways that "auto" may take."""
    monkeypatch.setattr(implicit_system, "JACOBI_STEPS", 1e9 if request.param == "jacobi" else 0)
    if request.param == "cholesky-cg":
        monkeypatch.setattr(implicit_system, "FULL_NODES", (0, 100))
        monkeypatch.setattr(implicit_system, "FACTOR_PRODUCTS", -1e9)
    return request.param


@pytest.mark.parametrize("laplacian", ["combinatorial", "normalized"])
@pytest.mark.parametrize(
    "system",
    [
        {"self_loop": 0.0},
        {"self_loop": 0.3},
        {"self_loop": 0.1, "label_weight": 2.0},
        {"self_loop": "per node", "label_weight": "per label"},
        {"self_loop": 0.0, "bias": "one", "label_weight": np.inf},
        {"self_loop": 0.1, "bias": "one", "bias_weight": "none", "label_weight": 1.0},
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
    if "bias" in system:
        h = options["bias"] = rng.normal(size=(n, columns))
        e = np.abs(h).sum(axis=1)
    if "bias_weight" in system:
        e = options["bias_weight"] = np.zeros(n)
    found = recovery.linear_recovery(A, d, labeled, targets, tol=1e-12, **options)
    assert found.method == ("cholesky-cg" if engine == "cholesky-cg" else "cg")
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
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_a_start_at_the_solution_needs_no_step(always_implicit, random_graph):
    A, d = laplacian_parts(random_graph(60, 1), "normalized")
    labeled, targets = np.array([3, 40]), np.array([1.0, -1.0])
    first = recovery.linear_recovery(A, d, labeled, targets, tol=1e-10)
    again = recovery.linear_recovery(A, d, labeled, targets, tol=1e-8, x0=first.scores)
    assert again.iterations == 0
    np.testing.assert_allclose(again.scores, first.scores, atol=1e-12)


def test_a_node_without_any_weight_is_left_to_the_stored_system(always_implicit):
    A = np.zeros((4, 4))
    A[0, 1] = A[1, 0] = 1.0
    import scipy.sparse as sp

    W = sp.csr_array(A)
    diagonal = W.sum(axis=1)
    found = recovery.linear_recovery(W, diagonal, np.array([0]), np.array([1.0]))
    np.testing.assert_allclose(found.scores, [1.0, 1.0, 0.0, 0.0], atol=1e-12)


def test_few_labels_and_no_self_loop_get_the_stronger_preconditioner(
    always_implicit, random_graph, monkeypatch
):
    A, d = laplacian_parts(random_graph(60, 1), "normalized")
    system = implicit_system.ImplicitSystem.of(
        A, d, np.array([3]), np.array([1.0]), 1e-6, "auto", {}
    )
    assert system is not None
    monkeypatch.setattr(implicit_system, "JACOBI_STEPS", 1e9)
    assert system.preconditioner("auto", 1e-6) == "jacobi"
    monkeypatch.setattr(implicit_system, "JACOBI_STEPS", 0)
    assert isinstance(system.preconditioner("auto", 1e-6), TwoLevel)
    assert system.preconditioner("jacobi", 1e-6) == "jacobi"
