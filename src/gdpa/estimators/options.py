"""Options of a fit, including expert options, and progress reports."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name
from ..graph.neighbor_graph import check_bandwidth
from ..policy import DEFAULT_POLICY, Policy

logger = logging.getLogger("gdpa.estimators")

# A fit that takes longer than this many seconds logs its stages even without verbose.
PATIENCE = 2.0

Rescale = Literal["minmax", "standard"]
Laplacian = Literal["normalized", "combinatorial"]
Algorithm = Literal["auto", "exact", "approximate"]
Callback = Callable[[Mapping[str, object]], object]


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Expert options, passed as ``options=`` to an estimator.

    Parameters
    ----------
    bandwidth : {"self-tuning", "median"} or float, default="self-tuning"
        sigma in the weights ``exp(-d^2 / (sigma_i sigma_j))``: the distance of each sample to its
        7th neighbour, the median distance, or a number.
    rescale : {None, "minmax", "standard"}, default=None
        Rescaling of the features: columns to [0, 1], or standardised columns and rows of unit
        length. Data frames are always encoded on one scale.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        Which Laplacian measures smoothness.
    algorithm : {"auto", "exact", "approximate"}, default="auto"
        Neighbour search; see :func:`gdpa.graph.choose_algorithm`.
    method_options : mapping, optional
        Options of the method (:func:`gdpa.list_methods`), for methods other than "harmonic".
    tol : float, default=1e-6
        Relative residual of the linear solve.
    max_iter : int, optional
        Maximum number of iterations of the linear solve; by default ten times the number of
        samples.
    callback : callable, optional
        Called with a mapping after each stage and each iteration. Returning True during the solve
        stops it.

    Examples
    --------
    >>> from gdpa import GraphClassifier
    >>> from gdpa.estimators import GraphOptions
    >>> model = GraphClassifier(options=GraphOptions(laplacian="combinatorial", tol=1e-8))
    """

    bandwidth: str | float = "self-tuning"
    rescale: Rescale | None = None
    laplacian: Laplacian = "normalized"
    algorithm: Algorithm = "auto"
    method_options: Mapping[str, object] | None = None
    tol: float = 1e-6
    max_iter: int | None = None
    callback: Callback | None = None

    def __post_init__(self) -> None:
        self._check_choices()
        if not isinstance(self.method_options or {}, Mapping):
            raise ValueError(f"method_options={self.method_options!r} must be a mapping or None")
        if not (isinstance(self.tol, int | float) and 0 < self.tol < 1):
            raise ValueError(f"tol={self.tol!r} must be a number between 0 and 1")
        whole = isinstance(self.max_iter, int | np.integer) and not isinstance(self.max_iter, bool)
        if self.max_iter is not None and not (whole and self.max_iter >= 1):
            raise ValueError(f"max_iter={self.max_iter!r} must be None or a positive integer")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r} must be callable or None")

    def _check_choices(self) -> None:
        """Raise an error if an option with a few choices has another value."""
        if self.bandwidth not in ("self-tuning", "median"):
            check_bandwidth(self.bandwidth)
        for name, kinds in (
            ("rescale", (None, *get_args(Rescale))),
            ("laplacian", get_args(Laplacian)),
            ("algorithm", get_args(Algorithm)),
        ):
            value = getattr(self, name)
            if value not in kinds:
                accepted = [kind for kind in kinds if kind is not None]
                raise ValueError(f"{name}={value!r} is not known; {nearest_name(value, accepted)}")


@dataclass(frozen=True, kw_only=True)
class CheckedOptions(GraphOptions):
    """All checked options of a fit.

    Parameters
    ----------
    n_neighbors, label_weight, self_loop : number or None
        None means "auto".
    class_prior : None, "labeled" or ndarray
        Class prior.
    multiclass : {"one-vs-rest", "tree"}
        How binary methods handle several classes.
    started : float
        Start of the fit on the monotonic clock.
    policy : Policy
        Size limits.
    feature_groups : ndarray of int of shape (n_features,), optional
        The column of the data frame that each feature belongs to.
    """

    graph: str = "knn"
    n_neighbors: int | None = None
    method: str = "harmonic"
    multiclass: str = "one-vs-rest"
    label_weight: float | None = None
    self_loop: float | None = None
    class_prior: str | NDArray[np.float64] | None = None
    n_jobs: int | None = None
    random_state: int = 0
    verbose: int = 0
    started: float = field(default_factory=time.monotonic, compare=False)
    policy: Policy = DEFAULT_POLICY
    feature_groups: NDArray[np.intp] | None = field(default=None, compare=False)


def report(
    options: CheckedOptions, entry: Mapping[str, object] | None = None, **values: object
) -> object:
    """Report an iteration (`entry`) or a stage (`values`); return the callback's result."""
    if entry is not None:
        values = {"stage": "solve", **entry}
    seconds = time.monotonic() - options.started
    asked = options.verbose >= (1 if entry is None else 2)
    if asked or (entry is None and seconds > PATIENCE):
        terminal = sys.stderr is not None and sys.stderr.isatty()
        if not logger.hasHandlers() and (asked or terminal):
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("gdpa: %(message)s"))
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
            logger.propagate = False
        logger.info("%s (%.1f s)", ", ".join(map("{0[0]}: {0[1]}".format, values.items())), seconds)
    return None if options.callback is None else options.callback(MappingProxyType(values))
