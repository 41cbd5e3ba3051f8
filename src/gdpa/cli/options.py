"""Options that several commands share, each defined once.

The options of a command are the fields of a dataclass (:func:`add_command`); groups of options that
belong together are its base classes.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

if TYPE_CHECKING:
    from ..tables import RowLinks, Table
    from .output import Output

__all__ = [
    "ColumnOptions", "Delimiter", "EdgeOptions", "Json", "Method", "Out", "OutputOptions", "Quiet",
    "RawCells", "RunOptions", "TableOptions", "add_command", "argument", "command_line", "option",
    "parse_options",
]  # fmt: skip

Options = TypeVar("Options")


def list_methods(incomplete: str) -> list[str]:
    from ..solvers.registry import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Out = Annotated[str | None, typer.Option("--out", "-o", help="CSV file to write; - is stdout.")]
Method = Annotated[
    str, typer.Option("--method", "-m", help="Solver (gdpa methods).", autocompletion=list_methods)
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Delimiter of a CSV file; detected if unset.")
]
RawCells = Annotated[
    bool,
    typer.Option("--raw-cells", help="Do not escape cells that a spreadsheet would execute."),
]


def option(*names: str, help: str, default: Any = None, **settings: Any) -> Any:
    """Declare a field of an options class as an option; ``default=MISSING`` makes it required."""
    return field(default=default, metadata={"typer": typer.Option(*names, help=help, **settings)})


def argument(help: str) -> Any:
    """Declare a field of an options class as an argument."""
    return field(metadata={"typer": typer.Argument(help=help)})


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of every command."""

    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The CSV file to write."""

    out: Out = None
    raw: RawCells = False


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """A table and its file format."""

    data: str = argument(
        "CSV, TSV, Parquet (a file or a folder), Feather, Excel, JSON lines, NPZ or LIBSVM; text "
        "files may be compressed. - reads CSV from stdin."
    )
    format: str | None = option(
        "--format",
        help="csv, tsv, parquet, feather, excel, jsonl, npz or libsvm; from the file extension if "
        "unset.",
    )
    delimiter: Delimiter = None
    has_header: bool = option(
        "--header/--no-header",
        help="Whether a CSV file starts with column names; else columns are named 1, 2, ...",
        default=True,
    )
    encoding: str | None = option("--encoding", help="Encoding of a CSV file; detected if unset.")

    def read(self, output: Output, as_text: Iterable[str] = (), target: str | None = None) -> Table:
        """Read the table and print the notes about it; `as_text` are columns kept as text."""
        from ..tables import read_table

        table = read_table(
            self.data,
            format=self.format,
            delimiter=self.delimiter,
            encoding=self.encoding,
            as_text=frozenset(as_text),
            target=target,
            header=self.has_header,
        )
        output.note(*table.notes)
        return table


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """What the columns of a table are."""

    unlabeled: str | None = option(
        "--unlabeled", help="Value of an unknown label, besides empty, NA, ?..."
    )
    id_column: str | None = option("--id", help="Column with the names of the rows; no feature.")
    drop: list[str] | None = option(  # noqa: RUF009
        "--drop", help="Column to ignore; may be repeated."
    )
    column: list[str] | None = option(  # noqa: RUF009
        "--column",
        help="NAME=KIND: treat a column as number, category, text, date or drop; may be repeated.",
    )

    def kinds(self) -> dict[str, str]:
        """Return the kind of each column that ``--column`` names."""
        from ..tables.columns import KINDS

        kinds = {}
        for pair in self.column or []:
            name, equals, kind = pair.rpartition("=")
            if not equals or not name or kind not in KINDS:
                raise ValueError(
                    f"--column {pair!r} must be NAME=KIND, KIND one of {', '.join(KINDS)}"
                )
            kinds[name] = kind
        return kinds


@dataclass(frozen=True, kw_only=True)
class EdgeOptions:
    """A file of links between rows."""

    edges: str | None = option(
        "--edges",
        help="Links between rows: two row names per line and an optional weight, with any "
        "delimiter; or GraphML, Matrix Market, NPZ. - is stdin.",
    )
    skip_unknown: bool = option(
        "--skip-unknown", help="Ignore edges to unknown rows.", default=False
    )
    duplicates: str = option(
        "--duplicates",
        help="For repeated edges: same (weights must agree), sum or max.",
        default="same",
    )
    edges_delimiter: str | None = option(
        "--edges-delimiter", help="Delimiter of the edges; detected if unset."
    )

    def check_edges(self, data: str) -> None:
        """Refuse what cannot be read, before any work."""
        from ..errors import nearest_name
        from ..tables.row_links import DUPLICATES

        if data == "-" and self.edges == "-":
            raise ValueError("DATA and --edges cannot both be read from standard input")
        if self.duplicates not in DUPLICATES:
            accepted = nearest_name(self.duplicates, list(DUPLICATES))
            raise ValueError(f"--duplicates {self.duplicates!r}; {accepted}")

    def read_edges(
        self, output: Output, rows: Sequence[str], fitted: Sequence[str] | None = None
    ) -> RowLinks:
        """Read the links between rows, or from new rows to fitted ones, and print the notes."""
        from ..tables import read_links

        links = read_links(
            str(self.edges),
            rows,
            fitted,
            delimiter=self.edges_delimiter,
            duplicates=self.duplicates,
            skip_unknown=self.skip_unknown,
        )
        output.note(*links.notes)
        return links


def _parameter(options: type, name: str, hint: Any) -> Any:
    """Return the type of a field with its typer option or argument."""
    metadata = options.__dataclass_fields__[name].metadata  # type: ignore[attr-defined]
    return Annotated[hint, metadata["typer"]] if metadata else hint


def add_command(
    app: typer.Typer, name: str, options: type[Options], run: Callable[[Options], None]
) -> None:
    """Add a command: its options are the fields of a dataclass, its help is `run`'s docstring."""

    def command(**values: object) -> None:
        run(options(**values))

    hints = get_type_hints(options, include_extras=True)
    parameters = [
        parameter.replace(annotation=_parameter(options, key, hints[key]))
        for key, parameter in inspect.signature(options).parameters.items()
    ]
    # The command's own options come first, shared ones last.
    parameters.sort(key=lambda parameter: parameter.name not in options.__annotations__)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__doc__ = run.__doc__
    app.command(name)(command)


def command_line(name: str, options: object, leave_out: Sequence[str]) -> str:
    """Return the command with all options that differ from their defaults."""
    words = ["gdpa", name]
    hints = get_type_hints(type(options), include_extras=True)
    for each in fields(options):  # type: ignore[arg-type]
        value = getattr(options, each.name)
        if each.name in leave_out or value is None or value == each.default:
            continue
        info = _parameter(type(options), each.name, hints[each.name]).__metadata__[0]
        if isinstance(info, typer.models.ArgumentInfo):
            words.insert(2, str(value))
            continue
        declared = next(d for d in (info.default, *(info.param_decls or ())) if d[:2] == "--")
        if isinstance(value, bool):
            words.append(declared.split("/")[0 if value else -1])
        else:
            values = value if isinstance(value, list) else [value]
            words += [word for v in values for word in (declared, str(v))]
    return shlex.join(words)


def parse_options(pairs: list[str]) -> dict[str, object]:
    """Turn ``name=value`` texts into options: numbers, true, false and none, else text."""
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
