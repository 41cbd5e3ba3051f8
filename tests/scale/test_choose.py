"""The protocol that chooses defaults: draws, the cache, replayed rules and what is left out."""

import importlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("compare", "corpus", "learn", "members", "record", "replay", "report", "shares")


@pytest.fixture
def choose(monkeypatch):
    """The modules of the package by name."""
    monkeypatch.syspath_prepend(str(ROOT))

    class Modules:
        pass

    for name in NAMES:
        setattr(Modules, name, importlib.import_module(f"benchmarks.choose.{name}"))
    return Modules


def a_set(choose, n=120, k=3, name="toy"):
    rng = np.random.default_rng(1)
    y = np.arange(n) % k
    return choose.corpus.DataSet(name, "table", rng.random((n, 2)) + y[:, None], y)


def test_labels_are_drawn_class_by_class_or_at_random(choose):
    data = a_set(choose)
    task = choose.corpus.draw(data, "5", 0)
    assert np.bincount(task.codes[task.codes >= 0]).tolist() == [5, 5, 5]
    assert (task.codes[task.scored] == -1).all()
    at_random = choose.corpus.draw(data, "random", 0)
    assert np.count_nonzero(at_random.codes >= 0) == 3 * choose.corpus.RANDOM_LABELS
    again = choose.corpus.draw(data, "random", 0)
    assert np.array_equal(at_random.codes, again.codes)
    assert not np.array_equal(at_random.codes, choose.corpus.draw(data, "random", 1).codes)


def test_rows_are_limited_and_classes_of_one_row_left_out(choose):
    data = a_set(choose)
    small = choose.corpus.draw(data, "2", 0, most_rows=30)
    assert small.data.X.shape[0] == small.codes.size == 30
    y = data.y.copy()
    y[0] = 3
    task = choose.corpus.draw(replace(data, y=y), "2", 0)
    assert task.codes[0] == -1
    assert 0 not in task.scored


def a_record(choose, name="toy", labels="5", seed=0, n_scored=60, kind="table"):
    """Three members: a good one, a fair one and one that guesses."""
    rng = np.random.default_rng(seed)
    known = np.repeat([0, 1], 5 if labels == "5" else 20)
    truth = rng.integers(0, 2, n_scored)
    models = {}
    for model, skill in {"good": 3.0, "fair": 1.0, "guess": 0.0}.items():
        parts = []
        for y in (known, truth):
            z = skill * (2 * y - 1) + rng.normal(size=y.size)
            p = 1.0 / (1.0 + np.exp(-z))
            parts.append(np.column_stack([1.0 - p, p]))
        models[model] = choose.members.Prediction(parts[0], parts[1], 0.1)
    return choose.record.Record(kind, name, labels, 0, known, truth, models)


def test_a_stored_task_is_read_again_and_run_once(choose, tmp_path, monkeypatch):
    data = a_set(choose)
    runs = []

    def group(task):
        runs.append(task.data.name)
        p = np.full((task.scored.size, 3), 1 / 3)
        return {"flat": choose.members.Prediction(None, p, 0.5)}

    monkeypatch.setattr(choose.record, "data_sets", lambda kinds: iter([data]))
    for _ in range(2):
        choose.record.record(tmp_path, {"g": group}, kinds=("table",), labels=("1", "5"), draws=1)
    assert runs == ["toy", "toy"]
    (found,) = choose.compare.recorded(tmp_path, "g", "table")[1:]
    assert (found.record.name, found.record.labels, found.record.draw) == ("toy", "5", 0)
    assert found.record.models["flat"].held_out is None
    assert found.record.models["flat"].seconds == 0.5
    assert np.array_equal(np.bincount(found.record.known), [5, 5, 5])


def test_no_time_is_left_after_the_limit(choose, tmp_path, monkeypatch):
    monkeypatch.setattr(choose.record, "data_sets", lambda kinds: iter([a_set(choose)]))
    done = choose.record.record(tmp_path, {"g": None}, kinds=("table",), minutes=-1.0)
    assert done == 0


def test_measures_agree_with_scikit_learn(choose):
    from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 200)
    p = rng.dirichlet(np.ones(3), 200)
    p[np.arange(200), truth] += 0.3
    p /= p.sum(axis=1, keepdims=True)
    found = choose.replay.measures(p, truth)
    assert found["error"] == pytest.approx(100 * np.mean(p.argmax(axis=1) != truth))
    balanced = balanced_accuracy_score(truth, p.argmax(axis=1))
    assert found["balanced error"] == pytest.approx(100 * (1 - balanced))
    assert found["log-loss"] == pytest.approx(log_loss(truth, p))
    area = roc_auc_score(truth, p, multi_class="ovr", average="macro")
    assert found["AUC"] == pytest.approx(100 * area)


def test_weights_follow_prior_and_held_out_loss(choose):
    weights = choose.replay.Weights
    losses = np.array([0.2, 0.7])
    w = weights({"a": 1.0}, b=2.0, c=0.5).of(["a", "b"], losses, 16)
    assert w[0] / w[1] == pytest.approx(np.exp(1.0 + 2.0 * 4.0 * 0.5))
    alone = weights({"a": 1.0}).of(["a", "b"], None, 0)
    assert alone[0] / alone[1] == pytest.approx(np.e)


def test_gradient_of_the_learned_loss(choose):
    tasks = [
        choose.replay.Replay(a_record(choose, name, labels, seed))
        for seed, (name, labels) in enumerate([("one", "5"), ("one", "20"), ("two", "5")])
    ]
    lesson = choose.learn.lesson_of(tasks)
    weights = choose.learn.task_weights(lesson)
    x = np.random.default_rng(0).normal(size=len(lesson.members) + 2) * 0.3
    x[-1] = 0.4
    _, gradient = choose.learn.objective(x, lesson, weights, 0.1)
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = 1e-3
        up = choose.learn.objective(x + step, lesson, weights, 0.1)[0]
        down = choose.learn.objective(x - step, lesson, weights, 0.1)[0]
        assert gradient[i] == pytest.approx((up - down) / 2e-3, abs=1e-3)


def without_held_out(record):
    """Too few labels to hold any out: only the prior can tell the members apart."""
    models = {name: replace(one, held_out=None) for name, one in record.models.items()}
    return replace(record, models=models)


def test_the_better_member_is_learned(choose):
    records = [without_held_out(a_record(choose, f"set {i}", seed=i)) for i in range(4)]
    tasks = [choose.replay.Replay(record) for record in records]
    lesson = choose.learn.lesson_of(tasks)
    rule = choose.learn.weights_of(lesson, choose.learn.learn(lesson, penalty=0.01), "table")
    assert rule.prior["good"] > rule.prior["fair"] > rule.prior["guess"]


def test_a_set_that_is_left_out_has_no_say(choose):
    """Exchange the classes of a set's scored rows: what the other sets learn stays the same."""
    records = [without_held_out(a_record(choose, f"set {i}", seed=i)) for i in range(4)]
    tasks = [choose.replay.Replay(record) for record in records]
    before = choose.report.left_out_rules(tasks)
    flipped = replace(tasks[0].record, truth=1 - tasks[0].record.truth)
    after = choose.report.left_out_rules([choose.replay.Replay(flipped), *tasks[1:]])
    for name, value in before["set 0"].prior.items():
        assert after["set 0"].prior[name] == pytest.approx(value, abs=0.02)
    assert after["set 1"].prior["good"] < before["set 1"].prior["good"] - 0.05


def shifted_task(choose, share, n=4_000, per_class=40, seed=0):
    """Calibrated predictions of two Gaussian classes, for balanced labels and other shares."""
    rng = np.random.default_rng(seed)
    known = np.repeat([0, 1], per_class)
    truth = (rng.random(n) < share).astype(int)

    def model(y):
        z = 1.5 * (2 * y - 1) + rng.normal(size=y.size)
        p = 1.0 / (1.0 + np.exp(-3.0 * z))  # the posterior for equal shares
        return np.column_stack([1.0 - p, p])

    return model(truth), model(known), known, truth


def test_class_shares_are_found_from_calibrated_predictions(choose):
    p, _, _, truth = shifted_task(choose, 0.1)
    numbers = choose.shares.ShareNumbers(temper=1.0, prior_weight=0.0)
    found = choose.shares.estimated(p, np.array([0.5, 0.5]), numbers)
    assert found[1] == pytest.approx(truth.mean(), abs=0.02)


def test_the_guard_knows_a_shift_from_noise(choose):
    quiet = [
        choose.shares.shift_evidence(*shifted_task(choose, 0.5, per_class=10, seed=s)[:3])
        for s in range(40)
    ]
    p, held_out, known, _ = shifted_task(choose, 0.1, per_class=10)
    assert np.mean(quiet) < 4.0  # about k - 1 = 1
    assert choose.shares.shift_evidence(p, held_out, known) > 20.0


def test_changes_have_standard_errors_over_sets(choose):
    scores = {
        rule: {"5": {f"s{i}": {"error": e} for i, e in enumerate(errors)}}
        for rule, errors in {"a": [1.0, 2.0, 6.0], "b": [2.0, 2.0, 4.0]}.items()
    }
    gain, noise = choose.compare.change(scores, "a", "b", "5", "error")
    assert gain == pytest.approx(1 / 3)
    assert noise == pytest.approx(np.std([-1.0, 0.0, 2.0], ddof=1) / np.sqrt(3))
    assert choose.compare.mean_ranks(scores, ["a", "b"], "5", "error") == {"a": 1.5, "b": 1.5}


def test_the_page_is_written_from_stored_scores(choose):
    tasks = [choose.replay.Replay(a_record(choose, f"set {i}", seed=i)) for i in range(3)]
    scores = choose.compare.score(
        tasks,
        {
            choose.report.EQUAL: choose.compare.by_weights(choose.replay.Weights(b=0.0)),
            choose.report.PLAIN: choose.compare.by_weights(choose.replay.Weights()),
        },
    )
    stored = {"kinds": {"table": choose.report.rounded(scores)}, "candidates": {}}
    page = choose.report.page(stored)
    assert "| Weights without any held-out loss" in page
    assert "| 3 | 5 |" in page


def test_the_stored_page_is_that_of_the_stored_scores(choose):
    stored = json.loads(choose.report.STORE.read_text(encoding="utf-8"))
    written = choose.report.PAGE.read_text(encoding="utf-8")
    assert written == choose.report.page(stored), "run python -m benchmarks.choose report"


def test_the_page_of_few_labels_on_public_tables_is_that_of_its_store(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    tabllm = importlib.import_module("benchmarks.tabllm")
    written = tabllm.PAGE.read_text(encoding="utf-8")
    assert written == tabllm.page(tabllm.load(tabllm.STORE)), "run python -m benchmarks.tabllm"


def test_few_labels_in_all_are_spread_over_the_classes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    tabllm = importlib.import_module("benchmarks.tabllm")
    y = np.repeat([0, 1, 2], [200, 60, 3])
    known, test = tabllm.draw(y, 16, 0)
    assert known.size == 16
    assert test.size == y.size // 5
    assert not np.isin(known, test).any()
    assert np.ptp(np.bincount(y[known])[:2]) <= 1
