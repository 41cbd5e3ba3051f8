"""Links between rows: names to places, and everything that can be wrong with them."""

import numpy as np
import pytest
import scipy.sparse as sp

from gdpa.graph_files import read_links
from gdpa.tables import TableError

ROWS = ["a", "b", "007", "7", "12"]


def links(tmp_path, text, rows=ROWS, known=None, name="edges.csv", **options):
    path = tmp_path / name
    path.write_text(text)
    return read_links(path, rows, known, **options)


@pytest.mark.parametrize("gap", [",", "\t", ";", " ", "   "])
@pytest.mark.parametrize("header", ["", "source{0}target\n", "citing{0}cited\n"])
def test_any_delimiter_with_or_without_a_header(tmp_path, gap, header):
    found = links(tmp_path, header.format(gap) + f"a{gap}b\n007{gap}12\n", name="list.cites")
    wanted = np.zeros((5, 5))
    wanted[0, 1] = wanted[1, 0] = wanted[2, 4] = wanted[4, 2] = 1.0
    np.testing.assert_array_equal(found.W.toarray(), wanted)
    assert any("header" in note for note in found.notes) == header.startswith("citing")


def test_names_are_texts_and_whole_numbers_may_have_a_point(tmp_path):
    W = links(tmp_path, "7,a\n12.0,007\n").W
    assert W[3, 0] == 1.0
    assert W[2, 0] == 0.0
    assert W[4, 2] == 1.0


def test_weights_repetitions_and_loops(tmp_path):
    found = links(tmp_path, "a,b,2\nb,a,2\na,a,5\n7,12,0.5\n")
    assert found.W[0, 1] == found.W[1, 0] == 2.0
    assert found.W.nnz == 4
    assert any("1 repeated edges" in note for note in found.notes)
    assert any("itself" in note for note in found.notes)
    text = "a,b,2\nb,a,3\n"
    assert links(tmp_path, text, duplicates="sum").W[0, 1] == 5.0
    assert links(tmp_path, text, duplicates="max").W[0, 1] == 3.0
    with pytest.raises(TableError, match=r"with the weights 2 and 3; an edge has no direction"):
        links(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\na,zzz\n", "unknown rows: 'zzz'"),
        ("a,b\nq1,q2\nq3,q4\nq5,q6\n", "'q5' and 1 more"),
        ("a,b,-1\n", "weight -1; weights measure"),
        ("a,b,nan\n", "finite"),
        ("a,b,1\nb,7\n", "line 2"),
        ("a,b,x\nb,7,y\n", r"line 1: the edge .* which is not a finite number"),
        ("source,target\n", "no edges"),
        ("a,a\n", "no row is linked"),
        ("a,b,1,2\n", "4 cells"),
        ("", "empty"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, words):
    with pytest.raises(TableError, match=words):
        links(tmp_path, text)


def test_unknown_ends_may_be_left_out(tmp_path):
    found = links(tmp_path, "a,b\na,zzz\nyyy,zzz\n", skip_unknown=True)
    assert found.W.nnz == 2
    assert "2 edges to 2 unknown names" in found.notes[0]
    with pytest.raises(TableError, match="no row is linked"):
        links(tmp_path, "a,zzz\n", skip_unknown=True)


@pytest.mark.parametrize(
    ("rows", "words"), [(["a", "b", "a"], "rows 1 and 3"), (["a", ""], "row 2 has no name")]
)
def test_rows_need_names_of_their_own(tmp_path, rows, words):
    with pytest.raises(TableError, match=words):
        links(tmp_path, "a,b\n", rows=rows)


def test_new_rows_are_linked_to_known_nodes_whichever_end_comes_first(tmp_path):
    text = "n1,a\nb,n2,\n".replace("n2,", "n2") + "n1,n2\na,b\nn1,b\n"
    found = links(tmp_path, text, rows=["n1", "n2"], known=ROWS)
    np.testing.assert_array_equal(found.W.toarray(), [[1, 1, 0, 0, 0], [0, 1, 0, 0, 0]])
    assert any("2 edges that join no new row" in note for note in found.notes)
    with pytest.raises(TableError, match="'n9'"):
        links(tmp_path, "n1,n9\n", rows=["n1"], known=ROWS)
    with pytest.raises(TableError, match="known node"):
        links(tmp_path, "n1,n2\n", rows=["n1", "n2"], known=ROWS)


def test_a_name_that_is_new_and_known_is_linked_to_the_known_ones(tmp_path):
    found = links(tmp_path, "a,b\nb,b\n", rows=["a", "b"], known=["b", "a"])
    np.testing.assert_array_equal(found.W.toarray(), [[1, 0], [0, 1]])


def test_matrices_go_by_position_and_graphml_by_name(tmp_path):
    W = sp.csr_array([[0, 2.0, 0], [2.0, 0, 1.0], [0, 1.0, 0]])
    sp.save_npz(tmp_path / "w.npz", W)
    found = read_links(tmp_path / "w.npz", ["x", "y", "z"])
    np.testing.assert_array_equal(found.W.toarray(), W.toarray())
    assert "rows of the table" in found.notes[0]
    with pytest.raises(TableError, match=r"3 nodes .* the table has 2 rows"):
        read_links(tmp_path / "w.npz", ["x", "y"])
    with pytest.raises(TableError, match="has no node names"):
        read_links(tmp_path / "w.npz", ["x"], ["y"])
    (tmp_path / "g.graphml").write_text(
        '<graphml><graph edgedefault="undirected"><node id="b"/><node id="a"/><node id="12"/>'
        '<edge source="b" target="a"/></graph></graphml>'
    )
    assert read_links(tmp_path / "g.graphml", ROWS).W[0, 1] == 1.0
