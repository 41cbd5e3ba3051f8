"""``gdpa certify``: how far a labelling is from the best that is possible."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from .files import OutputFiles
from .options import Delimiter, Json, Method, Out, Quiet, RawCells
from .output import Output, Stages
from .quadratic import ProblemKind, certify_quadratic
from .solve import (
    GraphFile,
    GraphFormat,
    KnownLabels,
    Labeling,
    Laplacian,
    Unlabeled,
    read_problem,
    refuse_labels,
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("certify")(certify)


def certify(
    graph: GraphFile,
    labels: KnownLabels = None,
    problem: ProblemKind = None,
    labeling: Annotated[
        str | None,
        typer.Option("--labeling", help="Labels of all nodes, as solve writes; else solved first."),
    ] = None,
    method: Method = "auto",
    bound: Annotated[
        str | None,
        typer.Option("--bound", help="min-cut, sdr-interior-point or sdr-low-rank."),
    ] = None,
    out: Out = None,
    laplacian: Laplacian = "combinatorial",
    unlabeled: Unlabeled = None,
    format: GraphFormat = None,
    delimiter: Delimiter = None,
    json: Json = False,
    quiet: Quiet = False,
    raw: RawCells = False,
) -> None:
    """Prove how good a labelling of a GRAPH is: its objective against a lower bound.

    No labelling that keeps the known labels has an objective below the bound. Without --labeling
    the graph is solved by --method first; --out then keeps those labels.
    """
    inputs = [name for name in (graph, labels, labeling) if name]
    with Output("certify", json=json, quiet=quiet) as output, OutputFiles(*inputs) as files:
        if labeling is not None and out is not None:
            raise ValueError("--out keeps labels that certify solved for; --labeling gives them")
        if inputs.count("-") > 1:
            raise ValueError("only one input can be read from standard input")
        if problem is not None:
            refuse_labels(labels)
            certify_quadratic(graph, problem, labeling, format, output)
            return
        files.claim("--out", out)
        from ..certificate import certify as prove
        from ..tables import read_labels

        with Stages(output) as stages:
            stages.start("reading", graph)
            network, known, stated = read_problem(
                graph, labels, laplacian, unlabeled, format, delimiter
            )
            if len(known.classes) > 2:
                raise ValueError(
                    f"{labels} has {len(known.classes)} classes; a certificate speaks of two "
                    "(gdpa solve takes any number)"
                )
            if labeling is not None:
                signs = read_labels(
                    labeling, network, delimiter=delimiter, classes=known.classes
                ).signs
                _refuse_gaps(labeling, network.nodes, signs)
                solved_by = None
            else:
                from ..solvers.registry import solve

                stages.start("solve", method)
                solution = solve(stated, method)
                output.converged &= solution.converged
                signs, solved_by = solution.labels, solution.method
                if out is not None:
                    files.text("--out", Labeling.of(known, [solution]).csv(network, known, raw=raw))
            stages.start("bound")
            certificate = prove(stated, signs, method=bound)
        output.result = {
            "labeling": labeling or f"solved by {solved_by}",
            "objective": certificate.objective,
            "lower_bound": certificate.lower_bound,
            "bound_status": certificate.bound_status,
            "bound_method": certificate.method,
            "exact": certificate.exact,
            "gap": certificate.gap,
            "relative_gap": certificate.relative_gap,
        }
        if not json:
            words = "optimum" if certificate.exact else "lower bound"
            output.table(
                ["quantity", "value"],
                [
                    ["objective of the labelling", f"{certificate.objective:.8g}"],
                    [words, f"{certificate.lower_bound:.8g}"],
                    ["gap", f"{certificate.gap:.3g} ({100 * certificate.relative_gap:.3g} %)"],
                    ["status", f"{certificate.bound_status} by {certificate.method}"],
                ],
            )


def _refuse_gaps(source: str, nodes: Any, signs: Any) -> None:
    gaps = np.flatnonzero(signs == 0)
    if gaps.size:
        raise ValueError(
            f"{source} has no label for {gaps.size} nodes (the first is {nodes[gaps[0]]}); a "
            "labelling has one for every node"
        )
