"""The two re-scalings of features in the paper's experiments.

min-max         every column to [0, 1]
standardisation every column by mean and standard deviation (ddof = 1) of the labelled samples, then
                every sample to unit l2 norm

The paper scales labelled and unlabelled samples to [0, 1] separately: call :func:`rescale_minmax`
on each part. Constant columns are dropped, as in the paper (where they became NaN).
:class:`Rescaler` applies a fitted re-scaling to new samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codec import storable
from ..errors import unknown_choice
from .adjacency import MatrixLike
from .features import Features, check_features

LARGEST = 1e140  # the sum of many squares of it does not overflow
RESCALINGS = ("min-max", "standard", "none")


@storable("rescaler")
@dataclass(frozen=True)
class Rescaler:
    """A fitted re-scaling: ``(X[:, columns] - shift) / scale``, then optionally unit norm.

    Of some columns, logarithms ``sign(x - origin) log(1 + |x - origin| / unit)`` may be taken
    first. They increase with x and compress values far from the origin.

    Parameters
    ----------
    kind : {"min-max", "standard", "none"}
        Kind of re-scaling.
    columns : ndarray of bool of shape (n_features,)
        Columns to keep: those that vary in the fitted samples. If none varies, all are kept and
        become 0.
    shift, scale : ndarray of shape (n_kept,)
        What to subtract, and then to divide by.
    unit_norm : bool
        Whether to divide samples by their l2 norm. A sample of zeros stays zero.
    logs : ndarray of shape (2, n_kept), optional
        Origin and unit of the logarithms of each kept column; unit 0 for none.

    Examples
    --------
    >>> from gdpa.graph.rescale import Rescaler
    >>> Rescaler.fit([[0.0, 1.0], [2.0, 3.0]], "min-max").transform([[1.0, 3.0]])
    array([[0.5, 1. ]])
    """

    kind: str
    columns: NDArray[np.bool_]
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    unit_norm: bool
    logs: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.kind not in RESCALINGS:
            raise unknown_choice("kind", self.kind, RESCALINGS)
        kept = (int(self.columns.sum()),)
        if self.columns.ndim != 1 or not self.shift.shape == self.scale.shape == kept:
            raise ValueError(f"shift and scale must have one number for each of {kept[0]} columns")
        if not (np.isfinite(self.shift) & (self.scale > 0) & (self.scale < np.inf)).all():
            raise ValueError("shift must be finite, and scale must be positive and finite")
        logs = np.zeros((2, *kept)) if self.logs is None else self.logs
        if logs.shape != (2, *kept) or not (np.isfinite(logs).all() and (logs[1] >= 0).all()):
            raise ValueError("logs must have a finite origin and unit >= 0 for each column")

    @classmethod
    def fit(cls, X: MatrixLike, kind: str = "min-max") -> Rescaler:
        """Learn a re-scaling.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to fit on; for the paper's standardisation, the labelled ones.
        kind : {"min-max", "standard", "none"}, default="min-max"
            Kind of re-scaling.

        Returns
        -------
        Rescaler
            The fitted re-scaling.

        Raises
        ------
        ValueError
            If `kind` is not known, or X is sparse and `kind` would shift its columns.
        """
        if kind not in RESCALINGS:
            raise unknown_choice("kind", kind, RESCALINGS)
        A = check_features(X)
        d = A.shape[1]
        if kind == "none":
            return cls(kind, np.ones(d, dtype=bool), np.zeros(d), np.ones(d), False)
        A = _dense(A, kind)
        low = A.min(axis=0).astype(np.float64)
        high = A.max(axis=0).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            shift = low
            scale = high - low
            if kind == "standard":
                shift = A.mean(axis=0, dtype=np.float64)
                scale = A.std(axis=0, ddof=int(len(A) > 1), dtype=np.float64)
        varies = (high > low) & ~(scale == 0)
        columns = varies if varies.any() else np.ones(d, dtype=bool)
        if not varies.any():
            scale = np.ones(d)
        if not np.isfinite(scale[columns]).all():
            column = int(np.flatnonzero(columns & ~np.isfinite(scale))[0])
            raise ValueError(
                f"X has values from {low[column]:g} to {high[column]:g} in column {column}; their "
                "range overflows: divide the column by a constant first"
            )
        return cls(kind, columns, shift[columns], scale[columns], kind == "standard")

    def transform(self, X: MatrixLike) -> Features:
        """Apply the re-scaling.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples with the same columns. Samples outside the fitted range of "min-max" are mapped
            outside [0, 1].

        Returns
        -------
        ndarray of shape (n_samples, n_kept)
            A new array of float64; for kind "none" the unchanged features (dense or sparse).
        """
        A = check_features(X, n_features=self.columns.size)
        if self.kind == "none":
            return A
        A = _dense(A, self.kind)
        Z = A[:, self.columns].astype(np.float64)
        origin, unit = np.zeros((2, 0)) if self.logs is None else self.logs
        bent = np.flatnonzero(unit)
        with np.errstate(over="ignore"):
            for j in bent:
                u = np.clip((Z[:, j] - origin[j]) / unit[j], -1e300, 1e300)
                Z[:, j] = np.copysign(np.log1p(np.abs(u)), u)
            Z -= self.shift
            Z /= self.scale
        beyond = np.flatnonzero(~(np.abs(Z).max(axis=1, initial=0.0) < LARGEST))
        if beyond.size:
            rows = A[np.ix_(beyond, self.columns)].astype(np.float64)
            rows[:, bent] = self.shift[bent]  # logarithms are negligible in comparison
            Z[beyond] = self._direction(rows)
        if self.unit_norm:
            norms = np.linalg.norm(Z, axis=1, keepdims=True)
            np.divide(Z, norms, out=Z, where=norms > 0)
        return Z

    def _direction(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Re-scale rows whose values overflow: keep their direction, limit their length."""
        # Work with quarters, and with exponents, to avoid overflow.
        quarter = 0.25 * rows - 0.25 * self.shift
        mantissa, exponent = np.frexp(quarter)
        below, down = np.frexp(self.scale)
        exponent = np.where(quarter == 0, -5000, exponent - down)
        exponent = exponent - exponent.max(axis=1, keepdims=True)
        return np.asarray(np.ldexp(mantissa / below, np.maximum(exponent, -2000)) * LARGEST / 4)


def _dense(A: Features, kind: str) -> NDArray[Any]:
    if not isinstance(A, np.ndarray):
        raise ValueError(
            f"re-scaling by {kind!r} shifts columns, which would make sparse X dense; use "
            "rescale=None (kind='none') and scale columns beforehand (for example to unit "
            "maximum), or pass X.toarray()"
        )
    return A


def rescale_minmax(X: MatrixLike) -> NDArray[np.float64]:
    """Scale every column to [0, 1].

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples.

    Returns
    -------
    ndarray of shape (n_samples, n_kept)
        The varying columns, from 0 to 1. To scale labelled and unlabelled samples separately, use
        :func:`varying_columns` on both first, so that they keep the same columns.

    Examples
    --------
    >>> from gdpa.graph import rescale_minmax
    >>> rescale_minmax([[0, 5], [1, 5], [2, 5]])
    array([[0. ],
           [0.5],
           [1. ]])
    """
    return np.asarray(Rescaler.fit(X, "min-max").transform(X))


def varying_columns(*parts: MatrixLike) -> NDArray[np.bool_]:
    """Return which columns vary within each of several sets of samples.

    Parameters
    ----------
    *parts : array-like of shape (n_samples, n_features)
        Sets of samples with the same features.

    Returns
    -------
    ndarray of bool of shape (n_features,)
        True if a column has two different values in each part. The paper drops columns that are
        constant in the labelled or in the unlabelled samples.
    """
    checked = [check_features(part) for part in parts]
    if len({A.shape[1] for A in checked}) != 1:
        raise ValueError(f"parts must have the same features, got {[A.shape for A in checked]}")
    varies = [_dense(A, "min-max").max(axis=0) > A.min(axis=0) for A in checked]
    return np.asarray(np.logical_and.reduce(varies))
