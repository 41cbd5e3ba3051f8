"""What a distributed fit shares with the estimators: tuning by held-out labels, and export."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..checks import check_positive
from ..estimators.probabilities import fit_sharpness, labeled_prior, to_shares
from ..estimators.tuning import DEFAULT, LARGE_SELF_LOOPS, left_out_loss
from ..policy import DEFAULT_POLICY
from ..system.left_out import FOLD_TOL
from .conjugate_gradients import Solve, batches
from .folder import Folder
from .manifest import Manifest
from .parts import points_of
from .plan import load_plan
from .solve import PartSolver

if TYPE_CHECKING:
    from ..estimators import GraphClassifier


@dataclass(frozen=True)
class SelfLoopChoice:
    """The chosen self-loop and its held-out accuracy.

    Parameters
    ----------
    self_loop : float
        gamma.
    source : str
        How it was chosen.
    accuracy : float or None
        Held-out accuracy; None if no labels were held out.
    n_held_out : int
        Number of held-out labels.
    sharpness : float
        Exponent that calibrates the probabilities.
    """

    self_loop: float
    source: str
    accuracy: float | None = None
    n_held_out: int = 0
    sharpness: float = 1.0


def choose_self_loop(
    solver: PartSolver,
    codes: NDArray[np.int32],
    folds: NDArray[np.int32],
    n_classes: int,
    given: float | None,
) -> SelfLoopChoice:
    """Choose the self-loop by the held-out loss: of one fold with many labels, else of all."""
    counts = np.bincount(codes, minlength=n_classes)
    judged = counts[codes] >= 2  # a class with a single label cannot be predicted without it
    if (counts >= 2).sum() < 2 or judged.sum() < DEFAULT_POLICY.fewest_labels:
        return SelfLoopChoice(DEFAULT.self_loop if given is None else given, "too few labels")
    one_fold = codes.size >= DEFAULT_POLICY.screened_labels
    used = [0] if one_fold else np.unique(folds).tolist()
    columns = [(code, fold) for fold in used for code in range(n_classes)]
    held_out = np.flatnonzero(np.isin(folds, used))
    seen = judged[held_out]
    best: tuple[float, float, FloatArray] | None = None
    for self_loop in LARGE_SELF_LOOPS if given is None else (given,):
        solves = batches(Solve(f"tuning, self-loop {self_loop:g}", self_loop, tuple(columns)))
        by_column = np.hstack([solver.label_scores(solve, FOLD_TOL) for solve in solves])
        by_fold = by_column.reshape(codes.size, len(used), n_classes)
        scores = by_fold[held_out, np.searchsorted(used, folds[held_out])]
        loss = left_out_loss(np.eye(n_classes)[codes[held_out]][seen], scores[seen])
        if best is None or loss < best[0]:
            best = loss, self_loop, scores
    assert best is not None
    _, self_loop, scores = best
    right = to_shares(scores, labeled_prior(codes, n_classes)).argmax(axis=1) == codes[held_out]
    source = "given" if given is not None else "one fold held out" if one_fold else "3 folds"
    return SelfLoopChoice(
        self_loop,
        source,
        float(right[seen].mean()),
        int(seen.sum()),
        fit_sharpness(scores, codes[held_out]),
    )


def finished_model(folder: Folder) -> tuple[Manifest, dict[str, Any]]:
    """Return the manifest and the model of a finished fit."""
    manifest = Manifest(folder)
    if not manifest.load() or "model" not in manifest.data:
        raise ValueError(f"work folder {folder.url} has no finished fit")
    manifest.check()
    return manifest, manifest.data["model"]


def export(
    work: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    n_rows: int = 50_000,
    random_state: int = 0,
) -> GraphClassifier:
    """Export a subset of the rows of a finished fit as a classifier for one machine.

    The rows keep their scores from the full fit, and columns are encoded as in the fit. Load the
    file with `gdpa predict` or :meth:`gdpa.GraphClassifier.load`.

    Parameters
    ----------
    work : path-like or URL
        Work folder of the fit; it is not changed.
    path : path-like
        Model file to write, usually with the extension ".npz".
    n_rows : int, default=50000
        Number of rows: up to half of them labelled rows, the others chosen at random.
    random_state : int, default=0
        Random seed.

    Returns
    -------
    GraphClassifier
        The exported classifier.
    """
    from ..estimators import GraphClassifier
    from ..estimators.fitted import SingleGraph
    from ..estimators.frames import adopt_encoder
    from ..graph.rescale import Rescaler
    from ..tables import TableEncoder

    n_rows = check_positive(n_rows, "n_rows", 2)
    folder = Folder(os.fspath(work))
    manifest, model = finished_model(folder)
    starts = np.asarray(model["starts"])
    nodes = _choose_nodes(folder, starts, n_rows, random_state)
    codes, scores, X = (
        points_of(folder, nodes, starts, file)
        for file in ("model/{:05d}.code.npy", "model/{:05d}.scores.npy", "parts/{:05d}.X.npy")
    )
    classes = np.array(model["classes"], dtype=object)
    y = np.full(nodes.size, None, dtype=object)
    # Keep classes without a labelled row in the subset: label one row of each during the fit.
    y[codes >= 0] = classes[codes[codes >= 0]]
    for c in np.setdiff1d(np.arange(classes.size), codes):
        y[int(np.argmax(scores[:, c]))] = classes[c]
    classifier = GraphClassifier(
        n_neighbors=min(model["n_neighbors"], nodes.size - 1),
        label_weight=np.inf,
        self_loop=model["self_loop"],
        unlabeled=None,
    ).fit(X, y)
    ensemble = classifier.ensemble_
    assert isinstance(ensemble, SingleGraph)
    prior = np.asarray(model["prior"])
    shares = to_shares(scores, prior)
    labels = replace(ensemble.labels, codes=codes.astype(np.int32))
    none = np.empty(0, dtype=np.intp)
    solved = replace(ensemble.first, scores=scores, shares=shares, prior=prior, abstaining=none)
    factors = load_plan(folder.url).factors
    d = factors.size
    # This re-scaling multiplies encoded rows by the feature weights of the fit.
    rescaler = Rescaler("min-max", np.ones(d, dtype=bool), np.zeros(d), 1.0 / factors, False)
    classifier._adopt(
        replace(
            ensemble,
            labels=labels,
            solved=solved,
            shares=shares,
            codes=np.where(codes >= 0, codes, shares.argmax(axis=1)),
            prior=prior,
            sharpness=model["sharpness"],
            unreached=none,
            rescaler=rescaler,
        )
    )
    adopt_encoder(
        classifier, TableEncoder.from_plain(folder.read_json("plan/plan.json")["encoder"])
    )
    about = {"target": manifest.parameters["target"], "source": model["source"]}
    classifier.save(Path(path), extra={"table": {**about, "id_column": None, "ids": None}})
    return classifier


def _choose_nodes(
    folder: Folder, starts: NDArray[np.int64], n_rows: int, seed: int
) -> NDArray[np.int64]:
    """Choose the nodes of a subset; return them in ascending order."""
    n = int(starts[-1])
    rng = np.random.default_rng(seed)
    files = [f"parts/{p:05d}.labeled.npy" for p in range(starts.size - 1)]
    known = np.concatenate([folder.read_array(f) + starts[p] for p, f in enumerate(files)])
    chosen = rng.permutation(known)[: max(n_rows // 2, n_rows - (n - known.size))]
    others = rng.permutation(np.setdiff1d(np.arange(n), known, assume_unique=True))
    return np.sort(np.concatenate([chosen, others[: n_rows - chosen.size]]))
