"""The report of a run: whole, self-contained, and honest about fewer runs."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from reproduction.authors import author_runs
from reproduction.config import Config
from reproduction.experiments import EXPERIMENTS
from reproduction.methods import has_licence
from reproduction.protocol import PAPER_DATASETS, RESCALINGS
from reproduction.published import TABLE2_MEANS
from reproduction.report import include_parts, render_html
from reproduction.run import reproduce
from reproduction.store import Row
from reproduction.tables import Table

pytestmark = pytest.mark.slow

SMALL = Config(methods=("vote", "harmonic", "gdpa-published"), datasets=("liver-disorders",))


class _Outside(HTMLParser):
    """Collects every address that a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        self.addresses += [v or "" for k, v in attributes if k in ("src", "href", "srcset")]


def test_report_is_whole_and_refers_to_nothing_outside(tmp_path, data_home):
    config = Config(methods=("vote", "gdpa"), datasets=("liver-disorders", "sonar"))
    done = reproduce(["table2", "runtime", "bound"], out=tmp_path, config=config)
    page = done.report.read_text(encoding="utf-8")
    parser = _Outside()
    parser.feed(page)
    assert parser.scripts == 0
    assert all(a.startswith(("#", "data:image/png;base64,", "data:,")) for a in parser.addresses)
    assert "http:" not in re.sub(r'src="data:[^"]*"', "", page)
    assert "https:" not in page
    for name in ("table2-means", "table2-min-max-gdpa", "runtime-gdpa", "bound"):
        assert (tmp_path / "tables" / f"{name}.csv").stat().st_size > 0
    for name in ("runtime", "bound"):
        assert (tmp_path / "figures" / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert "<svg" in (tmp_path / "figures" / f"{name}.svg").read_text()
    facts = json.loads((tmp_path / "environment.json").read_text())
    assert {"gdpa", "numpy", "processor", "commit", "date"} <= set(facts)
    text = (tmp_path / "report.md").read_text()
    tables = text.count("\n### ")
    assert tables > 5
    stamp = f"*commit {facts['commit']}, {facts['date']}, gdpa {facts['gdpa']}, numpy"
    assert text.count(stamp) == tables  # under every table
    assert page.count(stamp[1:]) == tables
    assert facts["commit"] in (tmp_path / "tables" / "PROVENANCE.txt").read_text()
    for svg in (tmp_path / "figures").glob("*.svg"):
        assert f"commit {facts['commit']}" in svg.read_text()


def test_page_for_the_documents_has_its_figures_beside_it(tmp_path, data_home):
    docs = tmp_path / "docs"
    config = Config(methods=("vote", "gdpa"), datasets=("liver-disorders",))
    reproduce(["runtime"], out=tmp_path / "out", config=config, docs=docs)
    text = (docs / "REPRODUCTION.md").read_text()
    assert re.findall(r"!\[\w+\]\((\S+)\)", text) == ["reproduction/runtime.svg"]
    assert "<svg" in (docs / "reproduction" / "runtime.svg").read_text()
    beside = (docs / "reproduction" / "runtime.md").read_text()
    assert "## Running time by problem size (ms): the authors' stored times" in beside
    assert "the authors' stored times\n" not in text
    assert "(reproduction/runtime.md)" in text


def test_a_hand_written_page_keeps_its_words():
    page = "# Page\n\nFound by hand.\n\n<!-- a -->\nold\n<!-- /a -->\n\nThe end.\n"
    once = include_parts(page, {"a": "new\n", "b": "more\n"})
    assert "old" not in once
    assert once.index("by hand") < once.index("new") < once.index("The end.") < once.index("more")
    assert include_parts(once, {"a": "new\n", "b": "more\n"}) == once


def test_text_of_a_failure_cannot_become_markup(tmp_path):
    evil = "<script>alert(1)</script> | & \n\"'"
    table = Table("t", "title", ("a", "b"), ((evil, 1),), (evil,))
    page = render_html(table.to_markdown(evil), tmp_path)
    assert "<script" not in page
    lines = table.to_markdown().splitlines()
    assert lines[4].count("|") - lines[4].count("\\|") == 3  # two cells, on one line


def test_a_mean_over_fewer_sets_is_not_set_beside_the_papers(tmp_path, data_home):
    reproduce(["table2"], out=tmp_path, config=SMALL)
    with (tmp_path / "tables" / "table2-means.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 3
    for row in rows:
        assert row["paper, min-max"] == ""
        assert float(row["ours, min-max"]) > 0
        stored = [r for k, r in author_runs().items() if k[:2] == ("liver-disorders", "min-max")]
        if row["method"].startswith("GDPA"):  # one split, beside the same split of the authors
            first = [r for k, r in author_runs().items()
                     if k[:2] == ("liver-disorders", "min-max") and k[3] == 1]  # fmt: skip
            expected = np.mean([100.0 * r.errors["GDPA"] / r.divisor for r in first])
            assert len(stored) == 10 * len(first)
            assert float(row["authors, same runs, min-max"]) == pytest.approx(expected)


def test_methods_with_fewer_runs_are_compared_on_common_runs_only():
    def rows(method, split, errors):
        values = {"errors": errors, "denominator": 50, "iterations": 1, "largest_score": 0.0}
        return [
            Row("table2", {"dataset": d, "rescaling": r, "fold": 0, "split": split,
                           "method": method}, "ok", values)
            for r in RESCALINGS
            for d in PAPER_DATASETS
        ]  # fmt: skip

    made = rows("vote", 1, 10) + rows("vote", 2, 40) + rows("svc", 1, 5)
    tables = {t.name: t for t in EXPERIMENTS["table2"].tables(made)}
    assert {r[0]: r[1:] for r in tables["table2-common"].rows} == {
        "One-step vote": (20.0, 20.0),
        "SVC, rbf": (10.0, 10.0),
    }
    means = {row[0]: row[4] for row in tables["table2-means"].rows}
    assert means == {"One-step vote": 50.0, "SVC, rbf": 10.0}
    point = EXPERIMENTS["table2"].tables(rows("sdr-interior-point", 1, 10))[0]
    if not has_licence("sdr-mosek"):  # our interior point beside MOSEK's stored counts
        mosek = next(row for row in point.rows if row[1] == "MOSEK")
        assert mosek[4] == 20.0
        assert mosek[2] == TABLE2_MEANS["MOSEK"][0]
    same = EXPERIMENTS["table2"].tables(rows("vote", 1, 10) + rows("svc", 1, 5))
    assert "table2-common" not in {t.name for t in same}
