"""The changes that CONTRIBUTING shows fit the code."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gdpa
from gdpa.estimators import committee
from gdpa.estimators.committee import MEMBERS, fit_committee

ROOT = Path(__file__).resolve().parents[2]
DIFFS = re.findall(
    r"^```diff\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.S | re.M
)


@pytest.mark.parametrize("number", range(len(DIFFS)))
def test_a_change_is_made_between_lines_that_exist(number):
    diff = DIFFS[number].splitlines()
    path = diff[0].removeprefix("--- a/")
    lines = (ROOT / path).read_text("utf-8").splitlines()
    kept = [line[1:] for line in diff[2:] if line.startswith(" ")]
    added = [line[1:] for line in diff[2:] if line.startswith("+")]
    assert len(added) == 1
    for line in kept:
        assert line in lines, f"{path} does not have {line!r}"
    assert added[0] not in lines


def test_the_new_member_takes_part():
    (added,) = (
        line[1:].strip().rstrip(",")
        for diff in DIFFS
        for line in diff.splitlines()
        if line.startswith("+    Member(")
    )
    member = eval(added, vars(committee))
    X, truth = gdpa.datasets.moons(80, noise=0.1, random_state=0)
    y = np.where(np.arange(80) % 4 == 0, truth, 0)
    model = gdpa.CommitteeClassifier(unlabeled=0)
    _, A, labels, options, rescaler = model._prepare(X, y)
    found = fit_committee(A, labels, options, members=(*MEMBERS, member), rescaler=rescaler)
    assert member.name in found.weighting.names
