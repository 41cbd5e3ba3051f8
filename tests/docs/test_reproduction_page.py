"""docs/REPRODUCTION.md is of one piece: every table and figure names one commit, which exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from reproduction.experiments import EXPERIMENTS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = DOCS / "REPRODUCTION.md"


def commits_of(page: str, folder: Path) -> dict[str, set[str]]:
    """Commit that each table and figure of a page names; "" where it names none."""
    found: dict[str, set[str]] = {}
    for part in re.split(r"^(?=### )", page, flags=re.MULTILINE)[1:]:
        table = part.split("\n## ")[0]
        title = table.splitlines()[0]
        found[title] = set(re.findall(r"^\*commit (\S+),", table, flags=re.MULTILINE)) or {""}
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page):
        text = (folder / name).read_text(encoding="utf-8")
        found[name] = set(re.findall(r"commit ([0-9a-f]{12}\+?|release),", text)) or {""}
    return found


def page_commit(page: str) -> str:
    match = re.search(r"computed by one commit,\s+`([^`]+)`", page)
    assert match is not None
    return match.group(1)


def test_every_table_and_figure_is_of_the_pages_commit():
    page = PAGE.read_text(encoding="utf-8")
    commit = page_commit(page)
    assert re.fullmatch(r"[0-9a-f]{12}", commit)  # of a clean checkout
    found = commits_of(page, DOCS)
    assert len(found) > 20
    assert {name: c for name, c in found.items() if c != {commit}} == {}


def test_a_figure_or_table_of_another_commit_is_noticed(tmp_path):
    stamp = "*commit 0123456789ab, 2026-01-01, gdpa 0.1.0*"
    page = f"# P\n\n### One\n\n{stamp}\n\n### Two\n\n{stamp}\n\n![f](f.svg)\n"
    (tmp_path / "f.svg").write_text("<svg>commit 0123456789ab, 2026-01-01</svg>")
    assert set().union(*commits_of(page, tmp_path).values()) == {"0123456789ab"}
    (tmp_path / "f.svg").write_text("<svg>commit ba9876543210, 2026-01-01</svg>")
    assert commits_of(page, tmp_path)["f.svg"] == {"ba9876543210"}
    (tmp_path / "f.svg").write_text("<svg>drawn by hand</svg>")
    assert commits_of(page, tmp_path)["f.svg"] == {""}
    bare = page.replace(stamp, "", 1)
    assert commits_of(bare, tmp_path)["### One"] == {""}


def test_the_commit_is_one_of_the_projects():
    if not (ROOT / ".git").exists():
        pytest.skip("not a Git checkout")
    commit = page_commit(PAGE.read_text(encoding="utf-8"))
    known = subprocess.run(
        ["git", "cat-file", "-t", commit], cwd=ROOT, capture_output=True, text=True, check=False
    )
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if shallow.stdout.strip() == "true":
        pytest.skip("a shallow checkout has no history to look in")
    assert known.stdout.strip() == "commit"


def test_every_experiment_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    for name in EXPERIMENTS:
        assert f"\n## {name}: " in page
    assert "needs a licence" in page


def test_every_reason_names_a_test_that_exists():
    why = PAGE.read_text(encoding="utf-8").split("## Why", 1)[1].split("\n<!-- ")[0]
    reasons = re.findall(r"^- .*\((tests/\S+)::(\w+)\)$", why, flags=re.MULTILINE)
    assert len(reasons) == why.count("\n- ") > 5
    for file, name in reasons:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
