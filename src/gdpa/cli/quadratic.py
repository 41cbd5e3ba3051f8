"""``gdpa solve`` and ``gdpa certify`` for maximum cuts, QUBOs and Ising models."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..csv_text import csv_text
from ..problem import BinaryQuadratic
from ..solution import Solution
from ..tables.coupling_files import read_couplings
from .files import OutputFiles
from .output import Output, Stages

ProblemKind = Annotated[
    str | None,
    typer.Option(
        "--problem",
        help="max-cut, qubo or ising: GRAPH is then a Gset, Biq Mac, .qubo, Matrix Market or "
        "edge-list file of couplings, and there are no labels.",
    ),
]


def solve_quadratic(
    path: str,
    kind: str,
    method: str,
    options: dict[str, Any],
    format: str | None,
    out: str | None,
    output: Output,
    files: OutputFiles,
    raw: bool,
) -> None:
    """Solve the problem of a file; write the assignment and report value, bound and gap."""
    with Stages(output) as stages:
        stages.start("reading", path)
        problem, names = read_quadratic(path, kind, format)
        size = f"{problem.n_nodes} variables, {problem.n_edges} couplings"
        stages.start("solve", f"{method}, {size}")
        from ..solvers.registry import solve as run

        solution = run(problem, method, **options)
        output.converged &= solution.converged
        stages.start("writing")
        output.result = report(solution) | {
            "problem": kind,
            "variables": problem.n_nodes,
            "couplings": problem.n_edges,
            "seconds": dict(solution.seconds),
        }
        if out is not None or not output.json:
            columns = [list(names), [str(v) for v in solution.labels.tolist()]]
            files.text("--out", csv_text(["node", "value"], columns, raw=raw))
        else:
            output.result["assignment"] = dict(zip(names, solution.labels.tolist(), strict=True))
    output.note(
        f"{kind}: value {solution.value:.10g}, bound {solution.bound:.10g} "
        f"({solution.bound_status}), gap {100 * solution.relative_gap:.3g} %, {solution.method}"
    )


def certify_quadratic(
    path: str, kind: str, assignment: str | None, format: str | None, output: Output
) -> None:
    """Report how far an assignment, or the best that is found, is from a proved bound."""
    with Stages(output) as stages:
        stages.start("reading", path)
        problem, names = read_quadratic(path, kind, format)
        stages.start("bound")
        from ..solvers.registry import solve as run

        solution = run(problem)
        value = solution.value
        if assignment is not None:
            value = problem.value(read_assignment(assignment, names, problem))
        gap = abs(solution.bound - value)
        size = max(abs(solution.bound), abs(value), 1e-300)
        output.result = report(solution) | {
            "problem": kind,
            "assignment": assignment or f"solved by {solution.method}",
            "value": value,
            "gap": gap,
            "relative_gap": gap / size,
        }
    if not output.json:
        rows = [
            ["value", f"{value:.10g}"],
            ["bound", f"{solution.bound:.10g}"],
            ["gap", f"{gap:.6g} ({100 * gap / size:.3g} %)"],
            ["status", f"{solution.bound_status} by {solution.method}"],
        ]
        output.table(["quantity", "value"], rows)


def report(solution: Solution) -> dict[str, Any]:
    """What a solution says about itself, for JSON."""
    return {
        "method": solution.method,
        "sense": solution.sense,
        "value": solution.value,
        "bound": solution.bound,
        "bound_status": solution.bound_status,
        "gap": solution.gap,
        "relative_gap": solution.relative_gap,
        "converged": solution.converged,
        "message": solution.message,
    }


def read_quadratic(path: str, kind: str, format: str | None) -> tuple[BinaryQuadratic, list[str]]:
    """Read a file of couplings and state the problem; errors of the matrix name the file."""
    couplings = read_couplings(path, kind, format=format)
    try:
        if kind == "max-cut":
            problem = BinaryQuadratic.max_cut(couplings.matrix)
        elif kind == "qubo":
            problem = BinaryQuadratic.qubo(couplings.matrix)
        else:
            problem = BinaryQuadratic.ising(couplings.fields, couplings.matrix)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return problem, list(couplings.names)


def read_assignment(path: str, names: list[str], problem: BinaryQuadratic) -> NDArray[np.float64]:
    """Read ``node,value`` for every node, as ``gdpa solve`` writes it."""
    from ..tables.source import open_file
    from ..tables.table import TableError

    with open_file(path, path) as stream:
        lines = stream.read().decode("utf-8-sig").splitlines()
    cells = [line.replace(",", " ").split() for line in lines if line.strip()]
    known = {row[0]: row[1] for row in cells if len(row) >= 2}
    missing = [name for name in names if name not in known]
    if missing:
        raise TableError(f"{path} has no value for {len(missing)} nodes (the first: {missing[0]})")
    accepted = ("0", "1") if problem.domain == "binary" else ("-1", "1")
    wrong = [name for name in names if known[name].lstrip("+") not in accepted]
    if wrong:
        has = f"node {wrong[0]} has value {known[wrong[0]]}"
        raise TableError(f"{path}: {has}; accepted: {' and '.join(accepted)}")
    return np.array([float(known[name]) for name in names])
