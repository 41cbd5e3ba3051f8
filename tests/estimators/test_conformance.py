"""scikit-learn's own checks of an estimator: which one cannot pass, and why."""

from __future__ import annotations

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from gdpa import CommitteeClassifier, GDPAClassifier, GraphClassifier

pytestmark = pytest.mark.slow

EXPECTED_FAILED_CHECKS = {
    "check_classifiers_classes": (
        "it fits y with the values -1 and +1 only; -1 is the marker of an unknown label, so that y "
        "is ambiguous and refused (unlabeled=0 is the way out)"
    ),
}


@pytest.mark.parametrize("estimator", [CommitteeClassifier, GraphClassifier, GDPAClassifier])
def test_scikit_learn_checks(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            estimator(),
            on_fail=None,
            on_skip=None,
            expected_failed_checks=EXPECTED_FAILED_CHECKS,
        )
    names = {
        status: [r["check_name"] for r in results if r["status"] == status]
        for status in ("passed", "failed", "xfail")
    }
    print(f"{len(names['passed'])} of {sum(map(len, names.values()))} checks passed")
    assert names["failed"] == []
    assert set(names["xfail"]) == set(EXPECTED_FAILED_CHECKS)
    assert len(names["passed"]) >= 50
