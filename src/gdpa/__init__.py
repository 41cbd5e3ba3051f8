"""Graph-based semi-supervised classification.

features -> graph -> problem -> solver -> solution -> estimators -> report / labelling / commands
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import load_on_use
from .version import __version__

if TYPE_CHECKING:
    from . import gershgorin, graph
    from .certificate import certify
    from .estimators import (
        CommitteeClassifier,
        GDPAClassifier,
        GraphClassifier,
        SemiSupervisedKFold,
        classify,
    )
    from .labeling import LabelingSession
    from .problem import BinaryQuadratic, GraphProblem
    from .proof import Proof, prove, verify
    from .solution import Solution
    from .solvers.registry import list_methods, solve

__all__ = [
    "BinaryQuadratic",
    "CommitteeClassifier",
    "GDPAClassifier",
    "GraphClassifier",
    "GraphProblem",
    "LabelingSession",
    "Proof",
    "SemiSupervisedKFold",
    "Solution",
    "__version__",
    "certify",
    "classify",
    "gershgorin",
    "graph",
    "list_methods",
    "prove",
    "solve",
    "verify",
]

# Loaded on first use, so that `import gdpa` stays cheap and Ctrl-C is answered by the command line
# from the start.
__getattr__ = load_on_use(
    __name__,
    certificate="certify",
    datasets="datasets",
    estimators="CommitteeClassifier GDPAClassifier GraphClassifier SemiSupervisedKFold classify",
    gershgorin="gershgorin",
    graph="graph",
    labeling="LabelingSession",
    metric="metric",
    plotting="plotting",
    problem="BinaryQuadratic GraphProblem",
    proof="Proof prove verify",
    solution="Solution",
    **{"solvers.registry": "list_methods solve"},
)


def __dir__() -> list[str]:
    return sorted(__all__)
