"""The command line; the only part of the package that prints.

:func:`main` imports the heavy modules, so that Ctrl-C during start-up prints one line, and a
missing extra is reported without a traceback.
"""

from __future__ import annotations

import errno
import io
import os
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
    _replace_closed_streams()
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


class _ClosedOutput(io.TextIOBase):
    """Standard output that the caller closed (``>&-``): nothing can be written to it."""

    def write(self, text: str) -> int:
        if text:
            raise OSError(errno.EBADF, "standard output is closed; use --out FILE")
        return 0


def _replace_closed_streams() -> None:
    """Replace standard streams that are closed, and keep their numbers from being reused.

    Otherwise the next file that is opened has the number of the closed stream, and everything that
    is printed goes into it.
    """
    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is not None:
            continue
        number = os.open(os.devnull, mode)  # the lowest free number: that of the stream
        if name == "stdout":
            sys.stdout = _ClosedOutput()
        else:
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))
