"""Proof files: an assignment with an exact certificate of its bound, which anyone can check.

:func:`prove` writes what a solver found as exact rational numbers, and :func:`verify` checks it.
The checker itself is ``verify_proof.py``, a file of 150 lines that needs nothing but Python. Its
docstring says what a proof consists of. All bounds in a proof are computed by the checker.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import verify_proof
from .problem import BinaryQuadratic
from .problem.cut_form import CutForm
from .solution import Solution
from .solvers.cycle_tree import CycleTree

_CHECKER: Any = verify_proof  # plain Python without annotations
# The checker's factorisation takes n^3 / 6 multiplications of long integers: two minutes.
_MOST_SEMIDEFINITE = 2000
# Binary digits after the point in the diagonal of a semidefinite certificate.
_DIAGONAL_BITS = 16


@dataclass(frozen=True, eq=False)
class Proof:
    """An assignment, its value, and a proved bound of all values.

    Parameters
    ----------
    document : mapping
        What a proof file contains.
    """

    document: Mapping[str, Any]

    @property
    def value(self) -> Fraction:
        """Value of the assignment."""
        return Fraction(self.document["value"])

    @property
    def bound(self) -> Fraction:
        """Bound of all values: from above if they are maximised."""
        return Fraction(self.document["bound"])

    @property
    def optimal(self) -> bool:
        """Whether the value is equal to the bound."""
        return self.value == self.bound

    def text(self) -> str:
        """Return the proof as JSON."""
        return json.dumps(self.document, sort_keys=True) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the proof file; it is compressed if the name ends in .gz."""
        raw = self.text().encode()
        if str(path).endswith(".gz"):
            raw = gzip.compress(raw, mtime=0)
        Path(path).write_bytes(raw)

    @classmethod
    def load(cls, path: str | Path) -> Proof:
        """Read a proof file, without checking it.

        Raises
        ------
        ValueError
            If the file is not a JSON document.
        """
        raw = Path(path).read_bytes()
        try:
            document = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        except (ValueError, EOFError, OSError) as error:
            raise ValueError(f"{path} is not a proof file: {error}") from error
        if not isinstance(document, dict):
            raise ValueError(f"{path} is not a proof file: it is not a JSON object")
        return cls(document)


def prove(
    problem: BinaryQuadratic | CutForm,
    solution: Solution,
    *,
    kind: str | None = None,
    time_limit: float = 900.0,
) -> Proof:
    """State a solution as a proof that can be checked without this package.

    Parameters
    ----------
    problem : BinaryQuadratic or CutForm
        The problem.
    solution : Solution
        Its solution, by any method. The certificate is that of method "branch-and-cut" or of
        ``bound="cycles"``, or the dual point of the semidefinite relaxation. Without one, or if it
        does not hold exactly, odd cycles are computed.
    kind : {"max-cut", "qubo", "ising"}, optional
        How the checker reads the file of the problem.
    time_limit : float, default=900
        Seconds for odd cycles, if they have to be computed.

    Returns
    -------
    Proof
        The proof, which has passed the checker.

    Examples
    --------
    >>> import gdpa
    >>> problem = gdpa.BinaryQuadratic.max_cut([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    >>> proof = gdpa.prove(problem, gdpa.solve(problem, "branch-and-cut"))
    >>> str(proof.value), gdpa.verify(problem, proof)
    ('2', 'optimal')
    """
    form = problem if isinstance(problem, CutForm) else CutForm.of_problem(problem)
    signs = np.where(np.asarray(solution.labels) > 0, 1, -1).astype(np.int8)
    if signs.size != form.n_variables:
        raise ValueError(
            f"solution has {signs.size} labels, but the problem has {form.n_variables} variables"
        )
    known = solution.info.get("certificate")
    dual = solution.dual.get("s") if isinstance(solution.dual, Mapping) else None
    best: Proof | None = None
    if known is not None:
        best = _stated(form, signs, _in_true_units(known, form), kind)
    elif dual is not None and form.n <= _MOST_SEMIDEFINITE:
        best = _semidefinite(form, signs, 4.0 * np.asarray(dual), kind)
    if best is None:
        tree = CycleTree(form, deadline=time.monotonic() + time_limit, max_nodes=10_000)
        tree.offer(_with_hidden(form, signs))
        tree.grow()
        found = tree.signs * tree.signs[-1] if form.n > form.n_variables else tree.signs
        certificate = _in_true_units(tree.certificate(), form)
        best = _stated(form, found[: form.n_variables], certificate, kind)
    if best is None:
        raise AssertionError("the certificate does not hold")
    return best


def verify(problem: BinaryQuadratic | CutForm, proof: Proof) -> str:
    """Check a proof with exact arithmetic.

    Parameters
    ----------
    problem : BinaryQuadratic or CutForm
        The problem.
    proof : Proof
        The proof, for example from :meth:`Proof.load`.

    Returns
    -------
    str
        "optimal", "within 0.3 %" (with the gap), or "wrong, because" with the reason.
    """
    form = problem if isinstance(problem, CutForm) else CutForm.of_problem(problem)
    return str(_CHECKER.verdict(_as_checked(form), dict(proof.document)))


def _as_checked(form: CutForm) -> tuple[str, int, Fraction, dict[tuple[int, int], Fraction]]:
    """Return a problem as the checker takes it."""
    edges = zip(form.pairs, form.weights, strict=True)
    weights = {pair: weight * form.unit for pair, weight in edges}
    return form.sense, form.n_variables, form.constant, weights


def _with_hidden(form: CutForm, signs: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the signs of all nodes: a hidden node is at +1."""
    return np.append(signs, np.int8(1)) if form.n > form.n_variables else signs


def _stated(
    form: CutForm, signs: NDArray[np.int8], certificate: Mapping[str, Any], kind: str | None
) -> Proof | None:
    """Return the proof of a certificate, or None if it does not hold."""
    graph = _CHECKER.Graph()
    for pair, weight in _as_checked(form)[3].items():
        graph.add(*pair, weight)
    try:
        for step in certificate["reductions"]:
            (graph.merge if len(step) > 1 else graph.eliminate)(*step)
        upper = _CHECKER.tree_bound(certificate["tree"], graph)
    except ValueError:
        return None
    bound = form.value(form.rounded_down(upper / form.unit))
    value = form.value(form.cut(_with_hidden(form, signs)))
    document = {
        "format": "gdpa proof 1",
        "problem": kind or _kind(form),
        "sha256": form.digest(),
        "assignment": "".join("1" if sign > 0 else "0" for sign in signs.tolist()),
        "value": str(value),
        "bound": str(bound),
        "reductions": certificate["reductions"],
        "tree": certificate["tree"],
        "checksum": "",
    }
    text = json.dumps(document, sort_keys=True)
    document["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    return Proof(document)


def _kind(form: CutForm) -> str:
    return "max-cut" if form.sense == "maximise" else "qubo"


def _in_true_units(certificate: Mapping[str, Any], form: CutForm) -> dict[str, Any]:
    """Return a certificate for integer weights with multipliers in the units of the problem."""

    def divided(node: Mapping[str, Any]) -> dict[str, Any]:
        if "branch" in node:
            parts = {name: divided(node[name]) for name in ("same", "different")}
            return {"branch": node["branch"], **parts}
        return {**node, "denominator": node["denominator"] * form.unit.denominator}

    return {"reductions": certificate["reductions"], "tree": divided(certificate["tree"])}


def _semidefinite(
    form: CutForm, signs: NDArray[np.int8], diagonal: NDArray[np.float64], kind: str | None
) -> Proof | None:
    """Return the proof by a diagonal d such that d plus the weights is positive semidefinite."""
    nodes = sorted({v for pair in form.pairs for v in pair})
    scaled = np.ceil(np.ldexp(diagonal[nodes], _DIAGONAL_BITS))
    for attempt in range(4):
        leaf = {
            "denominator": 2**_DIAGONAL_BITS,
            "cycles": [],
            "diagonal": [int(entry) for entry in scaled + 4.0**attempt],
        }
        proof = _stated(form, signs, {"reductions": [], "tree": leaf}, kind)
        if proof is not None:
            return proof
    return None
