"""A desk for a file: a table, texts, pictures beside it, arrays of pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import Column, Table, TableEncoder, TableError, read_table
from .desk import Desk
from .exporter import Exporter
from .items import Items, Pictures
from .picture_features import picture_features
from .pictures import ArrayPictures, FilePictures
from .session import LabelingSession

__all__ = ["TableSource", "open_desk"]

Save = Callable[[Any, TableEncoder, dict[str, Any], Path], None]


@dataclass(frozen=True)
class TableSource:
    """What is to be labelled, and which columns are what.

    Parameters
    ----------
    data : str
        The file; "-" is standard input.
    target : str
        The column to fill; it need not be there.
    text, image, id_column : str, optional
        Columns with the text to read, the picture's file, the row's name.
    shape : (int, int), optional
        Height and width of rows of numbers that are pictures.
    drop : tuple of str
        Columns to leave out.
    columns : mapping
        What some columns are; see :class:`~gdpa.tables.TableEncoder`.
    classes : tuple of str
        Classes that have a button from the start.
    unlabeled : str, optional
        What marks an unknown label, besides missing cells.
    format, delimiter, encoding : str, optional
        How to read the file; found by looking by default.
    header : bool, default=True
        Whether its first line has the names of the columns.
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
    unlabeled: str | None = None
    format: str | None = None
    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True

    @property
    def folder(self) -> Path:
        """The folder of the table: pictures are read from here and below."""
        return Path.cwd() if self.data == "-" else Path(self.data).resolve().parent

    def read(self) -> Table:
        """Read the table; columns that were named must be there."""
        kinds = {name: kind for name, kind in self.columns.items() if kind in ("category", "text")}
        as_text = frozenset([*kinds, *([self.text] if self.text else [])])
        table = read_table(
            self.data,
            format=self.format,
            delimiter=self.delimiter,
            encoding=self.encoding,
            as_text=as_text,
            target=self.target,
            header=self.header,
        )
        for name in (self.text, self.image, self.id_column, *self.drop, *self.columns):
            if name is not None:
                table.column(name)
        return table


def open_desk(
    source: TableSource,
    *,
    log: Path | None,
    seed: int = 0,
    encoder: TableEncoder | None = None,
    labels: Any = None,
    save: Save,
    command: str = "",
) -> tuple[Desk, Exporter, list[str]]:
    """Read a file and lay it on a desk.

    Parameters
    ----------
    source : TableSource
        What is to be labelled.
    log : Path or None
        Where the answers are kept.
    seed : int, default=0
        Seed of what is random.
    encoder : TableEncoder, optional
        How columns become features, from a saved model; learned from the table by default.
    labels : array-like, optional
        Labels of a saved model, one per row.
    save : callable
        Writes the classifier, its encoder and what they were made from to a path.
    command : str, default=""
        The command, for the report.

    Returns
    -------
    desk : Desk
        The desk.
    exporter : Exporter
        What makes the files to keep.
    notes : list of str
        What the user should know.
    """
    table = source.read()
    notes = list(table.notes)
    known = _labels(table, source, labels, notes)
    pictures = _pictures(table, source)
    X, encoder = _features(table, source, pictures, encoder, notes, seed)
    session = LabelingSession(X, known, random_state=seed, log=log, rescale=None)
    name = "standard input" if source.data == "-" else Path(source.data).name
    hidden = {source.target, source.id_column, source.text, source.image, *source.drop}
    arrays = isinstance(pictures, ArrayPictures)
    shown = [n for n in table.names if n not in hidden and not arrays]
    ids = None if source.id_column is None else table.column(source.id_column).cells()
    items = Items(
        shown,
        [table.column(n) for n in shown],
        text=None if source.text is None else table.column(source.text),
        pictures=pictures,
        ids=ids,
    )
    desk = Desk(
        session,
        items,
        title=name,
        target=source.target,
        classes=source.classes,
        groups=_groups(encoder, shown, X.shape[1]),
    )
    about = {"target": source.target, "source": table.source, "sure": 0.75}
    about |= {"id_column": source.id_column, "ids": ids}
    exporter = Exporter(
        session,
        *_own_columns(table, source),
        name=Path(name).stem,
        # Features of pictures are not those of a table: such a model is for Python.
        model=session.save
        if encoder is None
        else partial(_save_table, session, encoder, about, save),
        report=lambda: _report(session, table, source, encoder, ids, command, notes),
    )
    return desk, exporter, notes


def _save_table(
    session: LabelingSession, encoder: TableEncoder, about: dict[str, Any], save: Save, path: Path
) -> None:
    save(session.classifier(), encoder, about, path)


def _labels(table: Table, source: TableSource, given: Any, notes: list[str]) -> list[str | None]:
    """Labels of the table, and of a saved model where the table has none."""
    known: list[str | None] = [None] * table.n_rows
    if source.target in table.names:
        cells = table.column(source.target).cells()
        marker = (source.unlabeled or "").strip()
        known = [None if cell in ("", marker) else cell for cell in cells]
        kinds = len(set(known) - {None})
        if kinds > 1000 or (kinds > 50 and 2 * kinds > sum(k is not None for k in known)):
            raise TableError(
                f"{table.source}, column {source.target!r}: {kinds} different labels; these look "
                "like numbers or names, not classes"
            )
    else:
        notes.append(f"{table.source} has no column {source.target!r}: no label to start with")
    if given is not None:
        if len(given) != table.n_rows:
            raise ValueError(
                f"{table.source} has {table.n_rows} rows, the model was fitted on {len(given)}"
            )
        known = [b if a is None else a for a, b in zip(known, given, strict=True)]
    return known


def _pictures(table: Table, source: TableSource) -> Pictures | None:
    if source.image is not None:
        return FilePictures(source.folder, table.column(source.image).cells())
    if source.shape is None:
        return None
    numbers = [c for n, c in zip(table.names, table.columns, strict=True) if n != source.target]
    pixels = [c.values for c in numbers if c.texts is None]
    height, width = source.shape
    if len(pixels) != height * width:
        raise ValueError(
            f"--shape {height}x{width} needs {height * width} columns of numbers, "
            f"{table.source} has {len(pixels)}"
        )
    values = np.nan_to_num(np.column_stack(pixels))
    return ArrayPictures(values.reshape(-1, height, width))


def _features(
    table: Table,
    source: TableSource,
    pictures: Pictures | None,
    encoder: TableEncoder | None,
    notes: list[str],
    seed: int,
) -> tuple[NDArray[Any], TableEncoder | None]:
    if isinstance(pictures, ArrayPictures):
        flat = pictures.values.reshape(pictures.values.shape[0], -1).astype(np.float64)
        return flat / (np.ptp(flat) or 1.0), None
    left_out = {source.target, source.id_column, source.image, *source.drop} - {None}
    rest = table.without([str(name) for name in left_out])
    blocks: list[NDArray[Any]] = []
    if encoder is not None:
        blocks.append(encoder.encode(table)[0])
    elif rest.names:
        kinds = dict(source.columns) | ({source.text: "text"} if source.text else {})
        encoder = TableEncoder(columns=kinds, random_state=seed)
        try:
            blocks.append(encoder.fit(rest).encode(rest)[0])
            notes += encoder.notes_
        except TableError:
            if pictures is None:
                raise
            encoder = None
    if pictures is not None:
        seen, broken = picture_features(pictures, table.n_rows)
        blocks.append(seen * 4.0)  # pictures count more than the columns beside them
        if broken:
            notes.append(f"{broken} of {table.n_rows} pictures cannot be read")
    if not blocks:
        raise TableError(f"{table.source} has no column to learn from")
    return np.hstack(blocks), encoder if len(blocks) == 1 and pictures is None else None


def _groups(encoder: TableEncoder | None, shown: Sequence[str], width: int) -> Any:
    """Shown column of each feature; None where that is not known."""
    if encoder is None:
        return None
    place = {name: j for j, name in enumerate(shown)}
    groups = [place.get(p.name, -1) for p in encoder.columns_ for _ in range(p.n_features)]
    return np.array(groups, dtype=np.intp) if len(groups) == width else None


def _own_columns(table: Table, source: TableSource) -> tuple[list[str], list[list[str]]]:
    """Columns of the user's table for the one that is written, without the target."""
    names = [n for n in table.names if n != source.target]
    columns: list[Column] = [table.column(n) for n in names]
    return names, [column.cells() for column in columns]


def _report(
    session: LabelingSession,
    table: Table,
    source: TableSource,
    encoder: TableEncoder | None,
    ids: Sequence[str] | None,
    command: str,
    notes: Sequence[str],
) -> str:
    from ..report import gather, render

    return render(
        gather(
            session.classifier(),
            session.X,
            title=f"gdpa: {source.target} of {Path(table.source).name}",
            asked={"data": table.source, "target": source.target},
            command=command,
            notes=notes,
            table=table.without([source.id_column] if source.id_column else []),
            columns=() if encoder is None else encoder.columns_,
            target=source.target,
            ids=ids,
        )
    )
