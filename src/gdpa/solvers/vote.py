"""One-step vote: each node gets the sign of ``W_ul label + bias``.

It is the limit of linear recovery for an infinite self-loop (gamma -> inf), and the published GDPA
and SDcut results are effectively this vote. A node without a labelled neighbour gets score 0 and
the majority label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem import GraphProblem
from .base import Outcome, Run, Solver


@dataclass(frozen=True, kw_only=True)
class Vote(Solver):
    """Label each node by the weighted vote of its labelled neighbours."""

    name = "vote"
    summary = "weighted vote of the labelled neighbours"
    kind = "limit"

    def _solve(self, problem: GraphProblem, run: Run) -> Outcome:
        with run.stage("vote"):
            scores = problem.labels.astype(np.float64)
            scores[problem.unlabeled] = problem.vote
        return Outcome(scores=scores, iterations=1)
