"""New starts of a proof: they cost what the old one may have lost, and never repeat a draw."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gdpa.labeling import Goal
from gdpa.labeling.accuracy import Predictions
from gdpa.labeling.guarantee import ANY_SHARE, GOAL_SHARE, RESERVE
from gdpa.labeling.ledger import Ledger

CONFIDENCE = np.array([0.99, 0.95, 0.9, 0.8, 0.6, 0.55])
ACCURACY = Goal(level=0.7, risk=0.3)
CONFIDENT = Goal(level=0.7, kind="confident", confidence=0.5, risk=0.3)


def predictions(codes, confidence=CONFIDENCE):
    codes = np.asarray(codes)
    p = np.empty((codes.size, 2))
    p[np.arange(codes.size), codes] = confidence
    p[np.arange(codes.size), 1 - codes] = 1.0 - confidence
    return Predictions(0, np.array(["no", "yes"]), codes, p, {})


class Session:
    """A ledger with scripted draws; the probability of the script and the true capital are kept."""

    def __init__(self, truth, script, goal=ACCURACY):
        self.truth = np.asarray(truth)
        self.script = list(script)
        self.ledger = Ledger(self.truth.size, {}, goal, 0)
        self.number = 0
        self.chance = 1.0
        self.log = []
        self.past = 1.0  # true capital of earlier proofs
        self.begin(goal)

    def do(self, event):
        self.number += 1
        self.ledger.apply({**event, "n": self.number})

    def begin(self, goal):
        self.ledger.set_goal(goal)
        self.do(self.ledger.proof.goal_event())
        self.do(self.ledger.proof.model_event(predictions(np.zeros(6, int)), hold=True, at=0))
        self.factors = np.ones(2)

    def check(self):
        proof = self.ledger.proof
        answers = self.ledger.history.answers
        is_open = proof.open_mask(answers, ())
        row = self.script.pop(0)

        def draw(design, places, is_open, n):
            stratum = places.index(int(proof.last.strata[row]))
            self.chance *= design.strata[stratum].probability / design.strata[stratum].rows
            return stratum, row

        proof._draw = draw
        self.do(proof.check_event(is_open, answers, busy=(), n=self.number + 1))
        value = ["no", "yes"][self.truth[row]]
        self.do({"do": "label", "row": row, "value": value, "purpose": "check"})
        check = proof._checks[-1]
        mean = self.truth[is_open].mean()
        estimate = check.design.estimate(check.stratum, bool(self.truth[row]))
        self.factors = self.factors * (1.0 + np.array(check.design.bets) * (mean - estimate))

    @property
    def capital(self):
        shares = np.array([GOAL_SHARE, ANY_SHARE])
        return self.past * (RESERVE + shares @ self.factors)

    def start_again(self, goal):
        self.past = self.capital
        self.begin(goal)


@pytest.mark.parametrize("truth", [(0, 0, 0, 0, 1, 1), (1, 0, 1, 0, 0, 0), (1,) * 6])
def test_a_new_start_continues_the_same_martingale(truth):
    """All sequences of draws: the total capital has mean 1, and the stake never exceeds it."""
    expected = 0.0
    for script in itertools.permutations(range(6), 4):
        session = Session(truth, script)
        session.check()
        session.check()
        session.start_again(CONFIDENT)
        assert session.ledger.proof.stake <= session.past * (1.0 + 1e-12)
        assert session.ledger.proof.stake >= RESERVE
        session.check()
        session.check()
        expected += session.chance * session.capital
    assert expected == pytest.approx(1.0, abs=1e-9)


def test_another_level_or_risk_continues_and_another_kind_does_not():
    session = Session((0, 0, 0, 0, 1, 1), (0, 1, 2), goal=Goal())
    session.check()
    ledger = session.ledger
    for goal in (Goal(level=0.8), Goal(level=0.6, risk=0.1), Goal()):
        ledger.set_goal(goal)
        assert ledger.proof.rows == [0]
        assert ledger.proof.goal == goal
    ledger.set_goal(Goal(level=0.6, kind="recall", value="yes"))
    assert ledger.proof.rows == []
    stake = ledger.proof.stake
    assert RESERVE <= stake <= 1.0
    ledger.set_goal(Goal(level=0.7, kind="recall", value="yes"))
    assert ledger.proof.stake == stake  # nothing was bet in between


def test_no_draw_of_a_session_repeats_the_random_numbers_of_another():
    """After a new start, the same rows with the same predictions give other draws."""
    n = 1000
    ledger = Ledger(n, {}, ACCURACY, 0)
    now = predictions(np.zeros(n, int), np.full(n, 0.9))
    number = 0
    drawn = []
    for goal in (ACCURACY, CONFIDENT):
        ledger.set_goal(goal)
        for event in (ledger.proof.goal_event(), ledger.proof.model_event(now, hold=True, at=0)):
            number += 1
            ledger.apply({**event, "n": number})
        for _ in range(5):
            number += 1
            event = ledger.proof.check_event(np.ones(n, dtype=bool), {}, busy=(), n=number)
            ledger.apply(event)
            drawn.append(event["row"])
    assert len(set(drawn)) == 10


@pytest.mark.parametrize(
    ("event", "keeps"),
    [
        ({"value": "yes", "to": "maybe"}, True),
        ({"value": "yes", "to": "no"}, False),
        ({"value": "yes", "to": "rare"}, False),  # a class that no model has predicted
        ({"value": "yes", "to": None}, False),
    ],
)
def test_a_merged_or_deleted_class_starts_again_and_so_does_its_undo(event, keeps):
    session = Session((0, 0, 0, 0, 1, 1), (4, 1))
    session.check()
    session.check()
    session.do({"do": "label", "row": 0, "value": "rare", "by": "a"})
    session.do({"do": "rename", "by": "a", **event})
    proof = session.ledger.proof
    assert (proof.rows == [4, 1]) == keeps
    assert (proof.stake == 1.0) == keeps
    if keeps:
        wrong = [proof._is_wrong(c, session.ledger.history.answers) for c in proof._checks]
        assert wrong == [True, False]
    session.do({"do": "undo", "by": "a"})
    assert session.ledger.proof is not proof
    assert session.ledger.history.answers[4].value == "yes"


def test_events_before_the_goal_are_refused():
    ledger = Ledger(6, {}, ACCURACY, 0)
    event = ledger.proof.model_event(predictions(np.zeros(6, int)), hold=True, at=0)
    with pytest.raises(ValueError, match="before the goal"):
        ledger.apply({**event, "n": 1})


def test_a_loss_of_events_leaves_the_reserve():
    session = Session((0, 0, 0, 0, 1, 1), (0,))
    session.check()
    session.ledger.forget_checks()
    assert session.ledger.proof.stake == RESERVE
    assert session.ledger.proof.rows == []
