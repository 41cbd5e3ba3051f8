"""``gdpa example`` writes files that the command it names can use."""

from __future__ import annotations

import shlex

import pytest

from gdpa.cli.example import FIRST


@pytest.mark.parametrize("name", FIRST)
def test_the_command_that_is_named_runs(command, name):
    ended = command("example", name)
    assert ended.code == 0, ended.err
    stated = ended.err.partition("try: gdpa ")[2]
    assert command(*shlex.split(stated)).code == 0


def test_files_are_not_replaced_unless_told(command, tmp_path):
    (tmp_path / "plants.csv").write_text("mine")
    ended = command("example", "plants")
    assert ended.code == 2
    assert "plants.csv exists; --force replaces it" in ended.err
    assert (tmp_path / "plants.csv").read_text() == "mine"
    assert not (tmp_path / "new-plants.csv").exists()
    assert command("example", "plants", "--force").code == 0
    assert (tmp_path / "plants.csv").read_text().startswith("name,")
    assert command("example", "stars").code == 2


def test_another_folder(command, tmp_path):
    assert command("example", "cut", "--out", "deep/er").code == 0
    assert (tmp_path / "deep" / "er" / "borders.txt").exists()
