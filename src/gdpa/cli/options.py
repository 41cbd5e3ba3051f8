"""Options that several commands share.

The options of a command are the fields of a dataclass (:func:`add_command`). Its base classes are
groups of options that belong together. A file ``gdpa.toml`` can change the defaults
(:func:`read_defaults`).
"""

from __future__ import annotations

import ast
import inspect
import os
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from ..errors import any_error_as_value_error, nearest_name

if TYPE_CHECKING:
    from ..graph_files import RowLinks
    from ..tables import Table
    from .output import Output


WRITTEN = {"out", "proof", "model", "report", "doubts", "log", "work", "help"}
# Sections of ``--help``, in order, and the parameters in each.
GROUPS = {
    "Input": "target labels labeling problem format delimiter header encoding sheet unlabeled "
    "id_column drop column coerce positive rows text image shape class_name edges skip_unknown "
    "duplicates",
    "Model": "embed offline method method_options laplacian bound graph neighbors metric "
    "class_prior seed",
    "Output and report": "out proof model report doubts keep compare sure all_classes escape log "
    "json",
    "Other": "",
}


def list_methods(incomplete: str) -> list[str]:
    """Return the methods that complete a word, for shell completion."""
    from ..solvers.registry import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Write one JSON document to stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Delimiter of a CSV file; detected if unset.")
]


class GroupedCommand(TyperCommand):
    """A command whose ``--help`` lists the options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, and the options group by group."""
        group_of = {name: group for group, names in GROUPS.items() for name in names.split()}
        groups: dict[str, list[Any]] = {name: [] for name in ("Arguments", *GROUPS)}
        for parameter in self.get_params(ctx):
            is_argument = parameter.param_type_name == "argument"
            group = "Arguments" if is_argument else group_of.get(str(parameter.name), "Other")
            groups[group].append(parameter.get_help_record(ctx))
        for name, records in groups.items():
            if any(records):
                with formatter.section(name):
                    formatter.write_dl([record for record in records if record])


def option(help: str, *names: str, default: Any = None, **settings: Any) -> Any:
    """Declare a field of an options class as an option; ``default=MISSING`` makes it required.

    The option is called like the field unless `names` are given.
    """
    return field(default=default, metadata={"typer": typer.Option(*names, help=help, **settings)})


def argument(help: str) -> Any:
    """Declare a field of an options class as an argument."""
    return field(metadata={"typer": typer.Argument(help=help)})


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options that every command has."""

    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The CSV file to write."""

    out: str | None = option(
        "File to write, in the format of its extension (.csv if there is none); - is CSV on "
        "stdout.",
        "--out",
        "-o",
    )
    escape: bool = option(
        "Put an apostrophe before computed cells that a spreadsheet would execute. Cells of the "
        "input are never changed.",
        "--escape-formulas",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class GraphOptions(RunOptions, OutputOptions):
    """A graph, its known labels, and the method that solves it."""

    graph: str = argument(
        "Matrix Market, edge-list CSV, NPZ or GraphML file; - reads an edge list from stdin."
    )
    labels: str | None = option(
        "CSV file of node,label; or one label per line, empty if unknown.", "--labels", "-l"
    )
    problem: str | None = option(
        "max-cut, qubo or ising: GRAPH is a Gset, Biq Mac, .qubo, Matrix Market or edge-list "
        "file of couplings, and there are no labels."
    )
    method: str = option(
        "Solver; gdpa methods lists them.",
        "--method",
        "-m",
        default="auto",
        autocompletion=list_methods,
    )
    laplacian: str = option("combinatorial or normalized.", default="combinatorial")
    unlabeled: str | None = option("Value of an unknown label, besides empty.")
    format: str | None = option("mtx, csv, npz or graphml; from the file extension if unset.")
    delimiter: Delimiter = None


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """A table and its file format."""

    data: str = argument(
        "CSV, TSV, Parquet (a file or a folder), Feather, Excel, JSON, NPZ or LIBSVM; text "
        "files may be compressed. - reads CSV from stdin. Or a folder of pictures or text files, "
        "in subfolders named by class where the class is known."
    )
    format: str | None = option(
        "csv, tsv, parquet, feather, excel, json, jsonl, lines, npz or libsvm; from the file "
        "extension if unset."
    )
    delimiter: Delimiter = None
    header: bool = option(
        "Whether a CSV file starts with column names; else columns are named 1, 2, ...",
        "--header/--no-header",
        default=True,
    )
    encoding: str | None = option("Encoding of a CSV file; detected if unset.")
    sheet: str | None = option("Sheet of an Excel file; the first if unset.")

    @property
    def reading(self) -> dict[str, Any]:
        """The file format, as options of :func:`gdpa.tables.read_table`."""
        names = ("format", "delimiter", "header", "encoding", "sheet")
        return dict(zip(names, attrgetter(*names)(self), strict=True))

    def read(
        self,
        output: Output,
        as_text: Iterable[str] = (),
        target: str | None = None,
        written: frozenset[str] | bool = False,
    ) -> Table:
        """Read the table and print the notes about it.

        `as_text` are columns kept as text, `written` those whose cells are written again.
        """
        from ..tables import read_table

        table = read_table(
            self.data, as_text=frozenset(as_text), target=target, written=written, **self.reading
        )
        output.note(*table.notes)
        return table


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """How the columns of a table are used."""

    unlabeled: str | None = option("Value of an unknown label, besides empty cells.")
    id_column: str | None = option("Column of row names; not used as a feature.", "--id")
    drop: list[str] | None = option("Column to ignore; may be repeated.")  # noqa: RUF009
    column: list[str] | None = option(  # noqa: RUF009
        "NAME=KIND: treat a column as number, category, text, image, date or drop; may be repeated."
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
class EmbedOptions:
    """A pretrained model that encodes texts or pictures."""

    embed: str | None = option(
        "ONNX model of texts or pictures: folder, minilm, mobilenet or dinov2.", metavar="MODEL"
    )
    offline: bool = option(
        "Do not download the model that --embed names.", "--offline", default=False
    )

    def embedding(self, show: Callable[[str], object]) -> dict[str, Any]:
        """Return the model and its progress, as options of :class:`gdpa.tables.TableEncoder`."""
        return {
            "embed": self.embed,
            "offline": self.offline,
            "progress": lambda done, total: show(f"{done} of {total} embedded"),
        }


@dataclass(frozen=True, kw_only=True)
class EdgeOptions:
    """A file of links between rows."""

    edges: str | None = option(
        "Links between rows: two row names per line and an optional weight, with any "
        "delimiter; or GraphML, Matrix Market, NPZ. - is stdin."
    )
    skip_unknown: bool = option("Ignore edges to unknown rows.", "--skip-unknown", default=False)
    duplicates: str = option(
        "For repeated edges: same (weights must agree), sum or max.", default="same"
    )

    def read_edges(
        self, output: Output, rows: Sequence[str], fitted: Sequence[str] | None = None
    ) -> RowLinks:
        """Read the links between rows, or from new rows to fitted ones, and print the notes."""
        from ..graph_files import read_links

        how = {"duplicates": self.duplicates, "skip_unknown": self.skip_unknown}
        links = read_links(str(self.edges), rows, fitted, **how)  # type: ignore[arg-type]
        output.note(*links.notes)
        return links


def add_command(app: typer.Typer, run: Callable[[Any], None]) -> None:
    """Add a command with `run`'s name and docstring; its options are a dataclass, its parameter."""
    options = get_type_hints(run)["options"]

    def command(**values: object) -> None:
        run(options(**values))

    hints = get_type_hints(options, include_extras=True)
    for each in fields(options):
        if each.metadata:
            hints[each.name] = Annotated[hints[each.name], each.metadata["typer"]]
    parameters = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(options).parameters.items()
    ]
    # The command's own options come before the shared ones.
    parameters.sort(key=lambda parameter: parameter.name not in options.__annotations__)
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    # Click keeps the lines of a paragraph after a backspace, which a raw docstring cannot contain.
    command.__doc__ = str(run.__doc__).replace("\\b", "\b")
    app.command(run.__name__.replace("_", "-"), cls=GroupedCommand)(command)


def parse_options(pairs: list[str]) -> dict[str, object]:
    """Parse ``name=value`` pairs; values are numbers, true, false, none or text."""
    options: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"--option {pair!r} must be NAME=VALUE, such as tol=1e-8")
        word = value.capitalize() if value.lower() in ("true", "false", "none") else value
        try:
            parsed = ast.literal_eval(word)
        except (ValueError, SyntaxError):
            parsed = value
        options[name.strip().replace("-", "_")] = parsed
    return options


def read_defaults(command: Any, args: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Read the defaults in ``gdpa.toml``, by command and parameter.

    The file has a section per command with the long names of options. Output files cannot be set
    there: a folder of data that somebody sent must not choose them.

    Parameters
    ----------
    command : click command
        The command with its sub-commands.
    args : sequence of str
        The arguments. A ``gdpa.toml`` beside the first file among them takes precedence over the
        one in the current folder.
    known : sequence of str
        Names of all commands. Sections of commands that are not loaded are skipped.

    Returns
    -------
    dict
        The context's ``default_map``.
    """
    found: dict[str, Any] = {}
    table = next(filter(os.path.isfile, args), ".")
    for path in dict.fromkeys([Path("gdpa.toml"), Path(table).parent / "gdpa.toml"]):
        if not path.is_file():
            continue
        with any_error_as_value_error(f"{path} is not a TOML file"):
            read = tomllib.loads(path.read_text(encoding="utf-8"))
        sections = {n: v for n, v in read.items() if n in command.commands or n not in known}
        for name, values in _checked(command, sections, str(path)).items():
            found.setdefault(name, {}).update(values)
    return found


def _checked(command: Any, values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the values by parameter; raise ValueError for an unknown name."""
    groups = getattr(command, "commands", {})
    names = (
        {}
        if groups
        else {
            name.removeprefix("--"): parameter.name
            for parameter in command.params
            for name in parameter.opts
            if name.startswith("--") and name.removeprefix("--") not in WRITTEN
        }
    )
    checked = {}
    for name, value in values.items():
        if name in groups and isinstance(value, dict):
            checked[name] = _checked(groups[name], value, f"{where}, [{name}]")
        elif name in names and not isinstance(value, dict):
            checked[names[name]] = value
        else:
            raise ValueError(
                f"{where}: {name!r} cannot be set; {nearest_name(name, [*groups, *names])}"
            )
    return checked
