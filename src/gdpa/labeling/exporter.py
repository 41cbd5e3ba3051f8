"""The files that the page offers to keep: the table, the classifier, the report."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .session import LabelingSession

__all__ = ["Exporter"]


class Exporter:
    """Makes the files that the page offers.

    Parameters
    ----------
    session : LabelingSession
        The session.
    header, columns : sequences
        Names and cells of the user's own table.
    name : str
        What the files are called.
    model : callable
        Writes the classifier to a path.
    report : callable
        Returns the report as HTML.
    """

    KINDS = ("table", "model", "report")

    def __init__(
        self,
        session: LabelingSession,
        header: Sequence[str],
        columns: Sequence[Sequence[Any]],
        *,
        name: str,
        model: Callable[[Path], Any],
        report: Callable[[], str],
    ) -> None:
        self.session = session
        self.header = header
        self.columns = columns
        self.name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in name)
        self._model = model
        self._report = report

    def make(self, what: str) -> tuple[bytes, str, str]:
        """Make a file.

        Parameters
        ----------
        what : {"table", "model", "report"}
            Which one.

        Returns
        -------
        content : bytes
            The file.
        kind : str
            Its media type.
        name : str
            What to call it.
        """
        if what == "table":
            text = self.session.table(self.header, self.columns)
            return text.encode(), "text/csv; charset=utf-8", f"{self.name}-labelled.csv"
        if what == "report":
            return self._report().encode(), "text/html; charset=utf-8", f"{self.name}-report.html"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            self._model(path)
            return path.read_bytes(), "application/octet-stream", f"{self.name}-model.npz"
