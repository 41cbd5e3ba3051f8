"""``gdpa solve`` and ``certify`` with ``--problem``."""

from __future__ import annotations

import json

import pytest


def test_solve_and_certify_a_cut(process, tmp_path):
    (tmp_path / "G.txt").write_text("3 3\n1 2 1\n2 3 1\n1 3 1\n")
    solved = process("solve", "G.txt", "--problem", "max-cut", "--out", "cut.csv", "--json")
    assert solved.code == 0
    result = json.loads(solved.out)
    assert (result["value"], result["bound"], result["sense"]) == (2.0, 2.0, "maximise")
    assert (tmp_path / "cut.csv").read_text().splitlines()[0] == "node,value"
    proved = process("certify", "G.txt", "--problem", "max-cut", "--labeling", "cut.csv", "--json")
    assert json.loads(proved.out)["gap"] == 0.0


@pytest.mark.slow
def test_a_wrong_edge_count_and_labels_are_refused(process, tmp_path):
    (tmp_path / "G.txt").write_text("3 4\n1 2 1\n2 3 1\n1 3 1\n")
    ended = process("solve", "G.txt", "--problem", "max-cut")
    assert ended.code == 2
    assert "promises 4 edges" in ended.err
    ended = process("solve", "G.txt", "--problem", "max-cut", "--labels", "x.csv")
    assert ended.code == 2
    assert "--labels" in ended.err


def test_a_proof_is_written_and_checked(process, tmp_path):
    (tmp_path / "G.txt").write_text("5 5\n1 2 1\n2 3 1\n3 4 1\n4 5 1\n1 5 1\n")
    command = ("solve", "G.txt", "--problem", "max-cut", "--proof", "proof.json.gz", "--json")
    solved = process(*command)
    assert solved.code == 0
    assert solved.document["method"] == "branch-and-cut"
    assert solved.document["proof"] == {"value": "4", "bound": "4"}
    checked = process("verify", "G.txt", "proof.json.gz")
    assert (checked.code, checked.out) == (0, "optimal\n")
    (tmp_path / "H.txt").write_text("5 5\n1 2 1\n2 3 1\n3 4 1\n4 5 1\n1 5 2\n")
    other = process("verify", "H.txt", "proof.json.gz")
    assert other.code == 1
    assert other.out == "wrong, because it belongs to another problem\n"


def test_a_proof_needs_a_quadratic_problem(process, tmp_path):
    (tmp_path / "g.csv").write_text("a,b,1\n")
    ended = process("solve", "g.csv", "--labels", "g.csv", "--proof", "p.json")
    assert ended.code == 2
    assert "--proof needs --problem" in ended.err
    (tmp_path / "p.json").write_text('{"problem": "tour"}')
    ended = process("verify", "g.csv", "p.json")
    assert ended.code == 2
    assert "'tour'" in ended.err


@pytest.mark.parametrize("names", [("@x", "-y", "z"), ("a b", "c,d", "'e")])
def test_certify_reads_what_solve_writes(process, tmp_path, names):
    a, b, c = (f'"{name}"' for name in names)
    (tmp_path / "G.csv").write_text(f"{a},{b},1\n{b},{c},1\n{a},{c},1\n")
    solved = process("solve", "G.csv", "--problem", "max-cut", "--out", "cut.csv")
    assert solved.code == 0
    proved = process("certify", "G.csv", "--problem", "max-cut", "--labeling", "cut.csv", "--json")
    assert proved.document["gap"] == 0.0
