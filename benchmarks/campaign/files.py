"""Damaged, tampered and oversized files: a clear refusal, or a content that is whole."""

from __future__ import annotations

import functools
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import scipy.sparse as sp

import gdpa
from gdpa import codec
from gdpa.estimators import GraphOptions
from gdpa.graph_files import read_graph
from gdpa.tables import read_table

from .fits import probabilities_hold
from .outcome import RIGHT, generator, must, quiet, refused


@functools.cache
def model_arrays(variant: int) -> tuple[type, dict[str, Any], bytes, Any]:
    """Class of a saved model, its arrays, its bytes and rows to predict."""
    rng = np.random.default_rng(variant)
    X = rng.normal(size=(24, 3)) + (np.arange(24) % 2)[:, None] * 2
    y = np.where(np.arange(24) < 10, np.arange(24) % 2, -1)
    models = [
        gdpa.GraphClassifier(),
        gdpa.GraphClassifier(graph="full"),
        gdpa.GraphClassifier(options=GraphOptions(rescale="standard")),
        gdpa.GraphClassifier(options=GraphOptions(laplacian="combinatorial")),
        gdpa.CommitteeClassifier(),  # of a data frame
        gdpa.CommitteeClassifier(),
    ]
    if variant == 4:
        X = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": [f"w{i % 3}" for i in range(24)]})
    model = models[variant].fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.npz"
        model.save(path)
        raw = path.read_bytes()
    with np.load(io.BytesIO(raw)) as file:
        arrays = {name: file[name] for name in file.files}
    return type(model), arrays, raw, X


def damaged(rng: np.random.Generator, raw: bytes) -> bytes:
    """Some bytes missing, turned, doubled or inserted."""
    content = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        if not content:
            break
        at = int(rng.integers(len(content)))
        action = rng.integers(5)
        if action == 0:
            del content[at:]
        elif action == 1:
            content[at] ^= 1 << int(rng.integers(8))
        elif action == 2:
            content[at:at] = rng.bytes(int(rng.integers(1, 20)))
        elif action == 3:
            del content[at : at + int(rng.integers(1, 50))]
        else:
            content[at] = int(rng.integers(256))
    return bytes(content)


def tampered(rng: np.random.Generator, arrays: dict[str, Any]) -> dict[str, Any]:
    """One thing changed on purpose, the checksum made to fit again."""
    changed = dict(arrays)
    names = [name for name in changed if name != "checksum"]
    name = str(rng.choice(names))
    if rng.random() < 0.4:
        meta = json.loads(str(changed["json"][()]))
        spoil_json(rng, meta)
        changed["json"] = np.array(json.dumps(meta))
    elif rng.random() < 0.15:
        del changed[name]
    elif changed[name].dtype.kind in "fiub" and changed[name].size:
        changed[name] = spoil_array(rng, changed[name])
    else:
        changed[name] = rng.normal(size=(3, 2))
    changed.pop("checksum", None)
    changed["checksum"] = np.array(codec._checksum(changed))
    return changed


STRANGE = (None, True, -1, 0, 1e308, -1e308, "x", "", [], {}, [1, [2]], 10**30, "inf", "nan", 0.5)


def spoil_json(rng: np.random.Generator, meta: Any) -> None:
    """Replace, remove or add one entry at some depth."""
    place = meta
    for _ in range(int(rng.integers(1, 4))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(place[key], dict | list) and rng.random() < 0.7:
            place = place[key]
            continue
        if rng.random() < 0.2:
            del place[key]
        else:
            place[key] = STRANGE[int(rng.integers(len(STRANGE)))]
        return


def spoil_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Wrong values, lengths, shapes or types."""
    out = array.copy()
    action = rng.integers(7)
    if action == 0:
        return out.ravel()[:-1]
    if action == 1:
        return np.concatenate([out.ravel(), out.ravel()])
    if action == 2:
        return out.astype(str)
    if action == 3:
        return out[None]
    if action == 4:
        return -out.astype(np.float64) if out.dtype.kind != "b" else ~out
    flat = out.reshape(-1)
    values = [np.nan, np.inf, -1.0, 1e308] if out.dtype.kind == "f" else [-5, 2**31 - 1, 0, 99]
    if out.dtype.kind == "b":
        flat[int(rng.integers(flat.size))] ^= True
    else:
        flat[int(rng.integers(flat.size))] = values[int(rng.integers(len(values)))]
    return out


def bomb(rng: np.random.Generator, names: list[str]) -> bytes:
    """An archive that claims, or holds, far more than its size."""
    stream = io.BytesIO()
    header = (
        b"\x93NUMPY\x01\x00v\x00"
        + (b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % (20 * 10**6)).ljust(117)
        + b"\n"
    )
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        if rng.random() < 0.3:
            with file.open(f"{rng.choice(names)}.npy", "w") as member:
                member.write(header)
                for _ in range(40):
                    member.write(bytes(4 * 10**6))
        else:
            file.writestr(f"{rng.choice(names)}.npy", header)
    return stream.getvalue()


def run(seed: int) -> str:
    """One file."""
    rng = generator("files", seed)
    kinds = (_model, _model, _model, _table, _graph, _saved, _oversized)
    with tempfile.TemporaryDirectory() as folder, quiet():
        return kinds[int(rng.integers(len(kinds)))](rng, Path(folder))


def _model(rng: np.random.Generator, folder: Path) -> str:
    kind, arrays, raw, X = model_arrays(int(rng.integers(6)))
    path = folder / "m.npz"
    how = rng.random()
    if how < 0.35:
        path.write_bytes(damaged(rng, raw))
    elif how < 0.95:
        with path.open("wb") as file:
            np.savez_compressed(file, **tampered(rng, arrays))
    else:
        path.write_bytes(bomb(rng, list(arrays)))
    try:
        model = kind.load(path)  # type: ignore[attr-defined]
    except (ValueError, MemoryError) as error:
        return refused(error)
    # What was let in works: there is no later failure.
    probabilities_hold(model.predict_proba(X), len(X), model.classes_.size)
    probabilities_hold(model.predict_proba(X[:3]), 3, model.classes_.size)
    must(len(model.transduction_) == model.label_scores_.shape[0], "lengths that differ")
    must(not np.isnan(model.objective_), "objective NaN")
    model.query(2)
    return RIGHT


def _table(rng: np.random.Generator, folder: Path) -> str:
    kind = str(rng.choice(["csv", "tsv", "npz", "libsvm"]))
    path = folder / f"t.{kind}"
    rows = int(rng.integers(1, 12))
    X = np.round(rng.normal(size=(rows, 3)), 3)
    if kind == "npz":
        stream = io.BytesIO()
        np.savez_compressed(stream, X=X, y=np.arange(rows) % 2)
        raw = stream.getvalue() if rng.random() < 0.9 else bomb(rng, ["X", "y"])
    elif kind == "libsvm":
        raw = "".join(f"{i % 2} 1:{a} 3:{b}\n" for i, (a, b, _) in enumerate(X)).encode()
    else:
        mark = "," if kind == "csv" else "\t"
        lines = [mark.join(["a", "b", "c"]), *(mark.join(map(str, row)) for row in X)]
        raw = "\n".join(lines).encode(str(rng.choice(["utf-8", "utf-16", "latin-1"])))
    path.write_bytes(damaged(rng, raw) if rng.random() < 0.9 else raw)
    try:
        table = read_table(path)
    except (ValueError, MemoryError) as error:
        return refused(error)
    must(len({len(column) for column in table.columns}) <= 1, "columns of different length")
    return RIGHT


def _oversized(rng: np.random.Generator, folder: Path) -> str:
    """A small file that claims a huge table, or content that takes long to read."""
    kind = int(rng.integers(5))
    path = folder / ("t.svm", "t.xlsx", "t.jsonl", "t.csv.zip", "g.graphml")[kind]
    if kind == 0:
        path.write_text(f"1 {10 ** int(rng.integers(1, 19))}:1\n0 1:1\n")
    elif kind == 1:
        cells = rng.integers(1, [2**20, 2**14], (2, 2), endpoint=True)
        book = openpyxl.Workbook()
        for row, column in cells.tolist():
            book.active.cell(row, column).value = 1
        book.save(path)
    elif kind == 2:
        digits = "9" * int(10 ** rng.uniform(0, 4))
        path.write_text(f'{{"a": {digits}}}\n{{"a": {"[" * int(10 ** rng.uniform(0, 4))}1}}\n')
    elif kind == 3:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("t.csv", "a,b\n1,2\n")
        raw = bytearray(stream.getvalue())
        for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            raw[raw.index(mark) + offset] |= 1  # encrypted
        path.write_bytes(bytes(raw))
    else:
        notes = ["", ""]
        notes[int(rng.integers(2))] = f" note='{'x' * int(10 ** rng.uniform(0, 7))}'"
        path.write_text(
            f"<graphml{notes[0]}><graph edgedefault='undirected'><node id='a'{notes[1]}/>"
            "<node id='b'/><edge source='a' target='b'/></graph></graphml>"
        )
    try:
        if kind == 4:
            _graph_holds(read_graph(path).W)
        else:
            read_table(path)
    except (ValueError, MemoryError) as error:
        return refused(error)
    return RIGHT


def _graph(rng: np.random.Generator, folder: Path) -> str:
    kind = str(rng.choice(["mtx", "csv", "npz", "graphml"]))
    path = folder / f"g.{kind}"
    n = int(rng.integers(2, 9))
    W = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    i, j = np.nonzero(W)
    pairs = list(zip(i, j, strict=True))
    if kind == "mtx":
        size = n if rng.random() < 0.8 else int(10 ** rng.integers(9, 18))
        head = f"%%MatrixMarket matrix coordinate real symmetric\n{size} {size} {i.size}\n"
        raw = (head + "".join(f"{b + 1} {a + 1} {W[a, b]}\n" for a, b in pairs)).encode()
    elif kind == "csv":
        raw = "".join(f"{a},{b},{W[a, b]}\n" for a, b in pairs).encode()
    elif kind == "npz":
        stream = io.BytesIO()
        sp.save_npz(stream, sp.csr_array(W + W.T))
        raw = stream.getvalue()
    else:
        nodes = "".join(f'<node id="n{a}"/>' for a in range(n))
        edges = "".join(f'<edge source="n{a}" target="n{b}"/>' for a, b in pairs)
        doctype = '<!DOCTYPE g [<!ENTITY x "y">]>' if rng.random() < 0.2 else ""
        raw = (
            f'<?xml version="1.0"?>{doctype}<graphml><graph edgedefault="undirected">'
            f"{nodes}{edges}</graph></graphml>"
        ).encode(str(rng.choice(["utf-8", "utf-16"])))
    path.write_bytes(damaged(rng, raw) if rng.random() < 0.8 else raw)
    try:
        graph = read_graph(path)
    except (ValueError, MemoryError) as error:
        return refused(error)
    _graph_holds(graph.W)
    must(len(graph.nodes) == graph.W.shape[0], "names and nodes differ in number")
    return RIGHT


def _saved(rng: np.random.Generator, folder: Path) -> str:
    W = sp.random_array((9, 9), density=0.4, random_state=np.random.RandomState(3))
    target = folder / "g.npz"
    sp.save_npz(target, sp.csr_array(W + W.T))
    target.write_bytes(damaged(rng, target.read_bytes()))
    try:
        graph = read_graph(target).W
    except (ValueError, MemoryError) as error:
        return refused(error)
    _graph_holds(graph)
    return RIGHT


def _graph_holds(W: Any) -> None:
    must(np.isfinite(W.data).all() and (W.data >= 0).all(), "weights that are no weights")
    must(abs(W - W.T).max() == 0 if W.nnz else True, "a graph that is not symmetric")
