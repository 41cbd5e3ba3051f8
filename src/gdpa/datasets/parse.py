"""Readers of the public raw files; each gives features and two-valued raw labels.

What the raw values of the labels mean is not interpreted here: a label is +1 where the raw value
equals that of the reader's convention, and the loader lets the fingerprint decide about the sign.
"""

from __future__ import annotations

import bz2
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context

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
        if content[:1024].lstrip().lower().startswith((b"<!doctype html", b"<html", b"<head")):
            raise DataFileError("the server answered with a web page, not with the file")
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


def _cells(text: str, features: slice) -> list[tuple[int, list[str]]]:
    """Lines of cells that are parted by commas or blanks, without a first line of names."""
    lines = [(k, line.split(",") if "," in line else line.split()) for k, line in _lines(text)]
    return lines[1:] if lines and _is_head(lines[0][1][features]) else lines


def _is_head(words: list[str]) -> bool:
    """Whether features are words that do not occur as values."""
    keys = [word.strip().strip("'\"").lower() for word in words]
    return not any(map(_is_number, keys)) and not all(key in _WORDS for key in keys)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


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
        for k, words in _cells(text, slice(0, -1)):
            rows.append(_row(words[:-1], k, n_features))
            labels.append(_label(words[-1]))
        parts.append(_assemble(rows, labels))
    return parts


def _table_single(texts: list[str], n_features: int) -> list[RawTable]:
    """Numbers that went through single precision and were printed with six decimals."""
    parts = []
    for X, labels in _table(texts, n_features):
        single: FloatArray = X.astype(np.float32).astype(np.float64)
        parts.append((np.asarray(np.round(single, 6), dtype=np.float64), labels))
    return parts


def _table_3_digits(texts: list[str], n_features: int) -> list[RawTable]:
    """Numbers rounded to three significant digits, halves away from zero."""
    digits = Context(prec=3, rounding=ROUND_HALF_UP)

    def rounded(value: float) -> float:
        return float(digits.create_decimal(repr(value)))

    return [
        (np.vectorize(rounded, otypes=[np.float64])(X), labels)
        for X, labels in _table(texts, n_features)
    ]


def _bupa(texts: list[str], n_features: int) -> list[RawTable]:
    """Five blood tests, drinks a day, and a selector, of which 1 is the training part."""
    parts = []
    for text in texts:
        rows, labels = [], []
        for k, words in _cells(text, slice(0, -1)):
            *features, drinks, selector = words
            if _cell(selector, k) == 1:
                rows.append(_row(features, k, n_features))
                labels.append("few" if _cell(drinks, k) <= 3 else "many")
        parts.append(_assemble(rows, labels))
    return parts


def _votes(texts: list[str], n_features: int) -> list[RawTable]:
    """Party first, then the votes y, n or ?."""
    parts = []
    for text in texts:
        rows, labels = [], []
        for k, words in _cells(text, slice(1, None)):
            party, *votes = words
            rows.append(_row(votes, k, n_features))
            labels.append(_label(party))
        parts.append(_assemble(rows, labels))
    return parts


def _monks(texts: list[str], n_features: int) -> list[RawTable]:
    """Label first, then the features, then the name of the sample."""
    parts = []
    for text in texts:
        rows, labels = [], []
        for k, words in _cells(text, slice(1, -1)):
            label, *features = words
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


def _libsvm_packed(texts: list[str], n_features: int) -> list[RawTable]:
    """LIBSVM's pairs read without their indices: values to the left, zeros at the end."""

    def packed(line: str) -> str:
        label, *pairs = line.split()
        return " ".join(
            [label, *(f"{k}:{pair.partition(':')[2]}" for k, pair in enumerate(pairs, start=1))]
        )

    lines = ("\n".join(packed(s) if s.strip() else s for s in text.splitlines()) for text in texts)
    return _libsvm(list(lines), n_features)


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
    "table-single": _table_single,
    "table-3-digits": _table_3_digits,
    "bupa": _bupa,
    "votes": _votes,
    "monks": _monks,
    "columns": _columns,
    "libsvm": _libsvm,
    "libsvm-packed": _libsvm_packed,
    "arff": _arff,
}
