"""Max-cut, QUBO and Ising problems mean what their users mean; bad input is named."""

from __future__ import annotations

import itertools

import dimod
import networkx
import numpy as np
import pytest
import scipy.sparse as sp

from gdpa import BinaryQuadratic, solve


def symmetric(rng: np.random.Generator, n: int) -> np.ndarray:
    A = np.triu(rng.integers(-5, 6, (n, n)), 1).astype(float)
    return A + A.T


@pytest.mark.parametrize("seed", range(10))
def test_values_are_those_of_the_definitions(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    W, Q, h = symmetric(rng, n), rng.normal(size=(n, n)), rng.normal(size=n)
    cut, qubo = BinaryQuadratic.max_cut(W), BinaryQuadratic.qubo(Q, constant=2.0)
    ising = BinaryQuadratic.ising(h, sp.csr_array(W), constant=-1.0)
    for u in itertools.product((0, 1), repeat=n):
        u = np.array(u)
        s = 2 * u - 1
        weight = sum(W[i, j] for i in range(n) for j in range(i) if s[i] != s[j])
        assert cut.value(s) == pytest.approx(weight, abs=1e-12)
        assert qubo.value(u) == pytest.approx(u @ Q @ u + 2.0, abs=1e-12)
        energy = h @ s + sum(W[i, j] * s[i] * s[j] for i in range(n) for j in range(i)) - 1.0
        assert ising.value(s) == pytest.approx(energy, abs=1e-12)
        assert cut.objective(s) == -cut.value(s)
        assert qubo.objective(u) == qubo.value(u)


def test_triangular_symmetric_and_asymmetric_q_are_one_problem():
    Q = np.array([[1.0, 3.0], [1.0, -2.0]])
    whole = BinaryQuadratic.qubo(Q)
    for other in (np.triu(Q) + np.tril(Q, -1).T, (Q + Q.T) / 2, sp.coo_array(Q)):
        for u in itertools.product((0, 1), repeat=2):
            assert BinaryQuadratic.qubo(other).value(u) == whole.value(u)


def test_solution_is_in_the_domain_and_direction_of_the_user():
    qubo = solve(BinaryQuadratic.qubo([[-3, 2, 2], [0, -3, 2], [0, 0, -3]]))
    assert qubo.sense == "minimise"
    assert set(qubo.labels.tolist()) <= {0, 1}
    assert qubo.value == -4.0 == qubo.bound
    cut = solve(BinaryQuadratic.max_cut(np.ones((5, 5)) - np.eye(5)))
    assert (cut.sense, cut.value, cut.bound, cut.gap) == ("maximise", 6.0, 6.0, 0.0)
    assert "value 6" in str(cut)
    assert "upper bound 6" in str(cut)


def test_networkx_there_and_back():
    graph = networkx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2.0), ("b", "c", -1.0), ("c", "a", 1.5)])
    problem = BinaryQuadratic.from_networkx(graph)
    assert problem.names == ("a", "b", "c")
    assert problem.value([1, -1, 1]) == 1.0
    couplings = problem.to_networkx()
    assert couplings["a"]["b"]["weight"] == 1.0  # half the cut's weight, times s_a s_b


def test_dimod_there_and_back():
    for vartype, values in (("BINARY", (0, 1)), ("SPIN", (-1, 1))):
        model = dimod.BinaryQuadraticModel({"a": 1.0, "b": -2.0}, {("a", "b"): 3.0}, 0.5, vartype)
        problem = BinaryQuadratic.from_dimod(model)
        again = problem.to_dimod()
        for x in itertools.product(values, repeat=2):
            sample = dict(zip("ab", x, strict=True))
            assert problem.value(x) == pytest.approx(model.energy(sample))
            assert again.energy(sample) == pytest.approx(model.energy(sample))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: BinaryQuadratic.max_cut([[0, np.nan], [np.nan, 0]]), ["W[0, 1]", "nan"]),
        (lambda: BinaryQuadratic.qubo([[0, np.inf], [0, 0]]), ["Q[0, 1]", "inf"]),
        (lambda: BinaryQuadratic.ising([0, 0], [[0, 1], [2, 0]]), ["J", "symmetric"]),
        (lambda: BinaryQuadratic.ising([0, np.nan], [[0, 1], [1, 0]]), ["h[1]", "nan"]),
        (lambda: BinaryQuadratic.ising([0], [[0, 1], [1, 0]]), ["h", "(2,)"]),
        (lambda: BinaryQuadratic.ising(None, [[1, 1], [1, 0]]), ["J[0, 0]", "h"]),
        (lambda: BinaryQuadratic.max_cut(np.zeros((0, 0))), ["W", "no nodes"]),
        (lambda: BinaryQuadratic.qubo([[1.0]]), ["Q", "one variable"]),
        (lambda: BinaryQuadratic.qubo([[1.0, 2.0]]), ["Q", "square"]),
        (lambda: BinaryQuadratic.qubo([["a", "b"], ["c", "d"]]), ["Q", "real"]),
        (lambda: BinaryQuadratic.qubo(np.eye(2), constant=np.nan), ["constant"]),
        (lambda: BinaryQuadratic(1.7e308 * (np.eye(3) - 1)), ["add up to", "1e304"]),
        (lambda: BinaryQuadratic.max_cut(np.eye(2)).value([1]), ["(2,)", "(1,)"]),
    ],
)
def test_bad_input_is_named(build, words):
    with pytest.raises(ValueError) as error:
        build()
    for word in words:
        assert word in str(error.value)


def test_values_come_in_steps_of_the_weights():
    assert BinaryQuadratic.max_cut(3.0 * (np.ones((4, 4)) - np.eye(4))).step == 3.0
    assert BinaryQuadratic.max_cut(0.1 * (np.ones((4, 4)) - np.eye(4))).step == 0.0
