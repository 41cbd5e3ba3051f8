"""docs/REPRODUCTION.md: of one commit, short, and true to the authors' stored results."""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from reproduction.experiments import EXPERIMENTS
from reproduction.experiments.base import growth
from reproduction.published import COD_RNA_MS, COD_RNA_SIZES

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = DOCS / "REPRODUCTION.md"
REFERENCE = ROOT.parent / "shared" / "reference"  # the authors' stored results


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
    for beside in sorted((DOCS / "reproduction").glob("*.md")):
        tables = re.sub(r"(?m)^## ", "### ", beside.read_text(encoding="utf-8"))
        found |= commits_of(tables, DOCS)
        assert f"(reproduction/{beside.name})" in page
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


def test_the_page_is_short_and_its_title_does_not_say_full():
    page = PAGE.read_text(encoding="utf-8")
    assert len(page.split()) <= 0.4 * 13_739  # words of the page that this one replaced
    assert "full" not in page.splitlines()[0]
    assert page.index("## Findings") < page.index("\n### ")


def test_every_reason_names_a_test_that_exists():
    why = PAGE.read_text(encoding="utf-8").split("## Why", 1)[1].split("\n<!-- ")[0]
    reasons = re.findall(r"^- .*\((tests/\S+)::(\w+)\)$", why, flags=re.MULTILINE)
    assert len(reasons) == why.count("\n- ") > 5
    for file, name in reasons:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


def stored(name: str) -> list[dict[str, str]]:
    if not REFERENCE.is_dir():
        pytest.skip("the authors' stored results are not beside this copy")
    with (REFERENCE / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def quoted(*phrases: str) -> None:
    """Each phrase is on the page; line breaks do not count."""
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert [phrase for phrase in phrases if phrase not in page] == []


def set_ratios(rows: list[dict[str, str]], rescaling: str, slow: str) -> tuple[dict, float]:
    """Mean time of a method over GDPA's by data set, and the ratio of the sums of these means."""
    names = sorted({row["dataset"] for row in rows})
    means = {
        column: {
            name: np.mean([
                float(row[f"{column} ms"])
                for row in rows
                if (row["dataset"], row["rescaling"]) == (name, rescaling)
            ])
            for name in names
        }
        for column in (slow, "GDPA")
    }  # fmt: skip
    ratios = {name: means[slow][name] / means["GDPA"][name] for name in names}
    return ratios, sum(means[slow].values()) / sum(means["GDPA"].values())


def test_quoted_times_are_the_stored_ones():
    rows = stored("cod-rna-time-ms.csv")
    assert tuple(int(row["n"]) for row in rows) == COD_RNA_SIZES
    times = {c: np.array([float(row[c]) for row in rows]) for c in ("GDPA", "SNS")}
    assert {c: tuple(values) for c, values in times.items()} == COD_RNA_MS
    total = times["SNS"].sum() / times["GDPA"].sum()
    slopes = [growth(COD_RNA_SIZES[6:], times[c][6:]) for c in ("GDPA", "SNS")]
    quoted(
        f"on the nine cod-rna sizes {total:.2f}",
        f"mean of the nine ratios {np.mean(times['SNS'] / times['GDPA']):.2f}",
        f"slopes are {slopes[0]:.2f} and {slopes[1]:.2f}",
    )
    runs = stored("table2-per-run.csv")
    found = [set_ratios(runs, r, "SNS") for r in ("min-max", "standardization")]
    means = [float(np.mean(list(ratios.values()))) for ratios, _ in found]
    closed_form, _ = set_ratios(runs, "min-max", "GLR")
    quoted(
        f"{found[0][1]:.2f} / {found[1][1]:.2f} by totals",
        f"{means[0]:.2f} / {means[1]:.2f} by the mean of ratios",
        f"madelon {found[0][0]['madelon']:.2f} with min-max, "
        f"{found[1][0]['madelon']:.2f} standardised",
        f"took {np.mean(list(closed_form.values())):.2f} of GDPA's time",
    )


def test_quoted_counts_are_the_stored_ones():
    runs = stored("table2-per-run.csv")
    same = sum(row["SeDuMi errors"] == row["MOSEK errors"] for row in runs)
    others = [row for row in runs if row["dataset"] != "colon-cancer"]
    twins = sum(row["CDCS-20 errors"] == row["SDcut errors"] for row in others)
    points = [
        100.0 * (int(row["CDCS-20 errors"]) - int(row["SDcut errors"])) / int(row["divisor"])
        for row in others
        if row["CDCS-20 errors"] != row["SDcut errors"]
    ]
    quoted(
        f"agree in {same:,} of {len(runs):,}",
        f"SDcut's count in {twins:,} of {len(others):,} stored runs",
        f"stored runs and {np.mean(points):.1f} points more on average",
    )
    cells: dict[tuple[str, str], list[float]] = {}
    for row in runs:
        percent = 100.0 * int(row["SeDuMi errors"]) / int(row["divisor"])
        cells.setdefault((row["rescaling"], row["dataset"]), []).append(percent)
    means = [
        np.mean([np.mean(v) for key, v in cells.items() if key[0] == rescaling])
        for rescaling in ("min-max", "standardization")
    ]
    quoted(f"SeDuMi {means[0]:.2f} / {means[1]:.2f}")


def test_quoted_eigenvalue_differences_are_the_stored_ones():
    rows = stored("eigenvalue-gap.csv")
    mean = np.mean([float(row["mean"]) for row in rows])
    median = np.median([float(row["median"]) for row in rows])
    quoted(
        f"the mean over the {len(rows)} set means of the stored values, {mean:.5e}".replace(
            "e-0", "e-"
        ),
        f"the median of the {len(rows)} set medians is {median:.1e}".replace("e-0", "e-"),
    )
