"""Columns of guesses in a session: what they add, what is proved about them, where they show."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa import LabelingSession
from gdpa.estimators.guesses import GuessColumn
from gdpa.labeling import Goal
from gdpa.labeling.accuracy import Predictions
from gdpa.labeling.answers import Answer
from gdpa.labeling.guesses import guess_report
from gdpa.labeling.proof import Proof
from gdpa.labeling.tables import TableSource, open_table


def checked(seed, *, share_right, checks=120, n=400):
    """The largest excess of a proved share over the truth, and the last report."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    right = np.zeros(n, dtype=bool)
    right[rng.permutation(n)[: round(share_right * n)]] = True
    values = [int(v) for v in np.where(right, truth, 1 - truth)]
    confidence = rng.uniform(0.5, 1.0, n)
    p = np.column_stack([confidence, 1.0 - confidence])
    now = Predictions(0, np.array([0, 1]), np.zeros(n, dtype=int), p, {})
    proof = Proof(n, Goal(level=0.6, risk=0.2), seed)
    column = GuessColumn("llm", tuple(values))
    answers = {}
    proof.apply(proof.model_event(now, hold=True, at=0), answers)
    excess = -1.0
    for number in range(checks):
        is_open = proof.open_mask(answers, ())
        proof.apply(proof.check_event(is_open, answers, busy=(), n=number), answers)
        row = proof.rows[-1]
        answers[row] = Answer(int(truth[row]), "check")
        own = int(rng.choice(np.flatnonzero(is_open)))  # rows are also labelled for learning
        answers.setdefault(own, Answer(int(truth[own]), "choice"))
        if number % 4 == 3:
            report = guess_report(column, proof, answers, name_now=lambda v: v, weight=1.0)
            left = proof.open_mask(answers, ())
            excess = max(excess, report.proved - right[left].mean())
    return excess, report


def test_what_is_proved_about_guesses_is_true():
    """A false statement at any time counts; 20 % are allowed, more than 14 of 40 are below 1 %."""
    found = [checked(seed, share_right=0.8, checks=40)[0] for seed in range(40)]
    assert sum(excess > 1e-9 for excess in found) <= 14


def test_good_guesses_are_proved_to_be_good():
    _, report = checked(1, share_right=0.95)
    assert report.checks == 120
    assert report.right >= 105
    assert report.proved > 0.7
    assert "at least" in report.text
    _, report = checked(1, share_right=0.1)
    assert report.proved < 0.1 + 1e-9


@pytest.fixture(scope="module")
def noisy():
    """Features that give about 75 % of the classes away."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 4))
    X[:, 0] += 1.3 * y
    return X, np.array(["cat", "dog"])[y]


def accuracy(X, y, guesses):
    session = LabelingSession(X, guesses=guesses)
    for number in range(60):
        row = int(session.next()[0])
        session.label(row, str(y[row]))
        if number % 10 == 9:
            session.refresh()
    left = np.ones(y.size, dtype=bool)
    left[list(session.labels)] = False
    return float((session.predictions() == y)[left].mean()), session


@pytest.mark.slow
def test_good_guesses_raise_the_accuracy_and_useless_ones_do_not_lower_it(noisy):
    X, y = noisy
    rng = np.random.default_rng(1)
    llm = np.where(rng.random(300) < 0.9, y, np.where(y == "cat", "dog", "cat"))
    noise = rng.permutation(y)
    alone, _ = accuracy(X, y, None)
    helped, session = accuracy(X, y, {"llm": llm, "noise": noise})
    assert helped > alone + 0.05
    llm_report, noise_report = session.guess_reports()
    assert llm_report.weight > 0
    assert llm_report.right > noise_report.right
    unharmed, _ = accuracy(X, y, {"noise": noise})
    assert unharmed >= alone - 0.02
    session.rename_class("cat", "tiger")  # the guesses still say cat
    assert session.guess_reports()[0].right == llm_report.right


def test_the_column_of_guesses_is_neither_shown_nor_a_feature(tmp_path):
    table = tmp_path / "t.csv"
    lines = ["x,kind,llm,sure", *(f"{i * i},,{'a' if i < 10 else ''},0.{i}" for i in range(20))]
    table.write_text("\n".join(lines) + "\n")
    source = TableSource(str(table), "kind", guesses={"llm": "sure"})
    controller, _, _ = open_table(source, log=None)
    session = controller.session
    assert session.X.shape[1] == 1
    assert [cell["name"] for cell in controller.item(0)["cells"]] == ["x"]
    assert session.guesses[0].values[9:11] == ("a", None)
    assert session.guesses[0].confidence[3] == 0.3
    assert controller.state()["guesses"][0]["name"] == "llm"
    with pytest.raises(ValueError, match="nothing"):
        open_table(TableSource(str(table), "kind", guesses={"nothing": None}), log=None)
    with pytest.raises(ValueError, match="is a number"):
        open_table(TableSource(str(table), "kind", guesses={"x": "llm"}), log=None)
