"""gdpa certify."""

from __future__ import annotations

import pytest


def test_certify_gives_the_optimum_of_two_triangles(process, graph):
    ended = process("certify", *("edges.csv", "--labels", "labels.csv", "--json", "--quiet"))
    assert ended.code == 0
    assert ended.document["objective"] == pytest.approx(4 * 0.1)  # one cut edge of weight 0.1
    assert ended.document["gap"] == pytest.approx(0.0, abs=1e-6)
    assert ended.document["bound_status"] == "certified"
    assert ended.err == ""


def test_a_labelling_with_gaps_or_other_labels_is_no_labelling(refused, command, graph, tmp_path):
    certify = ("certify", graph[0], "--labels", graph[1], "--labeling", "l.csv")
    (tmp_path / "l.csv").write_text("a,left\nb,left\n")
    refused(command(*certify), "no label for 4 nodes")
    (tmp_path / "l.csv").write_text("".join(f"{n},{'up'}\n" for n in "abcdef"))
    refused(command(*certify), "has the label 'up'")
    (tmp_path / "l.csv").write_text("".join(f"{n},right\n" for n in "abcdef"))
    refused(command(*certify), "known label")
