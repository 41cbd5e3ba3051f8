"""Files that the commands write: whole or not at all, and only where they were told to.

Everything is staged beside its target (:class:`gdpa.files.StagingFolder`) and moved there at the
end, so nothing is written outside the folder that was named, and Ctrl-C leaves what was there
before.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

from ..files import StagingFolder, is_special

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
        self._staged: dict[str, StagingFolder] = {}
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
        # A device or a pipe keeps the name that it was given.
        whole = target if is_special(target) else target.parent.resolve() / target.name
        if whole in self._inputs or target.resolve() in self._inputs:
            raise ValueError(f"{option} {path} would overwrite the input")
        if any(whole == other.target for other in self._staged.values()):
            raise ValueError(f"{option} {path} is already the file of another option")
        try:
            self._staged[option] = StagingFolder(whole)
        except OSError as error:
            raise ValueError(
                f"{option} {path} cannot be written: {error.strerror or error}"
            ) from error

    def path(self, option: str) -> Path:
        """Where to write the output of `option` for now."""
        return self._staged[option].file

    def text(self, option: str, content: str) -> None:
        """Write text as the output of `option`; on stdout, at the end, if it was not claimed."""
        if option in self._staged:
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
                for staged in self._staged.values():
                    staged.publish()
                for content in self._stdout:
                    sys.stdout.write(content)
        finally:
            for staged in self._staged.values():
                staged.remove()
