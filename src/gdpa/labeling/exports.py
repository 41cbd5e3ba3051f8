"""Export labels and predictions in the formats of other tools."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from ..csv_text import csv_text, escape_formulas
from ..estimators.frames import adopt_encoder
from ..tables import Table, TableEncoder
from ..tables.write import table_bytes, typed_cells
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
    unknown : sequence of bool
        Rows whose cell in the target column is empty or the marker of an unknown label.
    images : Images or None
        Images of the rows.
    escape : bool, default=False
        Whether to escape answers, names and predictions in CSV files that a spreadsheet would run
        as formulas. Cells of the input are never changed.
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
    unknown: Sequence[bool]
    images: Images | None = None
    escape: bool = False
    # Extension and media type of each kind of file.
    KINDS: ClassVar = {
        "table": (".csv", "text/csv; charset=utf-8"),
        "parquet": (".parquet", "application/vnd.apache.parquet"),
        "jsonl": (".jsonl", "application/jsonl"),
        "labelstudio": (".json", "application/json"),
        "folders": (".zip", "application/zip"),
        "model": (".npz", "application/octet-stream"),
        "report": (".html", "text/html; charset=utf-8"),
        "certificate": (".json", "application/json"),
    }

    @property
    def kinds(self) -> list[str]:
        """The kinds of files available for these data."""
        return [kind for kind in self.KINDS if kind != "folders" or self.images is not None]

    def kind_of(self, path: Path) -> str:
        """Return the kind of table for a file extension."""
        tables = [kind for kind in self.kinds if kind not in ("model", "report", "certificate")]
        names = {self.KINDS[kind][0]: kind for kind in tables}
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
        if kind == "certificate":
            return content, media_type, "session-certificate.json"
        return content, media_type, f"{name}-{middle}{extension}"

    def _certificate(self, who: bool) -> bytes:
        """Return the certificate of the session."""
        return json.dumps(self.session.certificate(refresh=False)).encode()

    def _columns(self, who: bool) -> dict[str, list[Any]]:
        """Return the columns of the table with their types, then labels and predictions."""
        given = {
            name: typed_cells(column)
            for name, column in zip(self.table.names, self.table.columns, strict=True)
        }
        return given | self.session.columns(self.target, who=who)

    def _table(self, who: bool) -> bytes:
        """Return the table as CSV; the cells of the input are as in the file."""
        added = self.session.columns(self.target, who=who)
        columns: dict[str, list[Any]] = {
            name: self.table.written_cells(name) for name in self.table.names
        }
        labels = added[self.target]
        if self.escape:
            added = {
                escape_formulas([name])[0]: escape_formulas(cells) for name, cells in added.items()
            }
        if self.target in columns:
            added.pop(escape_formulas([self.target])[0], None)
            answers = escape_formulas(labels) if self.escape else labels
            # A label of the file, and a marker of unknown labels, stay as they are written.
            columns[self.target] = [
                cell if label == cell or (label is None and unknown) else answer
                for cell, label, answer, unknown in zip(
                    columns[self.target], labels, answers, self.unknown, strict=True
                )
            ]
        return table_bytes("csv", columns | added)

    def _parquet(self, who: bool) -> bytes:
        """Return the table as Parquet."""
        return table_bytes("parquet", self._columns(who))

    def _records(self, who: bool) -> list[dict[str, Any]]:
        """Return one mapping per row."""
        columns = self._columns(who)
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, cells, strict=True)) for cells in rows]

    def _jsonl(self, who: bool) -> bytes:
        """Return the table as JSON lines."""
        return table_bytes("jsonl", self._columns(who))

    def _labelstudio(self, who: bool) -> bytes:
        """Return tasks with annotations and predictions for Label Studio."""
        target = self.target
        answers = self.session.answers
        tasks = []
        named = {"from_name": target, "to_name": "image" if self.images else "text"}

        def result(value: Any) -> list[dict[str, Any]]:
            return [named | {"type": "choices", "value": {"choices": [str(value)]}}]

        for row, record in enumerate(self._records(who)):
            answer = answers.get(row)
            guess = record[f"{target}_predicted"]
            opinions = [] if answer is None else answer.opinions or [(answer.by, answer.value)]
            given = [{"result": result(v)} for _, v in opinions if v is not None]
            score = record[f"{target}_probability"]
            guesses = [] if guess is None else [{"score": score, "result": result(guess)}]
            parts = {"annotations": given, "predictions": guesses}
            tasks.append({"id": row + 1, "data": record} | parts)
        return json.dumps(tasks, default=str).encode()

    def _folders(self, who: bool) -> bytes:
        """Return a ZIP archive of the pictures, in a folder per class, and a list of them.

        Pictures that somebody labelled are in ``labelled``, those with a prediction only in
        ``predicted``, the others in ``unlabelled``. ``manifest.csv`` has a line per row: the file
        in the archive, the name in the table, the label exactly as given, who or what gave it, and
        its probability.
        """
        if self.images is None:
            raise ValueError("folders by class are available for pictures only")
        columns = self.session.columns("label", who=True)
        shares = columns["label_probability"]
        folders = _folder_names([*columns["label"], *columns["label_predicted"]])
        taken: set[str] = set()
        lines = []
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for row, (label, guess) in enumerate(
                zip(columns["label"], columns["label_predicted"], strict=True)
            ):
                name = self.images.name(row)
                if label is not None:
                    folder = "labelled"
                    value = label
                    answered = columns["label_at"][row] is not None
                    source = columns["label_by"][row] or ("annotator" if answered else "file")
                    share = None
                elif guess is not None:
                    folder = "predicted"
                    value = guess
                    source = "model"
                    share = shares[row]
                else:
                    folder = "unlabelled"
                    value = ""
                    source = ""
                    share = None
                path = ""
                with contextlib.suppress(ImageError):  # unreadable pictures are listed only
                    content, _ = self.images.get(row)
                    path = _free_path([folder, folders.get(value, "")], name, taken)
                    archive.writestr(path, content)
                lines.append((path, name, str(value), source, share))
            header = ("file", "name", "label", "given_by", "probability")
            text = csv_text(header, list(zip(*lines, strict=True)))
            archive.writestr("manifest.csv", text)
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

    def _proved(self) -> list[str]:
        """Return what the random checks prove, for the report."""
        statement = self.session.statement(refresh=False)
        if not statement.checks:
            return []
        return [f"{statement.text} This is about the predictions in the exported table."]

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
            notes=[*self.notes, *self._proved()],
            table=self.table.without([id_column] if id_column else []),
            columns=() if self.encoder is None else self.encoder.columns_,
            target=self.target,
            ids=self.ids,
        )
        return render(content).encode()


# Characters that a file system or an archive program does not accept in a name.
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def _safe_name(name: str) -> str:
    """Return a name that every file system accepts; most names are not changed."""
    safe = _NOT_IN_NAMES.sub("_", name).strip()
    if safe.endswith(".") or not safe.strip("."):  # includes "", "." and ".."
        safe = safe.rstrip(".") + "_"
    return f"_{safe}" if _DEVICES.match(safe) else safe


def _shortened(name: str) -> str:
    """Return the beginning of a name; file systems accept 255 bytes with a number added."""
    return name.encode()[:200].decode(errors="ignore")


def _folder_names(classes: Iterable[Any]) -> dict[Any, str]:
    """Return a folder name for each class; different classes have different folders."""
    names: dict[Any, str] = {}
    taken: set[str] = set()
    for value in dict.fromkeys(classes):
        if value is not None:
            names[value] = _unused(_safe_name(_shortened(str(value))), taken)
    return names


def _free_path(folders: Sequence[str], name: str, taken: set[str]) -> str:
    """Return a path for a picture: its own name, preceded by its own folders if it is taken."""
    parts = [_safe_name(part) for part in PurePosixPath(name.replace("\\", "/")).parts]
    start = "/".join(filter(None, folders))
    short = f"{start}/{parts[-1]}"
    long = "/".join([start, *parts])
    return _unused(long if short.casefold() in taken else short, taken)


def _unused(name: str, taken: set[str]) -> str:
    """Return the name, numbered if it is taken; letter case is ignored."""
    stem, dot, extension = name.rpartition(".") if "." in name.rsplit("/")[-1] else (name, "", "")
    free = name
    number = 1
    while unicodedata.normalize("NFC", free).casefold() in taken:
        number += 1
        free = f"{stem} ({number}){dot}{extension}"
    taken.add(unicodedata.normalize("NFC", free).casefold())
    return free
