"""Files that the commands write: whole or not at all, and only where they were told to.

Everything is written into a private folder beside its target and moved there at the end. A move
replaces a symbolic link instead of following it, so nothing is written outside the folder that was
named, and Ctrl-C leaves what was there before.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from types import TracebackType

__all__ = ["OutputFiles"]


class OutputFiles:
    """Outputs of one command; a context manager that moves them into place on success.

    Parameters
    ----------
    inputs : tuple of str
        Files that are read and must not be overwritten.
    """

    def __init__(self, *inputs: str) -> None:
        self._inputs = {Path(i).resolve() for i in inputs if i != "-"}
        self._staged: dict[str, tuple[Path, Path]] = {}  # option -> (staging file, target)
        self._direct: dict[str, Path] = {}  # devices and pipes are written to as they are
        self._folders: list[Path] = []
        self._stdout: list[str] = []

    def claim(self, option: str, path: str | None) -> None:
        """Check, before any work, that an output can be written.

        Parameters
        ----------
        option : str
            The option that names it, for messages and for :meth:`path`.
        path : str or None
            The file; None and ``"-"`` need no file.

        Raises
        ------
        ValueError
            If it is a folder, an input, another output, or cannot be written.
        """
        if path is None or path == "-":
            return
        target = Path(path)
        if not target.name or target.is_dir():
            raise ValueError(f"{option} {path} is a folder; a file name is needed")
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            self._direct[option] = target
            return
        whole = target.parent.resolve() / target.name
        if whole in self._inputs or target.resolve() in self._inputs:
            raise ValueError(f"{option} {path} would overwrite the input")
        if any(whole == other for _, other in self._staged.values()):
            raise ValueError(f"{option} {path} is already the file of another option")
        try:
            folder = Path(tempfile.mkdtemp(prefix=".gdpa-", dir=whole.parent))
        except OSError as error:
            raise ValueError(
                f"{option} {path} cannot be written: {error.strerror or error}"
            ) from error
        self._folders.append(folder)
        self._staged[option] = (folder / whole.name, whole)

    def path(self, option: str) -> Path:
        """Where to write the output of `option` for now."""
        return self._direct[option] if option in self._direct else self._staged[option][0]

    def text(self, option: str, content: str) -> None:
        """Write text as the output of `option`; on stdout, at the end, if it was not claimed."""
        if option in self._direct or option in self._staged:
            with self.path(option).open("w", encoding="utf-8", newline="") as file:
                file.write(content)
        else:
            # At the end, when no progress is drawn any more: a terminal shows both.
            self._stdout.append(content)

    def __enter__(self) -> OutputFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                for staged, target in self._staged.values():
                    if staged.exists():
                        os.replace(staged, target)
                for content in self._stdout:
                    sys.stdout.write(content)
        finally:
            for folder in self._folders:
                shutil.rmtree(folder, ignore_errors=True)
