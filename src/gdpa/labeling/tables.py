"""Start a labelling session from a file: a table, texts, image files or arrays of pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..estimators.guesses import GuessColumn
from ..tables import Table, TableEncoder, TableError, read_table
from ..tables.encoder import WEAK
from ..tables.pictures import picture_folder
from ..tables.read import drop_predictions, notes_on_labels
from .controller import Controller
from .exports import Exporter
from .goal import Goal
from .images import ArrayImages, FileImages
from .rows import Images, RowView
from .session import LabelingSession


@dataclass(frozen=True)
class TableSource:
    """The file or folder to label, and the roles of its columns.

    Parameters
    ----------
    data : str
        A file, "-" for standard input, or a folder of pictures or text files.
    target : str
        The column of labels; created if it does not exist.
    text, image, id_column : str, optional
        Columns with the text to read, the image file, and the name of the row.
    shape : (int, int), optional
        Height and width of the images, if the rows are arrays of pixels.
    drop : tuple of str
        Columns to ignore.
    columns : mapping
        Kinds of some columns; see :class:`~gdpa.tables.TableEncoder`.
    embedding : mapping
        Options `embed`, `offline` and `progress` of the encoder.
    classes : tuple of str
        Classes that have a button from the start.
    guesses : mapping
        Columns of guesses, with the column of their confidence or None.
    unlabeled : str, optional
        Value of an unknown label, besides missing cells.
    escape : bool
        Whether exported answers and predictions are escaped for spreadsheets.
    reading : mapping
        Options of :func:`~gdpa.tables.read_table`.
    """

    data: str
    target: str
    text: str | None = None
    image: str | None = None
    shape: tuple[int, int] | None = None
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    guesses: Mapping[str, str | None] = field(default_factory=dict)
    unlabeled: str | None = None
    escape: bool = False
    embedding: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)

    @property
    def guess_names(self) -> list[str]:
        """Names of the columns of guesses and of their confidences."""
        return [*self.guesses, *filter(None, self.guesses.values())]

    @property
    def folder(self) -> Path:
        """The folder that contains the images."""
        return Path.cwd() if self.data == "-" else picture_folder(str(Path(self.data).resolve()))

    @property
    def title(self) -> str:
        """The name of the file."""
        return "standard input" if self.data == "-" else Path(self.data).resolve().name

    def of_files(self, table: Table) -> TableSource:
        """Set the text or image column of a folder of files."""
        if self.data == "-" or not Path(self.data).is_dir() or table.names[0] != "file":
            return self
        if "text" in table.names:
            return replace(self, text=self.text or "text", id_column=self.id_column or "file")
        return replace(self, image=self.image or "file", id_column=self.id_column or "file")

    def read(self) -> Table:
        """Read the table without the output columns of an earlier run; check column names."""
        as_text = {name for name, kind in self.columns.items() if kind in ("category", "text")}
        as_text |= {self.text} if self.text else set()
        table = read_table(
            self.data,
            as_text=frozenset(as_text),
            target=self.target,
            written=True,
            **self.reading,
        )
        named = [self.text, self.image, self.id_column, *self.drop, *self.columns]
        named += self.guess_names
        for name in filter(None, named):
            table.column(name)
        return drop_predictions(table, self.target, list(filter(None, named)))


def open_table(
    source: TableSource,
    *,
    log: Path | None,
    seed: int = 0,
    encoder: TableEncoder | None = None,
    labels: Sequence[str | None] | None = None,
    command: str = "",
    repair: bool = False,
    goal: Goal | None = None,
) -> tuple[Controller, Exporter, list[str]]:
    """Read a file and start a session.

    Parameters
    ----------
    source : TableSource
        The data to label.
    log : Path or None
        File to save the answers to.
    seed : int, default=0
        Random seed.
    encoder : TableEncoder, optional
        Encoder of a saved model; by default, one is fitted to the table.
    labels : sequence, optional
        Labels of a saved model, one per row.
    command : str, default=""
        The command, for the report.
    repair : bool, default=False
        Whether to read a log of an earlier release whose first line is damaged.
    goal : Goal, optional
        What is to be proved; by default, as in the log.

    Returns
    -------
    controller : Controller
        The session for the page.
    exporter : Exporter
        Creates the files to download.
    notes : list of str
        Messages for the user.
    """
    table = source.read()
    source = source.of_files(table)
    notes = list(table.notes)
    in_file = _labels(table, source, notes)
    known = _with_labels_of_model(in_file, labels, table.source)
    images = _images(table, source)
    X, encoder = _features(table, source, images, encoder, notes, seed)
    session = LabelingSession(
        X,
        known,
        random_state=seed,
        log=log,
        rescale=None,
        repair=repair,
        goal=goal,
        guesses=_guesses(table, source),
    )
    notes += session.log_notes
    hidden = {source.target, source.id_column, source.text, source.image, *source.drop}
    hidden |= set(source.guess_names)  # seeing a guess would influence the answer
    shown = [] if source.shape else [name for name in table.names if name not in hidden]
    ids = None if source.id_column is None else table.column(source.id_column).cells()
    rows = RowView(
        shown,
        [table.column(n) for n in shown],
        text=None if source.text is None else table.column(source.text),
        images=images,
        ids=ids,
        note=next((note for note in notes if WEAK in note), ""),
    )
    controller = Controller(
        session,
        rows,
        title=source.title,
        target=source.target,
        classes=source.classes,
        groups=_groups(encoder, shown, X.shape[1]),
    )
    named = (source.title, source.target, source.id_column)
    exporter = Exporter(
        session,
        *named,
        table,
        encoder,
        ids,
        notes,
        command,
        unknown=[label is None for label in in_file],
        images=images,
        escape=source.escape,
    )
    return controller, exporter, notes


def _labels(table: Table, source: TableSource, notes: list[str]) -> list[str | None]:
    """Return the labels of the table; None where unknown."""
    known: list[str | None] = [None] * table.n_rows
    if source.target in table.names:
        cells = table.column(source.target).cells()
        marker = (source.unlabeled or "").strip()
        known = [None if cell.strip() in ("", marker) else cell for cell in cells]
        notes += notes_on_labels(source.target, known)
        kinds = len(set(known) - {None})
        if kinds > 1000 or (kinds > 50 and 2 * kinds > sum(k is not None for k in known)):
            raise TableError(
                f"{table.source}, column {source.target!r}: {kinds} distinct labels; these look "
                "like numbers or names, not classes"
            )
    else:
        notes.append(f"{table.source} has no column {source.target!r}: starting without labels")
    return known


def _guesses(table: Table, source: TableSource) -> tuple[GuessColumn, ...]:
    """Return the columns of guesses."""
    columns = []
    for name, confidence in source.guesses.items():
        values = tuple(cell.strip() or None for cell in table.column(name).cells())
        how_sure = None
        if confidence is not None:
            sure = table.column(confidence)
            if sure.texts is not None:
                raise TableError(
                    f"{table.source}, column {confidence!r}: the confidence of a guess is a number"
                )
            how_sure = np.asarray(sure.values, dtype=np.float64)
        columns.append(GuessColumn(name, values, how_sure))
    return tuple(columns)


def _with_labels_of_model(
    known: list[str | None], given: Sequence[str | None] | None, name: str
) -> list[str | None]:
    """Complete the labels of the table by those of a saved model."""
    if given is None:
        return known
    if len(given) != len(known):
        raise ValueError(f"{name} has {len(known)} rows, the model was fitted on {len(given)}")
    return [b if a is None else a for a, b in zip(known, given, strict=True)]


def _images(table: Table, source: TableSource) -> Images | None:
    """Return the images of the rows, if there are any."""
    if source.image is not None:
        return FileImages(source.folder, table.column(source.image).cells())
    if source.shape is None:
        return None
    numbers = [c for n, c in zip(table.names, table.columns, strict=True) if n != source.target]
    pixels = [c.values for c in numbers if c.texts is None]
    height, width = source.shape
    if len(pixels) != height * width:
        raise ValueError(
            f"--shape {height}x{width} needs {height * width} number columns, "
            f"{table.source} has {len(pixels)}"
        )
    values = np.nan_to_num(np.column_stack(pixels))
    return ArrayImages(values.reshape(-1, height, width))


def _features(
    table: Table,
    source: TableSource,
    images: Images | None,
    encoder: TableEncoder | None,
    notes: list[str],
    seed: int,
) -> tuple[NDArray[Any], TableEncoder | None]:
    """Return the features and the encoder of the table."""
    if isinstance(images, ArrayImages):
        flat = images.values.reshape(images.values.shape[0], -1).astype(np.float64)
        return flat / (np.ptp(flat) or 1.0), None
    ignored = {source.target, source.id_column, *source.drop, *source.guess_names}
    ignored -= {None, source.image, source.text}
    rest = table.without([str(name) for name in ignored])
    if encoder is None:
        kinds = dict(source.columns) | ({source.text: "text"} if source.text else {})
        kinds |= {source.image: "image"} if source.image else {}
        encoder = TableEncoder(columns=kinds, random_state=seed, **source.embedding).fit(rest)
        notes += encoder.notes_
    X, unknown = encoder.encode(rest)
    notes += unknown
    return X, encoder


def _groups(
    encoder: TableEncoder | None, shown: Sequence[str], width: int
) -> NDArray[np.intp] | None:
    """Return the index of the displayed column of each feature, or None if unknown."""
    if encoder is None:
        return None
    place = {name: j for j, name in enumerate(shown)}
    groups = [place.get(p.name, -1) for p in encoder.columns_ for _ in range(p.n_features)]
    return np.array(groups, dtype=np.intp) if len(groups) == width else None
