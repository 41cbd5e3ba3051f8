"""More labels, the next question, and a file: what is done with a fitted classifier."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..policy import Policy
from ..tables.encoder import TableEncoder
from . import storage
from .fitting import more_labels
from .labels import encode_more, with_more_classes
from .query import query_nodes
from .state import FittedState
from .stored_checks import check_features_in, refusing

__all__ = ["Labeling"]


class Labeling:
    """What changes, questions and keeps a fitted classifier."""

    unlabeled: Any
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    extra_: dict[str, Any]
    encoder_: TableEncoder
    get_params: Any
    _options: Any
    _take: Any
    _policy: ClassVar[Policy]

    @property
    def state_(self) -> FittedState:
        """All that the fit found."""
        raise NotImplementedError

    def add_labels(
        self, indices: Any, labels: Any, *, tol: float = 1e-3, new_classes: bool = False
    ) -> Any:
        """Learn more labels of fitted samples, or corrected ones, without fitting again.

        Only the neighbourhood whose scores change is relaxed. Graph, weights, evidence models and
        calibration stay as they are.

        Parameters
        ----------
        indices : int or array-like of int
            Which samples of `fit`.
        labels : label or array-like of labels
            Their labels; the marker `unlabeled` takes a label back.
        tol : float, default=1e-3
            Residual that the update may leave, relative to the right-hand side. When updates have
            added up to five times this, the whole system is solved again, from where it stands.
        new_classes : bool, default=False
            Whether labels may be of classes that are not known yet.

        Returns
        -------
        GDPAClassifier
            This object.
        """
        state = self.state_
        nodes = np.atleast_1d(np.asarray(indices))
        if nodes.size == 0:
            return self
        n = state.n_nodes
        if nodes.ndim != 1 or nodes.dtype.kind not in "iu":
            raise ValueError(f"indices={indices!r} must be whole numbers, one per label")
        wrong = nodes[(nodes < 0) | (nodes >= n)]
        if wrong.size:
            raise ValueError(
                f"indices has {wrong[0]}; the fitted samples are numbered 0 to {n - 1}"
            )
        if not (isinstance(tol, int | float) and 0 < tol < 1):
            raise ValueError(f"tol={tol!r} must be a number between 0 and 1")
        classes = state.coding.classes
        if new_classes:
            classes = with_more_classes(labels, classes, self.unlabeled)
            state = state if classes.size == state.n_classes else state.with_classes(classes)
        codes = encode_more(labels, classes, self.unlabeled)
        if codes.size != nodes.size:
            raise ValueError(f"labels has {codes.size} entries, indices has {nodes.size}")
        unique, first, inverse = np.unique(nodes, return_index=True, return_inverse=True)
        if (codes[first][inverse] != codes).any():
            twice = nodes[codes[first][inverse] != codes][0]
            raise ValueError(f"labels names two classes for sample {twice}")
        options = self._options(classes)
        self._take(more_labels(state, unique, codes[first], options, float(tol)))
        return self

    def query(self, n: int = 1, strategy: str = "margin") -> NDArray[np.intp]:
        """Which samples to label next.

        Parameters
        ----------
        n : int, default=1
            How many.
        strategy : {"margin", "entropy", "expected-change"}, default="margin"
            Smallest lead of the first class over the second, largest entropy, or largest expected
            change of all scores.

        Returns
        -------
        ndarray of int
            Unlabelled samples, the most valuable first.
        """
        return query_nodes(self.state_, n, strategy, policy=self._policy)

    def save(self, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> Path:
        """Write the fitted classifier to a file without pickle: arrays and JSON, with a checksum.

        Parameters
        ----------
        path : path-like
            Where to; ".npz" is customary.
        extra : dict, optional
            Plain data to keep beside the classifier, such as how its features were made;
            :meth:`load` returns it as the attribute ``extra_``.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If something cannot be stored safely: evidence models, options that are no plain data,
            classes that are neither numbers nor text.
        """
        state = self.state_
        if state.evidence is not None:
            raise ValueError(
                "evidence models cannot be stored without pickle; use pickle or joblib, and only "
                "for files that you trust"
            )
        arrays, meta = storage.state_arrays(state)
        meta["params"] = storage.plain_params(self.get_params(deep=False))
        meta["n_features_in"] = int(self.n_features_in_)
        names = getattr(self, "feature_names_in_", None)
        meta["feature_names_in"] = None if names is None else [str(name) for name in names]
        encoder = getattr(self, "encoder_", None)
        meta["encoder"] = None if encoder is None else encoder.to_plain()
        meta["extra"] = extra or {}
        return storage.write_file(path, arrays, meta)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a classifier written by :meth:`save`.

        Parameters
        ----------
        path : path-like
            The file.

        Returns
        -------
        GDPAClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If the file is damaged, of a newer version, or no saved classifier.
        """
        arrays, meta = storage.read_file(path)
        with refusing(path):
            model: Any = cls(**storage.restored_params(meta["params"]))
            model._validate_params()
            classes = storage.classes_of(arrays, meta)
            model._take(storage.read_state(arrays, meta, model._options(classes)))
            check_features_in(arrays, meta, model.get_params(deep=False))
        model.n_features_in_ = meta["n_features_in"]
        if meta["feature_names_in"] is not None:
            model.feature_names_in_ = np.array(meta["feature_names_in"], dtype=object)
        if meta.get("encoder") is not None:
            model.encoder_ = TableEncoder.from_plain(meta["encoder"])
        model.extra_ = meta.get("extra", {})
        return model
