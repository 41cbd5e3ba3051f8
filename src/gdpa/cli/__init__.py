"""The command line. The only part of the package that prints.

Nothing heavy is imported before :func:`main` runs, so that Ctrl-C is answered in one line from the
first moment on, and a missing extra is named instead of a traceback.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Parameters
    ----------
    args : list of str, optional
        The arguments; by default those of the process.

    Raises
    ------
    SystemExit
        Always: 0 done, 1 not converged, 2 bad input, 130 interrupted.
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
