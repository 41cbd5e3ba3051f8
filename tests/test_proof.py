"""Proof files: right claims pass, wrong ones and changed files do not."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import gdpa
from gdpa import BinaryQuadratic, Proof, verify_proof
from gdpa.graph_files import read_couplings
from gdpa.problem.cut_form import CutForm, exact_cut_form

CHECKER = verify_proof.__file__


def signed(document: dict) -> Proof:
    """The proof with a matching checksum, as somebody who wants to cheat would write it."""
    document = {**document, "checksum": ""}
    text = json.dumps(document, sort_keys=True)
    return Proof({**document, "checksum": hashlib.sha256(text.encode()).hexdigest()})


def random_problem(rng: np.random.Generator, largest: int = 9) -> BinaryQuadratic:
    n = int(rng.integers(2, largest + 1))
    A = rng.integers(-4, 5, (n, n)).astype(float)
    if rng.random() < 0.3:
        A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-4, 5)
    A *= rng.random((n, n)) < min(1.0, rng.choice([2, 4, 8, 16]) / n)
    S = np.triu(A, 1) + np.triu(A, 1).T
    kind = rng.integers(3)
    if kind == 0:
        return BinaryQuadratic.max_cut(S)
    if kind == 1:
        return BinaryQuadratic.qubo(A, constant=float(rng.integers(-3, 4)))
    return BinaryQuadratic.ising(A[0], S)


def optimum(form: CutForm) -> Fraction:
    n = form.n_variables
    signs = 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1
    if form.n > n:
        signs = np.column_stack((signs, np.ones(2**n)))
    return form.value(max(form.cut(row) for row in signs))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["branch-and-cut", "search"])
def test_right_claims_pass_and_wrong_ones_do_not(seed, method):
    rng = np.random.default_rng([seed, len(method)])
    for _ in range(10):
        problem = random_problem(rng)
        form = CutForm.of_problem(problem)
        solution = gdpa.solve(problem, method, effort=0.01)
        proof = gdpa.prove(problem, solution)
        best = optimum(form)
        sign = 1 if form.sense == "maximise" else -1
        verdict = gdpa.verify(problem, proof)
        assert verdict == "optimal" or verdict.startswith("within")
        assert sign * proof.value <= sign * best <= sign * proof.bound
        if method == "branch-and-cut" and form.step > 1e-9 * sum(map(abs, form.weights)):
            assert verdict == "optimal"
        step = form.step * form.unit or 1
        for wrong in (
            {"bound": str(proof.bound - sign * step)},
            {"value": str(proof.value + sign * step)},
            {"assignment": proof.document["assignment"][1:]},
            {"sha256": "0" * 64},
        ):
            claim = signed({**proof.document, **wrong})
            assert gdpa.verify(problem, claim).startswith("wrong, because")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_sparse_problems_have_right_steps_bounds_and_proofs(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(2, 13))
        A = np.zeros((n, n))
        pairs = rng.integers(0, n, (int(rng.integers(1, 3 * n)), 2))
        A[pairs[:, 0], pairs[:, 1]] = rng.integers(-3, 4, len(pairs)) * rng.choice([1.0, 0.125])
        S = np.triu(A, 1) + np.triu(A, 1).T
        make = [
            lambda A=A, S=S: BinaryQuadratic.max_cut(S),
            lambda A=A, S=S: BinaryQuadratic.qubo(A),
            lambda A=A, S=S: BinaryQuadratic.ising(A[0], S),
        ][int(rng.integers(3))]
        problem = make()
        form = CutForm.of_problem(problem)
        codes = np.arange(2 ** (form.n - 1))
        cuts = np.zeros(codes.size, dtype=np.int64)
        for (i, j), weight in zip(form.pairs, form.weights, strict=True):
            cuts += weight * ((codes >> i ^ codes >> j) & 1)
        assert form.step == np.gcd.reduce(cuts)
        assert problem.step == form.step * form.unit
        proof = gdpa.prove(problem, gdpa.solve(problem, "branch-and-cut", effort=0.01))
        assert gdpa.verify(problem, proof) == "optimal"
        assert proof.value == form.value(int(cuts.max()))


def torus_proof() -> tuple[BinaryQuadratic, Proof]:
    """The proof of a torus, which has cycles but neither branches nor reductions."""
    rng = np.random.default_rng(0)
    node = np.arange(36).reshape(6, 6)
    W = np.zeros((36, 36))
    for other in (np.roll(node, -1, 0), np.roll(node, -1, 1)):
        W[node, other] = rng.choice([-1, 1], node.shape)
    problem = BinaryQuadratic.max_cut(W + W.T)
    return problem, gdpa.prove(problem, gdpa.solve(problem, "branch-and-cut", effort=0.1))


def test_a_thousand_changed_characters_are_refused():
    problem, proof = torus_proof()
    assert gdpa.verify(problem, proof) == "optimal"
    text = proof.text()
    rng = np.random.default_rng(0)
    digits = [k for k, c in enumerate(text) if c.isdigit()]
    refused = 0
    for k in range(1000):
        place = int(rng.choice(digits)) if k % 4 else int(rng.integers(len(text) - 1))
        letter = str(rng.choice([c for c in "0123456789-" if c != text[place]]))
        changed = text[:place] + letter + text[place + 1 :]
        try:
            document = json.loads(changed)
        except ValueError:
            refused += 1
            continue
        if document == proof.document:  # white space
            refused += 1
            continue
        refused += gdpa.verify(problem, Proof(document)).startswith("wrong")
    assert refused == 1000


def test_cheating_in_the_certificate_is_found():
    problem, proof = torus_proof()
    document = dict(proof.document)
    tree = document["tree"]
    first = tree["cycles"][0]
    lower = str(proof.bound - 2)
    even = [first[0], *(abs(step) for step in first[1:])]
    wrong_trees = [
        {**tree, "cycles": [[-first[0], *first[1:]], *tree["cycles"][1:]]},
        {**tree, "cycles": [even, *tree["cycles"][1:]]},
        {**tree, "cycles": [[0.5, *first[1:]], *tree["cycles"][1:]]},
        {**tree, "cycles": [[first[0], first[1], first[1], *first[2:]]]},
        {**tree, "denominator": -tree["denominator"]},
        {**tree, "denominator": 0},
        {"denominator": 1, "cycles": [], "diagonal": [0] * 36},
        {"denominator": 1, "cycles": [], "diagonal": [-1] * 36},
        {"denominator": 1, "cycles": [], "diagonal": [4] * 35},
        {"branch": [0, 1], "same": tree},
        {"branch": [0, 0], "same": tree, "different": tree},
    ]
    for wrong in wrong_trees:
        claim = signed({**document, "tree": wrong, "bound": lower})
        assert gdpa.verify(problem, claim).startswith("wrong")
    for steps in ([[0]], [[0, 1, 1]], [[0, 1, 1, False]], [[0, 1, 5]], [[0, 0, 1]]):
        claim = signed({**document, "reductions": steps})
        assert gdpa.verify(problem, claim).startswith("wrong")


def test_a_proof_belongs_to_one_problem():
    _, proof = torus_proof()
    other = BinaryQuadratic.max_cut(np.ones((36, 36)))
    assert gdpa.verify(other, proof) == "wrong, because it belongs to another problem"


def test_a_semidefinite_proof_of_a_dense_graph():
    rng = np.random.default_rng(0)
    W = np.triu(rng.integers(0, 2, (70, 70)), 1).astype(float)
    problem = BinaryQuadratic.max_cut(W + W.T)
    solution = gdpa.solve(problem, "search", effort=0.1, bound="sdr")
    proof = gdpa.prove(problem, solution)
    assert "diagonal" in proof.document["tree"]
    assert gdpa.verify(problem, proof).startswith("within")
    assert float(proof.bound) <= solution.bound + 1.0
    smaller = dict(proof.document["tree"])
    smaller["diagonal"] = [entry - 2**14 for entry in smaller["diagonal"]]
    claim = signed({**proof.document, "tree": smaller})
    assert "semidefinite" in gdpa.verify(problem, claim)


@pytest.mark.parametrize("kind", ["max-cut", "qubo", "ising"])
def test_the_checker_alone_reads_the_files_that_the_package_reads(kind, tmp_path):
    rng = np.random.default_rng(1)
    n = 7
    pairs = [(i, j) for i in range(1, n + 1) for j in range(i, n + 1) if rng.random() < 0.7]
    weights = [rng.choice([rng.integers(-5, 6), 0.1 * rng.integers(1, 9)]) for _ in pairs]
    entries = [f"{i} {j} {w}" for (i, j), w in zip(pairs, weights, strict=True)]
    path = tmp_path / "problem.txt"
    path.write_text("\n".join([f"{n} {len(pairs)}", *entries]) + "\n")
    couplings = read_couplings(path, kind)
    form = exact_cut_form(kind, couplings.matrix, couplings.fields.tolist())
    sense, count, constant, weights = verify_proof.read_problem(str(path), kind)
    assert (sense, count, constant) == (form.sense, form.n_variables, form.constant)
    listed = zip(form.pairs, form.weights, strict=True)
    assert weights == {pair: weight * form.unit for pair, weight in listed}
    if kind == "max-cut":
        problem = BinaryQuadratic.max_cut(couplings.matrix)
    elif kind == "qubo":
        problem = BinaryQuadratic.qubo(couplings.matrix)
    else:
        problem = BinaryQuadratic.ising(couplings.fields, couplings.matrix)
    solution = gdpa.solve(problem, "branch-and-cut", effort=0.05)
    proof = gdpa.prove(form, solution, kind=kind)
    for name in ("proof.json", "proof.json.gz"):
        proof.save(tmp_path / name)
        # -I and -S: without this package and without any installed one.
        command = [sys.executable, "-I", "-S", CHECKER, str(path), str(tmp_path / name)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.stdout.strip() == gdpa.verify(form, proof)
        assert ended.returncode == 0
    changed = tmp_path / "changed.json"
    changed.write_text(proof.text().replace('"assignment": "', '"assignment": "1'))
    command = [sys.executable, "-I", "-S", CHECKER, str(path), str(changed)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout.startswith("wrong, because")
    assert ended.returncode == 1


def test_proofs_are_saved_and_loaded(tmp_path):
    problem, proof = torus_proof()
    for name in ("proof.json", "proof.json.gz"):
        proof.save(tmp_path / name)
        assert gdpa.verify(problem, Proof.load(tmp_path / name)) == "optimal"
    assert gzip.decompress((tmp_path / "proof.json.gz").read_bytes()).decode() == proof.text()
    for content in (b"no json", b"[1]", b"\x1f\x8bbroken"):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.json is not a proof file"):
            Proof.load(tmp_path / "bad.json")


def test_a_solution_of_another_size_is_refused():
    problem, _ = torus_proof()
    other = gdpa.solve(BinaryQuadratic.max_cut(np.ones((3, 3))))
    with pytest.raises(ValueError, match="3 labels, but the problem has 36 variables"):
        gdpa.prove(problem, other)


def test_other_methods_get_a_proof_too():
    # A minimum cut has no certificate of its own; odd cycles prove the same optimum.
    problem = BinaryQuadratic.ising([1.0, -2.0, 0.5], -np.ones((3, 3)) + np.eye(3))
    solution = gdpa.solve(problem)
    assert solution.method == "min-cut"
    proof = gdpa.prove(problem, solution)
    assert gdpa.verify(problem, proof) == "optimal"
    assert float(proof.value) == solution.value
