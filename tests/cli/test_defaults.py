"""``gdpa.toml``: defaults of options, in the current folder and beside the table."""

from __future__ import annotations

import pytest


def test_a_file_beside_the_table_sets_defaults_and_options_override_them(command, table, tmp_path):
    (tmp_path / "gdpa.toml").write_text('[fit]\ntarget = "width"\nid = "name"\n[label]\nport = 1\n')
    beside = tmp_path / "data"
    beside.mkdir()
    table = table.rename(beside / "rows.csv")
    (beside / "gdpa.toml").write_text('[fit]\ntarget = "answer"\ndrop = ["colour", "height"]\n')
    ended = command("fit", table, "--json", "--out", "p.csv")
    assert ended.code == 0, ended.err
    used = {c["name"] for c in ended.document["columns"]}
    assert used == {"width"}  # name is the id, by the file of the current folder
    assert (tmp_path / "p.csv").read_text().startswith("name,prediction")
    ended = command("fit", table, "--drop", "width", "--json", "--out", "p.csv")
    assert {c["name"] for c in ended.document["columns"]} == {"height", "colour"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[fit]\ntargte = "y"', "'targte' cannot be set; did you mean 'target'?"),
        ('[fti]\ntarget = "y"', "'fti' cannot be set; did you mean 'fit'?"),
        ('[fit]\nout = "elsewhere.csv"', "'out' cannot be set"),
        ("fit = 1", "'fit' cannot be set"),
        ("[fit", "is not a TOML file"),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(command, table, tmp_path, content, words):
    (tmp_path / "gdpa.toml").write_text(content)
    ended = command("fit", table, "-t", "answer")
    assert ended.code == 2
    assert len(ended.err.splitlines()) == 1
    assert words in ended.err
    assert "gdpa.toml" in ended.err
