"""The authors' stored results: they give the paper's means, and the vote's place among them."""

from __future__ import annotations

import numpy as np
import pytest

import gdpa
from reproduction.authors import COLUMNS, author_errors, author_runs, author_times
from reproduction.datasets import SHIPPED
from reproduction.methods import METHODS
from reproduction.protocol import PAPER_DATASETS, RESCALINGS, fold_count, paper_problems
from reproduction.published import TABLE2_MEANS


def test_there_is_one_row_per_run_of_the_protocol():
    runs = author_runs()
    expected = {
        (name, r, fold, split)
        for r in RESCALINGS
        for name in PAPER_DATASETS
        for fold in range(fold_count(name, r))
        for split in range(1, 11)
    }
    assert set(runs) == expected
    assert len(runs) == 1580
    for run in runs.values():
        assert set(run.errors) == set(run.milliseconds) == set(COLUMNS)
        assert all(0 <= count <= run.divisor + 2 for count in run.errors.values())


def test_stored_counts_give_the_papers_means():
    columns = {spec.paper: spec.column for spec in METHODS.values() if spec.paper}
    assert set(columns) == set(TABLE2_MEANS)
    for name, printed in TABLE2_MEANS.items():
        column = columns[name]
        for rescaling, value in zip(RESCALINGS, printed, strict=True):
            found = np.mean(list(author_errors(rescaling, column).values()))
            assert found == pytest.approx(value, abs=0.006)


def test_stored_times_are_positive_for_every_set():
    for column in COLUMNS:
        times = author_times("min-max", column)
        assert set(times) == set(PAPER_DATASETS)
        assert min(times.values()) > 0


def vote_errors(run) -> int:
    scale = 1.0 / np.sqrt(run.W.sum(axis=1))
    A = run.W * scale[:, None] * scale
    vote = A[np.ix_(run.unlabeled, run.labeled)] @ run.y[run.labeled]
    return int(np.count_nonzero(np.where(vote >= 0, 1, -1) != run.y[run.unlabeled]))


@pytest.mark.slow
def test_the_vote_is_their_sdcut_and_nearly_their_gdpa(paper_set):
    """On all runs of the sets at hand everywhere; all of them: 1558 and 1450 of 1560."""
    equal, runs = {"SDcut": 0, "GDPA": 0}, 0
    for name in sorted(SHIPPED):
        for rescaling in RESCALINGS:
            for run in paper_problems(paper_set(name), rescaling):
                theirs = author_runs()[name, rescaling, run.fold, run.split].errors
                errors = vote_errors(run)
                runs += 1
                for column in equal:
                    equal[column] += errors == theirs[column]
    assert runs == 1060
    assert equal["SDcut"] >= runs - 2
    assert 0.85 * runs < equal["GDPA"] < 0.97 * runs


def test_most_of_the_published_presets_difference_is_colon_cancer(paper_set):
    """0.66 of 0.85 points with min-max; which of 31 samples err there is the processor's choice."""
    errors = [
        100.0
        * (
            run.errors(gdpa.solve(run.problem(), "gdpa-published").labels)
            - author_runs()["colon-cancer", "min-max", run.fold, run.split].errors["GDPA"]
        )
        / run.n_unlabeled
        for run in paper_problems(paper_set("colon-cancer"), "min-max")
    ]
    share = np.mean(errors) / len(PAPER_DATASETS)
    assert -1.0 < share < -0.3


def test_their_cdcs_on_the_modified_dual_is_the_votes_twin_in_three_of_four_runs():
    runs = [r for k, r in author_runs().items() if k[0] != "colon-cancer"]
    equal = sum(r.errors["CDCS-20"] == r.errors["SDcut"] for r in runs)
    assert (equal, len(runs)) == (1158, 1560)
