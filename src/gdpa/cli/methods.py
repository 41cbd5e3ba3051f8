"""``gdpa methods``: list the values of ``--method``."""

from __future__ import annotations

from dataclasses import asdict

import typer

from .options import Json, Quiet
from .output import Output


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("methods")(methods)


def methods(json: Json = False, quiet: Quiet = False) -> None:
    """List the solvers, with the problems they accept and the extras they need."""
    with Output("methods", json=json, quiet=quiet) as out:
        from ..solvers.registry import list_methods

        rows = list_methods()
        out.result = {"methods": [asdict(row) for row in rows]}
        if not json:
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
