"""``gdpa solve``: label the nodes of a graph with any solver."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..csv_text import csv_text, escape_formulas
from ..graph.convert import NamedGraph
from ..graph_files import NodeLabels
from ..problem import GraphProblem
from ..solution import Solution
from .files import OutputFiles
from .options import GraphOptions, option, parse_options
from .output import Output, Stages
from .quadratic import pick, solve_quadratic


@dataclass(frozen=True, kw_only=True)
class SolveOptions(GraphOptions):
    """Options of ``gdpa solve``."""

    method_options: list[str] | None = option(  # noqa: RUF009
        "NAME=VALUE: option of the method; may be repeated.", "--option"
    )
    proof: str | None = option(
        "With --problem: proof of the bound, for gdpa verify; compressed if it ends in .gz."
    )


def solve(options: SolveOptions) -> None:
    """Label all nodes of a GRAPH from a few labels, or solve a max-cut, QUBO or Ising problem.

    Writes CSV: node, label, score. Node names are those of the file. A matrix has no names: its
    rows count from 1 in Matrix Market files and from 0 in NPZ files.
    """
    with (
        Output("solve", json=options.json, quiet=options.quiet) as output,
        OutputFiles(options.graph, options.labels) as files,
    ):
        settings = parse_options(options.method_options or [])
        files.claim("--out", options.out, formats=("csv",))
        files.claim("--proof", options.proof, stdout=False)
        if options.problem is not None:
            solve_quadratic(options, settings, output, files, proof=options.proof)
            return
        if options.proof is not None:
            raise ValueError("--proof needs --problem max-cut, qubo or ising")
        with Stages(output) as stages:
            stages.start("reading", options.graph)
            network, known, problem = read_problem(options)
            size = f"{problem.n_nodes} nodes, {problem.n_edges} edges"
            method = options.method
            if method == "auto" and known.too_few_to_hold_out:
                method = "poisson"
            stages.start("solve", f"{method}, {size}")
            from ..solvers.registry import solve as run

            positive = range(1, 2) if len(known.classes) == 2 else range(len(known.classes))
            solutions = [
                run(problem.with_labels(known.against_rest(c)), method, **settings)
                for c in positive
            ]
            output.converged &= all(s.converged for s in solutions)
            stages.start("writing")
            labeling = Labeling.of(known, solutions)
            output.result = summary(solutions[0], known)
            if len(solutions) > 1:
                output.result |= against_rest(solutions, known)
            seconds: Counter[str] = Counter()
            for solution in solutions:
                seconds.update(solution.seconds)
            output.result |= {"nodes": problem.n_nodes, "edges": problem.n_edges}
            output.result |= {"labeled": problem.n_labeled, "seconds": dict(seconds)}
            if options.out is not None or not options.json:
                files.text("--out", labeling.csv(network, known, escape=options.escape))
            else:
                parts = (network.nodes, known.names(labeling.codes), labeling.scores.tolist())
                output.result["labeling"] = [
                    {"node": str(node), "label": label, "score": score}
                    for node, label, score in zip(*parts, strict=True)
                ]
        output.note(*solutions)


def read_problem(options: GraphOptions) -> tuple[NamedGraph, NodeLabels, GraphProblem]:
    """Read a graph and the known labels; return them and the problem."""
    from ..graph_files import read_graph, read_labels

    if options.labels is None:
        raise ValueError("--labels is required (or --problem max-cut, qubo or ising)")
    network = read_graph(options.graph, format=options.format, delimiter=options.delimiter)
    known = read_labels(
        options.labels, network, unlabeled=options.unlabeled, delimiter=options.delimiter
    )
    problem = GraphProblem(network.W, known.signs, laplacian=options.laplacian)
    return network, known, problem


def summary(solution: Solution, known: NodeLabels) -> dict[str, Any]:
    """Return a solution for JSON."""
    return {
        "classes": dict(zip(("-1", "+1"), known.classes, strict=False)),
        "unreached": int(solution.unreached.size),
        **pick(solution, "method", "objective", "lower_bound", "bound_status", "bound_kind"),
        **pick(solution, "gap", "iterations", "converged", "erased", "message"),
    }


def against_rest(solutions: list[Solution], known: NodeLabels) -> dict[str, Any]:
    """Return the totals of one solution per class, and each of them, for JSON."""
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


@dataclass(frozen=True)
class Labeling:
    """Class and score of every node: by sign for two classes, else the largest score."""

    codes: NDArray[np.intp]
    scores: NDArray[np.float64]

    @classmethod
    def of(cls, known: NodeLabels, solutions: list[Solution]) -> Labeling:
        """Return the labelling of one solution for two classes, or of one per class."""
        if len(solutions) == 1:
            return cls((solutions[0].labels > 0).astype(np.intp), solutions[0].scores)
        scores = np.stack([s.scores for s in solutions], axis=1)
        codes = scores.argmax(axis=1)
        given = known.codes >= 0
        codes[given] = known.codes[given]
        return cls(codes, scores[np.arange(codes.size), codes])

    def csv(self, network: NamedGraph, known: NodeLabels, *, escape: bool = False) -> str:
        """Return the labelling as CSV."""
        names = known.names(self.codes)
        scores = [f"{score:.8g}" for score in self.scores]
        columns = [
            list(map(str, network.nodes)),
            escape_formulas(names) if escape else names,
            scores,
        ]
        return csv_text(["node", "label", "score"], columns)
