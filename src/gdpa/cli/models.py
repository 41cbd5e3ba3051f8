"""Model files of the command line: a classifier together with how its features were made.

The file is that of :meth:`gdpa.GDPAClassifier.save`: arrays and JSON with a checksum, no pickle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tables import FeatureEncoder, Table, TableError
from ..tables.read import open_file

__all__ = ["FittedTable", "load_model", "predictions"]


@dataclass(frozen=True)
class FittedTable:
    """A classifier and where its rows came from.

    Parameters
    ----------
    model : GDPAClassifier
        The fitted classifier.
    encoder : FeatureEncoder or None
        How columns become features; None if the model was saved from Python.
    about : dict
        Target column, source, identifiers of the rows, threshold of "unsure".
    """

    model: Any
    encoder: FeatureEncoder | None
    about: dict[str, Any]

    @property
    def sure(self) -> float:
        """Probability below which a prediction is called unsure."""
        return float(self.about.get("sure", 0.75))

    def save(self, path: Path) -> None:
        """Write the model file."""
        assert self.encoder is not None
        extra = {"table": {**self.about, "encoder": self.encoder.to_dict()}}
        self.model.set_params(callback=None)
        self.model.save(path, extra=extra)

    def features(self, table: Table) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        """Encode the rows of a table for the model."""
        encoder = self.encoder
        if encoder is None:
            wanted = self.model.n_features_in_
            encoder = FeatureEncoder.fit(table.without(["target"]))
            found = len(encoder.feature_names)
            if found != wanted:
                raise TableError(
                    f"{table.source} has {found} features, the model was fitted on {wanted}"
                )
        return encoder.transform(table)


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
        encoder = None if table is None else FeatureEncoder.from_dict(table["encoder"])
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
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_]]:
    """Most probable class, its probability, and whether that is below `sure`."""
    best = probabilities.argmax(axis=1)
    top = probabilities[np.arange(best.size), best]
    return classes[best], top, top < sure
