"""scikit-learn's own checks of an estimator: which one cannot pass, why, and the score."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

__all__ = ["EXPECTED_FAILED_CHECKS", "Conformance", "conformance"]

EXPECTED_FAILED_CHECKS = {
    "check_classifiers_classes": (
        "it fits y with the values -1 and +1 only; -1 is the marker of an unknown label, so that y "
        "is ambiguous and refused (unlabeled=0 is the way out)"
    ),
}


@dataclass(frozen=True)
class Conformance:
    """Outcome of scikit-learn's checks.

    Parameters
    ----------
    passed, total : int
        Checks that passed, and checks that ran.
    expected : tuple of str
        Checks that failed and were declared.
    failed : tuple of str
        Checks that failed and were not.
    skipped : tuple of str
        Checks that did not run.
    """

    passed: int
    total: int
    expected: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]

    def __str__(self) -> str:
        declared = ", ".join(self.expected) or "none"
        return f"{self.passed} of {self.total} checks passed; declared as failing: {declared}"


def conformance(estimator: Any = None) -> Conformance:
    """Run ``sklearn.utils.estimator_checks.check_estimator``.

    Parameters
    ----------
    estimator : estimator, optional
        What to check; a :class:`~gdpa.GDPAClassifier` with default parameters if not given.

    Returns
    -------
    Conformance
        The score.
    """
    from sklearn.utils.estimator_checks import check_estimator

    from .estimator import GDPAClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            GDPAClassifier() if estimator is None else estimator,
            on_fail=None,
            on_skip=None,
            expected_failed_checks=EXPECTED_FAILED_CHECKS,
        )

    def names(status: str) -> tuple[str, ...]:
        return tuple(str(r["check_name"]) for r in results if r["status"] == status)

    skipped = names("skipped")
    return Conformance(
        len(names("passed")),
        len(results) - len(skipped),
        names("xfail"),
        names("failed"),
        skipped,
    )
