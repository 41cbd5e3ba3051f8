"""From features and labels to a fitted state, and from there to one with more labels."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConvergenceWarning, DegenerateProblemWarning, UnreachedWarning
from ..graph import Rescaler
from ..solvers.implicit_system import SharedAdjacency, shared_operand
from ..solvers.recovery import Recovery
from .evidence import Evidence, gather_evidence
from .graphs import RESCALE_KINDS, ClassifierGraph, build_graphs, precomputed_graph
from .labels import LabelCoding
from .multiclass import shared_scores, tree_scores
from .state import FittedState, assemble_state
from .tuning import LARGE_NODES, LabeledGraph, Tuning, tune
from .updates import relax_locally

__all__ = ["Progress", "fit_state", "more_labels"]

FloatArray = NDArray[np.float64]

logger = logging.getLogger("gdpa.classifier")


@dataclass(frozen=True)
class Progress:
    """Tells the user's callback and the log how far a fit has come.

    Parameters
    ----------
    callback : callable or None
        Called with a mapping that names the stage; returning True stops the linear solver.
    verbose : int
        0: nothing is logged; 1: stages; 2: iterations too.
    """

    callback: Callable[[Mapping[str, Any]], Any] | None = None
    verbose: int = 0

    def __call__(self, **values: Any) -> Any:
        """Report one event."""
        level = 2 if "iteration" in values else 1
        if self.verbose >= level:
            logger.info("%s", ", ".join(f"{key}: {value}" for key, value in values.items()))
        return None if self.callback is None else self.callback(MappingProxyType(values))

    def solver(self) -> Callable[[Mapping[str, Any]], Any] | None:
        """Report the iterations of a linear solve."""
        if self.callback is None and self.verbose < 2:
            return None
        return lambda entry: self(stage="solve", **entry)


def fit_state(
    X: Any, coding: LabelCoding, params: Mapping[str, Any], models: tuple[Any, ...], prior: Any
) -> FittedState:
    """Fit: graph, evidence, tuning, solve.

    Parameters
    ----------
    X : ndarray, csr_array or graph
        Checked features, or a precomputed graph.
    coding : LabelCoding
        The labels.
    params : mapping
        Parameters of the estimator, checked.
    models : tuple
        Evidence models.
    prior : None, "labeled" or ndarray
        Class prior, checked.

    Returns
    -------
    FittedState
        The fitted state.
    """
    progress = Progress(params["callback"], params["verbose"])
    candidates, Z = _graphs(X, params)
    n = candidates[0].n_nodes
    if coding.codes.size != n:
        raise ValueError(f"y has {coding.codes.size} entries, the graph has {n} nodes")
    progress(stage="graph", nodes=n, edges=int(candidates[0].W.nnz) // 2)
    labeled = coding.labeled
    codes = coding.codes[labeled]
    k = coding.classes.size
    if k == 1:
        warnings.warn(
            f"y has one class only, {coding.classes[:1].tolist()[0]!r}; every node gets it",
            DegenerateProblemWarning,
            stacklevel=3,
        )
    evidence = None
    if models:
        evidence = gather_evidence(
            models, Z, labeled, codes, k, random_state=params["random_state"] or 0, report=progress
        )
        # Beside evidence the graph matters less; choosing it too would only fit noise.
        candidates = candidates[:1]
    operand = None
    if len(candidates) == 1 and n > LARGE_NODES:
        first = candidates[0]
        operand = shared_operand(first.adjacency, order=first.node_order)
    graph, tuning = _choose(candidates, labeled, codes, k, evidence, params, operand)
    progress(
        stage="tuning",
        source=tuning.source,
        tried=tuning.tried,
        loss=tuning.loss,
        label_weight=tuning.setting.label_weight,
        self_loop=tuning.setting.self_loop,
        evidence_weight=tuning.setting.evidence_weight,
    )
    state = _solved(graph, coding, tuning, evidence, params, prior, progress, operand=operand)
    if state.unreached.size:
        warnings.warn(
            f"{state.unreached.size} of {n} nodes are in components without a label; they get "
            "the prior class (see unreached_)",
            UnreachedWarning,
            stacklevel=3,
        )
    if not state.run["converged"]:
        warnings.warn(
            f"the scores did not converge: {state.run['message']}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
    return state


def _graphs(X: Any, params: Mapping[str, Any]) -> tuple[list[ClassifierGraph], Any]:
    if params["graph"] == "precomputed":
        return [precomputed_graph(X, params["laplacian"])], None
    rescaler = None
    Z = X
    if params["rescale"] is not None:
        rescaler = Rescaler.fit(X, RESCALE_KINDS[params["rescale"]])
        Z = rescaler.transform(X)
    graphs = build_graphs(
        Z,
        graph=params["graph"],
        n_neighbors=params["n_neighbors"],
        bandwidth=params["bandwidth"],
        algorithm=params["algorithm"],
        laplacian=params["laplacian"],
        rescaler=rescaler,
        n_jobs=params["n_jobs"],
        random_state=params["random_state"] or 0,
    )
    return graphs, Z


def _choose(
    candidates: list[ClassifierGraph],
    labeled: NDArray[np.intp],
    codes: NDArray[np.int32],
    k: int,
    evidence: Evidence | None,
    params: Mapping[str, Any],
    operand: SharedAdjacency | None,
) -> tuple[ClassifierGraph, Tuning]:
    """Tune what is "auto"; with everything given this only yields left-out scores."""
    graphs = [
        LabeledGraph(
            g.adjacency,
            g.diagonal,
            labeled,
            codes,
            k,
            None if evidence is None else evidence.probabilities,
            operand,
        )
        for g in candidates
    ]
    free = {
        name: None if isinstance(params[name], str) else float(params[name])
        for name in ("label_weight", "self_loop", "evidence_weight")
    }
    tuning = tune(graphs, **free)
    return candidates[tuning.candidate], tuning


def _solved(
    graph: ClassifierGraph,
    coding: LabelCoding,
    tuning: Tuning,
    evidence: Evidence | None,
    params: Mapping[str, Any],
    prior: Any,
    progress: Progress,
    x0: FloatArray | None = None,
    operand: SharedAdjacency | None = None,
) -> FittedState:
    labeled, k = coding.labeled, coding.classes.size
    codes = coding.codes[labeled]
    told = None if evidence is None else evidence.probabilities
    extra: dict[str, Any] = {}
    if k == 1:
        recovery = Recovery(np.ones((graph.n_nodes, 1)), 0.0, 0, 0, True, "dense", "one class")
    elif params["multiclass"] == "tree" or params["method"] != "gdpa" or params["method_options"]:
        scores, solutions = tree_scores(
            graph,
            labeled,
            codes,
            k,
            tuning.setting,
            told,
            method=params["method"],
            options=params["method_options"] or {},
        )
        recovery = Recovery(
            scores,
            0.0,
            max((s.iterations for s in solutions), default=0),
            sum(int(s.info.get("matvecs", 0)) for s in solutions),
            all(s.converged for s in solutions),
            "dense: tree",
            "; ".join(dict.fromkeys(s.message for s in solutions)),
        )
        extra["solutions"] = solutions
    else:
        recovery = shared_scores(
            graph,
            labeled,
            np.eye(k)[codes],
            tuning.setting,
            told,
            tol=params["tol"],
            max_iter=params["max_iter"],
            x0=x0,
            callback=progress.solver(),
            operand=operand,
        )
    return assemble_state(
        graph,
        coding,
        tuning,
        recovery,
        class_prior=prior,
        evidence=evidence,
        tol=params["tol"],
        run={"drift": 0.0, **extra},
    )


# Updates may leave the residual at this multiple of their tolerance before all is solved again.
MOST_DRIFT = 5.0


def more_labels(
    state: FittedState,
    indices: NDArray[np.intp],
    codes: NDArray[np.int32],
    params: Mapping[str, Any],
    prior: Any,
    tol: float,
) -> FittedState:
    """State with more (or corrected) labels on the same graph, setting and evidence.

    Parameters
    ----------
    state : FittedState
        Where to start.
    indices : ndarray of int
        Nodes, each once.
    codes : ndarray of int
        Their classes.
    params : mapping
        Parameters of the estimator.
    prior : None, "labeled" or ndarray
        Class prior.
    tol : float
        Residual that the update may leave, relative to the right-hand side.

    Returns
    -------
    FittedState
        The new state.
    """
    new_codes = state.coding.codes.copy()
    new_codes[indices] = codes
    coding = LabelCoding(new_codes, state.coding.classes)
    progress = Progress(params["callback"], params["verbose"])
    local = params["multiclass"] == "shared" and params["method"] == "gdpa"
    local = local and not params["method_options"] and state.n_classes > 1
    drift = float(state.run["drift"]) + tol
    if not local or drift > MOST_DRIFT * tol:
        # The left-out scores belong to the old labels: calibration is kept, not fitted again.
        tuning = replace(state.tuning, left_out=None)
        solved = _solved(
            state.graph, coding, tuning, state.evidence, params, prior, progress, state.scores
        )
        return replace(solved, sharpness=state.sharpness)
    graph, setting = state.graph, state.setting
    A = graph.adjacency
    known = np.flatnonzero(new_codes >= 0)
    targets = np.eye(state.n_classes)[codes]
    scores = state.scores.copy()
    residual = np.zeros_like(scores)
    diagonal = graph.diagonal + setting.self_loop
    if state.evidence is not None:
        diagonal = diagonal + setting.evidence_weight
    free = np.ones(graph.n_nodes, dtype=bool)
    visits = 0
    if np.isinf(setting.label_weight):
        free[known] = False
        jump = targets - scores[indices]
        rows = A[indices]
        residual += rows.T @ jump
        scores[indices] = targets
        visits = state.n_classes * int(rows.nnz)
        size = _clamped_size(state, known, new_codes, diagonal, free)
    else:
        was = state.coding.codes[indices]
        old = np.where((was >= 0)[:, None], np.eye(state.n_classes)[np.maximum(was, 0)], 0.0)
        before = np.where(was >= 0, setting.label_weight, 0.0)[:, None]
        # New right-hand side minus old, minus the new diagonal times the score.
        residual[indices] = setting.label_weight * targets - before * old
        residual[indices] -= (setting.label_weight - before) * scores[indices]
        diagonal = diagonal.copy()
        diagonal[known] += setting.label_weight
        counts = np.bincount(new_codes[known], minlength=state.n_classes)
        size = setting.label_weight * np.sqrt(counts / diagonal[known].mean())
    relaxed = relax_locally(A, diagonal, free, residual, size, tol=tol)
    scores += relaxed.correction
    recovery = Recovery(
        scores,
        relaxed.residual,
        relaxed.iterations,
        0,
        relaxed.converged,
        str(state.run["method"]),
        f"{relaxed.active} of {graph.n_nodes} nodes relaxed in {relaxed.rounds} rounds",
    )
    return assemble_state(
        graph,
        coding,
        replace(state.tuning, left_out=None),
        recovery,
        class_prior=prior,
        evidence=state.evidence,
        tol=params["tol"],
        sharpness=state.sharpness,
        run={
            "edge_visits": relaxed.edge_visits + visits,
            "active": relaxed.active,
            "drift": drift,
        },
    )


def _clamped_size(
    state: FittedState,
    known: NDArray[np.intp],
    codes: NDArray[np.int32],
    diagonal: FloatArray,
    free: NDArray[np.bool_],
) -> FloatArray:
    """Length of the right-hand side ``A Y`` on the free nodes, from the labelled rows alone."""
    targets = np.eye(state.n_classes)[codes[known]]
    b = state.graph.adjacency[known].T @ targets
    if state.evidence is not None:
        b = b + state.setting.evidence_weight * state.evidence.probabilities
    b = b[free] / np.sqrt(np.maximum(diagonal[free], 1e-300))[:, None]
    return np.asarray(np.linalg.norm(b, axis=0))
