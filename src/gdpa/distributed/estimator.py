"""Everything that a fit on parts shares with the estimators of one machine.

The self-loop is chosen by held-out labels, and a subset of a finished fit becomes an ordinary
classifier.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.probabilities import fit_sharpness, labeled_prior, to_shares
from ..estimators.tuning import DEFAULT, LARGE_SELF_LOOPS, left_out_loss
from ..policy import DEFAULT_POLICY
from ..system.left_out import FOLD_TOL
from .folder import Folder
from .manifest import Manifest
from .parts import points_of
from .plan import load_plan
from .solve import Solve, Solver

if TYPE_CHECKING:
    from ..estimators import GraphClassifier

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Tuning:
    """The self-loop in use, and what held-out labels say about it.

    Parameters
    ----------
    self_loop : float
        gamma.
    source : str
        How it was chosen.
    accuracy : float or None
        Share of the held-out labels that were predicted; None if none were held out.
    n_held_out : int
        How many were held out.
    sharpness : float
        Exponent of the probabilities.
    """

    self_loop: float
    source: str
    accuracy: float | None = None
    n_held_out: int = 0
    sharpness: float = 1.0


def batches(
    name: str, self_loop: float, columns: list[tuple[int, int]], most: int = 16
) -> list[Solve]:
    """Return solves of as many columns as fit in memory together: 20 bytes per node and column."""
    cut = [tuple(columns[i : i + most]) for i in range(0, len(columns), most)]
    if len(cut) == 1:
        return [Solve(name, self_loop, cut[0])]
    return [Solve(f"{name}, batch {i + 1}", self_loop, own) for i, own in enumerate(cut)]


def choose_self_loop(
    solver: Solver,
    codes: NDArray[np.int32],
    folds: NDArray[np.int32],
    n_classes: int,
    given: float | None,
) -> Tuning:
    """Choose the self-loop by the loss on held-out labels: one fold if they are many, else all."""
    counts = np.bincount(codes, minlength=n_classes)
    judged = counts[codes] >= 2  # the only label of a class cannot be predicted without it
    if (counts >= 2).sum() < 2 or judged.sum() < DEFAULT_POLICY.fewest_labels:
        return Tuning(DEFAULT.self_loop if given is None else given, "too few labels")
    one_fold = codes.size >= DEFAULT_POLICY.screened_labels
    used = [0] if one_fold else np.unique(folds).tolist()
    columns = [(code, fold) for fold in used for code in range(n_classes)]
    held_out = np.flatnonzero(np.isin(folds, used))
    seen = judged[held_out]
    best: tuple[float, float, FloatArray] | None = None
    for self_loop in LARGE_SELF_LOOPS if given is None else (given,):
        solves = batches(f"tuning, self-loop {self_loop:g}", self_loop, columns)
        found = np.hstack([solver.label_scores(solve, FOLD_TOL) for solve in solves])
        own = found.reshape(codes.size, len(used), n_classes)
        scores = own[held_out, np.searchsorted(used, folds[held_out])]
        loss = left_out_loss(np.eye(n_classes)[codes[held_out]][seen], scores[seen])
        if best is None or loss < best[0]:
            best = loss, self_loop, scores
    assert best is not None
    _, self_loop, scores = best
    right = to_shares(scores, labeled_prior(codes, n_classes)).argmax(axis=1) == codes[held_out]
    source = "given" if given is not None else "one fold held out" if one_fold else "3 folds"
    return Tuning(
        self_loop, source, float(right[seen].mean()), int(seen.sum()),
        fit_sharpness(scores, codes[held_out]),
    )  # fmt: skip


def finished_model(folder: Folder) -> tuple[Manifest, dict[str, Any]]:
    """Return what a finished fit left in its work folder."""
    manifest = Manifest(folder)
    if not manifest.load() or "model" not in manifest.data:
        raise ValueError(f"work folder {folder.url} holds no finished fit")
    manifest.check()
    return manifest, manifest.data["model"]


def export(
    work: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    n_rows: int = 50_000,
    random_state: int = 0,
) -> GraphClassifier:
    """Write a subset of the rows of a finished fit as a classifier for one machine.

    Its nodes are rows of the fit with the scores that all rows together gave them; `gdpa predict`
    and :meth:`gdpa.GraphClassifier.load` read it, and columns are encoded as in the fit.

    Parameters
    ----------
    work : path-like or URL
        Work folder of the fit; it is only read.
    path : path-like
        The file; ".npz" is customary.
    n_rows : int, default=50000
        Rows: labelled ones first, at most half of them, others at random from all parts.
    random_state : int, default=0
        Random seed.

    Returns
    -------
    GraphClassifier
        The classifier in the file.
    """
    from ..estimators import GraphClassifier
    from ..estimators.frames import adopt_encoder
    from ..graph.rescale import Rescaler
    from ..tables import TableEncoder

    if not isinstance(n_rows, int | np.integer) or n_rows < 2:
        raise ValueError(f"n_rows={n_rows!r} must be a whole number, at least 2")
    folder = Folder(os.fspath(work))
    manifest, model = finished_model(folder)
    starts = np.asarray(model["starts"])
    nodes = _choose_nodes(folder, starts, int(n_rows), random_state)
    codes, scores, X = (
        points_of(folder, nodes, starts, file)
        for file in ("model/{:05d}.code.npy", "model/{:05d}.scores.npy", "parts/{:05d}.X.npy")
    )
    classes = np.array(model["classes"], dtype=object)
    y = np.full(nodes.size, None, dtype=object)
    # Classes without a label among the rows are kept: one row stands for each during the fit.
    y[codes >= 0] = classes[codes[codes >= 0]]
    for c in np.setdiff1d(np.arange(classes.size), codes):
        y[int(np.argmax(scores[:, c]))] = classes[c]
    classifier = GraphClassifier(
        n_neighbors=min(model["n_neighbors"], nodes.size - 1),
        label_weight=np.inf,
        self_loop=model["self_loop"],
        unlabeled=None,
    ).fit(X, y)
    ensemble, prior = classifier.ensemble_, np.asarray(model["prior"])
    shares = to_shares(scores, prior)
    labels = replace(ensemble.labels, codes=codes.astype(np.int32))
    none = np.empty(0, dtype=np.intp)
    first = replace(
        ensemble.first, labels=labels, scores=scores, shares=shares, prior=prior, abstaining=none
    )
    factors = load_plan(folder.url).factors
    d = factors.size
    # Rows that the encoder gives are multiplied by the factors of the fit.
    rescaler = Rescaler("min-max", np.ones(d, dtype=bool), np.zeros(d), 1.0 / factors, False)
    classifier._adopt(
        replace(
            ensemble,
            labels=labels,
            members=(first,),
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
    """Return the nodes of a subset, ascending."""
    n = int(starts[-1])
    rng = np.random.default_rng(seed)
    files = [f"parts/{p:05d}.labeled.npy" for p in range(starts.size - 1)]
    known = np.concatenate([folder.read_array(f) + starts[p] for p, f in enumerate(files)])
    chosen = rng.permutation(known)[: max(n_rows // 2, n_rows - (n - known.size))]
    others = rng.permutation(np.setdiff1d(np.arange(n), known, assume_unique=True))
    return np.sort(np.concatenate([chosen, others[: n_rows - chosen.size]]))
