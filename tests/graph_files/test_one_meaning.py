"""An edge list means the same to every reader, and every reader refuses it in the same words."""

import networkx
import numpy as np
import pytest

import gdpa
from gdpa.graph import from_edges
from gdpa.graph_files import read_couplings, read_graph, read_links, read_values
from gdpa.tables import TableError

NODES = ["a", "b", "c", "d"]


def by_graph(path):
    graph = read_graph(path)
    return graph.W.toarray(), graph.nodes.tolist()


def by_links(path):
    text = path.read_text()
    names = [name for name in NODES if name in text]
    return read_links(path, names).W.toarray(), names


def by_cut(path):
    found = read_couplings(path, "max-cut", format="edges")
    order = np.argsort(found.names)
    return found.matrix.toarray()[np.ix_(order, order)], sorted(found.names)


def by_python(path):
    cells = [line.replace(",", " ").split() for line in path.read_text().splitlines()]
    edges = [row[:2] for row in cells]
    graph = from_edges(edges, [float(row[2]) if len(row) > 2 else 1.0 for row in cells])
    return graph.W.toarray(), graph.nodes.tolist()


READERS = [by_graph, by_links, by_cut, by_python]


@pytest.mark.parametrize("name", ["e.csv", "e.txt", "e.edges", "e.tsv"])
@pytest.mark.parametrize(
    "text",
    [
        "a b 1\nb a 1\nb c 1\n",
        "a b 1\nb c 1\n",
        "a b 1\na b 1\nc b 1\nb c 1\n",
        "a b\nb c\nb a\n",
        "a,b,1\nb,a,1\nc,b,1\n",
    ],
)
def test_one_file_has_one_meaning(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    want = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    for reader in READERS:
        W, names = reader(path)
        assert names == ["a", "b", "c"], reader
        np.testing.assert_array_equal(W, want, str(reader))
    cut = gdpa.solve(gdpa.BinaryQuadratic.max_cut(read_couplings(path, "max-cut").matrix))
    assert cut.value == cut.bound == 2.0


def test_different_weights_are_refused_in_the_same_words(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("a,b,1\nb,c,1\nb,a,2\n")
    words = (
        "the edge (a, b) is listed more than once with the weights 1 and 2; an edge has no "
        "direction: list it once, or with equal weights"
    )
    for reader in READERS:
        with pytest.raises(ValueError) as error:
            reader(path)
        assert words in str(error.value), reader
        assert reader is by_python or str(path) in str(error.value)


@pytest.mark.parametrize("weight", ["x", "inf", "nan", "1e999"])
def test_weights_that_are_no_numbers_are_refused_in_the_same_words(tmp_path, weight):
    path = tmp_path / "e.csv"
    path.write_text(f"a,b,1\nb,c,{weight}\n")
    for reader in READERS[:3]:
        with pytest.raises(TableError, match=r"line 2: the edge .*'b', 'c'.* not a finite number"):
            reader(path)


def test_negative_weights_are_refused_by_name_where_they_mean_similarity(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("a,b,1\nb,c,-2\n")
    for reader in (by_graph, by_links):
        with pytest.raises(TableError, match=r"the edge \('b', 'c'\) has weight -2; weights"):
            reader(path)
    assert by_cut(path)[0][1, 2] == -2.0


def test_headers_quotes_and_spaces_are_read_the_same(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text('source,target\n"a, the first",b c\nb c,d\n')
    for found in (read_graph(path).nodes.tolist(), sorted(read_couplings(path, "max-cut").names)):
        assert found == ["a, the first", "b c", "d"]


def test_repeated_terms_of_a_qubo_are_refused(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("a,b,1\nb,a,1\n")
    with pytest.raises(TableError, match="listed more than once; an edge has no direction"):
        read_couplings(path, "qubo")
    path = tmp_path / "q.qubo"
    path.write_text("p qubo 0 2 0 2\n0 1 1\n0 1 1\n")
    assert read_couplings(path, "qubo").matrix.sum() == 2.0


def test_parallel_edges_of_graphml_are_added(tmp_path):
    G = networkx.MultiGraph([("a", "b"), ("a", "b"), ("b", "c")])
    networkx.write_graphml(G, tmp_path / "g.graphml")
    assert read_graph(tmp_path / "g.graphml").W[0, 1] == 2.0


@pytest.mark.parametrize("name", ["@x", "-y", "a b", "a,b", "=1+1", "'q", 'say "hi"', "+3"])
def test_values_are_read_as_solve_writes_them(tmp_path, name):
    from gdpa.csv_text import csv_text

    path = tmp_path / "cut.csv"
    path.write_text(csv_text(["node", "value"], [[name, "z"], ["-1", "1"]]))
    assert read_values(path, [name, "z"], ("-1", "1")) == ["-1", "1"]
    assert read_values(path, ["z", name], ("-1", "1")) == ["1", "-1"]
    with pytest.raises(TableError, match="has value '-1'; accepted: 0 and 1"):
        read_values(path, [name, "z"], ("0", "1"))
    with pytest.raises(TableError, match="no value for 1 nodes"):
        read_values(path, [name, "z", "w"], ("-1", "1"))
    path.write_text("node,value\nz,1\nz,-1\n")
    with pytest.raises(TableError, match="line 3: the node 'z' is listed twice"):
        read_values(path, ["z"], ("-1", "1"))
