"""From features and labels to a state with a committee, and from there to one with other labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...folds import stratified_folds
from ..fitting import fit_state, is_shared, more_labels, solve_state
from ..graphs import ClassifierGraph, candidate_graphs
from ..labels import LabelCoding
from ..options import FitOptions
from ..probabilities import fit_sharpness, match_masses, sharpen, warn_about, winners
from ..reporting import report
from ..state import FittedState
from ..tuning import Tuning, left_out_loss
from .committee import OWN, Committee, Judgement, judge, unnoticed, without
from .evidence import evidence_trials
from .forest import try_forest, try_forest_kernel
from .gaussian import try_gaussian
from .graph import (
    cross_shares,
    member_tuning,
    neighbors_of,
    plain,
    shares_without,
    try_forest_graph,
    try_importance,
    usual_neighbors,
)
from .kernel import try_kernel
from .linear import try_linear, try_self_trained
from .link_members import linked_graph
from .links import Linked
from .member import MANY, Member, Task, Trial, judged_labels, thinned
from .whitened import try_whitened

__all__ = ["KINDS", "change_labels", "fit_committee", "votes"]

FloatArray = NDArray[np.float64]
Attempt = Callable[[Task], Trial | None]  # None: not for such a task

N_FOLDS = 5
# Members beside the neighbours of the state's own graph. Unlike ones are what makes it good: on
# real tables each of them is the best on some, and none on most.
KINDS: Mapping[str, Attempt] = {
    "forest": try_forest,
    "linear": try_linear,
    "self-trained": try_self_trained,
    "kernel": try_kernel,
    "gaussian": try_gaussian,
    "whitened": try_whitened,
    "importance": try_importance,
    "forest graph": try_forest_graph,
    "forest kernel": try_forest_kernel,
}
# Judged on a sample: members below this weight are not built in full, and graphs made of the forest
# are not tried where the forest's own weight is less than this part of the largest.
SAMPLE_WEIGHT = 0.05
BEHIND = {
    "whitened": (OWN, 0.0),
    "importance": ("forest", 0.05),
    "forest graph": ("forest", 0.3),
    "forest kernel": ("forest", 0.3),
    "union": (OWN, 0.01),
}
# The same beside a given graph, where graphs of the features are seldom worth their search: on
# networks like PubMed they took half of the time for no vote.
BESIDE_LINKS = 0.15


def fit_committee(
    X: Any,
    coding: LabelCoding,
    options: FitOptions,
    models: tuple[Any, ...] = (),
    kinds: Mapping[str, Attempt] = KINDS,
    adjacency: Any = None,
) -> FittedState:
    """Judge the members, build those that carry weight, let them vote.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_nodes, n_features)
        Checked features.
    coding : LabelCoding
        The labels.
    options : FitOptions
        What is asked for.
    models : tuple
        The user's models, checked.
    kinds : mapping of str to callable, optional
        Members beside the neighbours of the given columns.
    adjacency : csr_array of shape (n_nodes, n_nodes), optional
        A given graph of the nodes, checked.

    Returns
    -------
    FittedState
        The state of the neighbour graph, or of the given one, with the committee's shares.
    """
    n = X.shape[0]
    if coding.classes.size == 1 or n < 3:
        return fit_state(X, coding, replace(options, graph="knn"), models)
    own_options = replace(plain(options), rescale=options.rescale)
    if options.n_neighbors is None:  # a number that is given is cut where it is said
        own_options = replace(own_options, n_neighbors=usual_neighbors(n, options))
    linked = None
    if adjacency is None:
        graphs, features = candidate_graphs(X, own_options)
        graph = graphs[0]
    else:
        graph, features = linked_graph(adjacency, X, options)
    report(options, stage="graph", nodes=n, edges=int(graph.W.nnz) // 2)
    task = Task(features, coding, _folds(coding, options), options)
    part, kept = sample_of(task)
    attempts: dict[str, Attempt] = {OWN: _own_trial(graph, task), **kinds}
    trials: list[Trial] = []
    if adjacency is None:
        first = member_tuning(graph, task)
    else:
        linked = Linked(graph, task, part)
        attempts[OWN] = linked.try_neighbors
        if kept is None:  # of many nodes the links are whole, the neighbours a sample's
            attempts["union"] = linked.try_union
        first = linked.tuning()
        for trial in linked.trials():
            trials.append(trial)
            report(options, stage="member", member=trial.name, action="judged")
    for name, attempt in attempts.items():
        if (kept is None and linked is None) or not _behind(name, trials, part):
            tried = attempt(part)
            if tried is not None:
                trials.append(tried)
                report(options, stage="member", member=name, action="judged")
    for attempt in evidence_trials(models, [trial.name for trial in trials]):
        trials.append(attempt(part))
        report(options, stage="member", member=trials[-1].name, action="judged")
    judgement = _judged(trials, part, len(models), sampled=kept is not None)
    tuning = _tuning(first, judgement, trials, part, kept)
    report(
        options,
        stage="tuning",
        source=tuning.source,
        tried=tuning.tried,
        loss=tuning.loss,
        weights=dict(zip(judgement.names, judgement.weights.tolist(), strict=True)),
    )
    arranged = None if linked is None else linked.arranged
    graph_state = solve_state(
        graph, coding, tuning, None, plain(options), arranged=arranged, sharpness=1.0
    )
    if kept is not None and kept.size == task.codes.size:
        # The same labels: the trees that were judged are those that would be grown.
        task.__dict__["forest"] = part.forest
    members: list[Member] = []
    for trial, weight in zip(trials, judgement.weights, strict=True):
        if weight > 0 and trial is not trials[0]:
            members.append(trial.build(task))
            report(options, stage="member", member=trial.name, action="built", weight=float(weight))
    importances = part.forest.forest.importances if "forest" in part.__dict__ else None
    committee = Committee(judgement, tuple(members), importances, int(features.shape[1]))
    state = voted(graph_state, committee, options)
    warn_about(state)
    return state


def votes(options: FitOptions, models: tuple[Any, ...]) -> bool:
    """Whether a committee is asked for; another method, or evidence in it, is a single graph's.

    Parameters
    ----------
    options : FitOptions
        What is asked for.
    models : tuple
        The user's models.

    Returns
    -------
    bool
        True for a committee.
    """
    system = bool(models) and options.evidence_weight is not None
    return options.graph == "auto" and is_shared(options) and not system


def _folds(coding: LabelCoding, options: FitOptions) -> NDArray[np.int32] | None:
    """Folds of the labels; None with too few of them to leave any out."""
    codes = coding.codes[coding.labeled]
    counts = np.bincount(codes, minlength=coding.classes.size)
    enough = (counts >= 2).sum() >= 2
    enough = enough and judged_labels(codes, counts.size).sum() >= options.policy.fewest_labels
    return stratified_folds(codes, N_FOLDS) if enough else None


def _own_trial(graph: ClassifierGraph, task: Task) -> Attempt:
    """The neighbours of the columns as they are: no label has a part in the graph."""

    def attempt(part: Task) -> Trial:
        left_out = None
        if part.nodes is not None and task.labeled.size >= MANY * part.labeled.size:
            # So many labels that the sample's can all be left out at once, of the whole graph.
            held = np.isin(task.labeled, part.nodes[part.labeled])
            left_out = shares_without(task, graph, held)
        elif part.folds is not None:
            seen = graph if part is task else neighbors_of(part.X, part)
            left_out = cross_shares(part, lambda f: seen)

        def build(full: Task) -> Member:
            raise AssertionError("the state's own graph is not built again")

        return Trial(OWN, left_out, build)

    return attempt


def sample_of(task: Task) -> tuple[Task, NDArray[np.intp] | None]:
    """The nodes that members are judged on, and which of the labels are among them (None: all)."""
    policy = task.options.policy
    n = task.X.shape[0]
    if n <= policy.judged_nodes or task.folds is None:
        return task, None
    kept = thinned(task.codes, policy.judged_labels)
    known = task.labeled[kept]
    others = np.flatnonzero(task.coding.codes < 0)
    rng = np.random.default_rng(task.options.random_state)
    wanted = min(others.size, max(policy.judged_nodes - known.size, 0))
    drawn = rng.choice(others, wanted, replace=False)
    nodes = np.sort(np.concatenate([known, drawn]))
    coding = LabelCoding(
        np.where(np.isin(nodes, known), task.coding.codes[nodes], -1).astype(np.int32),
        task.coding.classes,
    )
    return replace(task, X=task.X[nodes], coding=coding, folds=task.folds[kept], nodes=nodes), kept


def _behind(name: str, trials: list[Trial], part: Task) -> bool:
    """Whether the forest is so far behind that a graph made of it would carry nothing."""
    if name not in BEHIND or part.folds is None:
        return False
    found = judge(trials, part.codes, least_weight=0.0)
    basis, least = BEHIND[name]
    if basis not in found.names:
        return False
    if basis == "forest" and trials[0].name != OWN:
        least = max(least, BESIDE_LINKS)
    weight = found.weights[found.names.index(basis)]
    return bool(weight < least * found.weights.max())


def _judged(trials: list[Trial], part: Task, n_evidence: int, *, sampled: bool) -> Judgement:
    """Weights; of many nodes a graph to be searched for is spared where nothing would notice."""
    if not sampled:
        return judge(trials, part.codes, n_evidence)
    found = judge(trials, part.codes, n_evidence, SAMPLE_WEIGHT)
    # Beside a given graph the neighbours are one that would have to be searched for, too.
    dear = [*BEHIND] if trials[0].name == OWN else [*BEHIND, OWN]
    for name in dear:
        votes = name in found.names and found.weights[found.names.index(name)] > 0
        if votes and unnoticed(found, trials, part.codes, name):
            found = replace(found, weights=without(found, name))
    return found


def _tuning(
    first: Tuning,
    judgement: Judgement,
    trials: list[Trial],
    part: Task,
    kept: NDArray[np.intp] | None,
) -> Tuning:
    """What was found out, as every fit records it."""
    if part.folds is None:
        return replace(first, source="too few labels", tried=len(trials))
    left_out = judgement.mix([t.left_out for t in trials])
    judged = judged_labels(part.codes, part.n_classes)
    loss = left_out_loss(part.targets[judged], left_out[judged])
    source = "k-fold" if kept is None else "sample"
    return Tuning(first.setting, loss, source, left_out, len(trials), checked=kept)


def voted(
    graph_state: FittedState,
    committee: Committee,
    options: FitOptions,
    sharpness: float | None = None,
) -> FittedState:
    """State of the own graph with the shares, labels and probabilities of all who vote.

    Parameters
    ----------
    graph_state : FittedState
        The own graph, solved.
    committee : Committee
        The others.
    options : FitOptions
        What is asked for.
    sharpness : float, optional
        Kept in place of a calibration on left-out labels.

    Returns
    -------
    FittedState
        The state.
    """
    known, k = graph_state.coding.labeled, graph_state.n_classes
    codes = graph_state.coding.codes[known]
    shares = committee.vote(graph_state.shares, graph_state.unreached)
    shares[known] = np.eye(k)[codes]
    if sharpness is None:
        tuning = graph_state.tuning
        checked = codes if tuning.checked is None else codes[tuning.checked]
        fewest = options.policy.calibration_labels
        sharpness = fit_sharpness(tuning.left_out, checked, fewest=fewest)
    prior, offset = graph_state.prior, np.zeros(k)
    if isinstance(options.class_prior, np.ndarray):
        prior = options.class_prior
    if options.class_prior is not None:
        offset = match_masses(sharpen(shares[graph_state.coding.codes < 0], sharpness), prior)
    labels = winners(shares, sharpness, offset)
    labels[known] = codes
    return replace(
        graph_state,
        shares=shares,
        own_shares=graph_state.shares,
        labels=labels,
        prior=prior,
        sharpness=float(sharpness),
        offset=offset,
        unreached=_unreached(graph_state, committee),
        committee=committee,
    )


def _unreached(graph_state: FittedState, committee: Committee) -> NDArray[np.intp]:
    """Nodes that no member has a word on."""
    out = graph_state.unreached
    for member in committee.members:
        reached = getattr(member, "state", None)
        if reached is None:
            return np.empty(0, dtype=np.intp)
        out = np.intersect1d(out, reached.unreached)
    return out


def change_labels(
    state: FittedState,
    nodes: NDArray[np.intp],
    codes: NDArray[np.int32],
    options: FitOptions,
    tol: float,
) -> FittedState:
    """State with more, corrected or fewer labels: members and weights stay, scores move.

    Parameters
    ----------
    state : FittedState
        Where to start, with or without a committee.
    nodes : ndarray of int
        Nodes, each once.
    codes : ndarray of int
        Their classes; -1 removes a label.
    options : FitOptions
        Options of the fit.
    tol : float
        Residual that the update of a graph may leave.

    Returns
    -------
    FittedState
        The new state.
    """
    committee = state.committee
    if not isinstance(committee, Committee):
        return more_labels(state, nodes, codes, options, tol)
    assert state.own_shares is not None
    alone = replace(state, committee=None, own_shares=None, shares=state.own_shares)
    graph_state = more_labels(alone, nodes, codes, plain(options), tol)
    moved = committee.more_labels(nodes, codes, options, tol)
    return voted(graph_state, moved, options, sharpness=state.sharpness)
