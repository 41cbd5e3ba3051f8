"""``gdpa certify``: compare a labelling with a proved bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .files import OutputFiles
from .options import GraphOptions, option
from .output import Output, Stages
from .quadratic import certify_quadratic, pick, print_gap
from .solve import Labeling, read_problem


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(GraphOptions):
    """Options of ``gdpa certify``."""

    labeling: str | None = option("Labels of all nodes, as written by solve; solved for if unset.")
    bound: str | None = option("min-cut, sdr-interior-point or sdr-low-rank.")


def certify(options: CertifyOptions) -> None:
    """Prove how good a labelling of a GRAPH is: its objective against a lower bound.

    No labelling that keeps the known labels has an objective below the bound. Without --labeling
    the graph is solved by --method first, and --out saves those labels.
    """
    labeling = options.labeling
    with (
        Output("certify", json=options.json, quiet=options.quiet) as output,
        OutputFiles(options.graph, options.labels, labeling) as files,
    ):
        if labeling is not None and options.out is not None:
            raise ValueError("--out saves computed labels and cannot be used with --labeling")
        if options.problem is not None:
            certify_quadratic(options, labeling, output)
            return
        files.claim("--out", options.out, formats=("csv",))
        from ..certificate import certify as prove
        from ..graph_files import read_labels

        with Stages(output) as stages:
            stages.start("reading", options.graph)
            network, known, problem = read_problem(options)
            if len(known.classes) > 2:
                raise ValueError(
                    f"{options.labels} has {len(known.classes)} classes; certify needs two "
                    "(gdpa solve accepts any number)"
                )
            if labeling is not None:
                signs = read_labels(
                    labeling, network, delimiter=options.delimiter, classes=known.classes
                ).signs
                gaps = np.flatnonzero(signs == 0)
                if gaps.size:
                    raise ValueError(
                        f"{labeling} has no label for {gaps.size} nodes (the first is "
                        f"{network.nodes[gaps[0]]}); every node needs one"
                    )
                source = labeling
            else:
                from ..solvers.registry import solve

                stages.start("solve", options.method)
                solution = solve(problem, options.method)
                output.converged &= solution.converged
                signs = solution.labels
                source = f"solved by {solution.method}"
                if options.out is not None:
                    found = Labeling.of(known, [solution])
                    files.text("--out", found.csv(network, known, escape=options.escape))
            stages.start("bound")
            certificate = prove(problem, signs, method=options.bound)
        output.result = {
            "labeling": source,
            "bound_method": certificate.method,
            **pick(certificate, "objective", "lower_bound", "bound_status", "exact"),
            **pick(certificate, "gap", "relative_gap"),
        }
        print_gap(
            output,
            ("objective", certificate.objective),
            ("optimum" if certificate.exact else "lower bound", certificate.lower_bound),
            f"{certificate.gap:.6g} ({100 * certificate.relative_gap:.3g} %)",
            f"{certificate.bound_status} by {certificate.method}",
        )
