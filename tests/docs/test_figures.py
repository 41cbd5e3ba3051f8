"""The page "Evidence" and the README say what the stored results say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def evidence():
    pytest.importorskip("matplotlib")
    return importlib.import_module("benchmarks.evidence.__main__")


@pytest.fixture(scope="module")
def written(evidence, tmp_path_factory):
    return evidence.files(tmp_path_factory.mktemp("charts"))


def test_the_page_and_the_readme_are_those_of_the_stored_results(written):
    for path, text in written.items():
        assert path.read_text(encoding="utf-8") == text, (
            f"run python -m benchmarks.evidence: {path}"
        )


def test_every_chart_of_the_page_exists(evidence):
    named = re.findall(
        r"_static/evidence/([a-z-]+\.svg)", evidence.PAGE.read_text(encoding="utf-8")
    )
    assert named
    assert sorted(named) == sorted(path.name for path in evidence.CHARTS.glob("*.svg"))


def test_a_changed_result_changes_the_page(evidence, monkeypatch, capsys):
    claims = importlib.import_module("benchmarks.evidence.claims")
    right = claims.stored

    def other(name):
        found = right(name)
        if name == "tables":
            found["gdpa"] = {key: [99.0, *cell[1:]] for key, cell in found["gdpa"].items()}
        return found

    monkeypatch.setattr(claims, "stored", other)
    assert evidence.main(["--check"]) == 1
    assert "docs/evidence.md" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "docs/evidence.md"])
def test_commands_that_print_figures_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for module in set(re.findall(r"python -m (benchmarks[.a-z_]*)", text)):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
