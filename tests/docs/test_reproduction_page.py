"""docs/REPRODUCTION.md: of one commit, short, and true to the authors' stored results."""

from __future__ import annotations

import csv
import functools
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from reproduction.authors import author_runs
from reproduction.experiments import EXPERIMENTS
from reproduction.experiments.base import growth
from reproduction.protocol import RESCALINGS
from reproduction.published import (
    COD_RNA_MS,
    COD_RNA_SIZES,
    LEMMA1_MEAN,
    LP_COUNT,
    TABLE1,
    TABLE1_CELLS,
    TABLE2_MEANS,
)

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


@functools.cache
def stored(name: str) -> list[dict[str, str]]:
    if not REFERENCE.is_dir():
        pytest.skip("the authors' stored results are not beside this copy")
    with (REFERENCE / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


def set_means(unit: str, column: str, rescaling: str, splits: range = range(1, 11)) -> dict:
    """Mean of a column by data set, in percent of the divisor ("errors") or in "ms"."""
    found: dict[str, list[float]] = {}
    for row in stored("table2-per-run.csv"):
        if row["rescaling"] == rescaling and int(row["split"]) in splits:
            value = float(row[f"{column} {unit}"])
            value *= 100.0 / int(row["divisor"]) if unit == "errors" else 1.0
            found.setdefault(row["dataset"], []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def averages(slow: np.ndarray, fast: np.ndarray) -> list[float]:
    """Every average of a table row: totals, mean, geometric mean, median, at the slowest."""
    ratios = slow / fast
    geometric = float(np.exp(np.log(ratios).mean()))
    slowest = ratios[slow.argmax()]
    return [slow.sum() / fast.sum(), ratios.mean(), geometric, np.median(ratios), slowest]


def time_ratios(slow: str, rescaling: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean times of a method and of GDPA by data set, and their ratio on madelon."""
    ours, gdpa = (set_means("ms", column, rescaling) for column in (slow, "GDPA"))
    both = np.array([[ours[name], gdpa[name]] for name in sorted(ours)]).T
    return both[0], both[1], ours["madelon"] / gdpa["madelon"]


def cod_rna() -> dict[str, np.ndarray]:
    rows = stored("cod-rna-time-ms.csv")
    return {c: np.array([float(row[c]) for row in rows]) for c in ("n", "GDPA", "SNS")}


def stored_phrases() -> list[str]:
    """Every phrase of the findings with a number of the stored files, computed from them."""
    runs, times = stored("table2-per-run.csv"), cod_rna()
    same = sum(row["SeDuMi errors"] == row["MOSEK errors"] for row in runs)
    others = [row for row in runs if row["dataset"] != "colon-cancer"]
    twins = [row for row in others if row["CDCS-20 errors"] == row["SDcut errors"]]
    points = [
        100.0 * (int(row["CDCS-20 errors"]) - int(row["SDcut errors"])) / int(row["divisor"])
        for row in others
        if row["CDCS-20 errors"] != row["SDcut errors"]
    ]
    sedumi = [np.mean(list(set_means("errors", "SeDuMi", r).values())) for r in RESCALINGS]
    slopes = [growth(times["n"][6:], times[c][6:]) for c in ("GDPA", "SNS")]
    nine = averages(times["SNS"], times["GDPA"])
    sets = [averages(*time_ratios("SNS", r)[:2]) for r in RESCALINGS]
    madelon = [time_ratios("SNS", r)[2] for r in RESCALINGS]
    closed_form = averages(*time_ratios("GLR", "min-max")[:2])[1]
    gaps = stored("eigenvalue-gap.csv")
    mean = f"{np.mean([float(row['mean']) for row in gaps]):.5e}".replace("e-0", "e-")
    median = f"{np.median([float(row['median']) for row in gaps]):.1e}".replace("e-0", "e-")
    return [
        f"SeDuMi {sedumi[0]:.2f} / {sedumi[1]:.2f}",
        f"the stored counts of these two agree in {same:,} of {len(runs):,}",
        f"SDcut's count in {len(twins):,} of {len(others):,} stored runs and "
        f"{np.mean(points):.1f} points more on average",
        f"ratio of totals on the nine cod-rna sizes {nine[0]:.2f}",
        f"mean of the nine ratios {nine[1]:.2f}",
        f"on the 17 sets {sets[0][0]:.2f} / {sets[1][0]:.2f} by totals, "
        f"{sets[0][1]:.2f} / {sets[1][1]:.2f} by the mean of ratios",
        f"madelon {madelon[0]:.2f} with min-max, {madelon[1]:.2f} standardised",
        f"took {closed_form:.2f} of GDPA's time in the stored files",
        f"from {times['n'][6]:,.0f} samples on their slopes are "
        f"{slopes[0]:.2f} and {slopes[1]:.2f}",
        f"the mean over the {len(gaps)} set means of the stored values, {mean}",
        f"the median of the {len(gaps)} set medians is {median}",
    ]


def printed_phrases() -> list[str]:
    """Every phrase of the findings with a number that the paper prints."""
    sdr = dict(zip(TABLE1_CELLS, TABLE1["SDR"], strict=True))
    cells = [sdr[cell] for cell in ((100, 2, 2.0), (100, 2, 1.5), (200, 2, 2.0))]
    return [
        "(paper " + ", ".join(f"{value:.2f}" for value in cells) + ")",
        f"{LEMMA1_MEAN:.4e}".replace("e-0", "e-"),
        f"fewer than {LP_COUNT} linear programs",
        f"paper's GDPA {np.mean(TABLE1['GDPA']):.2f} %",
        "28 times faster than SNS on average and 34 on madelon",
    ]


# Numbers of the findings that are neither the authors' results nor in a table, and their source.
OTHERS = {
    "1e-5": "gdpa.m: tolerance of the interior point",
    "1e-4": "gdpa.m: change of the objective at which the loop ends",
    "1e-3": "cdcs20.m: tolerance",
    "1e15": "cdcs20.m: corners of the split node",
    "63": "runs in which the box is active, counted by hand in the rows of glr-box",
    "997": "tests/docs/test_theory.py, fact 5",
    "1,576": "rows of GDPA as published and of the vote with equal counts",
    "240": "tests/reproduction/test_findings.py",
    "105": "tests/reproduction/test_findings.py",
    "156": "tests/reproduction/test_findings.py",
    "60": "tests/reproduction/test_findings.py",
}
# Sentences of earlier versions that are wrong or too general.
WRONG = (
    "does the same",
    "does not classify",
    "it is the recovery that fails",
    "nothing that the harmonic function or the vote does not do better",
    "Table 1 holds",
    "converges to a local minimum",
    "program: one linear program",
    "more accurate than all of them",
)
NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


def page_text() -> str:
    return PAGE.read_text(encoding="utf-8")


def numbers_of_tables() -> set[str]:
    """Numbers of the computed part of the page and of the tables beside it, also rounded."""
    text = page_text().split("<!-- example -->", 1)[1]
    for beside in (DOCS / "reproduction").glob("*.md"):
        text += beside.read_text(encoding="utf-8")
    found = set()
    for number in NUMBER.findall(text):
        value = float(number.replace(",", ""))
        found |= {number, f"{value:.0f}", f"{value:.1f}", f"{value:.2f}", f"{value:,.0f}"}
        found |= {f"{value:.1e}".replace("e-0", "e-"), f"{value / 1000:.1f}"}
    return found


def unexplained(hand: str) -> list[str]:
    """Return missing phrases, and numbers that are not stored, printed, of a table or named."""
    text = " ".join(re.sub(r"`[^`]*`|\(tests/\S+\)", "", hand).split())
    # Sums of a table: labels read off the first eigenvector; runs that differ from the vote.
    (rows,) = (rows for title, rows in tables(page_text()).items() if title.startswith("Labels"))
    one, runs = (sum(int(row[key]) for row in rows) for key in ("one class only", "runs"))
    vote = next(
        int(row["same number of errors"].split()[0])
        for row in tables(page_text())["Table 2 run by run"]
        if (row["method"], row["authors' column"]) == ("One-step vote", "GDPA")
    )
    (restored,) = (
        rows
        for title, rows in tables(
            (DOCS / "reproduction" / "table1.md").read_text(encoding="utf-8"), "## "
        ).items()
        if title.startswith("Table 1: restoration")
    )
    other = np.mean([float(r["other draws (%)"]) for r in restored if r["method"] == "GDPA"])
    ratios = {
        row["method"]: row["ours, mean ratio"]
        for row in tables(page_text())["Time over that of GDPA as published, min-max"]
    }
    phrases = [
        f"other draws average {other:.2f} %",
        "BCR ({} of its time), GLR-box ({}) and the interior point ({})".format(
            *(ratios[n] for n in ("BCR, authors' variant", "GLR-box", "SDR, interior point"))
        ),
    ]
    assert sorted(name for name, ratio in ratios.items() if float(ratio) < 1.0) == [
        "BCR, authors' variant", "GLR-box", "Harmonic function", "SDR, interior point",
    ]  # fmt: skip
    phrases += [f"in {one} of {runs} cases", f"The {1580 - vote} runs in which their GDPA"]
    phrases += stored_phrases() + printed_phrases()
    missing = [phrase for phrase in phrases if phrase not in text]
    for phrase in phrases:
        text = text.replace(phrase, " ")
    cells = tables((DOCS / "reproduction" / "table1.md").read_text(encoding="utf-8"), "## ")
    (table,) = (rows for title, rows in cells.items() if title.startswith("Table 1: restoration"))
    means = re.search(r"exact optimum: (\S+) % error against (\S+) ", text)
    assert means is not None
    for name, quoted in zip(("GDPA", "exact cut"), means.groups(), strict=True):
        ours = [float(row["ours (%)"]) for row in table if row["method"] == name]
        assert len(ours) == len(TABLE1_CELLS)
        assert float(quoted) == pytest.approx(np.mean(ours), abs=0.0101)  # of rounded cells
        text = text.replace(quoted, " ")
    known = numbers_of_tables() | set(OTHERS)
    missing += [number for number in OTHERS if number not in NUMBER.findall(text)]
    return missing + [number for number in NUMBER.findall(text) if number not in known]


def test_each_number_of_the_findings_has_a_source():
    hand = page_text().split("## Findings", 1)[1].split("<!-- example -->")[0]
    assert unexplained(hand) == []
    assert unexplained(hand + " Their SNS errs 77.77 %.") == ["77.77"]
    assert unexplained(hand.replace("58.05", "58.15"))[0].startswith("madelon 58.05 with")


@pytest.mark.parametrize("sentence", WRONG)
def test_wrong_sentences_are_gone(sentence):
    package = ROOT / "src" / "gdpa"
    files = [ROOT / "README.md", *DOCS.glob("*.md"), *(DOCS / "tutorials").glob("*.py")]
    files += [package / "paper.py", *(package / "solvers").glob("**/gdpa*.py")]
    files += [package / "estimators" / "gdpa_classifier.py"]
    for file in files:
        assert sentence not in " ".join(file.read_text(encoding="utf-8").split()), file


def test_the_authors_files_are_quoted_with_their_commit():
    for page in (PAGE, DOCS / "theory.md"):
        text = page.read_text(encoding="utf-8")
        assert "gdpa.m" in text
        assert "`0cd7026`" in text


def tables(page: str, mark: str = "### ") -> dict[str, list[dict[str, str]]]:
    """Rows of each table by its title."""
    found: dict[str, list[dict[str, str]]] = {}
    for part in re.split(rf"^{mark}", page, flags=re.MULTILINE)[1:]:
        part = part.split("\n<!-- ")[0]
        lines = [line.strip("|").split("|") for line in part.splitlines() if line[:1] == "|"]
        header, *rows = [[cell.strip() for cell in line] for line in lines if "---" not in line[0]]
        found[part.splitlines()[0]] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


COLUMN = {"CDCS": "CDCS-8", "CDCS (modified dual)": "CDCS-20"}
TIMED = {
    "SNS, authors' variant": "SNS",
    "BCR, authors' variant": "BCR",
    "SDR, interior point": "SeDuMi",
    "GLR-box": "GLR-box",
    "Harmonic function": "GLR",
}


def check_table2(rows: list[dict[str, str]]) -> None:
    for row in rows:
        name, splits = row["paper's column"], range(1, 11 if row["runs"] == "1580" else 2)
        for rescaling, short in zip(RESCALINGS, ("min-max", "stand."), strict=True):
            theirs = row[f"authors, same runs, {short}"]
            if name == "–":
                assert theirs == row[f"paper, {short}"] == "–"
                continue
            mean = np.mean(
                list(set_means("errors", COLUMN.get(name, name), rescaling, splits).values())
            )
            assert theirs == f"{mean:.2f}"
            difference = float(row[f"ours, {short}"]) - mean
            assert float(row[f"difference, {short}"]) == pytest.approx(difference, abs=0.0101)
            if name != "GLR":  # the paper leaves it out
                printed = TABLE2_MEANS[name][RESCALINGS.index(rescaling)]
                assert row[f"paper, {short}"] == f"{printed:.2f}"


def check_run_by_run(rows: list[dict[str, str]]) -> None:
    for row in rows:  # the counts compare our rows with the stored ones; here only their number
        runs, column = stored("table2-per-run.csv"), row["authors' column"]
        assert f"{column} errors" in runs[0]
        assert row["same number of errors"].split(" of ")[1] in {str(len(runs)), "158"}


def check_time_ratios(rows: list[dict[str, str]]) -> None:
    assert {row["method"] for row in rows} == set(TIMED)
    for row in rows:
        *both, madelon = time_ratios(TIMED[row["method"]], "min-max")
        assert row["authors' stored times, mean ratio"] == f"{averages(*both)[1]:.2f}"
        assert row["authors, madelon"] == f"{madelon:.2f}"


def check_averages(rows: list[dict[str, str]]) -> None:
    times = cod_rna()
    expected = [averages(times["SNS"], times["GDPA"])]
    expected += [averages(*time_ratios("SNS", rescaling)[:2]) for rescaling in RESCALINGS]
    assert [list(row.values())[1:] for row in rows] == [
        [f"{value:.2f}" for value in line] for line in expected
    ]


def check_cod_rna(rows: list[dict[str, str]]) -> None:
    times = cod_rna()
    theirs = [row for row in rows if row["method"].startswith("authors' ")]
    assert len(theirs) == 2
    for row in theirs:
        column = times[row["method"].removeprefix("authors' ")]
        for n, value in zip(times["n"], column, strict=True):
            assert row[f"{n:,.0f}"] == f"{value:.2f}"
        assert row["exponent"] == f"{growth(times['n'][6:], column[6:]):.2f}"
        assert row["labels"] == "one"


def check_lemma1(rows: list[dict[str, str]]) -> None:
    mean = np.mean([float(row["mean"]) for row in stored("eigenvalue-gap.csv")])
    assert rows[0]["paper, mean"] == f"{mean:.2e}" == f"{LEMMA1_MEAN:.2e}"


def check_programs(rows: list[dict[str, str]]) -> None:
    assert {row["paper"] for row in rows} == {f"fewer than {LP_COUNT}"}


CHECKS = {
    "Table 2: mean classification error, data sets: 17": check_table2,
    "Table 2 run by run": check_run_by_run,
    "Linear programs per run": check_programs,
    "Time over that of GDPA as published, min-max": check_time_ratios,
    "Stored time of SNS over stored time of GDPA, by every average": check_averages,
    "cod-rna: processor time (ms) by number of samples, the paper's full graph, N² weights": (
        check_cod_rna
    ),
    "Lemma 1: λmin(H) − λmin(H̄)": check_lemma1,
}


@pytest.mark.parametrize("title", CHECKS)
def test_the_authors_numbers_in_tables_are_the_stored_ones(title):
    CHECKS[title](tables(page_text())[title])


def test_every_table_with_the_authors_numbers_is_checked():
    theirs = set()
    for title, rows in tables(page_text()).items():
        names = [*rows[0], *(f"row {row['method']}" for row in rows if "method" in row)]
        if any(re.match("(paper|authors|row authors|times$)", name) for name in names):
            theirs.add(title)
    assert theirs == set(CHECKS)


def test_stored_files_are_those_of_the_reproduction():
    """The package's own copies are the stored files, number by number."""
    times = cod_rna()
    assert tuple(times["n"]) == COD_RNA_SIZES
    assert {c: tuple(times[c]) for c in ("GDPA", "SNS")} == COD_RNA_MS
    runs = stored("table2-per-run.csv")
    ours = author_runs()
    assert len(runs) == len(ours) == 1580
    for row in runs:
        run = ours[row["dataset"], row["rescaling"], int(row["fold"]), int(row["split"])]
        assert run.divisor == int(row["divisor"])
        for column in run.errors:
            assert run.errors[column] == int(row[f"{column} errors"])
            assert run.milliseconds[column] == float(row[f"{column} ms"])
