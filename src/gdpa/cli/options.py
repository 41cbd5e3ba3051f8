"""Options that several commands have, in one spelling."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Delimiter", "Json", "Method", "Out", "Quiet", "parse_options"]


def _methods(incomplete: str) -> list[str]:
    from ..solvers.registry import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only errors on stderr.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", help="Where the CSV goes; - is stdout.", show_default=False),
]
Method = Annotated[
    str,
    typer.Option("--method", "-m", help="Method (gdpa methods).", autocompletion=_methods),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Character between the cells of a CSV file.")
]


def parse_options(pairs: list[str]) -> dict[str, object]:
    """Turn ``name=value`` texts into options: numbers, true, false and none, else text.

    Parameters
    ----------
    pairs : list of str
        The texts.

    Returns
    -------
    dict
        The options.

    Raises
    ------
    ValueError
        If a text has no equals sign.
    """
    words: dict[str, object] = {"true": True, "false": False, "none": None}
    options: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"--option {pair!r} must be NAME=VALUE, such as tol=1e-8")
        key = name.strip().replace("-", "_")
        if value.lower() in words:
            options[key] = words[value.lower()]
            continue
        for kind in (int, float):
            try:
                options[key] = kind(value)
                break
            except ValueError:
                continue
        else:
            options[key] = value
    return options
