"""Options that several commands have, in one spelling."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "ColumnKinds",
    "Delimiter",
    "Drop",
    "Duplicates",
    "EdgesDelimiter",
    "EdgesFile",
    "Encoding",
    "IdColumn",
    "Json",
    "Keep",
    "Method",
    "ModelFile",
    "Out",
    "Quiet",
    "RawCells",
    "Seed",
    "SkipUnknown",
    "TableFile",
    "TableFormat",
    "Unlabeled",
    "check_duplicates",
    "parse_columns",
    "parse_options",
]


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
    str | None,
    typer.Option("--delimiter", help="Character between the cells of a CSV file; found if unset."),
]
Header = Annotated[
    bool,
    typer.Option(
        "--header/--no-header",
        help="Whether a CSV file begins with names; without, the columns are called 1, 2, ...",
    ),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of a CSV file; found if unset.")
]
TableFile = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, Parquet (a file or a folder), Feather, Excel, JSON lines, NPZ or LIBSVM, "
        "text also compressed; - is CSV on stdin."
    ),
]
TableFormat = Annotated[
    str | None,
    typer.Option(
        "--format", help="csv, tsv, parquet, feather, excel, jsonl, npz or libsvm; by ending."
    ),
]
EdgesFile = Annotated[
    str | None,
    typer.Option(
        "--edges",
        help="Links between rows: two ends a line and maybe a weight, with any delimiter; or "
        "GraphML, Matrix Market, NPZ. - is stdin.",
        show_default=False,
    ),
]
EdgesDelimiter = Annotated[
    str | None,
    typer.Option("--edges-delimiter", help="Character between the cells of --edges; found."),
]
SkipUnknown = Annotated[
    bool, typer.Option("--skip-unknown", help="Leave out edges to ends that no row has.")
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates", help="Edges listed again: same (must have one weight), sum or max."
    ),
]
Unlabeled = Annotated[
    str | None,
    typer.Option("--unlabeled", help="What marks an unknown label, besides empty, NA, ?..."),
]
IdColumn = Annotated[
    str | None, typer.Option("--id", help="Column that names the rows; not a feature.")
]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", help="Column to leave out; may be repeated.")
]
ColumnKinds = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="NAME=number, category, text, date or drop: what a column is; may be repeated.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of what is random.")]
ModelFile = Annotated[str, typer.Argument(help="File that fit --model wrote.")]
Keep = Annotated[bool, typer.Option("--keep", help="Keep all columns of the input in the output.")]
RawCells = Annotated[
    bool,
    typer.Option(
        "--raw-cells",
        help="Write cells that a spreadsheet would run (=, +, @...) as they are; otherwise an "
        "apostrophe goes before them.",
    ),
]


def check_duplicates(value: str) -> None:
    """Refuse what ``--duplicates`` does not know, before any work.

    Parameters
    ----------
    value : str
        What was given.

    Raises
    ------
    ValueError
        If it is none of the choices.
    """
    from ..errors import nearest_name
    from ..tables.row_links import DUPLICATES

    if value not in DUPLICATES:
        raise ValueError(f"--duplicates {value!r}; {nearest_name(value, list(DUPLICATES))}")


def parse_columns(pairs: list[str] | None) -> dict[str, str]:
    """Turn ``NAME=KIND`` texts of ``--column`` into a mapping.

    Parameters
    ----------
    pairs : list of str or None
        The texts; the last equals sign divides.

    Returns
    -------
    dict
        Name of each column to what it is.

    Raises
    ------
    ValueError
        If a text has no equals sign, or names a kind that is not known.
    """
    from ..tables.columns import KINDS

    kinds = {}
    for pair in pairs or []:
        name, equals, kind = pair.rpartition("=")
        if not equals or not name or kind not in KINDS:
            raise ValueError(f"--column {pair!r} must be NAME=KIND, KIND one of {', '.join(KINDS)}")
        kinds[name] = kind
    return kinds


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
