"""``gdpa solve`` and ``gdpa certify`` for maximum cuts, QUBOs and Ising models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..csv_text import csv_text
from ..problem import BinaryQuadratic
from ..tables.coupling_files import read_couplings
from .files import OutputFiles
from .options import GraphOptions
from .output import Output, Stages

REPORTED = (
    *("method", "sense", "value", "bound", "bound_status", "gap", "relative_gap"),
    *("converged", "message"),
)


def pick(record: object, *names: str) -> dict[str, Any]:
    """Return these attributes of a record, for JSON."""
    return {name: getattr(record, name) for name in names}


def print_gap(
    output: Output, value: tuple[str, float], bound: tuple[str, float], gap: str, status: str
) -> None:
    """Print a value, its bound and the gap between them as a table, unless JSON is written."""
    if not output.json:
        rows = [[name, f"{number:.10g}"] for name, number in (value, bound)]
        output.table(["quantity", "value"], [*rows, ["gap", gap], ["status", status]])


def solve_quadratic(
    options: GraphOptions, settings: dict[str, Any], output: Output, files: OutputFiles
) -> None:
    """Solve the problem in a file; write the assignment and report value, bound and gap."""
    with Stages(output) as stages:
        stages.start("reading", options.graph)
        problem, names = read_quadratic(options)
        size = f"{problem.n_nodes} variables, {problem.n_edges} couplings"
        stages.start("solve", f"{options.method}, {size}")
        from ..solvers.registry import solve as run

        solution = run(problem, options.method, **settings)
        output.converged &= solution.converged
        stages.start("writing")
        output.result = pick(solution, *REPORTED) | {
            "problem": options.problem,
            "variables": problem.n_nodes,
            "couplings": problem.n_edges,
            "seconds": dict(solution.seconds),
        }
        values = solution.labels.tolist()
        if options.out is not None or not output.json:
            columns = [names, list(map(str, values))]
            files.text("--out", csv_text(["node", "value"], columns, raw=options.raw))
        else:
            output.result["assignment"] = dict(zip(names, values, strict=True))
    output.note(
        f"{options.problem}: value {solution.value:.10g}, bound {solution.bound:.10g} "
        f"({solution.bound_status}), gap {100 * solution.relative_gap:.3g} %, {solution.method}"
    )


def certify_quadratic(options: GraphOptions, assignment: str | None, output: Output) -> None:
    """Compare an assignment, or the best one found, with a proved bound."""
    with Stages(output) as stages:
        stages.start("reading", options.graph)
        problem, names = read_quadratic(options)
        stages.start("bound")
        from ..solvers.registry import solve as run

        solution = run(problem)
        value = solution.value
        if assignment is not None:
            value = problem.value(read_assignment(assignment, names, problem))
        gap = abs(solution.bound - value)
        relative_gap = gap / max(abs(solution.bound), abs(value), 1e-300)
        output.result = pick(solution, *REPORTED) | {
            "problem": options.problem,
            "assignment": assignment or f"solved by {solution.method}",
            "value": value,
            "gap": gap,
            "relative_gap": relative_gap,
        }
    print_gap(
        output,
        ("value", value),
        ("bound", solution.bound),
        f"{gap:.6g} ({100 * relative_gap:.3g} %)",
        f"{solution.bound_status} by {solution.method}",
    )


def read_quadratic(options: GraphOptions) -> tuple[BinaryQuadratic, list[str]]:
    """Read a file of couplings; return the problem and the names of the nodes."""
    if options.labels is not None:
        raise ValueError("--problem and --labels exclude each other")
    path, kind = options.graph, str(options.problem)
    couplings = read_couplings(path, kind, format=options.format)
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
    """Return the value of every node from a file of ``node,value``."""
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
