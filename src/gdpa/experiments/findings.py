"""What holds, what does not and why, in words and with the numbers of the run at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .catalogue import EXPERIMENTS
from .store import Row

__all__ = ["WHY", "findings"]

# A reason and the test that backs it.
WHY: tuple[tuple[str, str], ...] = (
    (
        "The split dual does not see the labels. With w = (1, …, 1, 1, −1) the quadratic form w'H̄w "
        "is the dual objective plus a constant, so the objective has one lower bound for all "
        "labellings, and every weight a ≥ 0 of the labels reaches it.",
        "tests/docs/test_theory.py::test_fact1_the_split_dual_does_not_see_the_labels",
    ),
    (
        "For the combinatorial Laplacian the paper's start is optimal already; for the normalised "
        "one of its experiments it is not (off by 1'L1).",
        "tests/docs/test_theory.py::test_start_is_optimal_for_the_combinatorial_laplacian_only",
    ),
    (
        "Each linear program has a closed-form optimum, and a = 0 is always among its optimal "
        "points. A simplex solver returns just that: the labels are gone, and what is read off the "
        "first eigenvector is chance or one class. This is the row 'as written'.",
        "tests/docs/test_theory.py::test_fact2_closed_form_is_the_optimum_of_the_linear_program",
    ),
    (
        "In the authors' own runs the Laplacian is multiplied by 1e-15, far below the tolerance of "
        "their interior-point solver. The solver's rounding then dominates the graph, and the "
        "first eigenvector becomes the vote of the labelled neighbours, one step on the graph.",
        "tests/docs/test_theory.py::test_fact3_the_published_variant_is_the_vote",
    ),
    (
        "The modified dual by ADMM at the authors' tolerances is the vote wherever the diagonal of "
        "the unlabelled nodes ends above the smallest eigenvalue of the labelled part.",
        "tests/solvers/test_modified_dual.py::"
        "test_published_variant_is_the_vote_where_the_unlabelled_diagonal_is_above",
    ),
    (
        "The problem with non-negative weights is a minimum cut, so it is solved exactly in "
        "polynomial time; NP-hard is the signed case.",
        "tests/docs/test_theory.py::test_fact4_the_problem_is_a_minimum_cut",
    ),
    (
        "The default of this package recovers labels from a linear system instead of the first "
        "eigenvector, which has one class wherever the graph has no gap between the classes.",
        "tests/docs/test_theory.py::test_fact5_the_first_eigenvector_has_one_class_without_a_gap",
    ),
    (
        "The harmonic function stays within the box of GLR-box for the combinatorial Laplacian; "
        "for the normalised one of the paper's graphs it may leave it.",
        "tests/docs/test_theory.py::test_fact6_box_is_never_active_for_the_combinatorial_laplacian",
    ),
    (
        "The printed form of the relaxation (X_ii = 1 on unlabelled nodes only) is the weaker one.",
        "tests/docs/test_theory.py::test_printed_form_is_the_weaker_relaxation",
    ),
    (
        "colon-cancer with min-max re-scaling has 2,000 features in [0, 1]; the weights of its "
        "graph go down to 1e-253 and its system is singular to working precision. What a method "
        "answers there depends on the order of additions.",
        "tests/experiments/test_protocol.py::test_colon_cancer_min_max_is_beyond_double_precision",
    ),
    (
        "The authors divide the errors of each run by the size of the data set's last run; so do "
        "we, and the stored counts give the paper's means.",
        "tests/experiments/test_authors.py::test_stored_counts_give_the_papers_means",
    ),
)


def findings(rows: Mapping[str, Sequence[Row]]) -> list[tuple[str, list[str]]]:
    """Text of a report.

    Parameters
    ----------
    rows : mapping of str to sequence of Row
        Rows by experiment; what is not there is not spoken of.

    Returns
    -------
    list of (str, list of str)
        Headings with their paragraphs.
    """
    holds: list[str] = []
    fails: list[str] = []
    for name, found in rows.items():
        said = EXPERIMENTS[name].findings(found)
        holds += said.holds
        fails += said.fails
    text = []
    if holds:
        text.append(("What holds", holds))
    if fails:
        text.append(("What does not", fails))
    return [*text, ("Why, and the test that backs it", [f"{why} ({test})" for why, test in WHY])]
