"""Text, pictures and networks: the default beside simple baselines on the same features.

    python -m benchmarks.modalities                      # what is missing in modalities.json
    python -m benchmarks.modalities --parts minilm cora  # only these
    python -m benchmarks.modalities --again cora         # measure a part again
    python -m benchmarks.modalities --embed FOLDER       # pictures through an ONNX model, too
    python -m benchmarks.modalities --write              # only print the results

Parts, all of ``$GDPA_DATA_HOME``; a part whose files are missing is skipped:

- *minilm*: MiniLM embeddings of sentences, ``text/*-minilm.npz``;
- *text*: the sentences themselves, ``text/*.csv``, through the package's encoding of text columns;
  baselines get TF-IDF of characters (2 to 5) and words;
- *pictures*: ``cifar-2000.npz`` through the package's encoding of picture files; with ``--embed``
  also what the model that is named makes of them. The baselines get the same features;
- *cora*: the public split and ten random ones of 20 labels a class;
- *unlike*: networks with unlike neighbours, ``graphs/*.npz``, their own splits.

Baselines: logistic regression (C = 1) on the same features, on features smoothed twice along the
links or ten nearest neighbours (TF-IDF for words), LabelSpreading, extra trees; with links also the
links alone. Seconds are CPU time of the default.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize
from sklearn.semi_supervised import LabelSpreading

from gdpa import CommitteeClassifier, GraphClassifier

from .link_data import cora, random_split
from .machine import describe

HERE = Path(__file__).parent
STORE = HERE / "modalities.json"
PARTS = ("minilm", "text", "pictures", "cora", "unlike")
METHODS = (
    "gdpa",
    "logistic regression",
    "smoothed twice, logistic regression",
    "LabelSpreading",
    "extra trees",
    "links alone",
)
ROWS, SEEDS, SPLITS = 2_000, 6, 10


@dataclass(frozen=True)
class Case:
    """One problem: `X` for the baselines, `given` what the default gets, links or None."""

    key: str
    X: Any
    truth: Any
    train: Any
    test: Any
    links: Any = None
    given: Any = None


def labels_per_class(truth: Any, count: int, seed: int) -> tuple[Any, Any]:
    """So many labels of each class of 25 rows or more; all other rows of these are the test."""
    rng = np.random.default_rng(seed)
    frequent = np.flatnonzero(np.bincount(truth) >= 25)
    train = [rng.choice(np.flatnonzero(truth == c), count, replace=False) for c in frequent]
    known = np.concatenate(train)
    test = np.setdiff1d(np.flatnonzero(np.isin(truth, frequent)), known)
    return known, test


def rows_cases(name: str, X: Any, truth: Any, given: Any = None) -> Iterator[Case]:
    """5 and 20 labels a class."""
    for count in (5, 20):
        for seed in range(SEEDS):
            train, test = labels_per_class(truth, count, seed)
            yield Case(f"{name}, {count} labels a class/{seed}", X, truth, train, test, None, given)


def network(path: Path) -> tuple[Any, Any, Any, Any, Any]:
    """Features, links, classes and the masks of a stored network."""
    with np.load(path) as data:
        X, truth, ends = data["node_features"], data["node_labels"], data["edges"]
        masks = [data["train_masks"], data["test_masks"]]
    n = truth.size
    W = sp.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    W = sp.csr_array(((W + W.T) > 0).astype(float))
    W.setdiag(0)
    W.eliminate_zeros()
    train, test = [mask.T if mask.shape[0] == n else mask for mask in masks]
    return X.astype(float), W, truth.astype(int), train, test


def cases(part: str, embed: str | None) -> Iterator[Case]:
    """The problems of a part; none where its files are missing."""
    home = Path(os.environ.get("GDPA_DATA_HOME", "."))
    if part == "minilm":
        for path in sorted(home.glob("text/*-minilm.npz")):
            with np.load(path) as data:
                X, y = data["X"][:ROWS].astype(float), data["y"][:ROWS]
            yield from rows_cases(path.stem, X, np.unique(y, return_inverse=True)[1])
    elif part == "text":
        import pandas as pd

        for path in sorted(home.glob("text/*.csv")):
            table = pd.read_csv(path)[:ROWS]
            characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2)
            words = TfidfVectorizer(ngram_range=(1, 2), min_df=2)
            parts = [counts.fit_transform(table["text"]) for counts in (characters, words)]
            truth = np.unique(table["label"], return_inverse=True)[1]
            X = sp.csr_array(sp.hstack(parts))
            yield from rows_cases(path.stem, X, truth, table[["text"]])
    elif part == "pictures" and (home / "cifar-2000.npz").exists():
        with np.load(home / "cifar-2000.npz") as data:
            pictures, truth = data["X"], data["y"]
        truth = np.unique(truth, return_inverse=True)[1]
        if embed is not None:
            yield from rows_cases(f"CIFAR-10, {Path(embed).name}", embedded(pictures, embed), truth)
        with tempfile.TemporaryDirectory() as folder:
            from PIL import Image

            from gdpa.tables import TableEncoder, read_table

            for i, picture in enumerate(pictures):
                Image.fromarray(picture).save(Path(folder) / f"{i:05d}.png")
            given = read_table(folder).without(["label"])
            X = TableEncoder().fit_transform(given)
            yield from rows_cases("CIFAR-10, no model", X, truth, given)
    elif part == "cora" and (found := cora()) is not None:
        X, W, truth, public = found
        yield Case("Cora, public split/0", X, truth, *public, W)
        for seed in range(SPLITS):
            yield Case(f"Cora, random splits/{seed}", X, truth, *random_split(truth, seed), W)
    elif part == "unlike":
        for path in sorted(home.glob("graphs/*.npz")):
            X, W, truth, train, test = network(path)
            for split in range(min(SPLITS, len(train))):
                at = np.flatnonzero(train[split]), np.flatnonzero(test[split])
                yield Case(f"{path.stem}/{split}", X, truth, *at, W)


def embedded(pictures: Any, embed: str) -> Any:
    """Return what an ONNX model makes of pictures."""
    from PIL import Image

    from gdpa.tables.embedding import find_embedder

    return find_embedder(embed).run([Image.fromarray(picture) for picture in pictures])


def smoothed_twice(X: Any, W: Any) -> Any:
    """Features smoothed twice along links, or ten nearest neighbours; TF-IDF of counts."""
    if W is None:
        W = kneighbors_graph(X, 10, metric="cosine")
        W = W.maximum(W.T)
    elif X.shape[1] > 100 and (sp.csr_array(X).data == 1.0).all():
        X = TfidfTransformer().fit_transform(sp.csr_array(X))
    A = sp.csr_array(W + sp.eye_array(W.shape[0]))
    root = sp.diags_array(1.0 / np.sqrt(np.asarray(A.sum(axis=1)).ravel()))
    S = sp.csr_array(root @ A @ root)
    return normalize(S @ (S @ X))


def predict(method: str, case: Case) -> Any:
    """Labels of all rows by one method; None where it does not apply."""
    y = np.full(case.truth.size, -1)
    y[case.train] = case.truth[case.train]
    X, known = case.X, case.train
    if method == "gdpa":
        given = X if case.given is None else case.given
        return CommitteeClassifier().fit(given, y, adjacency=case.links).transduction_
    if method == "links alone":
        if case.links is None:
            return None
        return GraphClassifier(graph="precomputed").fit(case.links, y).transduction_
    if method == "LabelSpreading":
        A = X.toarray() if sp.issparse(X) else X
        return LabelSpreading(kernel="knn", n_neighbors=10).fit(A, y).transduction_
    if method == "extra trees":
        return ExtraTreesClassifier(200, random_state=0).fit(X[known], y[known]).predict(X)
    Z = X if method == "logistic regression" else smoothed_twice(X, case.links)
    return LogisticRegression(max_iter=500).fit(Z[known], y[known]).predict(Z)


def store() -> dict[str, dict[str, Any]]:
    """What has been measured."""
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def save(results: dict[str, dict[str, Any]]) -> None:
    """Write the store, whole or not at all."""
    text = STORE.with_suffix(".part")
    text.write_text(json.dumps(results, indent=1) + "\n")
    os.replace(text, STORE)


def measure(parts: list[str], again: list[str], embed: str | None) -> None:
    """Run what is missing, and write it down after every problem."""
    results, commit = store(), describe()["commit"]
    for part in parts:
        cells = results.setdefault(part, {})
        for case in cases(part, embed):
            if case.key in cells and part not in again:
                continue
            cell: dict[str, Any] = {"commit": commit}
            for method in METHODS:
                start = time.process_time()
                labels = predict(method, case)
                if method == "gdpa":
                    cell["cpu"] = round(time.process_time() - start, 2)
                if labels is not None:
                    right = (np.asarray(labels) == case.truth)[case.test]
                    cell[method] = round(100.0 * float(right.mean()), 2)
            cells[case.key] = cell
            print(part, case.key, cell, flush=True)
            save(results)


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the results as Markdown: means over draws, a row for each set."""
    lines = [
        "# Text, pictures and networks",
        "",
        "Accuracy in percent, means over draws of the labels; processor seconds of the default.",
        "",
        "| set | draws | " + " | ".join(METHODS) + " | CPU s | commit |",
        "|---" * (len(METHODS) + 4) + "|",
    ]
    for part in PARTS:
        sets = list(dict.fromkeys(key.rsplit("/", 1)[0] for key in results.get(part, {})))
        for name in sets:
            cells = [v for k, v in results[part].items() if k.rsplit("/", 1)[0] == name]
            row = []
            for column in (*METHODS, "cpu"):
                values = [cell[column] for cell in cells if column in cell]
                row.append(f"{np.mean(values):.1f}" if values else "-")
            row.append(", ".join(sorted({cell.get("commit", "-") for cell in cells})))
            lines.append(f"| {name} | {len(cells)} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.modalities", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--again", nargs="+", choices=PARTS, default=[], metavar="PART")
    parser.add_argument("--embed", help="folder of an ONNX model for the pictures")
    parser.add_argument("--write", action="store_true", help="print the results, measure nothing")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if not options.write:
        measure(options.again or options.parts, options.again, options.embed)
    print(page(store()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
