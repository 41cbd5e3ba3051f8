"""The guarantee: exact on tiny populations, by simulation on larger ones, with changing models."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from gdpa import LabelingSession
from gdpa.labeling import Goal, checks_needed
from gdpa.labeling.accuracy import Predictions
from gdpa.labeling.answers import Answer
from gdpa.labeling.check_design import Design, Stratum, make_design, recalibrated
from gdpa.labeling.guarantee import ANY_SHARE, GOAL_SHARE, RESERVE
from gdpa.labeling.proof import Proof


def predictions(codes, confidence, known=()):
    """Predictions of two classes with given confidences."""
    codes = np.asarray(codes)
    p = np.empty((codes.size, 2))
    p[np.arange(codes.size), codes] = confidence
    p[np.arange(codes.size), 1 - codes] = 1.0 - np.asarray(confidence)
    return Predictions(0, np.array(["no", "yes"]), codes, p, dict.fromkeys(known))


def truth_value(code):
    return ["no", "yes"][int(code)]


class Scripted(Proof):
    """A proof whose draws are given, with the probability of each."""

    script = ()

    def _draw(self, design, places, is_open, n):
        row = self.script[len(self._checks)]
        stratum = places.index(int(self.last.strata[row]))
        self.chance *= design.strata[stratum].probability / design.strata[stratum].rows
        return stratum, row


def play(proof, truth, changing_model, n_checks):
    """Draw, answer and change the model; return the true means and whether a statement failed."""
    n = len(truth)
    answers = {}
    proof.chance = 1.0
    means = []
    failed = False
    for number in range(n_checks):
        codes, confidence = changing_model(number, answers)
        now = predictions(codes, confidence)
        is_open = np.ones(n, dtype=bool)
        is_open[list(answers)] = False
        proof.apply(proof.model_event(now, hold=True, at=0), answers)
        proof.apply(proof.check_event(is_open, answers, busy=(), n=len(proof.rows)), answers)
        row = proof.rows[-1]
        means.append(float(np.mean((np.asarray(codes) != truth)[is_open])))
        answers[row] = Answer(truth_value(truth[row]), "check")
        # The statement is about the predictions of the next model.
        codes, confidence = changing_model(number + 1, answers)
        left = np.ones(n, dtype=bool)
        left[list(answers)] = False
        found = proof.statement(answers, predictions(codes, confidence))
        right = np.mean((np.asarray(codes) == truth)[left]) if left.any() else 1.0
        failed |= found.proved > right + 1e-9
        failed |= found.reached and right < proof.goal.level - 1e-9
    capitals = []
    for share, place in ((GOAL_SHARE, 0), (ANY_SHARE, 1)):
        factors = [
            1.0
            + check.design.bets[place]
            * (mean - check.design.estimate(check.stratum, proof._is_wrong(check, answers)))
            for check, mean in zip(proof._checks, means, strict=True)
        ]
        assert min(factors) >= -1e-12
        capitals.append(share * np.cumprod(factors))
    return RESERVE + np.sum(capitals, axis=0), failed


CONFIDENCE = np.array([0.999, 0.96, 0.9, 0.8, 0.6])


def fixed_model(number, answers):
    return np.zeros(5, dtype=int), CONFIDENCE


def moody_model(number, answers):
    """Changes with the answers: the worse it was, the more it changes."""
    wrong = sum(answer.value == "yes" for answer in answers.values())
    codes = np.zeros(5, dtype=int)
    codes[: wrong + number] = 1
    return codes, np.roll(CONFIDENCE, number)


def spiteful_model(number, answers):
    """Predicts the wrong class for all rows as soon as the checks looked good."""
    good = len(answers) >= 2 and all(answer.value == "no" for answer in answers.values())
    return np.full(5, int(good)), CONFIDENCE


@pytest.mark.parametrize("model", [fixed_model, moody_model, spiteful_model])
@pytest.mark.parametrize("truth", [(0, 0, 0, 0, 0), (0, 0, 0, 1, 1), (1, 0, 1, 0, 1), (1,) * 5])
def test_the_capital_is_a_martingale_and_statements_hold_exactly(model, truth):
    """All sequences of draws, with their exact probabilities."""
    truth = np.array(truth)
    for level, risk in ((0.5, 0.4), (0.8, 0.45)):
        total = 0.0
        expected = np.zeros(4)
        crossed = 0.0
        failures = 0.0
        for script in itertools.permutations(range(5), 4):
            proof = Scripted(5, Goal(level=level, risk=risk), 0)
            proof.script = script
            capital, failed = play(proof, truth, model, 4)
            total += proof.chance
            expected += proof.chance * capital
            crossed += proof.chance * (capital.max() >= 1.0 / risk)
            failures += proof.chance * failed
        assert total == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(expected, 1.0, atol=1e-12)
        assert crossed <= risk + 1e-12
        assert failures <= crossed + 1e-12  # a false statement needs a large capital


def test_the_estimate_of_a_check_has_the_right_mean():
    """Exact expectation over the draw, with and without control variate."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.integers(1, 30, 4)
        weights = rng.uniform(0.1, 1.0, 4)
        wrong = [rng.random(n) < rng.random() for n in sizes]
        probability = rng.dirichlet(np.ones(4))
        guesses = rng.random(4)
        strata = tuple(
            Stratum(int(n), w, p, g, g)
            for n, w, p, g in zip(sizes, weights, probability, guesses, strict=True)
        )
        mean = sum(w * bad.sum() for w, bad in zip(weights, wrong, strict=True)) / sizes.sum()
        for control in (0.0, 0.7, 1.0):
            design = Design(strata, control)
            expected = sum(
                probability[h] * np.mean([design.estimate(h, bool(bad)) for bad in wrong[h]])
                for h in range(4)
            )
            assert expected == pytest.approx(mean)
            outcomes = [design.estimate(h, bad) for h in range(4) for bad in (False, True)]
            assert design.largest == pytest.approx(max(outcomes))


def test_bets_never_lose_more_than_everything_and_maximise_the_growth():
    rng = np.random.default_rng(1)
    for _ in range(100):
        h = int(rng.integers(1, 6))
        guesses = rng.beta(1, 6, h)
        target = float(rng.uniform(0.02, 0.5))
        design = make_design(
            rng.integers(1, 500, h).tolist(),
            [1.0] * h,
            guesses.tolist(),
            guesses.tolist(),
            target=target,
            checks=int(rng.integers(100)),
            risk=0.05,
        )
        assert sum(s.probability for s in design.strata) == pytest.approx(1.0)
        assert all(0.0 <= bet <= 1.0 / design.largest for bet in design.bets)
        bet, growth = design.best_bet(target)
        chance = design.chances().ravel()
        outcomes = [design.estimate(i, bad) for bad in (False, True) for i in range(h)]
        for other in np.linspace(0.0, 0.999 / design.largest, 40):
            assert chance @ np.log1p(other * (target - np.array(outcomes))) <= growth + 1e-9
        assert growth == pytest.approx(chance @ np.log1p(bet * (target - np.array(outcomes))))


def simulated(
    goal, seed, *, accuracy, overconfident=1.0, n=300, checks=60, drift=False, skips=0.02
):
    """Whether any statement of a session of random data was wrong, at any time."""
    rng = np.random.default_rng(seed)
    error = np.clip(rng.beta(0.4, 0.4 * accuracy / (1 - accuracy), n), 0.0, 0.9)
    truth = rng.integers(0, 2, n)
    right = rng.random(n) >= error
    codes = np.where(right, truth, 1 - truth)
    confidence = 1.0 - np.clip(error * overconfident, 1e-3, 0.499)
    proof = Proof(n, goal, seed)
    answers, failed, reached = {}, False, None
    for number in range(checks):
        if drift and number % 7 == 6:  # some predictions change, mostly for the worse
            flip = rng.random(n) < 0.03 * (1 + (codes == truth))
            codes = np.where(flip, 1 - codes, codes)
        now = predictions(codes, confidence)
        is_open = np.ones(n, dtype=bool)
        is_open[list(answers)] = False
        if not proof.is_current(now, is_open):
            proof.apply(proof.model_event(now, hold=True, at=0), answers)
        event = proof.check_event(is_open, answers, busy=(), n=len(proof.rows))
        if event is None:
            break
        proof.apply(event, answers)
        row = event["row"]
        skip = rng.random() < skips
        answers[row] = Answer(None if skip else truth_value(truth[row]), "check")
        chosen = int(rng.choice(np.flatnonzero(is_open)))  # rows are also labelled for learning
        answers.setdefault(chosen, Answer(truth_value(truth[chosen]), "choice"))
        left = np.ones(n, dtype=bool)
        left[list(answers)] = False
        found = proof.statement(answers, now)
        value = share_right(goal, codes, truth, confidence, left)
        failed |= found.proved > value + 1e-9
        if found.reached and reached is None:
            reached = number + 1
    return failed, reached


def share_right(goal, codes, truth, confidence, left):
    """The true value of what a goal is about."""
    right = codes == truth
    if goal.kind == "precision":
        left = left & (codes == 1)
    elif goal.kind == "recall":
        left = left & (truth == 1)
        right = codes == 1
    elif goal.kind == "confident":
        left = left & (confidence >= goal.confidence)
    return right[left].mean() if left.any() else 1.0


@pytest.mark.parametrize(
    "goal",
    [
        Goal(level=0.8, risk=0.2),
        Goal(level=None, risk=0.2),
        Goal(level=0.7, kind="precision", value="yes", risk=0.2),
        Goal(level=0.7, kind="recall", value="yes", risk=0.2),
        Goal(level=0.9, kind="confident", confidence=0.8, risk=0.2),
    ],
    ids=lambda g: f"{g.kind} {g.level}",
)
@pytest.mark.parametrize("drift", [False, True])
def test_no_more_false_statements_than_the_risk(goal, drift):
    """Any false statement at any time counts; the truth is close to the goal."""
    level = goal.level or 0.8
    failures = [
        simulated(goal, seed, accuracy=level - 0.01, overconfident=0.3, drift=drift, checks=40)[0]
        for seed in range(40)
    ]
    # At most 20 % are expected; more than 14 of 40 have a probability below 1 %.
    assert sum(failures) <= 14


def test_goals_are_reached_when_the_predictions_are_good():
    """Evenly drawn checks take about 42 on average where 99 % are right."""
    goal = Goal(level=0.9, risk=0.05)
    found = [
        simulated(goal, seed, accuracy=0.99, checks=90, n=600, skips=0.0)[1] for seed in range(12)
    ]
    assert sum(r is not None for r in found) >= 9


def test_an_unanswered_check_never_helps():
    """Leaving checks open, or removing their answers, cannot raise what is proved."""
    n = 200
    truth = np.zeros(n, dtype=int)
    truth[:30] = 1
    now = predictions(np.zeros(n, dtype=int), np.full(n, 0.93))
    proof = Proof(n, Goal(level=0.7), 3)
    answers = {}
    proof.apply(proof.model_event(now, hold=True, at=0), answers)
    for _ in range(60):
        is_open = np.ones(n, dtype=bool)
        is_open[[*answers, *proof.open_checks(answers)]] = False
        busy = proof.open_checks(answers)
        proof.apply(proof.check_event(is_open, answers, busy=busy, n=len(proof.rows)), answers)
        row = proof.rows[-1]
        answers[row] = Answer(truth_value(truth[row]), "check")
    full = proof.statement(answers, now)
    assert full.proved > 0.5
    wrong = [row for row in proof.rows if truth[row] == 1]
    assert wrong
    for row in wrong:
        fewer = {r: a for r, a in answers.items() if r != row}
        assert proof.statement(fewer, now).proved <= full.proved + 0.01
    fewer = {r: a for r, a in answers.items() if r not in wrong}
    assert proof.statement(fewer, now).proved <= full.proved + 0.01
    # The last question costs nothing while it is open.
    last = {r: a for r, a in answers.items() if r != proof.rows[-1]}
    assert proof.statement(last, now).proved >= full.proved - 0.05


def test_changed_predictions_are_not_covered_by_old_checks():
    n = 400
    now = predictions(np.zeros(n, dtype=int), np.full(n, 0.95))
    proof = Proof(n, Goal(level=0.8), 0)
    answers = {}
    proof.apply(proof.model_event(now, hold=True, at=0), answers)
    for _ in range(60):
        is_open = np.ones(n, dtype=bool)
        is_open[list(answers)] = False
        proof.apply(proof.check_event(is_open, answers, busy=(), n=len(proof.rows)), answers)
        answers[proof.rows[-1]] = Answer("no", "check")
    before = proof.statement(answers, now)
    assert before.reached
    for share in (0.02, 0.1, 0.5, 1.0):
        codes = np.zeros(n, dtype=int)
        codes[: int(share * n)] = 1
        after = proof.statement(answers, predictions(codes, np.full(n, 0.95)))
        assert after.proved <= before.proved
        left = np.ones(n, dtype=bool)
        left[list(answers)] = False
        assert after.proved <= (codes[left] == 0).mean() + 1e-9  # the truth is all "no"


def test_numbers_to_say_before_people_start():
    assert checks_needed(0.9, 0.95) == pytest.approx(179, abs=1)
    assert checks_needed(0.9, 0.99) == pytest.approx(42, abs=1)
    assert checks_needed(0.8, 0.9) == pytest.approx(82, abs=1)
    assert checks_needed(0.9, 0.9) == math.inf
    assert checks_needed(0.9, 1.0) == pytest.approx(math.log(20) / math.log(1 / 0.9))


def test_guesses_follow_the_answers():
    model = np.array([0.01, 0.1, 0.4])
    np.testing.assert_allclose(recalibrated(model, earlier=[]), model)
    worse = recalibrated(model, earlier=[(1, 0.1, True)] * 10)
    assert (worse > model).all()
    better = recalibrated(model, earlier=[(2, 0.4, False)] * 20)
    assert (better < model).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"level": 1.0},
        {"level": 0.0},
        {"level": 90},
        {"level": 0.9, "risk": 0.0},
        {"level": 0.9, "risk": 0.5},
        {"level": 0.9, "kind": "precision"},
        {"level": 0.9, "value": "a"},
        {"kind": "recall", "value": "a"},
        {"level": 0.9, "kind": "confident"},
        {"level": 0.9, "kind": "luck"},
    ],
)
def test_impossible_goals_are_refused(arguments):
    with pytest.raises(ValueError, match=r"goal|risk|kind|confidence|class|level"):
        Goal(**arguments)


@pytest.fixture
def blobs():
    rng = np.random.default_rng(5)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 3)) + 2.6 * y[:, None]
    return X, np.array(["left", "right"])[y]


def test_a_session_proves_its_goal_and_resumes(blobs, tmp_path):
    X, y = blobs
    log = tmp_path / "log"
    session = LabelingSession(X, goal=0.85, log=log)
    for _ in range(120):
        row = int(session.next()[0])
        session.label(row, str(y[row]))
        found = session.statement()
        left = np.ones(400, dtype=bool)
        left[list(session.labels)] = False
        assert found.proved <= (session.predictions() == y)[left].mean() + 1e-9
        if found.reached:
            break
    assert found.reached
    assert "at least 85 % of the unlabelled rows are right" in found.text
    expected = session.predictions()
    session.close()
    with LabelingSession(X, log=log) as again:
        assert again.goal == Goal(level=0.85)
        assert again.statement() == found
        np.testing.assert_array_equal(again.predictions(), expected)


def test_predictions_are_held_while_they_are_checked(blobs):
    X, y = blobs
    given = [str(value) if row < 80 else None for row, value in enumerate(y)]
    session = LabelingSession(X, given, goal=0.85)
    while not session.proof.holds:
        row = int(session.next()[0])
        session.label(row, str(y[row]))
        session.refresh()
    before = session.predictions()
    for _ in range(6):
        row = int(session.next()[0])
        assert row in session.proof.rows  # all questions are checks now
        session.label(row, str(y[row]))
    after = session.predictions()
    known = list(session.labels)
    left = np.ones(400, dtype=bool)
    left[known] = False
    np.testing.assert_array_equal(after[left], before[left])
    assert all(after[row] == y[row] for row in known)
    checks = session.statement().checks
    session.rename_class("left", "far on the left")  # held predictions follow a new name
    renamed = np.where(before == "left", "far on the left", before.astype("U20"))
    np.testing.assert_array_equal(session.predictions()[left], renamed[left])
    assert session.statement().checks == checks
    session.label(int(np.flatnonzero(left)[0]), "somewhere else")  # a new class
    assert "somewhere else" in session.predictions()


def test_merged_classes_start_the_proof_again(blobs):
    X, y = blobs
    session = LabelingSession(X, goal=0.85)
    for _ in range(30):
        row = int(session.next()[0])
        session.label(row, str(y[row]))
    session.refresh()
    checks = session.statement().checks
    assert checks > 0
    session.rename_class("left", "west")
    assert session.statement().checks == checks
    session.rename_class("west", "right")
    assert session.proof.rows == []
