"""``gdpa methods``: list the values of ``--method``."""

from __future__ import annotations

from dataclasses import asdict

from .options import RunOptions
from .output import Output


def methods(options: RunOptions) -> None:
    """List the solvers, with the problems they accept and the extras they need."""
    with Output("methods", json=options.json, quiet=options.quiet) as out:
        from ..solvers.registry import list_methods

        rows = list_methods()
        out.result = {"methods": [asdict(row) for row in rows]}
        if not options.json:
            out.table(
                ["method", "kind", "accepts", "extra", "description"],
                [
                    [
                        m.name,
                        m.kind,
                        "signed" if m.signed else "quadratic" if m.binary_quadratic else "graph",
                        ",".join(m.extras) or "-",
                        m.summary,
                    ]
                    for m in rows
                ],
            )
