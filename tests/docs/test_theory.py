"""The statements of docs/theory.md, each on 1,000 random instances.

The page ends in a table of its statements; the last test here holds it against the names in this
file. Instances are small (4 to 8 nodes), half of them with the normalised Laplacian, a third with
evidence; a violation beyond rounding in a single one is a failure.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import gdpa
from gdpa.gershgorin import discs, linearize
from gdpa.gershgorin.bounds import aligned_bound, relaxation_bound
from gdpa.problem.dual import (
    build_H,
    build_H_bar,
    build_H_tilde,
    dual_objective,
    error_bound,
    optimal_point,
    optimal_value,
)
from gdpa.solution import DualVariables
from gdpa.solvers.gdpa_lp import closed_form, constraints, highs
from reproduction.solvers import SDRPrinted

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "theory.md"
COUNT = 1000
EPS = 1e-9


@dataclass
class Instance:
    """A problem, a random dual point, and what several statements need of them."""

    problem: gdpa.GraphProblem
    rng: np.random.Generator
    dual: DualVariables

    @cached_property
    def L(self) -> np.ndarray:
        return self.problem.L.toarray()

    @cached_property
    def H(self) -> np.ndarray:
        return build_H(self.problem, self.dual).toarray()

    @cached_property
    def H_bar(self) -> np.ndarray:
        return build_H_bar(self.problem, self.dual).toarray()

    @cached_property
    def labelings(self) -> np.ndarray:
        """All sign vectors that agree with the labels."""
        p = self.problem
        rows = np.array(list(itertools.product([-1.0, 1.0], repeat=p.unlabeled.size)))
        x = np.tile(p.labels.astype(float), (rows.shape[0], 1))
        x[:, p.unlabeled] = rows
        return x

    @cached_property
    def values(self) -> np.ndarray:
        """Their objective."""
        x = self.labelings
        return np.einsum("ij,jk,ik->i", x, self.L, x) - 2 * x @ self.problem.bias

    @cached_property
    def sdr(self) -> float:
        """Value of the relaxation, from below: certified, and off by the solver's tolerance."""
        return float(gdpa.solve(self.problem, "sdr-interior-point").lower_bound)


def make(seed: int, *, laplacian: str | None = None, evidence: bool | None = None) -> Instance:
    rng = np.random.default_rng(seed)
    n = 4 + seed % 5
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    W += np.diag(rng.uniform(0.1, 1, n - 1), 1)  # a path keeps it connected
    labels = np.zeros(n, dtype=int)
    where = rng.permutation(n)[: rng.integers(2, n - 1)]
    labels[where] = rng.choice([-1, 1], where.size)
    labels[where[:2]] = 1, -1
    h = rng.normal(size=n) * 0.5
    h[labels != 0] = 0.0
    with_evidence = seed % 3 == 0 if evidence is None else evidence
    kind = laplacian or ("combinatorial", "normalized")[seed % 2]
    problem = gdpa.GraphProblem(W + W.T, labels, bias=h if with_evidence else None, laplacian=kind)
    a = rng.exponential(size=problem.n_labeled)
    y = rng.normal(size=n + 1)
    return Instance(problem, rng, DualVariables(y, -problem.labels[problem.labeled] * a))


@pytest.fixture(scope="module")
def instances() -> list[Instance]:
    return [make(seed) for seed in range(COUNT)]


@pytest.fixture(scope="module")
def plain() -> list[Instance]:
    """Without evidence."""
    return [make(seed, evidence=False) for seed in range(COUNT)]


def lowest(A: np.ndarray) -> float:
    return float(np.linalg.eigvalsh(A)[0])


def raised(dual: DualVariables, by: float) -> DualVariables:
    return DualVariables(dual.y + by, dual.z)


# --- the relaxation and its dual -----------------------------------------------------------------


def test_weak_duality(instances):
    for it in instances:
        feasible = raised(it.dual, -lowest(it.H))
        fixed = 2.0 * float(
            it.problem.bias[it.problem.labeled] @ it.problem.labels[it.problem.labeled]
        )
        assert -dual_objective(it.problem, feasible) - fixed <= it.values.min() + EPS


def test_relaxation_is_below_the_problem(instances):
    for it in instances:
        assert it.sdr <= it.values.min() + EPS


# --- the split apex ------------------------------------------------------------------------------


def test_signs_of_z_cost_nothing(instances):
    for it in instances:
        p, k = it.problem, int(it.rng.integers(it.problem.n_labeled))
        i, t = p.labeled[k], it.rng.exponential()
        y, z = it.dual.y.copy(), it.dual.z.copy()
        y[[i, -1]] += t
        z[k] -= t * p.labels[i]
        moved = DualVariables(y, z)
        e = np.zeros(p.n_nodes + 1)
        e[i], e[-1] = 1.0, -p.labels[i]
        assert np.allclose(build_H(p, moved).toarray(), it.H + t * np.outer(e, e), atol=EPS)
        assert dual_objective(p, moved) == pytest.approx(dual_objective(p, it.dual), abs=EPS)


def test_lemma1_where_H_is_psd(instances):
    for it in instances:
        up = max(0.0, -lowest(it.H)) + it.rng.exponential()
        # Raising y lifts H by `up` on its whole diagonal; H_bar is built anew from the new point.
        point = raised(it.dual, up)
        H = build_H(it.problem, point).toarray()
        H_bar = build_H_bar(it.problem, point).toarray()
        assert lowest(H) >= -EPS
        assert lowest(H_bar) <= lowest(H) + EPS


def test_lemma1_fails_where_H_is_not_psd():
    problem = gdpa.GraphProblem([[0.0, 1.0], [1.0, 0.0]], [1, -1])
    dual = DualVariables(y=np.array([-4.0, 2.0, -1.0]), z=np.array([-3.0, 0.0]))
    assert lowest(build_H(problem, dual).toarray()) == pytest.approx(-5.2426, abs=1e-4)
    assert lowest(build_H_bar(problem, dual).toarray()) == pytest.approx(-4.3589, abs=1e-4)


def test_lemma1_fails_at_random_points_too(instances):
    broken = [it for it in instances if lowest(it.H_bar) > lowest(it.H) + 1e-6]
    assert broken
    assert all(lowest(it.H) < 0 for it in broken)


def test_what_survives_of_lemma1(instances):
    for it in instances:
        values, vectors = np.linalg.eigh(it.H)
        assert lowest(it.H_bar) <= values[0] / (1.0 + vectors[-1, 0] ** 2) + EPS
        if values[0] < -EPS:
            assert lowest(it.H_bar) < 0  # so H_bar psd implies H psd


def test_lemma2(instances):
    for it in instances:
        phi = it.rng.exponential()
        H_tilde = build_H_tilde(it.problem, it.dual, phi).toarray()
        assert lowest(H_tilde - it.H) >= -EPS
        assert lowest(it.H) <= lowest(H_tilde) + EPS


def test_split_dual_is_above_the_dual(instances):
    for it in instances:
        assert optimal_value(it.problem) >= -it.sdr - 1e-5 * (1.0 + abs(it.sdr))


# --- the error bound -----------------------------------------------------------------------------


def test_papers_phi_gives_no_bound_in_many_instances(plain):
    # phi = 1 is the largest |z| of the paper's start. F(H_tilde) must not exceed F(H) = -SDR.
    broken = sum(error_bound(it.problem, 1.0).F_tilde > -it.sdr + 1e-3 for it in plain)
    assert 0.25 * COUNT < broken < 0.75 * COUNT


def test_safe_phi_bounds_the_gap(instances):
    for it in instances:
        found = error_bound(it.problem)
        assert found.F_tilde <= -it.sdr + EPS
        assert optimal_value(it.problem) + it.sdr <= found.bound + EPS


def test_safe_bound_is_a_constant_plus_the_votes_objective(plain):
    for it in plain:
        p = it.problem
        x = p.labels.astype(float)
        x[p.unlabeled] = np.where(p.vote == 0, p.majority, np.where(p.vote < 0, -1.0, 1.0))
        expected = max(float(p.objective(x)) - it.L.sum(), 0.0)
        assert error_bound(p).bound == pytest.approx(expected, abs=1e-9)


def test_unrestricted_bound_is_circular(plain):
    """H_tilde is H at another point, whose objective is larger by 4 phi M_minus."""
    for it in plain:
        p, phi = it.problem, it.rng.exponential()
        y = it.dual.y + phi * np.append(p.labels != 0, p.n_labeled)
        other = DualVariables(y, it.dual.z - phi)
        tilde = build_H_tilde(p, it.dual, phi).toarray()
        assert np.allclose(tilde, build_H(p, other).toarray(), atol=EPS)
        rise = 4.0 * phi * (p.labels < 0).sum()
        assert dual_objective(p, other) == pytest.approx(dual_objective(p, it.dual) + rise, abs=EPS)


# --- alignment -----------------------------------------------------------------------------------


def test_perfect_alignment(instances):
    for it in instances:
        values, vectors = np.linalg.eigh(it.H_bar)
        v = vectors[:, 0]
        assert np.abs(v).min() > 0
        ends = discs(it.H_bar, v=np.abs(v)).left_ends
        size = 1.0 + np.abs(it.H_bar).max() / np.abs(v).min()
        np.testing.assert_allclose(ends, values[0], atol=1e-12 * size)


def test_rows_are_sufficient_for_any_scaling(instances):
    for it in instances:
        v = np.exp(it.rng.normal(size=it.H_bar.shape[0]))
        assert lowest(it.H_bar) >= discs(it.H_bar, v=v).left_ends.min() - EPS


# --- fact 1 --------------------------------------------------------------------------------------


def test_fact1_the_split_dual_does_not_see_the_labels(instances):
    for it in instances:
        p = it.problem
        w = np.append(np.ones(p.n_nodes + 1), -1.0)
        expected = dual_objective(p, it.dual) + it.L.sum() - 2 * np.abs(p.bias[p.unlabeled]).sum()
        assert w @ it.H_bar @ w == pytest.approx(expected, abs=EPS)


def test_fact1_optimal_face(instances):
    for it in instances:
        p = it.problem
        a = it.rng.exponential(size=p.n_labeled) * it.rng.integers(0, 2, p.n_labeled)
        point = optimal_point(p, a)
        assert dual_objective(p, point) == pytest.approx(optimal_value(p), abs=EPS)
        assert lowest(build_H_bar(p, point).toarray()) >= -EPS


def start(p: gdpa.GraphProblem) -> DualVariables:
    """The point from which the paper starts."""
    y = np.append((p.labels != 0).astype(float), float(p.n_labeled))
    return DualVariables(y, -p.labels[p.labeled].astype(float))


def test_start_is_optimal_for_the_combinatorial_laplacian_only():
    for seed in range(COUNT):
        it = make(seed, laplacian="combinatorial", evidence=False)
        assert dual_objective(it.problem, start(it.problem)) == pytest.approx(
            optimal_value(it.problem), abs=EPS
        )
        it = make(seed, laplacian="normalized", evidence=False)
        off = dual_objective(it.problem, start(it.problem)) - optimal_value(it.problem)
        assert off == pytest.approx(it.L.sum(), abs=EPS)
        degrees = it.problem.W.sum(axis=1)
        assert (off > EPS) == (np.ptp(degrees) > 1e-6)


# --- fact 2 --------------------------------------------------------------------------------------


def test_fact2_closed_form_is_the_optimum_of_the_linear_program(plain):
    for it in plain:
        v = np.exp(it.rng.normal(size=it.problem.n_nodes + 2))
        ours, simplex = closed_form(it.problem, v), highs(it.problem, v)
        assert not ours.a.any()  # no incumbent: the labels' weights are 0
        scale = 1.0 + np.abs(ours.y).sum()
        assert abs(ours.objective - simplex.objective) <= 1e-8 * scale


def test_fact2_reduced_costs(plain):
    for it in plain:
        p = it.problem
        v = np.exp(it.rng.normal(size=p.n_nodes + 2))
        cost, G, _ = constraints(p, v)
        n, positive = p.n_nodes, p.labels[p.labeled] > 0
        r = np.where(positive, v[n], v[n + 1]) / v[p.labeled]
        reduced = cost - G.T @ np.ones(n + 2)  # multiplier 1 on every row
        assert np.allclose(reduced[: n + 1], 0.0)
        assert np.allclose(reduced[n + 1 :], (r - 1.0) ** 2 / r)
        # r = 1 on all labels: every a is as good as 0.
        v[p.labeled] = v[n] = v[n + 1] = 1.0
        a = it.rng.exponential(size=p.n_labeled)
        cost, G, g = constraints(p, v)
        y = closed_form(p, v).y.copy()
        y[p.labeled] += a
        y[-1] += a.sum()
        t = np.append(y, a)
        assert (G @ t - g >= -1e-9).all()
        assert cost @ t == pytest.approx(closed_form(p, v).objective, abs=1e-9)


# --- fact 3 --------------------------------------------------------------------------------------


def test_fact3_the_published_variant_is_the_vote():
    pytest.importorskip("clarabel", reason="the interior point is Clarabel (extra sdp)")
    for seed in range(COUNT):
        rng = np.random.default_rng(seed)
        n = 6 + seed % 5
        X = rng.normal(size=(n, 3))
        W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
        np.fill_diagonal(W, 0.0)
        labels = rng.choice([-1, 0, 1], n)
        labels[:3] = 1, -1, 0
        problem = gdpa.GraphProblem(W, labels, laplacian="normalized")
        vote = gdpa.solve(problem, "vote")
        clear = np.abs(vote.scores) > 1e-3 * np.abs(vote.scores).max()
        published = gdpa.solve(problem, "gdpa-published")
        assert np.array_equal(published.labels[clear], vote.labels[clear])


# --- fact 4 --------------------------------------------------------------------------------------


def test_fact4_the_problem_is_a_minimum_cut(instances):
    for it in instances:
        found = gdpa.solve(it.problem, "min-cut").objective
        assert found == pytest.approx(it.values.min(), abs=1e-9)


# --- fact 5 --------------------------------------------------------------------------------------


def linear_system(L, labels, a, gamma=0.0, h=0.0):
    """(L + diag(a + gamma + |h|)) x = a xh + h."""
    return np.linalg.solve(L + np.diag(a + gamma + np.abs(h)), a * labels + h)


def test_fact5_slackness_gives_the_linear_system(instances):
    """Where lmin(H) = 0 with a null vector v, v[:-1] / v[-1] solves the linear system at y."""
    for it in instances:
        # A point with a singular H: raise the apex until the Schur complement is 0.
        p = it.problem
        y = np.append(it.rng.exponential(size=p.n_nodes) + 0.1, 0.0)
        g = build_H(p, DualVariables(y, it.dual.z)).toarray()[:-1, -1]
        K = it.L + np.diag(y[:-1])
        y[-1] = g @ np.linalg.solve(K, g)
        H = build_H(p, DualVariables(y, it.dual.z)).toarray()
        values, vectors = np.linalg.eigh(H)
        assert values[0] == pytest.approx(0.0, abs=1e-8)
        x = np.linalg.solve(K, -g)
        np.testing.assert_allclose(
            vectors[:-1, 0] / vectors[-1, 0], x, atol=1e-6 * (1 + abs(x).max())
        )


def first_eigenvector_labels(W, labels):
    p = gdpa.GraphProblem(W, labels)
    v = np.linalg.eigh(build_H(p, optimal_point(p, 1.0)).toarray())[1][:, 0]
    first = int(p.labeled[0])
    return np.where(labels[first] * v[first] * v[:-1] >= 0, 1, -1)


def kernel_graph(rng, n, distance):
    y = np.where(np.arange(n) < n // 2, 1, -1)
    X = rng.normal(size=(n, 2))
    X[:, 0] += distance * y / 2
    W = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    labels = np.zeros(n, dtype=int)
    for sign in (1, -1):
        labels[rng.choice(np.flatnonzero(y == sign), 2, replace=False)] = sign
    return W, labels, y


def test_fact5_the_first_eigenvector_has_one_class_without_a_gap():
    one_class, separated = {}, {}
    for distance in (0.0, 8.0):
        one_class[distance] = separated[distance] = 0
        for seed in range(COUNT):
            W, labels, y = kernel_graph(np.random.default_rng(seed), 20, distance)
            x, u = first_eigenvector_labels(W, labels), labels == 0
            one_class[distance] += abs(x[u].sum()) == u.sum()
            separated[distance] += np.mean(x[u] != y[u]) < 0.05
    assert one_class[0.0] > 0.5 * COUNT
    assert separated[0.0] < 0.05 * COUNT
    assert separated[8.0] > 0.5 * COUNT


# --- fact 6 --------------------------------------------------------------------------------------


def harmonic(L, labels):
    u, l = labels == 0, labels != 0  # noqa: E741 - the paper's names
    return np.linalg.solve(L[np.ix_(u, u)], -L[np.ix_(u, l)] @ labels[l])


def test_fact6_heavy_labels_are_the_harmonic_function(plain):
    for it in plain:
        labels = it.problem.labels.astype(float)
        x = linear_system(it.L, labels, 1e9 * (labels != 0))
        np.testing.assert_allclose(x[labels == 0], harmonic(it.L, labels), atol=1e-5)


def test_fact6_light_labels_are_poisson_learning():
    for seed in range(COUNT):
        it = make(seed, laplacian="combinatorial", evidence=False)
        labels = it.problem.labels.astype(float)
        known = labels != 0
        a = 1e-6
        x = linear_system(it.L, labels, a * known)
        mean = labels[known].mean()
        poisson = np.linalg.pinv(it.L) @ (known * (labels - mean))
        deviation = (x - x.mean()) / a
        np.testing.assert_allclose(deviation, poisson - poisson.mean(), atol=1e-3)


def test_fact6_a_heavy_self_loop_is_the_vote(plain):
    for it in plain:
        p, labels = it.problem, it.problem.labels.astype(float)
        gamma, u = 1e7, it.problem.labels == 0
        a = np.where(u, 0.0, 1e12)
        x = linear_system(it.L, labels, a, gamma * u)
        np.testing.assert_allclose(gamma * x[u], p.vote, atol=1e-4)


def test_fact6_a_negative_self_loop_is_the_clamped_eigenvector(plain):
    for it in plain:
        labels, u = it.problem.labels.astype(float), it.problem.labels == 0
        L_uu = it.L[np.ix_(u, u)]
        values, vectors = np.linalg.eigh(L_uu)
        if values.size > 1 and values[1] - values[0] < 1e-3:
            continue
        drive = -it.L[np.ix_(u, ~u)] @ labels[~u]
        v = vectors[:, 0]
        if abs(v @ drive) < 1e-3 * np.linalg.norm(drive):
            continue
        x = np.linalg.solve(L_uu - (values[0] - 1e-9) * np.eye(v.size), drive)
        cosine = abs(x @ v) / np.linalg.norm(x)
        assert cosine == pytest.approx(1.0, abs=1e-6)


def test_fact6_box_is_never_active_for_the_combinatorial_laplacian():
    active = 0
    for seed in range(COUNT):
        it = make(seed, laplacian="combinatorial", evidence=False)
        assert np.abs(harmonic(it.L, it.problem.labels)).max() <= 1.0 + EPS
        it = make(seed, laplacian="normalized", evidence=False)
        active += np.abs(harmonic(it.L, it.problem.labels)).max() > 1.0 + EPS
    assert active > 0  # the maximum principle is one of the combinatorial Laplacian


def test_fact6_leaving_one_label_out(instances):
    for it in instances:
        p = it.problem
        labels, h = p.labels.astype(float), np.where(p.labels == 0, p.bias, 0.0)
        known = p.labels != 0
        a = np.where(known, it.rng.exponential(size=p.n_nodes) + 0.1, 0.0)
        gamma = 0.1
        x = linear_system(it.L, labels, a, gamma, h)
        S = np.linalg.inv(it.L + np.diag(a + gamma + np.abs(h)))[:, known] * a[known]
        i = int(p.labeled[0])
        s = S[i, 0]
        without = np.where(np.arange(p.n_nodes) == i, 0.0, a)
        direct = linear_system(it.L, labels, without, gamma, h)[i]
        assert (x[i] - s * labels[i]) / (1.0 - s) == pytest.approx(direct, abs=1e-8)


# --- both forms of the relaxation, and the linearisation ------------------------------------------


def test_printed_form_is_the_weaker_relaxation(instances):
    lower = 0
    for it in instances:
        printed = SDRPrinted().solve(it.problem).info["sdr_value"]
        usual = gdpa.solve(it.problem, "sdr-interior-point").info["sdr_value"]
        assert printed <= usual + 1e-5 * (1.0 + abs(usual))
        lower += printed < usual - 1e-2
    assert lower > 0.1 * COUNT


def diagonal_family(n):
    return [sp.csr_array(([1.0], ([k], [k])), shape=(n, n)) for k in range(n)]


def test_linearisation_by_multipliers_reaches_the_optimum():
    # min c't subject to diag(t) - W psd has the optimum sqrt(c)' W sqrt(c): X = sqrt(c) sqrt(c)'.
    # Fifty graphs of three nodes are one graph of 150: the LPs fall apart into theirs.
    together, stalled = 50, 0
    for seed in range(COUNT // together):
        rng = np.random.default_rng(seed)
        upper = [np.triu(rng.uniform(0.1, 1.0, (3, 3)), 1) for _ in range(together)]
        W = sp.block_diag([part + part.T for part in upper], format="csr")
        c = rng.uniform(0.5, 2.0, 3 * together)
        theta0 = np.asarray(W.sum(axis=1)).ravel() + rng.exponential(size=c.size)
        found = linearize(c, -W, diagonal_family(c.size), theta0=theta0, update="dual")
        optima = (np.sqrt(c) * (W @ np.sqrt(c))).reshape(together, 3).sum(axis=1)
        np.testing.assert_allclose((c * found.theta).reshape(together, 3).sum(axis=1), optima)
        first = (c[:3], -W[:3, :3], diagonal_family(3))
        single = linearize(*first, theta0=theta0[:3], update="eigenvector")
        assert single.objective >= optima[0] - EPS
        stalled += single.objective > 1.001 * optima[0]
    assert stalled > 0.5 * COUNT // together


# --- the certificate -----------------------------------------------------------------------------


def test_certificate_of_the_discs(plain):
    for it in plain:
        p = it.problem
        A, u, known = -it.L + np.diag(np.diag(it.L)), p.unlabeled, p.labeled
        xh = p.labels[known].astype(float)
        P = np.zeros((u.size + 1, u.size + 1))
        P[:-1, :-1] = A[np.ix_(u, u)]
        P[:-1, -1] = P[-1, :-1] = A[np.ix_(u, known)] @ xh
        constant = np.diag(it.L).sum() - xh @ A[np.ix_(known, known)] @ xh
        s = np.abs(P).sum(axis=1)
        assert lowest(np.diag(s) - P) >= -EPS
        assert constant - s.sum() <= it.values.min() + EPS
        v = np.exp(it.rng.normal(size=s.size))
        assert (np.abs(P) * v[None, :] / v[:, None]).sum() >= s.sum() - EPS


def test_relaxation_bound_of_aligned_discs(instances):
    for it in instances[:COUNT]:
        p = it.problem
        u, c = p.unlabeled, p.vote
        W = p.adjacency.toarray()[np.ix_(u, u)]
        x, y = it.rng.normal(size=u.size), it.rng.exponential(size=u.size) + 1e-3
        A = np.diag(W @ y / y) - W
        assert lowest(A) >= -EPS * (1 + np.abs(A).max())
        bound = p.constant - np.trace(A) - x @ A @ x - 2 * np.abs(c - A @ x).sum()
        assert bound <= it.values.min() + EPS
        fast = aligned_bound(p.adjacency, c, p.constant, x, y, W @ x, W @ y)
        assert fast == pytest.approx(bound, rel=1e-9, abs=1e-9)
        assert (
            relaxation_bound(p, it.rng.normal(size=p.n_nodes)) <= it.sdr + 1e-5 * abs(it.sdr) + 1e-5
        )


# --- the page ------------------------------------------------------------------------------------


def test_the_pages_table_names_every_test_of_this_file():
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Statements and their tests") :]
    named = set(re.findall(r"`(test_\w+)`", table))
    here = {name for name in globals() if name.startswith("test_")}
    assert named == here - {"test_the_pages_table_names_every_test_of_this_file"}
