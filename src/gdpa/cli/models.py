"""Model files of the command line: a classifier together with how its features were made.

The file is that of :meth:`gdpa.GDPAClassifier.save`: arrays and JSON with a checksum, no pickle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import Table, TableEncoder, TableError
from ..tables.source import open_file

__all__ = ["FittedTable", "kept_columns", "load_model", "predictions"]


@dataclass(frozen=True)
class FittedTable:
    """A classifier and where its rows came from.

    Parameters
    ----------
    model : GDPAClassifier
        The fitted classifier.
    encoder : TableEncoder or None
        How columns become features; None if the model was saved from Python.
    about : dict
        Target column, source, identifiers of the rows, threshold of "unsure".
    """

    model: Any
    encoder: TableEncoder | None
    about: dict[str, Any]

    @property
    def sure(self) -> float:
        """Probability below which a prediction is called unsure."""
        return float(self.about.get("sure", 0.75))

    @property
    def as_text(self) -> frozenset[str]:
        """Columns of a CSV file that must not be taken for plain numbers."""
        return frozenset() if self.encoder is None else self.encoder.as_text_

    def save(self, path: Path) -> None:
        """Write the model file."""
        assert self.encoder is not None
        extra = {"table": {**self.about, "encoder": self.encoder.to_plain()}}
        self.model.set_params(callback=None)
        self.model.save(path, extra=extra)

    def features(self, table: Table) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Encode the rows of a table for the model."""
        encoder = self.encoder
        if encoder is None:
            wanted = self.model.n_features_in_
            rows = table.without(["target"])
            kinds = dict.fromkeys(rows.names, "number")
            encoder = TableEncoder(scale="none", columns=kinds).fit(rows)
            found = encoder.columns_.n_features
            if found != wanted:
                raise TableError(
                    f"{table.source} has {found} features, the model was fitted on {wanted}"
                )
        return encoder.encode(table)


def load_model(path: str) -> FittedTable:
    """Read a model file.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    FittedTable
        The classifier and its encoder.

    Raises
    ------
    ValueError
        If the file is missing, damaged, of a newer version, or no model.
    """
    open_file(path, path).close()  # missing, a directory, empty: said in the words of all commands
    from ..classifier import GDPAClassifier

    try:
        model = GDPAClassifier.load(path)
        table = model.extra_.get("table")
        encoder = None if table is None else TableEncoder.from_plain(table["encoder"])
        about = {} if table is None else {k: v for k, v in table.items() if k != "encoder"}
        ids = about.get("ids")
        if ids is not None and len(ids) != model.graph_.shape[0]:
            raise ValueError("as many identifiers as rows are needed")
        fitted = FittedTable(model, encoder, about)
        if not 0.0 <= fitted.sure <= 1.0:
            raise ValueError("the threshold of sure predictions is no probability")
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(path) else f"{path}: {text}") from error
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is damaged or no model: {error!r}") from error
    return fitted


def predictions(
    classes: NDArray[Any], probabilities: NDArray[np.float64], sure: float
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Most probable class, its probability, its lead, and whether that is below `sure`."""
    best = probabilities.argmax(axis=1)
    ordered = np.sort(probabilities, axis=1)
    top = ordered[:, -1]
    second = ordered[:, -2] if ordered.shape[1] > 1 else np.zeros_like(top)
    return classes[best], top, top - second, top < sure


def kept_columns(
    table: Table, keep: bool, id_column: str | None, ids: list[str] | None
) -> tuple[list[str], list[Any]]:
    """First columns of the output: all of the input, or what names the rows.

    Parameters
    ----------
    table : Table
        The input.
    keep : bool
        Whether all its columns are kept.
    id_column : str or None
        The column that names the rows.
    ids : list of str or None
        Its cells.

    Returns
    -------
    header : list of str
        Names; where the input has a name that the command uses itself, it is marked.
    columns : list
        Cells.
    """
    if not keep:
        names: list[Any] = list(range(1, table.n_rows + 1)) if ids is None else list(ids)
        return [id_column or "row"], [names]
    own = {"prediction", "probability", "margin", "unsure", "known"}
    header = [f"{name} (input)" if name in own else name for name in table.names]
    return header, [column.cells() for column in table.columns]
