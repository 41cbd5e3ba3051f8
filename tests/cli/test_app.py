"""The command as a whole: completion, missing extras."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gdpa import list_methods


def test_shell_completion_completes_names_of_methods(process):
    complete = {"_GDPA_COMPLETE": "complete_bash", "COMP_WORDS": "gdpa solve g --method sdr-"}
    ended = process(**complete, COMP_CWORD="4")
    assert ended.out.split() == [m.name for m in list_methods() if m.name.startswith("sdr-")]


def test_without_typer_one_line_names_the_extra(monkeypatch, capsys):
    from gdpa.cli import main

    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        main(["methods"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'.[cli]'" in line


def test_help_of_fit_has_examples_first_and_groups(process):
    ended = process("fit", "--help", COLUMNS="80")
    assert ended.code == 0
    places = [
        ended.out.index(words)
        for words in ("gdpa fit plants.csv", "Input:", "Model:", "Output and report:", "Other:")
    ]
    assert places == sorted(places)
    assert "<bool>" not in ended.out
    assert "  gdpa fit plants.csv --target species --id name --model plants.npz\n" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 84
    # Prose has most of the width, so that few options take more than two lines.
    assert len(ended.out.splitlines()) < 80


def modules_after(*args):
    """The modules that a command has loaded when it ends."""
    script = "import sys; from gdpa.cli import main\ntry:\n    main(sys.argv[1:])\nfinally:\n"
    script += "    print(*sys.modules, file=sys.stderr)"
    run = [sys.executable, "-c", script, *map(str, args)]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300, check=True)
    return set(ended.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("command", ["fit", "predict", "query"])
def test_help_does_not_load_scikit_learn(command):
    assert not {"sklearn", "pandas", "pyarrow"} & modules_after(command, "--help")
