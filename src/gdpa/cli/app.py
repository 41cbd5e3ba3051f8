"""The command ``gdpa`` and its sub-commands."""

from __future__ import annotations

import importlib
import shlex
import signal
import sys
from typing import Annotated

import typer

from .options import add_command, read_defaults

COMMANDS = (
    *("demo", "example", "paper", "fit", "predict", "query", "label", "verify-session"),
    *("solve", "certify", "verify", "methods", "distributed"),
)

LOADED: set[str] = set()

app = typer.Typer(
    name="gdpa",
    help="Classify a table or a graph from a few labels. "
    "Exit codes: 0 done, 1 not converged, 2 bad input, 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Handle the options before the command."""
    if version:
        from ..version import __version__

        print(f"gdpa {__version__}")
        raise typer.Exit


def run(args: list[str] | None = None) -> int:
    """Run the command line with `args`, by default those of the process; return the exit code."""
    # Raise SystemExit on SIGTERM, so that staged files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    args = sys.argv[1:] if args is None else args
    # Import only the module of the command that runs; --help needs all of them.
    for name in args[:1] if args and args[0] in COMMANDS else COMMANDS:
        if name not in LOADED:
            module = name.replace("-", "_")
            command = getattr(importlib.import_module(f"gdpa.cli.{module}"), module)
            if isinstance(command, typer.Typer):
                app.add_typer(command)
            else:
                add_command(app, command)
            LOADED.add(name)
    whole = typer.main.get_command(app)
    try:
        defaults = read_defaults(whole, args, COMMANDS)
    except ValueError as error:
        print(f"gdpa: error: {error}", file=sys.stderr)
        return 2
    try:
        whole(args, prog_name="gdpa", obj=shlex.join(["gdpa", *args]), default_map=defaults)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
