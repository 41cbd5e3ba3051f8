"""Headers that lie, documents that grow: refused before anything is allocated or expanded."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from gdpa import memory
from gdpa.graph_files import read_graph
from gdpa.tables import TableError


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def peak_of(call) -> int:
    tracemalloc.start()
    try:
        call()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


@pytest.mark.parametrize("nodes", [10**9, 10**12, 10**18])
def test_matrix_market_with_more_nodes_than_memory(tmp_path, monkeypatch, nodes):
    monkeypatch.setattr(memory, "available_memory", lambda: 8 * 10**9)
    header = f"%%MatrixMarket matrix coordinate real symmetric\n% no\n{nodes} {nodes} 1\n2 1 1.0\n"
    path = written(tmp_path, "g.mtx", header)

    def call():
        with pytest.raises(MemoryError, match=r"nodes needs about .* GB"):
            read_graph(path)

    assert peak_of(call) < 10**6


@pytest.mark.parametrize(
    "header",
    [
        "%%MatrixMarket matrix coordinate real symmetric\n3 3 1000000000\n2 1 1.0\n",
        "%%MatrixMarket matrix array real general\n100000 100000\n1.0\n",
        "%%MatrixMarket matrix array real symmetric\n100000 100000\n1.0\n",
    ],
)
def test_matrix_market_with_more_entries_than_bytes(tmp_path, header):
    path = written(tmp_path, "g.mtx", header)

    def call():
        with pytest.raises(TableError, match=r"declares \d+ entries but has room"):
            read_graph(path)

    assert peak_of(call) < 10**6


def test_matrix_market_that_holds_what_it_declares(tmp_path):
    text = "%%MatrixMarket matrix coordinate pattern symmetric\n%\n% c\n\n3 3 2\n2 1\n3 2\n"
    graph = read_graph(written(tmp_path, "g.mtx", text))
    np.testing.assert_array_equal(graph.W.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    dense = "%%MatrixMarket matrix array integer general\n2 2\n0\n1\n1\n0\n"
    assert read_graph(written(tmp_path, "d.mtx", dense)).W.nnz == 2


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("field", ["real", "pattern"])
def test_matrix_market_equals_scipys_reader(tmp_path, symmetric, dense, field):
    if dense and field == "pattern":
        pytest.skip("there is no such format")
    rng = np.random.default_rng(1)
    W = np.triu(rng.random((9, 9)) * (rng.random((9, 9)) < 0.4), 1)
    W = W + W.T
    A = W if dense else sp.coo_array((W != 0).astype(float) if field == "pattern" else W)
    path = tmp_path / "g.mtx"
    kind = "symmetric" if symmetric else "general"
    scipy.io.mmwrite(path, A, symmetry=kind, field=field, precision=17)
    want = scipy.io.mmread(path)
    want = want if dense else want.toarray()
    np.testing.assert_array_equal(read_graph(path).W.toarray(), want)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        # This one crashes SciPy 1.17's reader.
        (
            b"%%MatrixMarket matrix coordinate real symmetric\n6 6 9\n2 1 0.8223732217906213\n"
            b"3 1 0.8623800764051232\n4 1 0.9472209962339816\n3 2 0.0673722843297N\xbc\x17\x107"
            b"\x9c\xb3/j\xaa0.2",
            "not a readable|declares",
        ),
        ("%%MatrixMarket matrix coordinate complex general\n1 1 0\n", "real numbers"),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 0\n", "does not begin"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 0\n", "square"),
        ("%%MatrixMarket matrix coordinate real general\n% c\n", "no line with the numbers"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1.0\n", "integers from 1 to 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1.5 1.0\n", "integers from 1"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1.0\n", "but has 1"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2\n", "per entry"),
    ],
)
def test_matrix_market_that_is_broken(tmp_path, content, words):
    with pytest.raises(TableError, match=words):
        read_graph(written(tmp_path, "g.mtx", content))


BOMB = (
    '<?xml version="1.0" encoding="{0}"?><!DOCTYPE g [<!ENTITY a "aaaaaaaaaa">'
    '<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><graphml><graph edgedefault="undirected">'
    '<node id="&b;"/><node id="y"/><edge source="&b;" target="y"/></graph></graphml>'
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
def test_graphml_with_a_document_type_in_any_encoding(tmp_path, encoding):
    declared = "utf-16" if "16" in encoding else encoding
    content = BOMB.format(declared).encode(encoding)
    if encoding.endswith("le"):
        content = b"\xff\xfe" + content
    if encoding.endswith("be"):
        content = b"\xfe\xff" + content
    with pytest.raises(TableError, match="document type"):
        read_graph(written(tmp_path, "g.graphml", content))


def test_graphml_in_utf_16_without_one_is_read(tmp_path):
    text = (
        '<?xml version="1.0" encoding="utf-16"?><graphml><graph edgedefault="undirected">'
        '<node id="é"/><node id="y"/><edge source="é" target="y"/></graph></graphml>'
    )
    graph = read_graph(written(tmp_path, "g.graphml", text.encode("utf-16")))
    assert graph.nodes.tolist() == ["é", "y"]


@pytest.mark.parametrize("content", ["<graphml", "<?xml version='1.0' encoding='klingon'?><a/>"])
def test_graphml_that_is_no_xml(tmp_path, content):
    with pytest.raises(TableError, match="not readable XML"):
        read_graph(written(tmp_path, "g.graphml", content))
