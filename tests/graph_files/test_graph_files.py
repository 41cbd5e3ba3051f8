"""Graphs and labels from files: every format gives the same graph, every broken file is named."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from gdpa.graph_files import read_graph, read_labels
from gdpa.tables import TableError

W = np.array([[0, 1.5, 0, 0], [1.5, 0, 0.25, 0], [0, 0.25, 0, 2], [0, 0, 2, 0.0]])
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="edge" attr.name="weight" attr.type="double"/>
<graph edgedefault="undirected"><node id="n0"/><node id="n1"/><node id="n2"/><node id="n3"/>
<edge source="n0" target="n1"><data key="d0">1.5</data></edge>
<edge source="n1" target="n2"><data key="d0">0.25</data></edge>
<edge source="n2" target="n3"><data key="d0">2</data></edge></graph></graphml>"""


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_all_formats_give_the_same_graph(tmp_path):
    scipy.io.mmwrite(tmp_path / "g.mtx", sp.coo_array(W))
    sp.save_npz(tmp_path / "scipy.npz", sp.csr_array(W))
    np.savez(tmp_path / "dense.npz", W=W)
    write(tmp_path, "g.csv", "source,target,weight\n0,1,1.5\n1,2,0.25\n2,3,2\n")
    write(tmp_path, "bare.csv", "0,1,1.5\n1,2,0.25\n3,2,2\n")
    write(tmp_path, "both.csv", "0,1,1.5\n1,0,1.5\n1,2,.25\n2,1,.25\n2,3,2\n3,2,2\n")
    write(tmp_path, "g.tsv", "0\t1\t1.5\n1\t2\t0.25\n2\t3\t2\n")
    write(tmp_path, "g.graphml", GRAPHML)
    first = {}
    for path in tmp_path.iterdir():
        graph = read_graph(path)
        assert np.array_equal(graph.W.toarray(), W), path.name
        first[path.name] = graph.nodes[0]
    assert first["g.mtx"] == 1  # as the format itself counts
    assert first["scipy.npz"] == first["bare.csv"] == 0
    assert first["g.graphml"] == "n0"


def test_networkx_writes_what_is_read(tmp_path):
    networkx = pytest.importorskip("networkx")
    G = networkx.karate_club_graph()
    networkx.write_graphml(G, tmp_path / "k.graphml")
    graph = read_graph(tmp_path / "k.graphml")
    assert np.array_equal(graph.W.toarray(), networkx.to_numpy_array(G))


def test_numbers_are_sorted_as_numbers(tmp_path):
    graph = read_graph(write(tmp_path, "g.csv", "9,10\n10,100\n"))
    assert graph.nodes.tolist() == [9, 10, 100]
    assert graph.W.toarray()[0, 1] == 1.0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("g.mtx", "hello", "not a readable Matrix Market"),
        ("g.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n", "symmetric"),
        ("g.npz", "hello", "not a readable NPZ"),
        ("g.graphml", "<graphml><graph>", "not readable XML"),
        ("g.graphml", GRAPHML.replace("undirected", "directed"), "directed graph"),
        ("g.graphml", GRAPHML.replace('target="n3"', 'target="n9"'), "is not a node"),
        ("g.graphml", GRAPHML.replace(">1.5<", ">heavy<"), "weight 'heavy'"),
        ("g.graphml", "<!DOCTYPE x [<!ENTITY a 'b'>]><graphml/>", "document type"),
        ("g.csv", " \n", "is empty"),
        ("g.dat", "a,b\n", "file extension of .* is not known"),
    ],
)
def test_broken_graphs_are_named(tmp_path, name, text, words):
    path = write(tmp_path, name, text)
    with pytest.raises(TableError, match=words) as error:
        read_graph(path)
    assert str(path) in str(error.value)


def test_objects_and_indices_out_of_range_are_refused(tmp_path):
    np.savez(tmp_path / "o.npz", W=np.array([[None]], dtype=object))
    with pytest.raises(TableError, match="plain arrays"):
        read_graph(tmp_path / "o.npz")
    far = 2**63 - 1  # the next difference of pointers overflows to a positive number
    for indices, indptr in (([7, 0], [0, 1, 2]), ([1, 0], [0, far, -2, 2]), ([1, 0], [0, 1, -2])):
        parts = {"indices": np.array(indices), "indptr": np.array(indptr)}
        shape = np.full(2, len(indptr) - 1)
        np.savez(tmp_path / "i.npz", data=np.ones(2), shape=shape, **parts)
        with pytest.raises(TableError, match="inconsistent"):
            read_graph(tmp_path / "i.npz")


def test_labels_by_name_by_line_and_as_solve_writes_them(tmp_path):
    graph = read_graph(write(tmp_path, "g.csv", "a,b\nb,c\nc,d\n"))
    for text in (
        "node,label\na,x\nd,y\n",
        "a,x\nd,y\nb,?\n",
        "x\n\n\ny\n",
        "label\nx\n\nNA\ny\n",
        "node,label,score\na,x,-1\nd,y,1\n",
    ):
        labels = read_labels(write(tmp_path, "l.csv", text), graph)
        assert labels.signs.tolist() == [-1, 0, 0, 1]
        assert labels.names([0, 1]) == ["x", "y"]
    labels = read_labels(write(tmp_path, "l.csv", "+1\n0\n0\n-1\n"), graph)
    assert labels.signs.tolist() == [1, 0, 0, -1]
    labels = read_labels(write(tmp_path, "l.csv", "0\n1\nno\nno\n"), graph, unlabeled="no")
    assert labels.signs.tolist() == [-1, 1, 0, 0]  # without -1, 0 is a class


def test_a_compressed_file_is_no_text(tmp_path):
    (tmp_path / "g.csv").write_bytes(gzip.compress(b"a,b\n"))
    with pytest.raises(TableError, match=r"not UTF-8|NUL"):
        read_graph(tmp_path / "g.csv")


@pytest.mark.parametrize("mark", [",", "\t", ";", " ", "   "])
def test_each_file_has_its_own_delimiter(tmp_path, mark):
    graph = read_graph(write(tmp_path, "g.edges", f"# links\na{mark}b{mark}2\nb{mark}c{mark}1\n"))
    assert graph.nodes.tolist() == ["a", "b", "c"]
    assert graph.W.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    labels = read_labels(write(tmp_path, "l.txt", "a x\nb y\nc z\n"), graph)
    assert labels.classes == ("x", "y", "z")
    assert labels.codes.tolist() == [0, 1, 2]
    assert labels.against_rest(2).tolist() == [-1, -1, 1]


def test_a_huge_graphml_attribute_is_parsed_once_or_refused(tmp_path, monkeypatch):
    from gdpa.graph_files import graphs as graph_files

    lengths = []
    create = graph_files.expat.ParserCreate

    class Counted:
        def __init__(self):
            self.__dict__["parser"] = create()

        def __setattr__(self, name, value):
            setattr(self.parser, name, value)

        def Parse(self, data, final):
            lengths.append(len(data))
            return self.parser.Parse(data, final)

    monkeypatch.setattr(graph_files.expat, "ParserCreate", Counted)
    long = "x" * 2_000_000
    on_node = GRAPHML.replace("<node ", f'<node note="{long}" ', 1)
    assert read_graph(write(tmp_path, "g.graphml", on_node)).W.nnz > 0
    with pytest.raises(TableError, match="no complete start tag"):
        read_graph(write(tmp_path, "g.graphml", f'<graphml note="{long}"/>'))
    assert sum(lengths) <= 2 * 2**16
