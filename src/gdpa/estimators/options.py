"""What a fit is asked for, checked: one frozen record from the estimator down."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..policy import DEFAULT_POLICY, Policy

__all__ = ["FitOptions"]


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of one fit; as the parameters of :class:`~gdpa.GDPAClassifier`.

    Parameters
    ----------
    label_weight, self_loop, evidence_weight : float or None
        None is "auto".
    class_prior : None, "labeled" or ndarray
        Checked.
    started : float
        When the fit began, by the clock that never goes back.
    policy : Policy
        Size limits.
    """

    graph: str = "knn"
    n_neighbors: int | None = None
    bandwidth: str | float = "self-tuning"
    rescale: str | None = None
    laplacian: str = "normalized"
    algorithm: str = "auto"
    multiclass: str = "shared"
    method: str = "gdpa"
    method_options: Mapping[str, Any] = field(default_factory=dict)
    label_weight: float | None = None
    self_loop: float | None = None
    evidence_weight: float | None = None
    class_prior: str | NDArray[np.float64] | None = None
    tol: float = 1e-6
    max_iter: int | None = None
    n_jobs: int | None = None
    random_state: int = 0
    callback: Callable[[Mapping[str, Any]], Any] | None = None
    verbose: int = 0
    started: float = field(default_factory=time.monotonic, compare=False)
    policy: Policy = DEFAULT_POLICY
