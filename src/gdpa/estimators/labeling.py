"""More labels, the next question, and a file: what is done with a fitted classifier."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from ..graph import neighbor_graph
from ..graph.features import check_features
from ..graph.rescale import Rescaler
from ..policy import Policy
from ..tables import TableEncoder, is_frame
from . import storage
from .attributes import Attributes
from .committee import change_labels, pack_state, unpack_state
from .graphs import RESCALE_KINDS, precomputed_graph
from .labels import encode_more, with_more_classes
from .query import query_nodes
from .stored_checks import check_features_in, refusing

__all__ = ["Labeling"]


class Labeling(Attributes):
    """What changes, questions and keeps a fitted classifier."""

    unlabeled: Any
    graph: str
    laplacian: str
    rescale: str | None
    algorithm: str
    n_neighbors: Any
    random_state: int | None
    skipped_: NDArray[np.intp]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    extra_: dict[str, Any]
    encoder_: TableEncoder
    get_params: Any
    _options: Any
    _take: Any
    _policy: ClassVar[Policy]

    def add_labels(
        self, indices: Any, labels: Any, *, tol: float = 1e-3, new_classes: bool = True
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
        new_classes : bool, default=True
            Whether labels may be of classes that are not known yet.

        Returns
        -------
        GDPAClassifier
            This object.
        """
        state = self.state_
        nodes = self._nodes(indices, state.n_nodes)
        if nodes.size == 0:
            return self
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
        skipped = np.setdiff1d(self._skipped, unique)
        self._take(change_labels(state, unique, codes[first], options, float(tol)))
        self.skipped_ = skipped
        return self

    def skip(self, indices: Any) -> Any:
        """Say that samples cannot be decided; :meth:`query` does not ask for them again.

        Parameters
        ----------
        indices : int or array-like of int
            Which samples of `fit`. :meth:`add_labels` takes them up again.

        Returns
        -------
        GDPAClassifier
            This object; ``skipped_`` lists the samples.
        """
        nodes = self._nodes(indices, self.state_.n_nodes)
        self.skipped_ = np.union1d(self._skipped, nodes).astype(np.intp)
        return self

    @property
    def _skipped(self) -> NDArray[np.intp]:
        """Skipped samples of the present fit."""
        return np.asarray(self.skipped_[self.skipped_ < self.state_.n_nodes])

    @staticmethod
    def _nodes(indices: Any, n: int) -> NDArray[np.intp]:
        nodes = np.atleast_1d(np.asarray(indices))
        if nodes.size == 0:
            return np.arange(0)
        if nodes.ndim != 1 or nodes.dtype.kind not in "iu":
            raise ValueError(f"indices={indices!r} must be whole numbers, one per label")
        wrong = nodes[(nodes < 0) | (nodes >= n)]
        if wrong.size:
            raise ValueError(
                f"indices has {wrong[0]}; the fitted samples are numbered 0 to {n - 1}"
            )
        return nodes.astype(np.intp)

    def query(self, n: int = 1, strategy: str = "auto", *, X: Any = None) -> NDArray[np.intp]:
        """Which samples to label next.

        Parameters
        ----------
        n : int, default=1
            How many.
        strategy : {"auto", "margin", "representatives", "discs", "random"}, default="auto"
            Doubt times what the labels leave unknown, among samples drawn at random; the smallest
            leads of the first class over the second, apart from each other; representatives of
            clusters; the nodes whose self-loops lift the smallest Gershgorin disc the most; evenly.
        X : array-like, sparse matrix or graph, optional
            Data of a classifier that is not fitted, because there is no label yet: which samples
            to label first, by representatives, discs or at random.

        Returns
        -------
        ndarray of int
            Unlabelled samples, the most valuable first; skipped ones are left out, and components
            without a label come first.

        Examples
        --------
        >>> from gdpa import GDPAClassifier
        >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
        >>> sorted(GDPAClassifier(n_neighbors=2).query(2, X=X).tolist())
        [1, 4]
        """
        seed = self.random_state or 0
        none = np.arange(0)
        if X is not None:
            W, points = self._unlabeled_graph(X)
            return query_nodes(W, points, None, none, none, n, strategy, seed=seed)
        state = self.state_
        graph = state.graph
        points = graph.points if graph.neighbors is None else graph.neighbors.index.X
        known, p = state.coding.labeled, state.probabilities()
        return query_nodes(graph.W, points, p, known, self._skipped, n, strategy, seed=seed)

    def _unlabeled_graph(self, X: Any) -> tuple[Any, Any]:
        """Graph and features of data without any label."""
        if self.graph == "precomputed":
            return precomputed_graph(X, self.laplacian).W, None
        if is_frame(X):
            X = TableEncoder(random_state=self.random_state or 0).fit(X).transform(X)
        A = check_features(check_array(X, accept_sparse="csr", ensure_all_finite=False))
        if self.rescale is not None:
            A = Rescaler.fit(A, RESCALE_KINDS[self.rescale]).transform(A)
        k = 10 if self.n_neighbors == "auto" else self.n_neighbors
        if A.shape[0] == 1:
            return sp.csr_array((1, 1)), A
        seed = self.random_state or 0
        W = neighbor_graph(A, min(k, A.shape[0] - 1), algorithm=self.algorithm, random_state=seed)
        return W, A

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
        arrays, meta = pack_state(state)
        meta["params"] = storage.plain_params(self.get_params(deep=False))
        meta["n_features_in"] = int(self.n_features_in_)
        names = getattr(self, "feature_names_in_", None)
        meta["feature_names_in"] = None if names is None else [str(name) for name in names]
        encoder = getattr(self, "encoder_", None)
        meta["encoder"] = None if encoder is None else encoder.to_plain()
        meta["skipped"] = self._skipped.tolist()
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
            model._take(unpack_state(arrays, meta, model._options(classes)))
            model.skipped_ = cls._nodes(meta.get("skipped", []), model.state_.n_nodes)
            width = check_features_in(arrays, meta, model.get_params(deep=False))
            if meta.get("encoder") is not None:
                model.encoder_ = TableEncoder.from_plain(meta["encoder"])
                if model.encoder_.columns_.n_features != width:
                    raise ValueError("the columns are not those of the graph")
        model.n_features_in_ = meta["n_features_in"]
        if meta["feature_names_in"] is not None:
            model.feature_names_in_ = np.array(meta["feature_names_in"], dtype=object)
        model.extra_ = meta.get("extra", {})
        return model
