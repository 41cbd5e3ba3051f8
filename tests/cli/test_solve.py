"""gdpa solve: graphs in, labellings out, wrong ones named."""

from __future__ import annotations

import csv
import io

import pytest


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_solve_reads_a_pipe_and_writes_one(process, graph):
    edges, labels = graph
    ended = process("solve", "-", "--labels", labels, text=edges.read_text())
    assert ended.code == 0
    found = {row["node"]: row["label"] for row in rows_of(ended.out)}
    assert found == dict.fromkeys("abc", "left") | dict.fromkeys("def", "right")
    assert "objective" in ended.err  # messages are not data


def test_not_converged_is_exit_code_1_and_still_answers(command, graph):
    ended = command(
        *("solve", *graph[:1], "--labels", graph[1], "--method", "sdr-low-rank"),
        *("--option", "max_iter=1", "--option", "tol=1e-14", "--json"),
    )
    assert ended.code == 1
    assert ended.document["status"] == "not converged"
    assert ended.document["converged"] is False
    assert len(ended.document["labeling"]) == 6


@pytest.mark.parametrize(
    ("edges", "labels", "words"),
    [
        ("a,b,1\na,b,2\n", "a,x\nb,y\n", ["more than once"]),
        ("a,b,-1\n", "a,x\nb,y\n", ["edges.csv", "negative"]),
        ("a,b,one\nb,c,two\n", "a,x\n", ["the weight 'two', which is not a finite"]),
        ("a,b,1\nb\n", "a,x\n", ["line 2", "1 cells"]),
        ("source,target\n", "a,x\n", ["no edges"]),
        ("a,b,1\n", "a,x\nz,y\n", ["no node 'z'"]),
        ("a,b,1\n", "a,x\na,y\n", ["the node a twice"]),
        ("a,b,1\n", "a,x\n", ["the classes ['x']"]),
        ("a,b,1\n", "x\ny\nx\n", ["3 lines but the graph has 2 nodes"]),
        ("a,b,1\n", "a,\nb,\n", ["the classes []"]),
    ],
)
def test_solve_says_what_is_wrong_with_a_graph(refused, command, tmp_path, edges, labels, words):
    (tmp_path / "edges.csv").write_text(edges)
    (tmp_path / "labels.csv").write_text(labels)
    refused(command("solve", "edges.csv", "--labels", "labels.csv"), *words)


def test_options_of_methods_are_checked(refused, command, graph):
    solve = ("solve", graph[0], "--labels", graph[1])
    refused(command(*solve, "--method", "gdpaa"), "did you mean 'gdpa'?")
    refused(command(*solve, "--option", "tool=1"), "no option 'tool'")
    refused(command(*solve, "--option", "tol"), "NAME=VALUE")
    refused(command(*solve, "--laplacian", "norm"), "laplacian")


def test_names_stay_and_labels_are_escaped_on_request(command, tmp_path):
    (tmp_path / "edges.csv").write_text("=A1,@b,1\n@b,c,2\nc,d,1\n")
    (tmp_path / "labels.csv").write_text("=A1,=HYPERLINK(1)\nd,no\n")
    solve = ("solve", "edges.csv", "--labels", "labels.csv", "--out", "l.csv")
    assert command(*solve).code == 0
    rows = rows_of((tmp_path / "l.csv").read_text())
    assert [row["node"] for row in rows] == ["=A1", "@b", "c", "d"]
    assert {row["label"] for row in rows} == {"=HYPERLINK(1)", "no"}
    # Our own table can be read again.
    certify = ("certify", "edges.csv", "--labels", "labels.csv", "--labeling", "l.csv")
    assert command(*certify).code == 0
    assert command(*solve, "--escape-formulas").code == 0
    escaped = rows_of((tmp_path / "l.csv").read_text())[0]
    assert (escaped["node"], escaped["label"]) == ("=A1", "'=HYPERLINK(1)")
    assert command(*certify).code == 0


def test_few_labels_are_spread_by_poisson_learning_as_in_python(command, tmp_path, monkeypatch):
    import networkx
    import numpy as np

    import gdpa

    monkeypatch.chdir(tmp_path)
    sizes = [30, 20, 40]
    share = np.full((3, 3), 0.03) + 0.2 * np.eye(3)
    G = networkx.stochastic_block_model(sizes, share, seed=1)
    (tmp_path / "g.txt").write_text("".join(f"{u} {v}\n" for u, v in G.edges()))
    (tmp_path / "l.csv").write_text("node,label\n3,a\n40,b\n70,c\n")
    ended = command("solve", "g.txt", "--labels", "l.csv", "--json")
    assert ended.code == 0
    found = {int(row["node"]): row["label"] for row in ended.document["labeling"]}
    assert ended.document["method"] == "poisson"
    assert ended.document["bound_status"] == "certified"
    nodes = sorted(G)
    y = [{3: "a", 40: "b", 70: "c"}.get(node) for node in nodes]
    model = gdpa.CommitteeClassifier().fit(G, y)
    same = np.mean(
        [found[node] == label for node, label in zip(nodes, model.transduction_, strict=True)]
    )
    truth = np.repeat(["a", "b", "c"], sizes)
    assert same > 0.9
    assert np.mean([found[node] == truth[node] for node in nodes]) > 0.8
