"""The recipe for a pretrained table model as a member, with a stand-in of the same interface."""

import re
import sys
import types
from pathlib import Path
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"
TITLE = "### A pretrained table model as a member"


class TabPFNClassifier(ClassifierMixin, BaseEstimator):
    """Fits in context: it keeps the labelled rows and predicts from them."""

    fits: ClassVar[list[int]] = []

    def __init__(self, device="auto", random_state=0):
        self.device = device
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.context_ = KNeighborsClassifier(3, weights="distance").fit(X, y)
        TabPFNClassifier.fits.append(len(y))
        return self

    def predict_proba(self, X):
        return self.context_.predict_proba(X).astype(np.float32)


def recipe() -> str:
    section = GUIDE.read_text(encoding="utf-8").split(TITLE)[1]
    return re.findall(r"^```python\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)[0]


def test_the_recipe_runs_and_the_model_is_a_member(monkeypatch, capsys):
    stand_in = types.ModuleType("tabpfn")
    stand_in.TabPFNClassifier = TabPFNClassifier
    monkeypatch.setitem(sys.modules, "tabpfn", stand_in)
    TabPFNClassifier.fits.clear()
    names: dict[str, object] = {}
    exec(compile(recipe(), "guide.md", "exec"), names)
    assert "TabPFNClassifier" in capsys.readouterr().out
    committee = names["model"].committee_
    assert "TabPFNClassifier" in committee.names
    labels = int(np.sum(names["y"] >= 0))
    # Once per fold without the labels of the fold, and with all of them if it has weight.
    folds = [count for count in TabPFNClassifier.fits if count < labels]
    assert len(folds) == 5
    assert sum(labels - count for count in folds) == labels
    assert (labels in TabPFNClassifier.fits) == (committee.of("TabPFNClassifier") > 0)
