"""Export labels and predictions in the formats of other tools."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..csv_text import csv_text
from ..errors import require
from ..estimators.frames import adopt_encoder
from ..tables import Table, TableEncoder
from .images import ImageError
from .rows import Images
from .session import LabelingSession


@dataclass(frozen=True)
class Exporter:
    """Creates the files that the page offers for download.

    Parameters
    ----------
    session : LabelingSession
        The session.
    title, target : str
        Names of the data and of the target column.
    id_column : str or None
        Column with the names of the rows.
    table : Table
        The table.
    encoder : TableEncoder or None
        Encoder of the table; None for arrays of pixels, whose models can be used in Python only.
    ids : list of str or None
        Names of the rows.
    notes : sequence of str
        Messages about the data, for the report.
    command : str
        The command, for the report.
    images : Images or None
        Images of the rows.
    """

    session: LabelingSession
    title: str
    target: str
    id_column: str | None
    table: Table
    encoder: TableEncoder | None
    ids: list[str] | None
    notes: Sequence[str]
    command: str
    images: Images | None = None
    # Extension and media type of each kind of file.
    KINDS: ClassVar = {
        "table": (".csv", "text/csv; charset=utf-8"),
        "parquet": (".parquet", "application/vnd.apache.parquet"),
        "jsonl": (".jsonl", "application/jsonl"),
        "labelstudio": (".json", "application/json"),
        "folders": (".zip", "application/zip"),
        "model": (".npz", "application/octet-stream"),
        "report": (".html", "text/html; charset=utf-8"),
    }

    @property
    def kinds(self) -> list[str]:
        """The kinds of files available for these data."""
        return [kind for kind in self.KINDS if kind != "folders" or self.images is not None]

    def kind_of(self, path: Path) -> str:
        """Return the kind of table for a file extension."""
        names = {self.KINDS[kind][0]: kind for kind in self.kinds[:-2]}
        try:
            return names[path.suffix.lower()]
        except KeyError:
            raise ValueError(f"{path}: the extension must be {', '.join(names)}") from None

    def make(self, kind: str, *, who: bool = False) -> tuple[bytes, str, str]:
        """Create a file.

        Parameters
        ----------
        kind : str
            One of :attr:`kinds`.
        who : bool, default=False
            Whether tables include who answered, and when.

        Returns
        -------
        content : bytes
            The file.
        media_type : str
            Its media type.
        name : str
            Its name.
        """
        stem = Path(self.title).stem
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in stem)
        extension, media_type = self.KINDS[kind]
        middle = kind if kind in ("model", "report") else "labelled"
        content = getattr(self, f"_{kind}")(who)
        return content, media_type, f"{name}-{middle}{extension}"

    def _columns(self, who: bool, *, typed: bool = True) -> dict[str, list[Any]]:
        """Return the columns of the table, followed by labels and predictions."""
        added = self.session.columns(self.target, who=who)
        columns: dict[str, list[Any]] = {}
        for name, column in zip(self.table.names, self.table.columns, strict=True):
            numbers = typed and column.texts is None and not column.moments
            cells = column.values.tolist() if numbers else column.cells()
            pairs = zip(cells, column.missing.tolist(), strict=True)
            columns[name] = [None if missing else cell for cell, missing in pairs]
        return columns | added

    def _table(self, who: bool) -> bytes:
        """Return the table as CSV."""
        columns = self._columns(who, typed=False)
        return csv_text(list(columns), list(columns.values())).encode()

    def _parquet(self, who: bool) -> bytes:
        """Return the table as Parquet."""
        arrow, parquet = require("pyarrow", "tables"), require("pyarrow.parquet", "tables")
        file = io.BytesIO()
        parquet.write_table(arrow.table(self._columns(who)), file)
        return file.getvalue()

    def _records(self, who: bool) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        columns = self._columns(who)
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, cells, strict=True)) for cells in rows]

    def _jsonl(self, who: bool) -> bytes:
        """Return the table as JSON lines."""
        return "".join(json.dumps(record) + "\n" for record in self._records(who)).encode()

    def _labelstudio(self, who: bool) -> bytes:
        """Return tasks with annotations and predictions for Label Studio."""
        target, answers, tasks = self.target, self.session.answers, []
        named = {"from_name": target, "to_name": "image" if self.images else "text"}

        def result(value: Any) -> list[dict[str, Any]]:
            return [named | {"type": "choices", "value": {"choices": [str(value)]}}]

        for row, record in enumerate(self._records(who)):
            answer, guess = answers.get(row), record[f"{target}_predicted"]
            opinions = [] if answer is None else answer.opinions or [(answer.by, answer.value)]
            given = [{"result": result(v)} for _, v in opinions if v is not None]
            score = record[f"{target}_probability"]
            guesses = [] if guess is None else [{"score": score, "result": result(guess)}]
            parts = {"annotations": given, "predictions": guesses}
            tasks.append({"id": row + 1, "data": record} | parts)
        return json.dumps(tasks).encode()

    def _folders(self, who: bool) -> bytes:
        """Return a ZIP archive of the images with one folder per class."""
        if self.images is None:
            raise ValueError("folders by class are available for pictures only")
        file = io.BytesIO()
        predicted = self.session.columns("label")["label_predicted"]
        with zipfile.ZipFile(file, "w") as archive:
            for row, value in enumerate(predicted):
                try:
                    content, media_type = self.images.get(row)
                except ImageError:
                    continue
                folder = "".join(c if c.isalnum() or c in " -_" else "_" for c in str(value))
                ending = media_type.partition("/")[2].partition("+")[0]
                archive.writestr(f"{folder}/{row + 1}.{ending}", content)
        return file.getvalue()

    def _model(self, who: bool) -> bytes:
        """Return the fitted classifier."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.npz"
            model = self.session.classifier()
            extra: dict[str, Any] = {}
            if self.encoder is not None:
                adopt_encoder(model, self.encoder)
                about: dict[str, Any] = {"target": self.target, "source": self.table.source}
                extra["table"] = about | {"id_column": self.id_column, "ids": self.ids}
            model.save(path, extra=extra)
            return path.read_bytes()

    def _report(self, who: bool) -> bytes:
        """Return the report."""
        from ..report import gather, render

        id_column = self.id_column
        content = gather(
            self.session.classifier(),
            self.session.X,
            title=f"gdpa: {self.target} of {Path(self.table.source).name}",
            asked={"data": self.table.source, "target": self.target},
            command=self.command,
            notes=self.notes,
            table=self.table.without([id_column] if id_column else []),
            columns=() if self.encoder is None else self.encoder.columns_,
            target=self.target,
            ids=self.ids,
        )
        return render(content).encode()
