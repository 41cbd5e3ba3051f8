"""``gdpa solve``: label the nodes of a graph by a method of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..csv_text import csv_text
from ..graph.convert import NamedGraph
from ..solution import Solution
from ..tables.graph_files import NodeLabels
from .files import OutputFiles
from .options import Delimiter, Json, Method, Out, Quiet, RawCells, parse_options
from .output import Output, Stages
from .quadratic import ProblemKind, solve_quadratic

GraphFile = Annotated[
    str, typer.Argument(help="Matrix Market, edge-list CSV, NPZ or GraphML; - is an edge list.")
]
KnownLabels = Annotated[
    str | None,
    typer.Option("--labels", "-l", help="CSV node,label; or one label per line, empty: unknown."),
]
GraphFormat = Annotated[
    str | None, typer.Option("--format", help="mtx, csv, npz or graphml; told by the ending.")
]
Laplacian = Annotated[
    str, typer.Option("--laplacian", help="combinatorial or normalized: what smoothness means.")
]
Unlabeled = Annotated[
    str | None, typer.Option("--unlabeled", help="What marks an unknown label, besides empty.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("solve")(solve)


def solve(
    graph: GraphFile,
    labels: KnownLabels = None,
    problem: ProblemKind = None,
    method: Method = "auto",
    out: Out = None,
    laplacian: Laplacian = "combinatorial",
    option: Annotated[
        list[str] | None,
        typer.Option("--option", help="Option of the method, NAME=VALUE; may be repeated."),
    ] = None,
    unlabeled: Unlabeled = None,
    format: GraphFormat = None,
    delimiter: Delimiter = None,
    json: Json = False,
    quiet: Quiet = False,
    raw: RawCells = False,
) -> None:
    """Label all nodes of a GRAPH from a few LABELS, or solve a max-cut, QUBO or Ising PROBLEM.

    Writes CSV: node, label, score. Nodes are called what the file calls them; rows of a matrix
    count from 1 in Matrix Market and from 0 in NPZ.
    """
    inputs = [graph, *([labels] if labels else [])]
    with Output("solve", json=json, quiet=quiet) as output, OutputFiles(*inputs) as files:
        options = parse_options(option or [])
        files.claim("--out", out)
        if problem is not None:
            refuse_labels(labels)
            solve_quadratic(graph, problem, method, options, format, out, output, files, raw)
            return
        with Stages(output) as stages:
            stages.start("reading", graph)
            network, known, stated = read_problem(
                graph, labels, laplacian, unlabeled, format, delimiter
            )
            stages.start("solve", f"{method}, {stated.n_nodes} nodes, {stated.n_edges} edges")
            from ..solvers.registry import solve as run

            asked = range(1, 2) if len(known.classes) == 2 else range(len(known.classes))
            solutions = [
                run(stated.with_labels(known.against_rest(c)), method, **options) for c in asked
            ]
            output.converged &= all(s.converged for s in solutions)
            stages.start("writing")
            labeling = Labeling.of(known, solutions)
            output.result = summary(solutions[0], known)
            if len(solutions) > 1:
                output.result |= against_rest(solutions, known)
            output.result |= {"nodes": stated.n_nodes, "edges": stated.n_edges}
            output.result |= {"labeled": stated.n_labeled, "seconds": spent(solutions)}
            if out is not None or not json:
                files.text("--out", labeling.csv(network, known, raw=raw))
            else:
                output.result["labeling"] = [
                    {"node": str(node), "label": label, "score": float(score)}
                    for node, label, score in labeling.rows(network, known)
                ]
        for solution in solutions:
            output.note(str(solution))


def refuse_labels(labels: str | None) -> None:
    """--problem and --labels exclude each other."""
    if labels is not None:
        raise ValueError("--problem takes no --labels: couplings are all there is")


def read_problem(
    graph: str,
    labels: str | None,
    laplacian: str,
    unlabeled: str | None,
    format: str | None,
    delimiter: str | None,
) -> tuple[NamedGraph, NodeLabels, Any]:
    """Read a graph and the known labels, and state the problem."""
    from ..problem import GraphProblem
    from ..tables import read_graph, read_labels

    if labels is None:
        raise ValueError("--labels is needed (or --problem max-cut, qubo or ising)")
    if graph == "-" and labels == "-":
        raise ValueError("GRAPH and --labels cannot both be read from standard input")
    network = read_graph(graph, format=format, delimiter=delimiter)
    known = read_labels(labels, network, unlabeled=unlabeled, delimiter=delimiter)
    return network, known, GraphProblem(network.W, known.signs, laplacian=laplacian)


def summary(solution: Solution, known: NodeLabels) -> dict[str, Any]:
    """What a solution says about itself, for JSON."""
    return {
        "method": solution.method,
        "classes": dict(zip(("-1", "+1"), known.classes, strict=False)),
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "bound_status": solution.bound_status,
        "bound_kind": solution.bound_kind,
        "gap": solution.gap,
        "iterations": solution.iterations,
        "converged": solution.converged,
        "message": solution.message,
        "unreached": int(solution.unreached.size),
    }


def against_rest(solutions: list[Solution], known: NodeLabels) -> dict[str, Any]:
    """The same for several classes, each against the rest."""
    return {
        "classes": list(known.classes),
        "objective": float(sum(s.objective for s in solutions)),
        "lower_bound": float(sum(s.lower_bound for s in solutions)),
        "gap": None,
        "iterations": max(s.iterations for s in solutions),
        "converged": all(s.converged for s in solutions),
        "against_rest": {
            name: summary(s, known) | {"classes": {"-1": "rest", "+1": name}}
            for name, s in zip(known.classes, solutions, strict=True)
        },
    }


def spent(solutions: list[Solution]) -> dict[str, float]:
    """Time per stage over all solutions."""
    total: dict[str, float] = {}
    for solution in solutions:
        for stage, seconds in solution.seconds.items():
            total[stage] = total.get(stage, 0.0) + seconds
    return total


@dataclass(frozen=True)
class Labeling:
    """Class and score of every node: of two classes by sign, of several the largest score."""

    codes: NDArray[np.intp]
    scores: NDArray[np.float64]

    @classmethod
    def of(cls, known: NodeLabels, solutions: list[Solution]) -> Labeling:
        """From one solution of two classes, or one per class against the rest."""
        if len(solutions) == 1:
            return cls((solutions[0].labels > 0).astype(np.intp), solutions[0].scores)
        scores = np.stack([s.scores for s in solutions], axis=1)
        codes = scores.argmax(axis=1)
        given = known.codes >= 0
        codes[given] = known.codes[given]
        return cls(codes, scores[np.arange(codes.size), codes])

    def rows(self, network: NamedGraph, known: NodeLabels) -> Iterator[tuple[Any, str, float]]:
        """Node, label and score."""
        return zip(network.nodes, known.names(self.codes), self.scores.tolist(), strict=True)

    def csv(self, network: NamedGraph, known: NodeLabels, *, raw: bool = False) -> str:
        """The labelling as CSV: node, label, score."""
        rows = [(str(n), label, f"{s:.8g}") for n, label, s in self.rows(network, known)]
        columns = [list(column) for column in zip(*rows, strict=True)]
        return csv_text(["node", "label", "score"], columns, raw=raw)
