"""``gdpa datasets``: the paper's data sets, their cards, and fetching them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from .options import Json, Quiet
from .output import Output

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("datasets")(datasets)


def _names(incomplete: str) -> list[str]:
    from ..datasets import list_datasets

    return [name for name in list_datasets() if name.lower().startswith(incomplete.lower())]


def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Show the card of one set.", autocompletion=_names)
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Put the set (or all) into the cache.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the paper's data sets; with a NAME, show its card."""
    with Output("datasets", json=json, quiet=quiet) as out:
        from ..datasets import card, data_home, list_datasets
        from ..datasets.cache import cached_file
        from ..datasets.shipped import SHIPPED

        names = list_datasets() if name is None else [card(name).name]
        if fetch:
            from ..datasets import fetch as fetch_set
            from .output import Stages

            with Stages(out, len(names)) as stages:
                for each in names:
                    stages.start(each)
                    fetch_set(each, progress=lambda got, total: _show(stages, got, total))
        home = data_home()
        rows = []
        for each in names:
            entry = asdict(card(each))
            file = cached_file(each, home)
            entry["cached"] = None if file is None else str(file)
            rows.append(entry)
        out.result = {"data_home": str(home), "datasets": rows}
        if json:
            return
        if name is not None:
            out.table(["field", "value"], [[k, _words(v)] for k, v in rows[0].items()])
            return
        out.table(
            ["name", "samples", "features", "+1", "-1", "cached", "source"],
            [
                [
                    r["name"],
                    r["n_samples"],
                    r["n_features"],
                    r["n_positive"],
                    r["n_negative"],
                    "yes"
                    if r["cached"]
                    else "built in"
                    if not r["urls"] or r["name"] in SHIPPED
                    else "-",
                    r["source"],
                ]
                for r in rows
            ],
        )
        out.note(f"cache: {home}; one set in detail: gdpa datasets NAME")


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _show(stages: object, got: int, total: int | None) -> None:
    from .output import Stages

    assert isinstance(stages, Stages)
    stages.detail(f"{got / 1e6:.1f} MB", got / total if total else None)
