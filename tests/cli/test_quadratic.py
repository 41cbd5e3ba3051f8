"""``gdpa solve`` and ``certify`` with ``--problem``."""

from __future__ import annotations

import json


def test_solve_and_certify_a_cut(process, tmp_path):
    (tmp_path / "G.txt").write_text("3 3\n1 2 1\n2 3 1\n1 3 1\n")
    solved = process("solve", "G.txt", "--problem", "max-cut", "--out", "cut.csv", "--json")
    assert solved.code == 0
    result = json.loads(solved.out)
    assert (result["value"], result["bound"], result["sense"]) == (2.0, 2.0, "maximise")
    assert (tmp_path / "cut.csv").read_text().splitlines()[0] == "node,value"
    proved = process("certify", "G.txt", "--problem", "max-cut", "--labeling", "cut.csv", "--json")
    assert json.loads(proved.out)["gap"] == 0.0


def test_a_wrong_edge_count_and_labels_are_refused(process, tmp_path):
    (tmp_path / "G.txt").write_text("3 4\n1 2 1\n2 3 1\n1 3 1\n")
    ended = process("solve", "G.txt", "--problem", "max-cut")
    assert ended.code == 2
    assert "promises 4 edges" in ended.err
    ended = process("solve", "G.txt", "--problem", "max-cut", "--labels", "x.csv")
    assert ended.code == 2
    assert "--labels" in ended.err
