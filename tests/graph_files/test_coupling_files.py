"""Files of couplings: what they mean, and errors that name what the file names."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from gdpa.graph_files import read_couplings
from gdpa.tables import TableError

TRIANGLE = np.array([[0, 1, -2], [1, 0, 3], [-2, 3, 0]], dtype=float)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("G1.txt", "3 3\n1 2 1\n2 3 3\n1 3 -2\n"),
        ("G1", "3 3\n1 2 1\n2 3 3\n1 3 -2\n"),
        ("list.csv", "from,to,weight\na,b,1\nb,c,3\na,c,-2\n"),
        ("list.txt", "a b 1\nb c 3\na c -2\n"),
        ("m.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 1\n3 2 3\n3 1 -2\n"),
    ],
)
def test_formats_of_a_cut(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    found = read_couplings(tmp_path / name, "max-cut")
    np.testing.assert_array_equal(found.matrix.toarray(), TRIANGLE)
    assert list(found.names) in (["1", "2", "3"], ["a", "b", "c"])


def test_gzip_and_the_two_meanings_of_a_qubo(tmp_path):
    biqmac, qbsolv = tmp_path / "be.txt.gz", tmp_path / "a.qubo"
    biqmac.write_bytes(gzip.compress(b"2 2\n1 1 5\n1 2 7\n"))
    qbsolv.write_text("c comment\np qubo 0 2 1 1\n0 0 5\n0 1 7\n")
    u = np.ones(2)
    assert u @ read_couplings(biqmac, "qubo").matrix @ u == 5 + 2 * 7
    assert u @ read_couplings(qbsolv, "qubo").matrix @ u == 5 + 7
    ising = read_couplings(biqmac, "ising")
    assert ising.fields.tolist() == [5.0, 0.0]
    assert ising.matrix.toarray().tolist() == [[0.0, 7.0], [7.0, 0.0]]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", "3 4\n1 2 1\n2 3 1\n1 3 1\n", ["promises 4 edges", "3 lines"]),
        ("a.txt", "3 1\n1 4 1\n", ["line 2", "1 and 4", "1 to 3"]),
        ("a.txt", "3 1\n1 2 nan\n", ["line 2", "('1', '2')", "'nan'"]),
        ("a.txt", "3 1\n1 2 x\n", ["line 2", "('1', '2')", "'x'"]),
        ("a.csv", "x,y,inf\n", ["line 1", "('x', 'y')", "'inf'"]),
        ("a.qubo", "p qubo 0 2 2 1\n0 0 1\n0 1 1\n", ["2 diagonals", "1 and 1"]),
        ("a.qubo", "0 0 1\n", ["p qubo"]),
        ("a.qubo", "p qubo 0 1 1 0\n0 0 4 0 4\n", ["line 2: 5 cells, expected 2 or 3"]),
        ("a.txt", "3 1\n1 2 1_0x\n", ["line 2", "1_0x"]),
        ("a.txt", "\n\n,;\n# 4\n", ["no line with numbers"]),
        ("a.txt", "\x1f\n1 2 3 4\n", ["1 2 3 4"]),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n9 9 99999\n1 2 1\n", ["99999"]),
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n",
            ["row 1", "mirror"],
        ),
        ("a.dat", "what is this file\n", ["what is this", "rudy, qubo, mtx, edges"]),
        ("a.dat", " \n", ["empty"]),
    ],
)
def test_what_is_wrong_is_named_as_in_the_file(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(TableError) as error:
        read_couplings(tmp_path / name, "max-cut")
    for word in [name, *words]:
        assert word in str(error.value)


def test_unknown_names_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("2 1\n1 2 1\n")
    with pytest.raises(TableError, match="accepted: rudy"):
        read_couplings(tmp_path / "a.txt", "max-cut", format="dimacs")
    with pytest.raises(ValueError, match="max-cut"):
        read_couplings(tmp_path / "a.txt", "maxcut")


def test_a_header_that_declares_far_more_nodes_than_entries_is_refused(tmp_path):
    for n in (99999993, 10**20):
        (tmp_path / "a.txt").write_text(f"{n} 2\n1 2 1\n2 3 -1\n")
        with pytest.raises(TableError, match=f"declares {n} nodes but has only 2 entries"):
            read_couplings(tmp_path / "a.txt", "max-cut")
