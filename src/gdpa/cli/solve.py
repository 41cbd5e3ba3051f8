"""``gdpa solve``: label the nodes of a graph by a method of the registry."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..graph.convert import NamedGraph
from ..solution import Solution
from ..tables.graph_files import NodeLabels
from .cells import csv_text
from .files import OutputFiles
from .options import Delimiter, Json, Method, Out, Quiet, RawCells, parse_options
from .output import Output
from .progress import Stages

__all__ = ["GraphFile", "GraphFormat", "KnownLabels", "Laplacian", "Unlabeled", "register"]

GraphFile = Annotated[
    str, typer.Argument(help="Matrix Market, edge-list CSV, NPZ or GraphML; - is an edge list.")
]
KnownLabels = Annotated[
    str,
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
    labels: KnownLabels,
    method: Method = "gdpa",
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
    """Label all nodes of a GRAPH from a few LABELS.

    Writes CSV: node, label, score. Nodes are called what the file calls them; rows of a matrix
    count from 1 in Matrix Market and from 0 in NPZ.
    """
    with Output("solve", json=json, quiet=quiet) as output, OutputFiles(graph, labels) as files:
        options = parse_options(option or [])
        files.claim("--out", out)
        with Stages(output, 3) as stages:
            stages.start("reading", graph)
            network, known, problem = read_problem(
                graph, labels, laplacian, unlabeled, format, delimiter
            )
            stages.start("solve", f"{method}, {problem.n_nodes} nodes, {problem.n_edges} edges")
            from ..solvers.registry import solve as run

            solution = run(problem, method, **options)
            output.converged &= solution.converged
            stages.start("writing")
            output.result = summary(solution, known)
            output.result |= {"nodes": problem.n_nodes, "edges": problem.n_edges}
            output.result |= {"labeled": problem.n_labeled, "seconds": dict(solution.seconds)}
            if out is not None or not json:
                text = labeling_csv(network, known, solution, raw=raw)
                files.text("--out", text)
            else:
                output.result["labeling"] = [
                    {"node": str(node), "label": label, "score": float(score)}
                    for node, label, score in zip(
                        network.nodes, known.names(solution.labels), solution.scores, strict=True
                    )
                ]
        output.note(str(solution))


def read_problem(
    graph: str,
    labels: str,
    laplacian: str,
    unlabeled: str | None,
    format: str | None,
    delimiter: str | None,
) -> tuple[NamedGraph, NodeLabels, Any]:
    """Read a graph and the known labels, and state the problem."""
    from ..problem import GraphProblem
    from ..tables import read_graph, read_labels

    if graph == "-" and labels == "-":
        raise ValueError("GRAPH and --labels cannot both be read from standard input")
    network = read_graph(graph, format=format, delimiter=delimiter)
    known = read_labels(labels, network, unlabeled=unlabeled, delimiter=delimiter or ",")
    return network, known, GraphProblem(network.W, known.signs, laplacian=laplacian)


def summary(solution: Solution, known: NodeLabels) -> dict[str, Any]:
    """What a solution says about itself, for JSON."""
    return {
        "method": solution.method,
        "classes": {"-1": known.classes[0], "+1": known.classes[1]},
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "bound_status": solution.bound_status,
        "gap": solution.gap,
        "iterations": solution.iterations,
        "converged": solution.converged,
        "message": solution.message,
        "unreached": int(solution.unreached.size),
    }


def labeling_csv(
    network: NamedGraph, known: NodeLabels, solution: Solution, *, raw: bool = False
) -> str:
    """The labelling as CSV: node, label, score."""
    scores = [f"{s:.8g}" for s in solution.scores]
    columns = [[str(node) for node in network.nodes], known.names(solution.labels), scores]
    return csv_text(["node", "label", "score"], columns, raw=raw)
