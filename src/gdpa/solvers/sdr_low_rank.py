"""Solve large semidefinite relaxations by low-rank factors, with a bound.

    SDR = min  constant - <P, X>   subject to  X_ii = 1,  X psd       (reduced form, one apex)

with ``X = V V'`` and unit rows. The method needs only products with P. If the couplings of the
nodes other than the apex are non-negative, or can be switched to be, two dimensions are enough and
aligned discs prove the bound at any size (``sdr_half_circle``). Otherwise V has a few more
dimensions and the bound needs a smallest eigenvalue (``sdr_sphere``), which a factorisation proves
if it is affordable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import FloatArray, NDArray
from ..gershgorin.bounds import aligned_bound, rounding_margin
from ..linalg.psd_proof import can_prove
from ..problem import Problem, ReducedForm
from .base import Outcome, Run, Solver
from .sdr_half_circle import HalfCircleResult, solve_half_circle
from .sdr_sphere import SphereResult, proved_bound, solve_spheres
from .switching import SwitchedForm, switched_form


@dataclass(frozen=True, kw_only=True)
class SDRLowRank(Solver):
    """Solve the semidefinite relaxation by a Burer-Monteiro factorisation.

    ``info`` has ``sdr_value``, the value of the relaxation at V; ``sdr_gap``, its relative distance
    to the bound (the gap of the solution also includes the cost of rounding to labels);
    ``products``, the number of products with the couplings; ``rank``; and ``proof``: "aligned
    discs", "factorisation" or "none".

    Parameters
    ----------
    tol : float, default=1e-4
        Accepted gap between the value of the relaxation and the bound, relative to the value.
    rank : int, optional
        Dimension of the vectors. The default is 2 for non-negative or switchable couplings.
        Otherwise it is ``ceil(sqrt(2 n)) + 1``, but at most 24, or 12 beyond 200,000 rows to save
        memory. A given rank selects the general path, where the rank grows if the bound shows that
        it is too low.
    memory : int, default=6
        Number of pairs kept by the quasi-Newton method.
    prove_below : int, default=40000
        On the general path, maximum number of rows for which a factorisation proves the bound. It
        is dense up to 9,000 rows, and sparse beyond if there are at most 7 couplings per row.
    roundings : int, default=0
        Number of random hyperplanes (Goemans, Williamson 1995) tried in addition to the sign of the
        apex column. The labelling with the smallest objective is returned.
    """

    name = "sdr-low-rank"
    summary = "semidefinite relaxation, low-rank factorisation, for graphs of any size"
    kind = "relaxation"
    binary_quadratic = True
    signed = True
    whole: ClassVar[dict[str, int]] = {"rank": 2, "memory": 1, "prove_below": 0, "roundings": 0}

    tol: float = 1e-4
    rank: int | None = None
    memory: int = 6
    prove_below: int = 40_000
    roundings: int = 0

    def _solve(self, problem: Problem, run: Run) -> Outcome:
        with run.stage("reduce"):
            form, exponent = problem.reduced().normalised()
            flat = None if self.rank is not None else switched_form(form)
        x0 = None
        if self.x0 is not None:
            x0 = np.clip(np.asarray(self.x0, dtype=np.float64)[form.nodes], -1.0, 1.0)
        found: HalfCircleResult | SphereResult
        if flat is None:
            V, found, details = self._general(form, x0, run)
        else:
            V, found, details = self._flat(form, flat, x0, run)
        with run.stage("round"):
            column = V @ V[form.apex]
            labels = None
            if self.roundings:
                rng = np.random.default_rng(self.random_state)
                best = _best_rounding(form, V, column, self.roundings, rng)
                labels = problem.spread(np.delete(best, form.apex))
        # The margin assumes |x| <= 1, which the solution of a linear system may exceed.
        margin = rounding_margin(problem) * details.get("size", 1.0)
        value, bound = (float(np.ldexp(v, exponent)) for v in (found.value, details["bound"]))
        bound -= margin
        return Outcome.of(
            found,
            problem.spread(np.delete(column, form.apex)),
            labels=labels,
            lower_bound=bound,
            bound_status=details["status"],
            dual={k: np.ldexp(v, exponent) if k == "s" else v for k, v in details["dual"].items()},
            info={
                "sdr_value": value,
                "sdr_gap": (value - bound) / max(abs(value), abs(bound), 1e-300),
                "products": details["products"],
                "rank": V.shape[1],
                "proof": details["proof"],
            },
        )

    def _flat(
        self, form: ReducedForm, flat: SwitchedForm, x0: FloatArray | None, run: Run
    ) -> tuple[FloatArray, HalfCircleResult, dict[str, Any]]:
        """Solve in two dimensions, for couplings that are or can be made non-negative."""
        start = None if x0 is None else x0 * flat.signs
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        found = solve_half_circle(flat, **options, memory=self.memory, start=start, run=run)
        V = np.column_stack((np.cos(found.angles), np.sin(found.angles)))
        V = np.insert(V * flat.signs[:, None], form.apex, (1.0, 0.0), axis=0)
        with run.stage("bound"):
            # Computed again, so that the proof does not depend on products from the iteration.
            products = flat.W @ np.column_stack((found.x, found.y))
            x = found.x
            y = found.y
            constant = flat.constant
            bound = aligned_bound(flat.W, flat.c, constant, x, y, products[:, 0], products[:, 1])
        size = max(1.0, float(np.abs(x).max())) ** 2
        details = {"bound": bound, "size": size, "status": "certified", "dual": {"x": x, "y": y}}
        return V, found, details | {"products": found.products + 1, "proof": "aligned discs"}

    def _general(
        self, form: ReducedForm, x0: FloatArray | None, run: Run
    ) -> tuple[FloatArray, SphereResult, dict[str, Any]]:
        """Solve in several dimensions, for couplings of both signs."""
        n = form.P.shape[0]
        most = 24 if n <= 200_000 else 12
        rank = min(int(np.ceil(np.sqrt(2.0 * n))) + 1, most) if self.rank is None else self.rank
        found = solve_spheres(
            form,
            rank=rank,
            tol=self.tol,
            max_iter=self.max_iter,
            memory=self.memory,
            random_state=self.random_state,
            start=None if x0 is None else np.insert(x0, form.apex, 1.0),
            run=run,
        )
        if n <= self.prove_below and can_prove(form.P):
            with run.stage("proof"):
                proved = proved_bound(form, found.s, step=1e-9)
            if proved is not None:
                (found.bound, found.s), found.status = proved, "certified"
        proof = "factorisation" if found.status == "certified" else "none"
        details = {"bound": found.bound, "status": found.status, "dual": {"s": found.s}}
        return found.V, found, details | {"products": found.products, "proof": proof}


def _best_rounding(
    form: ReducedForm, V: FloatArray, column: FloatArray, count: int, rng: np.random.Generator
) -> NDArray[np.int8]:
    """Return the best of the signs of the apex column and of random hyperplanes, apex at +1."""
    best = np.where(column < 0, -1, 1).astype(np.int8)
    value = form.objective(best)
    for _ in range(count):
        side = V @ rng.standard_normal(V.shape[1])
        x = np.where(side * side[form.apex] < 0, -1, 1).astype(np.int8)
        x[form.apex] = 1
        objective = form.objective(x)
        if objective < value:
            best = x
            value = objective
    return best
