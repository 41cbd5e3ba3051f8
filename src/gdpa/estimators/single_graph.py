"""Fit one graph by one method: choose its setting by cross-validation, then solve."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..errors import DegenerateProblemWarning
from ..graph.features import Features
from ..graph.rescale import Rescaler
from ..system import ReorderedGraph, arrange
from ..system.left_out import LARGE_FOLDS
from .fitted import SingleGraph
from .heads.harmonic import solve_graph, targets_of
from .labels import LabelCoding, stratified_folds
from .options import CheckedOptions, report
from .probabilities import fit_sharpness, judged_labels, left_out_loss, warn_about
from .sample_graph import SampleGraph, graph_candidates
from .tuning import DEFAULT, Given, Setting, Tuning, tune

# Candidates for n_neighbors="auto", the preferred one first.
AUTO_NEIGHBORS = (10, 15, 20)


def fit_single_graph(
    X: Features, labels: LabelCoding, options: CheckedOptions, *, rescaler: Rescaler | None = None
) -> SingleGraph:
    """Fit one graph.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Checked and rescaled features, or the graph if ``options.graph`` is "precomputed".
    labels : LabelCoding
        The labels.
    options : CheckedOptions
        Options of the fit.
    rescaler : Rescaler, optional
        Rescaling that was applied to the features.
    """
    candidates = graph_candidates(X, options, neighbor_counts(X.shape[0], options))
    report(options, stage="graph", nodes=X.shape[0], edges=int(candidates[0].W.nnz) // 2)
    if labels.classes.size == 1:
        warnings.warn(
            f"y has only one class, {labels.classes.tolist()[0]!r}; every sample is assigned to it",
            DegenerateProblemWarning,
            stacklevel=3,
        )
    arranged = None
    if len(candidates) == 1 and X.shape[0] > options.policy.large_nodes:
        arranged = arrange(candidates[0].adjacency, options.policy)
    tuning = choose_setting(candidates, labels, options, arranged)
    graph = candidates[tuning.candidate]
    solved = solve_graph(graph, labels, tuning.setting, options, arranged=arranged)
    fitted = SingleGraph.build(
        solved,
        labels,
        tuning,
        options,
        sharpness=calibrated_sharpness(tuning, labels, options),
        n_features=X.shape[1] if rescaler is None else rescaler.columns.size,
        sparse=sp.issparse(X) and options.graph != "precomputed",
        rescaler=rescaler,
    )
    warn_about(fitted, solved.run)
    return fitted


def neighbor_counts(n: int, options: CheckedOptions) -> list[int]:
    """Return the numbers of neighbours to choose from."""
    if options.n_neighbors is not None:
        return [options.n_neighbors]
    auto = AUTO_NEIGHBORS if n <= options.policy.auto_nodes else AUTO_NEIGHBORS[:1]
    return list(dict.fromkeys(max(min(count, n - 1), 1) for count in auto))


def choose_setting(
    candidates: list[SampleGraph],
    labels: LabelCoding,
    options: CheckedOptions,
    arranged: ReorderedGraph | None,
) -> Tuning:
    """Choose the graph and its setting by held-out labels.

    The harmonic function chooses the setting for every method, because it is cheap to leave labels
    out of it. The held-out scores are those of the method itself, refitted fold by fold.
    """
    if candidates[0].signed:  # labels are kept exactly, and there is nothing to choose
        tuning = Tuning(Setting(np.inf, 0.0), 1.0, "signed weights", None, 0)
    else:
        targets = targets_of(labels)
        systems = [
            graph.system(labels.labeled, targets, DEFAULT, options, arranged)
            for graph in candidates
        ]
        codes = labels.codes[labels.labeled]
        tuning = tune(systems, codes, Given(options.label_weight, options.self_loop))
        if options.method != "harmonic" and tuning.left_out is not None:
            tuning = tuning_of_method(candidates[tuning.candidate], labels, tuning, options)
    report(
        options,
        stage="tuning",
        source=tuning.source,
        tried=tuning.tried,
        loss=tuning.loss,
        label_weight=tuning.setting.label_weight,
        self_loop=tuning.setting.self_loop,
    )
    return tuning


def calibrated_sharpness(tuning: Tuning, labels: LabelCoding, options: CheckedOptions) -> float:
    """Return the sharpness of the probabilities, fitted on held-out scores."""
    codes = labels.codes[labels.labeled]
    checked = codes if tuning.checked is None else codes[tuning.checked]
    fewest = options.policy.calibration_labels
    return fit_sharpness(tuning.left_out, checked, fewest=fewest)


def tuning_of_method(
    graph: SampleGraph, labels: LabelCoding, tuning: Tuning, options: CheckedOptions
) -> Tuning:
    """Return the chosen setting with the held-out scores and the loss of ``options.method``.

    The method is refitted once per fold, without the labels of the fold.
    """
    known = labels.labeled
    codes = labels.codes[known]
    k = labels.classes.size
    n_folds = LARGE_FOLDS if graph.n_nodes > options.policy.large_nodes else 5
    folds = stratified_folds(codes, n_folds)
    shares = np.zeros((codes.size, k))
    silent = replace(options, callback=None, verbose=0, class_prior=None)
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        present, remaining = np.unique(codes[~held], return_inverse=True)
        without = np.full(labels.codes.size, -1, dtype=np.int32)
        without[known[~held]] = remaining
        coding = LabelCoding(without, labels.classes[present])
        with warnings.catch_warnings(action="ignore"):  # the fit on all labels warns itself
            fitted = solve_graph(graph, coding, tuning.setting, silent)
        shares[np.ix_(held, present)] = fitted.shares[known[held]]
        report(options, stage="fold", fold=fold + 1, of=int(folds.max()) + 1)
    judged = judged_labels(codes, k)
    return replace(
        tuning,
        loss=left_out_loss(np.eye(k)[codes[judged]], shares[judged]),
        source="k-fold",
        left_out=shares,
        checked=None,
    )
