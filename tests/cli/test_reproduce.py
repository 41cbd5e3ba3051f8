"""gdpa reproduce."""

from __future__ import annotations

import pytest


def test_reproduce_is_registered(process):
    pytest.importorskip("gdpa.cli.reproduce")
    assert process("reproduce", "--help").code == 0


def test_reproduce_speaks_json_and_can_be_quiet(process, tmp_path):
    at_hand = ("--datasets", "liver-disorders")  # comes with the package
    ended = process("reproduce", "lemma1", *at_hand, "--out", "r", "--json", "--quiet")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert ended.document["experiments"] == ["lemma1"]
    assert ended.document["rows"] > 0
    assert (tmp_path / ended.document["report"]).is_file()
    wrong = process("reproduce", "table9", "--json", "--quiet")
    assert wrong.code == 2
    assert wrong.document["status"] == "error"
