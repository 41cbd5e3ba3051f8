"""``gdpa solve`` and ``gdpa certify`` for maximum cuts, QUBOs and Ising models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..csv_text import csv_text
from ..graph_files import Couplings, read_couplings, read_values
from ..problem import BinaryQuadratic
from ..solution import Solution
from .files import OutputFiles
from .options import GraphOptions
from .output import Output, Stages

if TYPE_CHECKING:
    from ..proof import Proof

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
    options: GraphOptions,
    settings: dict[str, Any],
    output: Output,
    files: OutputFiles,
    *,
    proof: str | None = None,
) -> None:
    """Solve the problem in a file; write the assignment and report value, bound and gap."""
    with Stages(output) as stages:
        stages.start("reading", options.graph)
        couplings, problem = read_quadratic(options)
        names = list(couplings.names)
        size = f"{problem.n_nodes} variables, {problem.n_edges} couplings"
        from ..solvers.registry import choose_method
        from ..solvers.registry import solve as run

        method = options.method
        if proof is not None and method == "auto":
            method = choose_method(problem, proof=True)
        stages.start("solve", f"{method}, {size}")
        solution = run(problem, method, callback=Progress(problem, stages), **settings)
        output.converged &= solution.converged
        stated = None
        if proof is not None:
            stages.start("proof")
            stated = _write_proof(str(options.problem), couplings, solution, files.path("--proof"))
        stages.start("writing")
        output.result = pick(solution, *REPORTED) | {
            "problem": options.problem,
            "variables": problem.n_nodes,
            "couplings": problem.n_edges,
            "seconds": dict(solution.seconds),
        }
        if stated is not None:
            output.result["proof"] = {"bound": str(stated.bound), "value": str(stated.value)}
        values = solution.labels.tolist()
        if options.out is not None or not output.json:
            columns = [names, list(map(str, values))]
            files.text("--out", csv_text(["node", "value"], columns))
        else:
            output.result["assignment"] = dict(zip(names, values, strict=True))
    output.note(
        f"{options.problem}: value {solution.value:.10g}, bound {solution.bound:.10g} "
        f"({solution.bound_status}), gap {100 * solution.relative_gap:.3g} %, {solution.method}"
    )
    if stated is not None:
        output.note(f"proof: value {stated.value}, bound {stated.bound}")


class Progress:
    """Shows value and bound while a problem is solved."""

    def __init__(self, problem: BinaryQuadratic, stages: Stages) -> None:
        self.sign = -1.0 if problem.sense == "maximise" else 1.0
        self.stages = stages

    def __call__(self, entry: Mapping[str, Any]) -> None:
        """Show one entry of the history."""
        numbers = [
            f"{name} {self.sign * entry[key]:.8g}"
            for name, key in (("value", "objective"), ("bound", "bound"))
            if key in entry
        ]
        self.stages.detail(", ".join(numbers))


def _write_proof(kind: str, couplings: Couplings, solution: Solution, path: Path) -> Proof:
    """Write the proof of a solution for the numbers in the file, without rounding."""
    from ..problem.cut_form import exact_cut_form
    from ..proof import prove

    form = exact_cut_form(kind, couplings.matrix, couplings.fields.tolist())
    proof = prove(form, solution, kind=kind)
    proof.save(path)
    return proof


def certify_quadratic(options: GraphOptions, assignment: str | None, output: Output) -> None:
    """Compare an assignment, or the best one found, with a proved bound."""
    with Stages(output) as stages:
        stages.start("reading", options.graph)
        couplings, problem = read_quadratic(options)
        names = list(couplings.names)
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


def read_quadratic(options: GraphOptions) -> tuple[Couplings, BinaryQuadratic]:
    """Read a file of couplings; return them and the problem."""
    if options.labels is not None:
        raise ValueError("--problem and --labels exclude each other")
    path = options.graph
    kind = str(options.problem)
    couplings = read_couplings(path, kind, format=options.format, delimiter=options.delimiter)
    try:
        if kind == "max-cut":
            problem = BinaryQuadratic.max_cut(couplings.matrix)
        elif kind == "qubo":
            problem = BinaryQuadratic.qubo(couplings.matrix)
        else:
            problem = BinaryQuadratic.ising(couplings.fields, couplings.matrix)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return couplings, problem


def read_assignment(path: str, names: list[str], problem: BinaryQuadratic) -> NDArray[np.float64]:
    """Return the value of every node from a file of ``node,value``."""
    accepted = ("0", "1") if problem.domain == "binary" else ("-1", "1")
    return np.array([float(value) for value in read_values(path, names, accepted)])
