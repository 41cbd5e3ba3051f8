"""Fits on data frames: cells that nobody would type, and rows that were never seen."""

from __future__ import annotations

import datetime
import decimal
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from . import fits, inputs
from .outcome import RIGHT, generator, must, quiet, refused

WORDS = (
    "red",
    "blue",
    "",
    " ",
    "NA",
    "nan",
    "None",
    "-1",
    "1e999",
    "\x00",
    "ä",
    "𝔘",
    "=1+1",
    "a,b",
)
COLUMNS = (
    "numbers",
    "huge",
    "missing",
    "constant",
    "whole",
    "beyond 64 bits",
    "infinite",
    "truth",
    "words",
    "sentences",
    "dates",
    "old dates",
    "categories",
    "ids",
    "mixed",
    "decimals",
    "text of numbers",
    "all missing",
    "bytes",
    "lists",
)


def cells(rng: np.random.Generator, kind: str, n: int, group: np.ndarray) -> Any:
    """A column of one kind."""
    import pandas

    numbers = rng.normal(size=n) + group
    if kind in ("numbers", "huge", "missing", "constant", "infinite", "all missing"):
        numbers *= 1e300 if kind == "huge" else 1.0
        if kind == "missing":
            numbers[rng.random(n) < 0.4] = np.nan
        elif kind == "constant":
            numbers[:] = 3.0
        elif kind == "infinite":
            numbers[int(rng.integers(n))] = np.inf
        elif kind == "all missing":
            numbers[:] = np.nan
        return numbers
    if kind == "whole":
        return np.round(5 * numbers).astype(np.int64)
    if kind == "truth":
        found = (numbers > 0).astype(object)
        found[rng.random(n) < 0.1] = None
        return found
    if kind in ("dates", "old dates"):
        first = np.datetime64("2020-01-01" if kind == "dates" else "0001-01-01", "us")
        days = rng.integers(0, 700, n) + 300 * group
        found = (first + days.astype("timedelta64[D]")).astype("datetime64[us]")
        found[rng.random(n) < 0.1] = np.datetime64("NaT")
        return found
    words = np.array(WORDS, dtype=object)[rng.integers(len(WORDS), size=n)]
    made: dict[str, Any] = {
        "beyond 64 bits": lambda i: 10**30 + int(group[i]),
        "words": lambda i: words[i],
        "sentences": lambda i: f"{words[i]} {('river', 'engine')[group[i] % 2]} {i} " * 5,
        "categories": lambda i: words[i] or None,
        "ids": lambda i: f"id-{i:05d}",
        "mixed": lambda i: (words[i], i, None, 2.5, True, datetime.date(2020, 1, 1))[i % 6],
        "decimals": lambda i: decimal.Decimal(int(100 * numbers[i])) / 100,
        "text of numbers": lambda i: f"{numbers[i]:.3f}" if i % 7 else "?",
        "bytes": lambda i: str(words[i]).encode(),
        "lists": lambda i: [i, i + 1],
    }
    found = np.empty(n, dtype=object)
    found[:] = [made[kind](i) for i in range(n)]
    return pandas.Categorical(found) if kind == "categories" else found


def frame(rng: np.random.Generator, n: int, group: np.ndarray) -> tuple[Any, list[str]]:
    """A frame and the kinds of its columns."""
    import pandas

    count = int(rng.integers(1, 7))
    plain, odd = COLUMNS[:-8], COLUMNS[-8:]
    kinds = [str(rng.choice(odd if rng.random() < 0.2 else plain)) for _ in range(count)]
    names = [f"{kind} {i}" for i, kind in enumerate(kinds)]
    if rng.random() < 0.05:
        names[-1] = names[0]  # a name twice
    found = pandas.concat([pandas.Series(cells(rng, kind, n, group)) for kind in kinds], axis=1)
    found.columns = names
    return found, kinds


def run(seed: int) -> str:
    """One fit on a frame."""
    rng = generator("tables", seed)
    data = inputs.make(rng)
    n = data.known.size
    names = sorted({str(t) for t in data.truth})
    group = np.array([names.index(str(t)) for t in data.truth])
    X, kinds = frame(rng, n, group)
    model = fits.make_model(rng, data.unlabeled)
    with quiet():
        try:
            model.fit(X, data.y)
        except (ValueError, MemoryError) as error:
            return refused(error)
        k = model.classes_.size
        fits.probabilities_hold(model.label_scores_, n, k)
        labels = [str(v) for v in model.transduction_]
        given = np.array([str(t) == v for t, v in zip(data.truth, labels, strict=True)])
        must(given[data.known].all(), "a given label is not kept in transduction_")
        first = model.predict_proba(X)
        fits.probabilities_hold(first, n, k)
        must(np.array_equal(first, model.predict_proba(X.copy())), "a copy is answered otherwise")
        check_rows(rng, model, X, group, kinds)
        if rng.random() < 0.1:
            check_stored(model, X, first)
    return RIGHT


def check_rows(
    rng: np.random.Generator, model: Any, X: Any, group: np.ndarray, kinds: list[str]
) -> None:
    """Rows with values, words and gaps that were never seen; other kinds are refused."""
    m = 6
    rows, _ = frame(rng, m, group[rng.integers(len(group), size=m)])
    again = X.iloc[:m].reset_index(drop=True).copy()
    if len(set(X.columns)) == X.shape[1]:
        for name, kind in zip(X.columns, kinds, strict=True):
            again[name] = cells(rng, kind, len(again), group[: len(again)])
            if rng.random() < 0.2:
                again[name] = None
    for asked in (again, rows):
        try:
            found = model.predict_proba(asked)
        except ValueError as error:  # other columns; words where numbers were; infinite numbers
            refused(error)
            continue
        fits.probabilities_hold(found, len(asked), model.classes_.size)


def check_stored(model: Any, X: Any, want: np.ndarray) -> None:
    """Saved, loaded, pickled: the same predictions of the same frame."""
    copy = pickle.loads(pickle.dumps(model))
    must(np.array_equal(want, copy.predict_proba(X)), "a pickle predicts otherwise")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        try:
            model.save(path)
        except ValueError:
            return
        loaded = type(model).load(path)
    got = loaded.predict_proba(X)
    must(np.allclose(want, got, atol=1e-9), "a loaded model predicts otherwise")
