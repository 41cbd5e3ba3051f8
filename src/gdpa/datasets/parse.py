"""Readers of the public raw files; each gives features and two-valued raw labels.

What the raw values of the labels mean is not interpreted here: a label is +1 where the raw value
equals that of the reader's convention, and the loader lets the fingerprint decide about the sign.
"""

from __future__ import annotations

import bz2
import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .cache import DataFileError

__all__ = ["FORMATS", "parse"]

FloatArray = NDArray[np.float64]
SignArray = NDArray[np.int8]
Table = tuple[FloatArray, SignArray]

# Nominal cells that occur in the raw files. Missing cells are 0, as the authors had them.
_WORDS = {"?": 0.0, "": 0.0, "female": 1.0, "male": 2.0, "y": 1.0, "n": -1.0}


def parse(format: str, files: list[bytes], n_features: int) -> list[Table]:
    """Read the raw files of one source.

    Parameters
    ----------
    format : str
        Key of :data:`FORMATS`.
    files : list of bytes
        Content of the files, in the order of the catalogue. bzip2 is unpacked.
    n_features : int
        Number of features expected.

    Returns
    -------
    list of (X, y)
        The parts, one per file (one for all files where they hold columns of one table). The sign
        of y is that of the first of the two raw labels in sorted order.

    Raises
    ------
    DataFileError
        If a file is not in its format.
    """
    texts = []
    for content in files:
        try:
            plain = bz2.decompress(content) if content[:3] == b"BZh" else content
        except (OSError, EOFError, ValueError) as error:
            raise DataFileError(f"the bzip2 file is cut off or damaged ({error})") from error
        texts.append(plain.decode("latin-1"))
    tables = FORMATS[format](texts, n_features)
    values = np.unique(np.concatenate([labels for _, labels in tables]))
    if values.size != 2:
        raise DataFileError(f"expected two classes, got {values.size}: {values[:5].tolist()}")
    return [(X, np.where(raw == values[0], 1, -1).astype(np.int8)) for X, raw in tables]


def _lines(text: str) -> list[tuple[int, str]]:
    numbered = ((k, line.strip()) for k, line in enumerate(text.splitlines(), start=1))
    return [(k, line) for k, line in numbered if line]


def _cell(word: str, line: int) -> float:
    key = word.strip().strip("'\"").lower()
    if key in _WORDS:
        return _WORDS[key]
    try:
        return float(key)
    except ValueError:
        raise DataFileError(f"line {line}: {word[:30]!r} is not a number") from None


def _row(words: list[str], line: int, n_features: int) -> list[float]:
    if len(words) != n_features:
        raise DataFileError(f"line {line}: expected {n_features} features, got {len(words)}")
    return [_cell(word, line) for word in words]


def _assemble(rows: list[list[float]], labels: list[str]) -> tuple[FloatArray, NDArray[np.str_]]:
    if not rows:
        raise DataFileError("the file has no samples")
    return np.array(rows, dtype=np.float64), np.array(labels)


def _label(word: str) -> str:
    """One spelling per label: 1, 1.0 and +1 are the same."""
    text = word.strip().strip("'\"")
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


RawTable = tuple[FloatArray, NDArray[np.str_]]


def _table(texts: list[str], n_features: int) -> list[RawTable]:
    """Cells parted by commas or blanks, the label last."""
    parts = []
    for text in texts:
        rows, labels = [], []
        for k, line in _lines(text):
            words = line.split(",") if "," in line else line.split()
            rows.append(_row(words[:-1], k, n_features))
            labels.append(_label(words[-1]))
        parts.append(_assemble(rows, labels))
    return parts


def _votes(texts: list[str], n_features: int) -> list[RawTable]:
    """Party first, then the votes y, n or ?."""
    parts = []
    for text in texts:
        rows, labels = [], []
        for k, line in _lines(text):
            party, *votes = line.split(",")
            rows.append(_row(votes, k, n_features))
            labels.append(_label(party))
        parts.append(_assemble(rows, labels))
    return parts


def _monks(texts: list[str], n_features: int) -> list[RawTable]:
    """Label first, then the features, then the name of the sample."""
    parts = []
    for text in texts:
        rows, labels = [], []
        for k, line in _lines(text):
            label, *features = line.split()
            rows.append(_row(features[:-1], k, n_features))
            labels.append(_label(label))
        parts.append(_assemble(rows, labels))
    return parts


def _columns(texts: list[str], n_features: int) -> list[RawTable]:
    """One file of features and one of labels."""
    features, label_text = texts
    rows = [_row(line.split(), k, n_features) for k, line in _lines(features)]
    labels = [_label(line) for _, line in _lines(label_text)]
    if len(rows) != len(labels):
        raise DataFileError(f"{len(rows)} samples but {len(labels)} labels")
    return [_assemble(rows, labels)]


def _libsvm(texts: list[str], n_features: int) -> list[RawTable]:
    """Label, then index:value pairs; what is left out is 0."""
    parts = []
    for text in texts:
        lines = _lines(text)
        X = np.zeros((len(lines), n_features))
        labels = []
        for i, (k, line) in enumerate(lines):
            label, *pairs = line.split()
            try:
                for pair in pairs:
                    index, value = pair.split(":")
                    if not 1 <= int(index) <= n_features:
                        raise DataFileError(
                            f"line {k}: feature {index}; expected 1 to {n_features}"
                        )
                    X[i, int(index) - 1] = float(value)
            except DataFileError:
                raise
            except ValueError:
                raise DataFileError(f"line {k}: {pair[:30]!r} is not index:value") from None
            labels.append(_label(label))
        if not labels:
            raise DataFileError("the file has no samples")
        parts.append((X, np.array(labels)))
    return parts


def _arff(texts: list[str], n_features: int) -> list[RawTable]:
    """OpenML's ARFF: a header of attributes, then a table with the class last."""
    bodies = []
    for text in texts:
        match = re.search(r"^\s*@data\s*$", text, flags=re.IGNORECASE | re.MULTILINE)
        if match is None:
            raise DataFileError("there is no @data line; this is not an ARFF file")
        body = text[match.end() :].splitlines()
        # Comments become empty lines and the header is put back as such: line numbers stay right.
        head = "\n" * text[: match.end()].count("\n")
        bodies.append(head + "\n".join("" if s.lstrip().startswith("%") else s for s in body))
    return _table(bodies, n_features)


FORMATS: dict[str, Callable[[list[str], int], list[RawTable]]] = {
    "table": _table,
    "votes": _votes,
    "monks": _monks,
    "columns": _columns,
    "libsvm": _libsvm,
    "arff": _arff,
}
