"""The command line; the only part of the package that prints.

:func:`main` imports the heavy modules, so that Ctrl-C during start-up prints one line, and a
missing extra is reported without a traceback.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    args : list of str, optional
        The arguments; those of the process by default.

    Raises
    ------
    SystemExit
        Always, with the exit code: 0 done, 1 not converged, 2 bad input, 130 interrupted.
    """
    try:
        from ..errors import MissingExtraError, require

        try:
            for module in ("typer", "rich"):
                require(module, "cli")
            from .app import run

            code = run(args)
        except MissingExtraError as error:
            print(f"gdpa: error: {error}", file=sys.stderr)
            code = 2
    except KeyboardInterrupt:
        print("gdpa: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
