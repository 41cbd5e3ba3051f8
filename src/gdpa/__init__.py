"""Graph-based semi-supervised classification by Gershgorin disc perfect alignment.

features -> graph -> problem -> solver -> solution -> classifier / report / labeling
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import datasets, gershgorin, graph
    from .certificate import Certificate, certify
    from .classifier import GDPAClassifier, SemiSupervisedKFold, classify
    from .labeling import LabelingSession
    from .problem import BinaryQuadratic, GraphProblem
    from .solution import Solution
    from .solvers.registry import list_methods, solve

__all__ = [
    "BinaryQuadratic",
    "Certificate",
    "GDPAClassifier",
    "GraphProblem",
    "LabelingSession",
    "SemiSupervisedKFold",
    "Solution",
    "__version__",
    "certify",
    "classify",
    "datasets",
    "gershgorin",
    "graph",
    "list_methods",
    "solve",
]

# Loaded on first use, so that `import gdpa` stays cheap and Ctrl-C is answered by the command line
# from the start: name -> (module, attribute or None).
_LAZY: dict[str, tuple[str, str | None]] = {
    "BinaryQuadratic": ("gdpa.problem", "BinaryQuadratic"),
    "Certificate": ("gdpa.certificate", "Certificate"),
    "GDPAClassifier": ("gdpa.classifier", "GDPAClassifier"),
    "GraphProblem": ("gdpa.problem", "GraphProblem"),
    "LabelingSession": ("gdpa.labeling", "LabelingSession"),
    "SemiSupervisedKFold": ("gdpa.classifier", "SemiSupervisedKFold"),
    "Solution": ("gdpa.solution", "Solution"),
    "certify": ("gdpa.certificate", "certify"),
    "classify": ("gdpa.classifier", "classify"),
    "datasets": ("gdpa.datasets", None),
    "gershgorin": ("gdpa.gershgorin", None),
    "graph": ("gdpa.graph", None),
    "list_methods": ("gdpa.solvers.registry", "list_methods"),
    "solve": ("gdpa.solvers.registry", "solve"),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'gdpa' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    loaded = importlib.import_module(module)
    value = globals()[name] = loaded if attribute is None else getattr(loaded, attribute)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
