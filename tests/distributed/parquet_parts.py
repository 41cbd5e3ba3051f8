"""Small tables in Parquet parts, for the tests of this folder."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from gdpa.distributed import TableFitOptions, Workers
from gdpa.distributed import fit as fit_parts
from gdpa.distributed import predict as predict_parts

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def clusters(n=1800, d=4, share=0.06, seed=0, n_classes=2):
    """Features, classes, and which of them are known."""
    rng = np.random.default_rng(seed)
    centers = 2.5 * rng.normal(size=(3 * n_classes, d))
    which = rng.integers(0, 3 * n_classes, n)
    X = centers[which] + rng.normal(size=(n, d))
    known = np.zeros(n, dtype=bool)
    known[rng.permutation(n)[: max(8, round(share * n))]] = True
    return X, which % n_classes, known


def write_parts(folder, columns, sizes, **options):
    """Write columns (arrays or Arrow arrays) as parts of the given numbers of rows."""
    folder.mkdir(exist_ok=True)
    table = pa.table(columns)
    start = 0
    for number, size in enumerate(sizes):
        pq.write_table(table.slice(start, size), folder / f"part-{number}.parquet", **options)
        start += size
    assert start == table.num_rows
    return f"{folder}/*.parquet"


def table_columns(X, truth, known, names=("a", "b", "c", "d", "e")):
    labels = np.array(names)[truth]
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    return {**columns, "y": pa.array(labels, mask=~known), "id": np.arange(X.shape[0]) * 7}


def predictions(out):
    return pa.concat_tables([pq.read_table(f) for f in sorted(out.glob("*.parquet"))])


def content(out):
    return {f.name: f.read_bytes() for f in sorted(out.glob("*.parquet"))}


def split(flat):
    """Turn flat options into the arguments of :func:`gdpa.distributed.fit`."""
    flat = dict(flat)
    found = {}
    for name, kind in (("options", TableFitOptions), ("workers", Workers)):
        names = [f.name for f in fields(kind) if f.name in flat]
        found[name] = kind(**{each: flat.pop(each) for each in names})
    return {**found, **flat}


def fit(paths, target, **flat):
    return fit_parts(paths, target, **split(flat))


def predict(paths, *, id_column=None, class_probabilities=False, **flat):
    arguments = split(flat)
    del arguments["options"]
    return predict_parts(
        paths, id_column=id_column, class_probabilities=class_probabilities, **arguments
    )
