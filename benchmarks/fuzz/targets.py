"""What is fuzzed: a reader of bytes, and a few inputs to begin with."""

from __future__ import annotations

import copy
import functools
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gdpa
from gdpa import codec
from gdpa.estimators.storage import StoredEstimator
from gdpa.graph_files import read_couplings, read_graph
from gdpa.labeling.journal import Journal
from gdpa.npz import read_npz
from gdpa.tables import read_table

# One file, on a file system in memory where there is one.
PLACE = Path(
    tempfile.mkdtemp(prefix="gdpa-fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
)


@dataclass(frozen=True)
class Target:
    """A reader.

    Parameters
    ----------
    read : callable
        Takes bytes; a ValueError or MemoryError in the package's words is a clear refusal.
    seeds : tuple of bytes
        Inputs to begin with.
    words : tuple of bytes
        What mutations insert.
    json : bool
        Whether values of JSON are changed, not bytes.
    """

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]
    json: bool = False


def _file(raw: bytes, name: str) -> Path:
    path = PLACE / name
    path.write_bytes(raw)
    return path


@functools.cache
def _models() -> tuple[tuple[bytes, dict[str, Any]], ...]:
    """The JSON and the arrays of two small models."""
    X, y = gdpa.datasets.moons(24, random_state=0)
    y = np.where(np.arange(24) < 10, y, 0)
    found = []
    for model in (gdpa.GraphClassifier(unlabeled=0), gdpa.CommitteeClassifier(unlabeled=0)):
        arrays = read_npz(model.fit(X, y).save(PLACE / "seed.npz"))
        del arrays["checksum"]
        found.append((str(arrays.pop("json")[()]).encode(), arrays))
    return tuple(found)


def read_model(raw: bytes) -> None:
    """The JSON of a model, with the arrays of the one that has most of the names it mentions."""
    plain = json.loads(raw)
    arrays = max((own for _, own in _models()), key=lambda own: sum(n.encode() in raw for n in own))
    if isinstance(plain, dict):
        plain.pop("format", None)
        plain.pop("version", None)
    codec.unpack(StoredEstimator, copy.copy(arrays), plain)


def read_archive(raw: bytes) -> None:
    """The bytes of an NPZ file."""
    read_npz(io.BytesIO(raw))


def read_csv(raw: bytes) -> None:
    """A table."""
    read_table(_file(raw, "table.csv"))


def read_edges(raw: bytes) -> None:
    """A graph; the first byte tells the format."""
    kind = ("csv", "mtx", "graphml")[raw[0] % 3] if raw else "csv"
    read_graph(_file(raw[1:], f"graph.{kind}"))


def read_qubo(raw: bytes) -> None:
    """Couplings; the first byte tells the problem."""
    problem = ("max-cut", "qubo", "ising")[raw[0] % 3] if raw else "qubo"
    read_couplings(_file(raw[1:], "problem.txt"), problem)


def read_journal(raw: bytes) -> None:
    """A log of labels: what is read twice is the same."""
    path = _file(raw, "log")
    events = []
    for _ in range(2):
        journal = Journal(path, {"rows": 3})
        events.append(journal.events)
        journal.close()
    assert events[0] == events[1], "other events at the second time"


def targets() -> dict[str, Target]:
    """All of them."""
    log = b'{"kind": "gdpa labels", "version": 1, "rows": 3}\n'
    npz = io.BytesIO()
    np.savez_compressed(npz, a=np.arange(3), b=np.array("text"))
    return {
        "model": Target(
            read_model,
            tuple(text for text, _ in _models()),
            (b'{"$object": 0}', b'{"$array": "0"}', b'{"$float": "inf"}', b"null", b"-1", b"1e999",
             b"[]", b"{}", b'"\\ud800"', b'{"$tuple": []}', b"true", b"9" * 30),
            json=True,
        ),
        "archive": Target(
            read_archive, (npz.getvalue(),), (b"PK\x03\x04", b"\x93NUMPY", b"|O", b"\0" * 8)
        ),
        "csv": Target(
            read_csv,
            (b"a,b,y\n1,x,u\n2,,v\n3,z,\n", b'"a";"b"\n"1,5";2024-01-31\n;NA\n',
             b"\xef\xbb\xbfa\tb\n1e5\t-0\n", b"a b c\n1 2 3\n4 5 6\n"),
            (b",", b'"', b"\n", b"\r", b"\0", b";", b"NA", b"1e999", b"\xff", b"2024-02-30",
             b"=1", b" "),
        ),
        "edges": Target(
            read_edges,
            (b"\0a,b,1\nb,c,2.5\n", b"\0" b"1 2\n2 3\n3 1\n", b"\0source,target\nx,y\n",
             b"\x01%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1.5\n3 2 2\n",
             b"\x01%%MatrixMarket matrix array real general\n2 2\n0\n1\n1\n0\n",
             b"\x02<graphml><graph edgedefault='undirected'><node id='a'/><node id='b'/>"
             b"<edge source='a' target='b'/></graph></graphml>"),
            (b",", b"\n", b"nan", b"-1", b"1e400", b"9" * 25, b"<!DOCTYPE a>", b"<edge/>", b"%",
             b"#", b"\0"),
        ),
        "qubo": Target(
            read_qubo,
            (b"\0" b"3 2\n1 2 1\n2 3 -1\n", b"\x01p qubo 0 2 2 1\n0 0 1\n1 1 -2\n0 1 3\n",
             b"\x02" b"1 2 0.5\n2 3 -0.25\n",
             b"\x02%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1\n3 2 -2\n",
             b"\x01c note\np qubo 0 1 1 0\n0 0 4\n"),
            (b" ", b"\n", b"nan", b"inf", b"-", b"9" * 25, b"p qubo", b"c ", b"1e308", b"\0",
             b"\xff"),
        ),
        "journal": Target(
            read_journal,
            (b"", log, log + b'{"row": 1, "value": "a"}\n{"undo": 1}\n', log[:-9]),
            (b"\n", b"{", b"}", b'"', b"[" * 50, b"\0", b'"version": 2', b"\xff", b"NaN",
             b"9" * 400),
        ),
    }  # fmt: skip
