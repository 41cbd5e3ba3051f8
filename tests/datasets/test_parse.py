"""Readers of the public raw formats.

The public files themselves cannot be part of the tests. Instead each set is written in the format
of each of its public homes (as their pages describe them), served, and must come back with the
checksum of the catalogue.
"""

from __future__ import annotations

import bz2
import hashlib

import numpy as np
import pytest

from gdpa.datasets import DataFileError, card, fetch, list_datasets, load
from gdpa.datasets.cards import Source
from gdpa.datasets.catalogue import CATALOGUE
from gdpa.datasets.parse import parse

HOMES = [
    (name, k)
    for name in list_datasets()
    if name != "cod-rna"
    for k in range(len(CATALOGUE[name].sources))
]
RAW_LABELS = {
    "australian": ("1", "0"),
    "breast-cancer": ("2.000000", "4.000000"),
    "monk1": ("1", "0"),
    "pima": ("-1", "+1"),
    "sonar": ("R", "M"),
    "voting": ("republican", "democrat"),
}
# Lengths of the parts where there are several.
PARTS = {"monk1": (124, 432)}


def word(name: str, column: int, value: float) -> str:
    if name == "ILPD" and column == 1:
        return {1: "Female", 2: "Male"}[int(value)]
    if name == "ILPD" and column == 9 and value == 0:
        return ""
    if name == "voting":
        return {1: "y", -1: "n", 0: "?"}[int(value)]
    return repr(value)


def raw_files(name: str, kind: str, X, y, n_files: int) -> list[bytes]:
    plus, minus = RAW_LABELS.get(name, ("1", "2" if kind in ("table", "arff") else "-1"))
    lines = []
    for i, (row, sign) in enumerate(zip(X.tolist(), y.tolist(), strict=True), start=1):
        label = plus if sign > 0 else minus
        words = [word(name, j, v) for j, v in enumerate(row)]
        if kind == "libsvm":
            pairs = (f"{j}:{v!r}" for j, v in enumerate(row, 1) if v != 0)
            lines.append(" ".join([label, *pairs]) + " ")
        elif kind == "votes":
            lines.append(",".join([label, *words]))
        elif kind == "monks":
            integers = (str(int(v)) for v in row)
            lines.append(" " + " ".join([label, *integers, f"data_{i}"]))
        elif kind == "columns":
            lines.append(" ".join(words) + " ")
        elif name == "planning":
            lines.append("\t".join([*words, label]) + "\t")  # the public file ends lines so
        elif name in ("australian", "german", "heart") and kind == "table":
            lines.append("  " + "  ".join([*words, label]))
        else:
            lines.append(",".join([*words, label]))
    if kind == "columns":
        signs = "\n".join("1" if sign > 0 else "-1" for sign in y)
        return [("\n".join(lines) + "\n").encode(), (signs + "\n").encode()]
    head = []
    if kind == "arff":
        head = ["% a comment", f"@relation {name}", "@attribute a numeric", "@DATA", "% another"]
    if n_files == 1:
        return ["\n".join([*head, *lines, ""]).encode()]
    ends = np.cumsum(PARTS[name])
    pieces = [lines[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return [("\n".join(piece) + "\n").encode() for piece in pieces]


@pytest.mark.parametrize(("name", "k"), HOMES)
def test_each_home_gives_the_catalogues_csv(shared_datasets, site, rehome, tmp_path, name, k):
    source = CATALOGUE[name].sources[k]
    data = load(name, data_home=shared_datasets)
    files = raw_files(name, source.format, data.X, data.y, len(source.urls))
    urls = []
    for url, content in zip(source.urls, files, strict=True):
        file = url.rpartition("/")[2]
        site.files[file] = bz2.compress(content) if file.endswith(".bz2") else content
        urls.append(site.url(file))
    rehome(name, [Source(tuple(urls), source.format)])
    path = fetch(name, data_home=tmp_path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == card(name).csv_sha256


def test_first_label_in_sorted_order_is_plus():
    [(X, y)] = parse("table", [b"1,2,1\n3,4,2\n"], 2)
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(y, [1, -1])


def test_spellings_of_one_label_are_one_label():
    [(_, y)] = parse("libsvm", [b"+1 1:1\n1.0 1:2\n-1 1:3\n"], 1)
    assert y[0] == y[1] == -y[2]


def test_label_sign_is_common_to_all_parts():
    # The first part has one class only; its sign must still be that of the whole.
    (_, a), (_, b) = parse("libsvm", [b"1 1:1\n", b"-1 1:1\n1 1:2\n"], 1)
    assert a[0] == b[1] == -b[0]


def test_left_out_features_are_zero():
    [(X, _)] = parse("libsvm", [b"1 2:5\n-1\n"], 3)
    np.testing.assert_array_equal(X, [[0, 5, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("kind", "files", "message"),
    [
        ("libsvm", [b"1 1:1\n-1 4:2\n"], "line 2: feature 4; expected 1 to 2"),
        ("libsvm", [b"1 1:1\n-1 0:2\n"], "line 2: feature 0; expected 1 to 2"),
        ("libsvm", [b"1 1:1\n-1 1:\n"], "line 2: '1:' is not index:value"),
        ("libsvm", [b"1 1:1\n-1 1\n"], "line 2: '1' is not index:value"),
        ("libsvm", [b"\n"], "no samples"),
        ("table", [b"1,2,1\n1,x,2\n"], "line 2: 'x' is not a number"),
        ("table", [b"1,2,1\n1,2\n"], "line 2: expected 2 features, got 1"),
        ("table", [b"1,2,1\n1,2,2\n1,2,3\n"], "expected two classes, got 3"),
        ("columns", [b"1 2\n3 4\n", b"1\n"], "2 samples but 1 labels"),
        ("arff", [b"@relation x\n1,2,1\n"], "no @data line"),
        ("arff", [b"@relation x\n@data\n1,2,1\n% c\n1,b,2\n"], "line 5: 'b' is not a number"),
        ("table", [bz2.compress(b"1,2,1\n" * 1000)[:30]], "cut off or damaged"),
    ],
)
def test_damaged_raw_file_is_located(kind, files, message):
    with pytest.raises(DataFileError, match=message):
        parse(kind, files, 2)
