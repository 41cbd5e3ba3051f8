"""Small forests: what these tests state holds for any number of trees."""

from dataclasses import replace

import pytest

from gdpa.estimators.base import BaseClassifier
from gdpa.policy import DEFAULT_POLICY


@pytest.fixture(autouse=True)
def _small_forest(request, monkeypatch):
    if "test_accuracy" not in request.node.nodeid:
        policy = replace(DEFAULT_POLICY, forest_trees=25)
        monkeypatch.setattr(BaseClassifier, "_policy", policy)
