"""From features and labels to a fitted state, and from there to one with other labels.

    features -> graph -> problem -> solver -> solution -> state

:func:`fit_state` is one member: one graph, its choice of weights, its scores. Whoever combines
several calls it once per member.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DegenerateProblemWarning
from ..graph.adjacency import connected_to
from ..solution import ClassSolution, Solution
from ..solvers.harmonic import Harmonic
from ..system import LabeledSystem, ReorderedGraph, arrange
from ..system.rows import with_far_nodes
from ..system.update import update_scores
from .evidence import Evidence, gather_evidence
from .graphs import ClassifierGraph, candidate_graphs
from .labels import LabelCoding
from .multiclass import tree_scores
from .options import FitOptions
from .probabilities import fit_sharpness, match_masses, sharpen, to_shares, warn_about, winners
from .reporting import report
from .state import FitRun, FittedState
from .tuning import Given, Tuning, tune, tune_beside

__all__ = ["fit_state", "is_shared", "more_labels", "solve_state"]

FloatArray = NDArray[np.float64]


# What a run says as an update does.
UPDATED = ("iterations", "edge_visits", "residual", "converged", "active")
# Updates may leave the residual at this multiple of their tolerance before all is solved again.
MOST_DRIFT = 5.0


def fit_state(
    X: Any, coding: LabelCoding, options: FitOptions, models: tuple[Any, ...] = ()
) -> FittedState:
    """Fit: graph, evidence, choice of weights, solve.

    Parameters
    ----------
    X : ndarray, csr_array or graph
        Checked features, or a precomputed graph.
    coding : LabelCoding
        The labels.
    options : FitOptions
        What is asked for.
    models : tuple
        Evidence models, checked.

    Returns
    -------
    FittedState
        The fitted state.
    """
    candidates, features = candidate_graphs(X, options)
    first = candidates[0]
    n, k, labeled = first.W.shape[0], coding.classes.size, coding.labeled
    if coding.codes.size != n:
        raise ValueError(f"y has {coding.codes.size} entries, the graph has {n} nodes")
    tell = partial(report, options)
    tell(stage="graph", nodes=n, edges=int(first.W.nnz) // 2)
    if k == 1:
        warnings.warn(
            f"y has one class only, {coding.classes[:1].tolist()[0]!r}; every node gets it",
            DegenerateProblemWarning,
            stacklevel=3,
        )
    codes, evidence, arranged = coding.codes[labeled], None, None
    if models:
        evidence = gather_evidence(
            models, features, labeled, codes, k, random_state=options.random_state, report=tell
        )
    if len(candidates) == 1 and n > options.policy.large_nodes:
        arranged = arrange(first.adjacency, options.policy)
    build = partial(LabeledSystem, arranged=arranged, policy=options.policy, n_jobs=options.n_jobs)
    systems = []
    for graph in candidates:
        systems.append(build(graph.adjacency, graph.diagonal, labeled, np.eye(k)[codes]))
    given = Given(options.label_weight, options.self_loop, options.evidence_weight)
    if evidence is None:
        tuning = tune(systems, codes, None, given)
    else:
        tuning = tune_beside(systems, codes, evidence.probabilities, given)
    facts: dict[str, Any] = {"source": tuning.source, "tried": tuning.tried, "loss": tuning.loss}
    tell(stage="tuning", **facts, **asdict(tuning.setting))
    graph = candidates[tuning.candidate]
    state = solve_state(graph, coding, tuning, evidence, options, arranged=arranged)
    warn_about(state)
    return state


def is_shared(options: FitOptions) -> bool:
    """Whether all classes are one block of the labelled system, not a tree of binary problems."""
    return (
        options.multiclass == "shared" and options.method == "gdpa" and not options.method_options
    )


def solve_state(
    graph: ClassifierGraph,
    coding: LabelCoding,
    tuning: Tuning,
    evidence: Evidence | None,
    options: FitOptions,
    *,
    x0: FloatArray | None = None,
    arranged: ReorderedGraph | None = None,
    sharpness: float | None = None,
) -> FittedState:
    """Solve the labels on a graph, with a setting chosen: problem, solver, solution, state.

    Parameters
    ----------
    graph, coding, tuning, evidence, options
        Graph, labels, setting with left-out scores to calibrate on, models, what is asked for.
    x0, arranged, sharpness : optional
        Scores to start from; the adjacency, prepared; a sharpness in place of a calibration.
    """
    setting = tuning.setting
    problem = graph.problem(coding, evidence, setting.evidence_weight)
    splits: tuple[Solution, ...] = ()
    if coding.classes.size == 1:
        ones = np.ones((problem.diagonal.size, 1))
        solution = ClassSolution("gdpa", ones, exact=True, message="one class")
    elif is_shared(options):
        heard = options.callback is not None or options.verbose > 1
        solution = Harmonic(
            label_weight=setting.label_weight,
            self_loop=setting.self_loop,
            tol=options.tol,
            max_iter=options.max_iter,
            x0=x0,
            arranged=arranged,
            callback=partial(report, options) if heard else None,
            n_jobs=options.n_jobs,
            policy=options.policy,
        ).solve(problem)
    else:
        solution, splits = tree_scores(problem, setting, options)
    facts = vars(solution) | {"seconds": dict(solution.seconds)}
    scores, bounds = facts.pop("scores"), facts.pop("lower_bounds")
    visits = solution.matvecs * int(problem.adjacency.nnz)
    run = FitRun(tol=options.tol, edge_visits=visits, bounds=bounds, **facts)
    state = _decided(graph, coding, tuning, evidence, options, scores, run, sharpness)
    return replace(state, splits=splits) if splits else state


def _decided(
    graph: ClassifierGraph,
    coding: LabelCoding,
    tuning: Tuning,
    evidence: Evidence | None,
    options: FitOptions,
    scores: FloatArray,
    run: FitRun,
    sharpness: float | None,
) -> FittedState:
    """State that solved scores say: shares, labels, and whatever turns the one into the other."""
    labeled, k = coding.labeled, coding.classes.size
    codes = coding.codes[labeled]
    prior = np.bincount(codes, minlength=k) / codes.size
    if isinstance(options.class_prior, np.ndarray):
        prior = options.class_prior
    unreached = np.empty(0, dtype=np.intp)
    if evidence is None or tuning.setting.evidence_weight == 0:
        unreached = np.flatnonzero(~connected_to(graph.W, coding.codes >= 0))
    # Below this the error of an iteration is as large as a score.
    threshold = 1e-250 if run.exact else 100.0 * options.tol
    believed = scores
    if unreached.size or scores.sum(axis=1).min() < threshold:
        believed = with_far_nodes(
            graph.adjacency, graph.diagonal, labeled, scores, unreached, threshold, options.n_jobs
        )
    shares = to_shares(believed, prior)
    if sharpness is None:
        checked = codes if tuning.checked is None else codes[tuning.checked]
        fewest = options.policy.calibration_labels
        sharpness = fit_sharpness(tuning.left_out, checked, fewest=fewest)
    offset = np.zeros(k)
    if options.class_prior is not None and k > 1:
        free = coding.codes < 0
        free[unreached] = False
        offset = match_masses(sharpen(shares[free], sharpness), prior)
    labels = winners(shares, sharpness, offset)
    labels[labeled] = codes
    return FittedState(
        graph=graph,
        coding=coding,
        tuning=tuning,
        scores=scores,
        shares=shares,
        labels=labels,
        prior=prior,
        sharpness=float(sharpness),
        offset=offset,
        unreached=unreached,
        run=run,
        evidence=evidence,
    )


def more_labels(
    state: FittedState,
    nodes: NDArray[np.intp],
    codes: NDArray[np.int32],
    options: FitOptions,
    tol: float,
) -> FittedState:
    """State with more, corrected or fewer labels on the same graph, setting and evidence.

    Parameters
    ----------
    state : FittedState
        Where to start.
    nodes : ndarray of int
        Nodes, each once.
    codes : ndarray of int
        Their classes; -1 removes a label.
    options : FitOptions
        Options of the fit.
    tol : float
        Residual that the update may leave, relative to the right-hand side.

    Returns
    -------
    FittedState
        The new state. The left-out scores belong to the old labels: calibration is kept.
    """
    new_codes = state.coding.codes.copy()
    new_codes[nodes] = codes
    if not (new_codes >= 0).any():
        raise ValueError("labels removes the last label; at least one is needed")
    coding = LabelCoding(new_codes, state.coding.classes)
    tuning = replace(state.tuning, left_out=None, checked=None)
    drift = state.run.drift + tol
    shared = is_shared(options) and state.n_classes > 1
    parts = (state.graph, coding, tuning, state.evidence, options)
    if not shared or drift > MOST_DRIFT * tol:
        x0 = state.scores if shared else None
        return solve_state(*parts, x0=x0, sharpness=state.sharpness)
    after = replace(state, coding=coding)
    system = replace(after.system(), policy=options.policy, n_jobs=options.n_jobs)
    update = update_scores(state.system(), system, state.scores, tol=tol)
    run = FitRun(
        tol=options.tol,
        exact=state.run.exact,
        method=state.run.method,
        message=f"{update.active} of {state.n_nodes} nodes relaxed in {update.rounds} rounds",
        drift=drift,
        **{name: getattr(update, name) for name in UPDATED},
    )
    return _decided(*parts, update.values, run, state.sharpness)
