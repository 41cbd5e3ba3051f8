"""The page of ``gdpa paper``: the paper's system on one table, step by step.

:func:`run_paper` computes everything that the page shows, :func:`render_paper` writes it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..errors import MissingExtraError, UnsupportedProblemError
from ..gershgorin import Discs, discs
from ..graph import full_graph, neighbor_graph
from ..intervals import share_interval
from ..linalg import first_eigenvector
from ..plotting.layout import Picture, picture
from ..problem import GraphProblem
from ..problem.dual import DualVariables, build_H, build_H_bar, dual_objective
from ..solution import Solution
from ..solvers.registry import solve
from ..version import __version__
from . import charts
from .page import environment

REPAIRED: Mapping[str, Any] = {"start": "optimal", "label_weight": "auto"}
AS_WRITTEN = "as written"
HEAVY_LABELS = "heavy labels"
# The two runs whose linear programs the page shows.
LOOPS: Mapping[str, Mapping[str, Any]] = {
    AS_WRITTEN: {"lp": "highs", "sign": "first"},
    HEAVY_LABELS: {**REPAIRED, "recovery": "auto"},
}
EIGENVECTOR = "GDPA, first eigenvector, heavy labels"
SLACKNESS = "GDPA, complementary slackness"
CHOSEN = "GDPA, recovery chosen by the theorem"
# Name on the page, method, and its options.
METHODS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("GDPA as written", "gdpa", LOOPS[AS_WRITTEN]),
    ("GDPA as published", "gdpa-published", {}),
    (EIGENVECTOR, "gdpa", REPAIRED),
    (SLACKNESS, "gdpa", {**REPAIRED, "recovery": "linear"}),
    (CHOSEN, "gdpa", LOOPS[HEAVY_LABELS]),
    ("harmonic function", "harmonic", {}),
    ("one-step vote", "vote", {}),
    ("SDR, interior point", "sdr-interior-point", {}),
    ("SDR, ADMM", "sdr-admm", {}),
    ("modified dual, ADMM", "modified-dual-admm", {}),
    ("SDcut", "sdcut", {}),
    ("BCR", "bcr", {}),
    ("SNS", "sns", {}),
    ("GLR-box", "glr-box", {}),
    ("exact minimum cut", "min-cut", {}),
)
GRAPHS = ("knn", "full")
# A method is timed three times unless the first run takes longer than this (seconds).
SLOW = 0.5
DRAWN_DISCS = 40
WRONG = 5  # colour and shape of wrong labels


@dataclass(frozen=True)
class Program:
    """One linear program of the loop.

    Parameters
    ----------
    loop : str
        Which of the two runs it belongs to.
    number : int
        Number of the program in that run.
    before, after : float
        Objective before and after the program.
    lambda_H, lambda_H_bar : float
        Smallest eigenvalues of H and H_bar before the program.
    weights : tuple of float
        Smallest and largest label weight a after the program.
    discs, aligned : Discs
        Discs of H_bar before the program, without and with alignment.
    """

    loop: str
    number: int
    before: float
    after: float
    lambda_H: float
    lambda_H_bar: float
    weights: tuple[float, float]
    discs: Discs
    aligned: Discs


@dataclass(frozen=True)
class MethodRow:
    """Result of one method.

    Parameters
    ----------
    name, program : str
        Name on the page, and what was run.
    solution : Solution
        The result.
    errors : int
        Wrong labels among the held-out ones.
    milliseconds : float
        Median processor time of the solve.
    """

    name: str
    program: str
    solution: Solution
    errors: int
    milliseconds: float


@dataclass(frozen=True)
class PaperResult:
    """Everything that the page shows.

    Parameters
    ----------
    problem : GraphProblem
        Graph and given labels.
    truth : ndarray of int8
        Known labels, given or held out; 0 where there is none.
    hidden : ndarray of bool
        Which known labels were held out.
    programs : tuple of Program
        The linear programs of both runs.
    rows : tuple of MethodRow
        The methods.
    missing : tuple of str
        Methods that could not run, with the reason.
    optimum : float
        Smallest objective of any labelling, by minimum cut.
    kappa : tuple of float
        Degrees of the two halves of the last node, at the starting point of the paper.
    picture : Picture
        Positions for the drawings.
    """

    problem: GraphProblem
    truth: NDArray[np.int8]
    hidden: NDArray[np.bool_]
    programs: tuple[Program, ...]
    rows: tuple[MethodRow, ...]
    missing: tuple[str, ...]
    optimum: float
    kappa: tuple[float, float]
    picture: Picture

    def row(self, name: str) -> MethodRow:
        """Return the row of a method by its name on the page."""
        return next(row for row in self.rows if row.name == name)


def hold_out(truth: NDArray[np.int8], random_state: int = 0) -> NDArray[np.bool_]:
    """Return which labels are held out: half of each class, at random, as in the paper.

    Parameters
    ----------
    truth : ndarray of shape (n_rows,)
        Known labels +1 and -1, and 0 where unknown.
    random_state : int, default=0
        Random seed.
    """
    rng = np.random.default_rng(random_state)
    hidden = np.zeros(truth.size, dtype=bool)
    for sign in (-1, 1):
        members = np.flatnonzero(truth == sign)
        if members.size < 2:
            raise ValueError(f"each class needs at least two labels, one has {members.size}")
        hidden[rng.permutation(members)[: members.size // 2]] = True
    return hidden


def run_paper(
    X: FloatArray,
    truth: NDArray[np.int8],
    hidden: NDArray[np.bool_],
    *,
    graph: str = "knn",
    n_neighbors: int = 10,
    progress: Callable[[str], object] | None = None,
) -> PaperResult:
    """Run the paper's system and the methods it is compared with.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Features on comparable scales.
    truth : ndarray of shape (n_rows,)
        Known labels +1 and -1, and 0 where unknown.
    hidden : ndarray of bool of shape (n_rows,)
        Which of them are held out (:func:`hold_out`); no method sees these.
    graph : {"knn", "full"}, default="knn"
        Graph of nearest neighbours, or the paper's graph of all pairs.
    n_neighbors : int, default=10
        Neighbours per row.
    progress : callable, optional
        Called with the name of each method before it runs.
    """
    labels = np.where(hidden, 0, truth).astype(np.int8)
    near = neighbor_graph(X, min(n_neighbors, truth.size - 1))
    W = near if graph == "knn" else full_graph(X, bandwidth=1.0)
    problem = GraphProblem(W, labels, laplacian="normalized")
    show = progress or (lambda _: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        programs: list[Program] = []
        for name, options in LOOPS.items():
            show(f"linear programs, {name}")
            programs += _programs(problem, name, options)
        rows, missing = _compare(problem, truth, hidden, show)
        optimum = solve(problem, "min-cut").objective
    apart = labels[labels != 0]
    return PaperResult(
        problem=problem,
        truth=truth,
        hidden=hidden,
        programs=tuple(programs),
        rows=tuple(rows),
        missing=tuple(missing),
        optimum=optimum,
        kappa=(float((apart > 0).sum()), float((apart < 0).sum())),
        picture=picture(near, X, keep=np.flatnonzero(labels), most=300),
    )


def _programs(problem: GraphProblem, loop: str, options: Mapping[str, Any]) -> list[Program]:
    """Run the loop and return its linear programs."""
    part = problem if problem.reached.all() else problem.restricted(problem.reached)
    found: list[Program] = []

    def watch(entry: Mapping[str, Any]) -> None:
        now = DualVariables(y=entry["y"], z=entry["z"])
        H_bar = build_H_bar(part, now)
        weights = np.abs(entry["z_next"])
        found.append(
            Program(
                loop=loop,
                number=entry["iteration"],
                before=dual_objective(part, now),
                after=entry["objective"],
                lambda_H=first_eigenvector(build_H(part, now)).value,
                lambda_H_bar=first_eigenvector(H_bar).value,
                weights=(float(weights.min()), float(weights.max())),
                discs=discs(H_bar),
                aligned=entry["discs"],
            )
        )

    solve(part, "gdpa", callback=watch, **options)
    return found


def _compare(
    problem: GraphProblem,
    truth: NDArray[np.int8],
    hidden: NDArray[np.bool_],
    show: Callable[[str], object],
) -> tuple[list[MethodRow], list[str]]:
    """Run every method that can run; return the rows, and the others with the reason."""
    rows: list[MethodRow] = []
    missing: list[str] = []
    for name, method, options in METHODS:
        show(name)
        try:
            solution, milliseconds = _timed(problem, method, options)
        except (MissingExtraError, UnsupportedProblemError) as error:
            missing.append(f"{name}: {error}")
            continue
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        rows.append(
            MethodRow(
                name=name,
                program=f"{method}({given})",
                solution=solution,
                errors=int((solution.labels != truth)[hidden].sum()),
                milliseconds=milliseconds,
            )
        )
    return rows, missing


def _timed(
    problem: GraphProblem, method: str, options: Mapping[str, Any]
) -> tuple[Solution, float]:
    """Return the solution and the median processor time in milliseconds, after a warm-up."""
    seconds: list[float] = []
    while len(seconds) < 4:  # the first run imports and is not counted if there are others
        fresh = problem.with_labels(problem.labels)  # nothing is cached
        start = time.process_time()
        solution = solve(fresh, method, **options)
        seconds.append(time.process_time() - start)
        if seconds[0] > SLOW:
            break
    return solution, 1000.0 * float(np.median(seconds[1:] or seconds))


def render_paper(
    result: PaperResult,
    *,
    title: str,
    classes: Sequence[str],
    asked: Mapping[str, str],
    command: str,
    notes: Sequence[str] = (),
) -> str:
    """Return the page as self-contained HTML without scripts.

    Parameters
    ----------
    result : PaperResult
        What was computed.
    title : str
        Heading of the page.
    classes : sequence of str
        Names of the classes +1 and -1.
    asked : mapping
        Data and settings, for the last section.
    command : str
        Command that writes the page again.
    notes : sequence of str
        Remarks about the data.
    """
    chosen = result.row(CHOSEN)
    total = int(result.hidden.sum())
    loops = {
        name: [
            {"program": p, "before": _discs(p, p.discs), "after": _discs(p, p.aligned)}
            for p in result.programs
            if p.loop == name
        ]
        for name in LOOPS
    }
    fastest = chosen.milliseconds
    page = (
        environment()
        .get_template("paper.html")
        .render(
            title=title,
            result=result,
            chosen=chosen,
            total=total,
            classes=list(classes),
            interval=share_interval(chosen.errors, total, 0.95),
            given=_labels_picture(result, result.problem.labels),
            balanced=_balanced(result),
            labelings=[
                (name, _labels_picture(result, result.row(name).solution.labels))
                for name in (EIGENVECTOR, SLACKNESS)
            ],
            loops=loops,
            as_written=AS_WRITTEN,
            errors=[
                (
                    row.name,
                    row.program,
                    f"{row.errors} of {total}",
                    f"{100 * row.errors / total:.1f} %",
                    f"{row.solution.objective:.4g}",
                    f"{row.solution.objective - result.optimum:.3g}",
                    _bound(row.solution),
                )
                for row in result.rows
            ],
            times=[
                (row.name, f"{row.milliseconds:.3g}", f"{row.milliseconds / fastest:.3g}")
                for row in sorted(result.rows, key=lambda row: row.milliseconds)
            ],
            asked=asked,
            command=command,
            notes=list(notes),
            version=__version__,
            shapes=charts.SHAPES,
            wrong=WRONG,
        )
    )
    return page.lstrip() + "\n"


def _bound(solution: Solution) -> str:
    """Return the proved bound and what it bounds."""
    if not np.isfinite(solution.lower_bound):
        return "none"
    return f"{solution.lower_bound:.4g} ({solution.bound_kind}, {solution.bound_status})"


def _discs(program: Program, shown: Discs) -> charts.Chart:
    """Lay out some discs of a program, on the same axis before and after alignment."""
    order = np.argsort(program.discs.left_ends, kind="stable")
    steps = np.linspace(0, order.size - 1, min(order.size, DRAWN_DISCS))
    rows = order[steps.round().astype(np.intp)]
    ends = np.concatenate([program.discs.left_ends[rows], program.aligned.left_ends[rows]])
    # Discs of labels and halves reach far to the right: the axis shows those of other rows whole.
    right = float(np.quantile(program.aligned.right_ends, 0.25))
    return charts.intervals(
        shown.left_ends[rows],
        shown.right_ends[rows],
        low=min(float(ends.min()), 0.0),
        high=max(right, float(ends.max())),
        mark=program.lambda_H_bar,
    )


def _labels_picture(result: PaperResult, labels: NDArray[np.int8]) -> charts.Chart:
    """Draw the graph with labels; held-out labels that are wrong have a colour of their own."""
    nodes = result.picture.nodes
    kinds = np.where(labels > 0, 0, np.where(labels < 0, 1, 7))
    wrong = result.hidden & (labels != 0) & (labels != result.truth)
    kinds[wrong] = WRONG
    given = result.problem.labels[nodes] != 0
    return charts.graph(result.picture.positions, result.picture.edges, kinds[nodes], given)


def _balanced(result: PaperResult) -> charts.Chart:
    """Draw the graph of H_bar: the nodes, the two halves of the last node, and their edges."""
    labels = result.problem.labels[result.picture.nodes]
    below = result.picture.positions * [1.0, 0.82] + [0.0, 0.18]
    chart = charts.graph(
        below,
        result.picture.edges,
        np.where(labels > 0, 0, np.where(labels < 0, 1, 7)),
        labels != 0,
    )
    halves = {"plus": (0.2, 0.03, labels > 0), "minus": (0.8, 0.03, labels < 0)}
    chart["halves"] = [
        charts.star(name, (x, y), below[members]) for name, (x, y, members) in halves.items()
    ]
    return chart
