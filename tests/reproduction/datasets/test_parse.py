"""Readers of the public raw formats.

The public files are not part of the project. Numbers of each set's shape are written in the format
of each of its public homes, served, and must come back; where the public files themselves are at
hand, they are served instead and must come back with the checksum of the catalogue.
"""

from __future__ import annotations

import bz2
import hashlib
from dataclasses import replace
from urllib.parse import urlsplit

import numpy as np
import pytest

from reproduction.datasets import DataFileError, card, fetch, list_datasets
from reproduction.datasets.cache import content_sha256, read_csv
from reproduction.datasets.catalogue import CATALOGUE, Source
from reproduction.datasets.parse import parse

DOWNLOADED = [name for name in list_datasets() if CATALOGUE[name].sources and name != "cod-rna"]


def raw_files_of(kind: str, X, y) -> list[bytes]:
    """The same numbers in the format of a public home."""
    labels = ["1" if sign > 0 else "-1" for sign in y]
    if kind == "columns":
        rows = [" ".join(map(repr, row)) + " " for row in X.tolist()]
        return [("\n".join(part) + "\n").encode() for part in (rows, labels)]
    rows = [
        " ".join([label, *(f"{j}:{v!r}" for j, v in enumerate(row, 1) if v != 0)]) + " "
        for label, row in zip(labels, X.tolist(), strict=True)
    ]
    return [("\n".join(rows) + "\n").encode()]


@pytest.mark.parametrize("name", DOWNLOADED)
def test_each_home_gives_the_catalogues_numbers(site, monkeypatch, tmp_path, name):
    for number, source in enumerate(CATALOGUE[name].sources):
        rng = np.random.default_rng(number)
        X = np.round(rng.normal(size=(40, 7)), 2) + 10.0  # no zeros: packing moves them
        y = np.where(np.arange(40) % 3, 1, -1).astype(np.int8)
        names = [url.rpartition("/")[2] for url in source.urls]
        for file, content in zip(names, raw_files_of(source.format, X, y), strict=True):
            site.files[file] = bz2.compress(content) if file.endswith(".bz2") else content
        changed = replace(
            CATALOGUE[name], n_samples=40, n_features=7, content_sha256=content_sha256(X, y),
            sources=(Source(tuple(map(site.url, names)), source.format),),
        )  # fmt: skip
        monkeypatch.setitem(CATALOGUE, name, changed)
        found = read_csv(fetch(name, data_home=tmp_path / str(number)), changed)
        np.testing.assert_array_equal(found[0], X)
        np.testing.assert_array_equal(found[1], y)


def test_real_public_files_give_the_catalogues_checksum(raw_files, site, rehome, tmp_path):
    folders = {"www.csie.ntu.edu.tw": "libsvm", "archive.ics.uci.edu": "uci"}
    read = set()
    for name, entry in list(CATALOGUE.items()):
        for number, source in enumerate(entry.sources):
            folder = raw_files / folders[str(urlsplit(source.urls[0]).hostname)]
            found = [list(folder.rglob(url.rpartition("/")[2])) for url in source.urls]
            if not all(found):
                continue
            for paths in found:
                site.files[paths[0].name] = paths[0].read_bytes()
            urls = tuple(site.url(paths[0].name) for paths in found)
            rehome(name, [Source(urls, source.format)])
            path = fetch(name, data_home=tmp_path / f"{name}-{number}")
            assert hashlib.sha256(path.read_bytes()).hexdigest() == card(name).csv_sha256, path
            read.add(name)
    assert {"diabetes", "fourclass", "pima", "madelon"} <= read


def test_packed_values_move_to_the_left():
    [(X, _)] = parse("libsvm-packed", [b"1 1:5 3:7\n-1 2:4\n"], 3)
    np.testing.assert_array_equal(X, [[5, 7, 0], [4, 0, 0]])


def test_first_label_in_sorted_order_is_plus():
    [(X, y)] = parse("columns", [b"1 2\n3 4\n", b"1\n2\n"], 2)
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
        ("libsvm", [b"1 1:1\n2 1:1\n3 1:1\n"], "expected two classes, got 3"),
        ("columns", [b"1 2\n3 4\n", b"1\n"], r"shape \(2, 2\), not \(1, 2\)"),
        ("columns", [b"1 2\n3 x\n", b"1\n2\n"], "could not convert"),
        ("libsvm", [bz2.compress(b"1 1:2\n" * 1000)[:30]], "cut off or damaged"),
    ],
)
def test_damaged_raw_file_is_located(kind, files, message):
    with pytest.raises(DataFileError, match=message):
        parse(kind, files, 2)
