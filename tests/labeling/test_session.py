"""The session without HTTP: questions, answers, undo, resume, two annotators, export."""

from __future__ import annotations

import csv
import itertools
import threading
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs

import gdpa
from gdpa import CommitteeClassifier, GraphClassifier
from gdpa.estimators import GraphOptions
from gdpa.labeling.agreement import measure_agreement
from gdpa.labeling.question_selector import typical_rows


def LabelingSession(X, y=None, **options):
    """A session with one graph in place of the committee: these tests are about the session."""
    rescale = None if sp.issparse(X) or isinstance(X, pd.DataFrame) else "minmax"
    options.setdefault("estimator", GraphClassifier(options=GraphOptions(rescale=rescale)))
    return gdpa.LabelingSession(X, y, **options)


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(240, centers=4, cluster_std=0.6, random_state=3)
    return X, np.array(["ant", "bee", "cat", "dog"])[y]


def answered(session, y, n):
    for _ in range(n):
        row = session.next()[0]
        session.label(row, y[row])
    return session


def test_from_no_label_to_a_label_for_every_row(blobs):
    X, y = blobs
    session = LabelingSession(X)
    with pytest.raises(ValueError, match="no row has a label yet"):
        session.predictions()
    assert session.estimate() is None
    answered(session, y, 12)
    assert (session.predictions() == y).mean() > 0.97
    P = session.probabilities()
    assert P.shape == (240, 4)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)
    assert session.classes == ["ant", "bee", "cat", "dog"]


def test_four_clusters_are_found_with_four_questions(blobs):
    X, y = blobs
    session = answered(LabelingSession(X), y, 4)
    assert session.classes == ["ant", "bee", "cat", "dog"]


def test_questions_are_a_function_of_the_answers(blobs, tmp_path):
    X, y = blobs
    one = answered(LabelingSession(X, log=tmp_path / "a"), y, 17)
    two = answered(LabelingSession(X, log=tmp_path / "b"), y, 9)
    two.close()
    two = answered(LabelingSession(X, log=tmp_path / "b"), y, 8)
    assert list(one.labels.items()) == list(two.labels.items())
    assert one.next() == two.next()
    np.testing.assert_array_equal(one.probabilities(), two.probabilities())
    assert one.estimate() == two.estimate()
    other = answered(LabelingSession(X, random_state=1), y, 17)
    assert list(other.labels) != list(one.labels)


def test_from_the_twentieth_on_one_question_in_five_is_a_random_check(blobs):
    X, y = blobs
    session = answered(LabelingSession(X), y, 50)
    places = [i for i, a in enumerate(session.answers.values(), 1) if a.purpose == "check"]
    assert places == [20, 25, 30, 35, 40, 45, 50]
    found = session.estimate()
    assert found.checks == 7
    assert 0 <= found.low <= found.accuracy <= found.high <= 1


def test_the_estimate_accounts_for_every_answer(blobs):
    """Also for those that the latest model has not seen; without waiting for a new one."""
    X, y = blobs
    session = answered(LabelingSession(X), y, 12)
    assert session.estimate(refresh=False) is None  # there is no model yet
    before = session.estimate()
    answered(session, y, 3)
    now = session.estimate(refresh=False)
    assert (before.answers, now.answers) == (12, 15)
    wrong = session.next()[0]
    session.label(wrong, next(v for v in "abcd" if v not in y))
    assert session.estimate(refresh=False).accuracy < now.accuracy
    assert len(session.latest.trained) == 12
    assert session.estimate().answers == 16


@pytest.mark.slow
def test_intervals_hold_the_true_accuracy():
    """Overlapping classes: 90 % intervals, at least 7 of 10 of which hold the truth."""
    held, width = 0, []
    for seed in range(10):
        X, y = make_blobs(300, centers=5, cluster_std=2.2, random_state=seed)
        session = answered(LabelingSession(X, random_state=seed), y, 50)
        found = session.estimate()
        rest = np.setdiff1d(np.arange(300), list(session.labels))
        truth = (session.predictions() == y)[rest].mean()
        held += found.low <= truth <= found.high
        width.append(found.high - found.low)
    assert held >= 7
    assert np.mean(width) < 0.35  # five of seven random checks alone: 0.54


def test_typical_rows_are_asked_first_where_there_are_clusters():
    X, y = make_blobs(600, centers=10, n_features=5, cluster_std=0.5, random_state=1)
    session = answered(LabelingSession(X), y, 10)
    assert len(session.classes) == 10
    noise = np.random.default_rng(0).normal(size=(1000, 100))
    assert typical_rows(noise).size == 0
    same = np.zeros((8, 2))
    assert typical_rows(same).size <= 8


def test_classes_are_renamed_merged_and_deleted_with_undo(blobs, tmp_path):
    X, y = blobs
    session = answered(LabelingSession(X, log=tmp_path / "log"), y, 12)
    before = session.labels
    session.rename_class("ant", "emmet")
    assert "ant" not in session.classes
    assert {r for r, v in before.items() if v == "ant"} == {
        r for r, v in session.labels.items() if v == "emmet"
    }
    session.rename_class("bee", "cat")
    assert session.classes == ["cat", "dog", "emmet"]
    session.rename_class("dog", None)
    assert not {r for r, v in before.items() if v == "dog"} & set(session.labels)
    session.close()
    again = LabelingSession(X, log=tmp_path / "log")
    assert again.labels == session.labels
    for _ in range(3):
        again.undo()
    assert again.labels == before
    with pytest.raises(ValueError, match="'emu' is not a class"):
        again.rename_class("emu", "ant")


def test_many_rows_are_labelled_at_once_with_one_undo(blobs):
    X, y = blobs
    session = answered(LabelingSession(X), y, 6)
    before = session.labels
    rows = [r for r in range(240) if y[r] == "cat" and r not in before]
    session.label_many(rows, "cat")
    assert all(session.labels[r] == "cat" for r in rows)
    assert not set(rows) & set(session.next(20).tolist())
    session.label(rows[0], "dog", annotator="b")
    session.undo()
    assert session.labels == {**before, rows[0]: "dog"}  # what somebody else changed stays
    with pytest.raises(ValueError, match="rows is empty"):
        session.label_many([], "cat")


def test_second_opinions_agreement_and_settling(blobs, tmp_path):
    X, y = blobs
    session = LabelingSession(X, overlap=0.25, log=tmp_path / "log")
    seconds = []
    for i in range(60):
        who = "ab"[i % 2]
        row = int(session.next(annotator=who)[0])
        known = session.answers.get(row)
        value = y[row]
        if known is not None:
            assert known.by != who  # nobody is asked twice
            seconds.append(row)
            value = "dog" if len(seconds) % 3 == 0 else value
        session.label(row, value, annotator=who)
    assert len(seconds) == pytest.approx(0.25 * len(session.answers), abs=2)
    assert all(session.labels[row] == y[row] for row in seconds)  # the first answer stands
    wrong = [row for i, row in enumerate(seconds, 1) if i % 3 == 0 and y[row] != "dog"]
    assert session.disagreements() == [r for r in session.answers if r in wrong]
    found = session.agreement()
    assert (found.rows, found.rows - found.agreed) == (len(seconds), len(wrong))
    assert found.low <= found.kappa <= found.high < 1
    session.label(wrong[0], "ant", annotator="a")
    assert session.labels[wrong[0]] == "ant"
    assert wrong[0] not in session.disagreements()
    session.close()
    again = LabelingSession(X, overlap=0.25, log=tmp_path / "log")
    assert again.answers == session.answers
    assert again.undo(annotator="a") == wrong[0]
    assert wrong[0] in again.disagreements()


def test_a_second_opinion_is_taken_back_and_asked_again(blobs):
    X, y = blobs
    session = LabelingSession(X, overlap=1.0)
    first = session.next(annotator="a")[0]
    session.label(first, y[first], annotator="a")
    assert session.next(annotator="b")[0] == first
    session.label(first, "eel", annotator="b")
    assert session.disagreements() == [first]
    assert session.undo(annotator="b") == first
    assert session.disagreements() == []
    assert session.next(annotator="b")[0] == first
    session.label(first, "eel", annotator="b")
    assert session.disagreements() == [first]
    session.label(first, "eel", annotator="a")  # having looked again
    assert session.disagreements() == []
    assert session.labels == {first: "eel"}


def test_an_undo_that_is_sent_twice_undoes_once(blobs, tmp_path):
    X, _ = blobs
    with LabelingSession(X, log=tmp_path / "log") as session:
        for row in (3, 5, 7):
            session.label(row, "ant", annotator="a")
        assert session.undo(annotator="a", key="first") == 7
        assert session.undo(annotator="a", key="first") == 7
        assert list(session.labels) == [3, 5]
    with LabelingSession(X, log=tmp_path / "log") as again:  # the server was killed meanwhile
        assert again.undo(annotator="a", key="first") == 7
        assert list(again.labels) == [3, 5]
        assert again.undo(annotator="a", key="second") == 5
        assert again.undo(annotator="a") == 3
        assert again.labels == {}


def test_questions_with_the_last_field_are_open_rows(blobs, monkeypatch):
    X, y = blobs
    monkeypatch.setattr("gdpa.labeling.question_selector.FRESH_FIELD", 5)
    session = LabelingSession(X)
    session.in_background()
    for i in range(12):
        row = session.next(annotator=f"a{i % 3}")[0]
        assert row not in session.labels
        session.label(row, y[row], annotator=f"a{i % 3}")
        session.follow()
    monkeypatch.setattr(session._selector, "_field", None)  # no new field from here on
    asked = [int(session.next(annotator=f"b{i}")[0]) for i in range(4)]
    assert len(set(asked)) == 4
    assert not set(asked) & set(session.labels)


def test_kappa_against_its_formula():
    same = measure_agreement([("a", "a"), ("b", "b"), ("a", "a")])
    assert (same.kappa, same.high, same.agreed) == (1.0, 1.0, 3)
    assert same.low < 0.5  # three rows are few
    assert measure_agreement([("a", "a"), ("a", "a")]).kappa == 1.0
    pairs = [("a", "a")] * 20 + [("a", "b")] * 5 + [("b", "a")] * 10 + [("b", "b")] * 15
    found = measure_agreement(pairs)
    share = (2 * 20 + 15) / 100  # Scott's pi, which Fleiss' kappa of two ratings is
    chance = share**2 + (1 - share) ** 2
    assert found.kappa == pytest.approx((0.7 - chance) / (1 - chance))
    assert found.low < found.kappa < found.high
    assert measure_agreement(pairs[:1]) is None
    # Two annotators who are right in 95 % of the rows, two equally frequent classes.
    rng = np.random.default_rng(0)
    kappa = 2 * (0.95**2 + 0.05**2) - 1
    held = 0
    for _ in range(300):
        wrong = rng.random((2, 30)) < 0.05
        truth = rng.random(30) < 0.5
        one = measure_agreement(list(zip(*(truth ^ wrong).tolist(), strict=True)))
        held += one.low <= kappa <= one.high
    assert held >= 0.85 * 300


def test_flipped_labels_are_listed_first(blobs):
    X, y = blobs
    session = LabelingSession(X)
    flipped = {5: "dog", 77: "ant"}
    for row in range(0, 240, 3):
        session.label(row, flipped.get(row, y[row]))
    for row, value in flipped.items():
        session.label(row, "bee" if y[row] == value else value)
    session.refresh()
    assert {row for row, _, _ in session.suspicious()[:2]} == set(flipped)
    assert {row: value for row, value, _ in session.suspicious()[:2]} == {5: y[5], 77: y[77]}


def test_batches_do_not_repeat_themselves(blobs):
    X, y = blobs
    session = answered(LabelingSession(X), y, 6)
    rows = session.next(30)
    assert rows.size == np.unique(rows).size == 30
    assert not set(rows.tolist()) & set(session.labels)
    assert session.next(30).tolist() == rows.tolist()
    # Copies of one point: a batch does not ask for two of them.
    copies = np.repeat(X[:12], 20, axis=0)
    batch = LabelingSession(copies).next(6)
    assert np.unique(batch // 20).size == 6


def test_undo_correct_remove_skip_and_new_class(blobs):
    X, y = blobs
    session = answered(LabelingSession(X), y, 10)
    before = dict(session.labels)
    row = session.next()[0]
    session.label(row, "eel")
    assert "eel" in session.predictions()
    assert session.undo() == row
    assert session.labels == before
    assert session.next()[0] == row
    session.skip(row)
    assert row in session.skipped
    assert row not in session.next(100)
    first = next(iter(before))
    session.label(first, "eel")
    assert session.labels[first] == "eel"
    assert session.predictions()[first] == "eel"
    session.remove(first)
    assert first not in session.labels
    with pytest.raises(ValueError, match="neither a label nor a skip"):
        session.remove(first)
    while session.undo() is not None:
        pass
    assert session.labels == {}
    assert session.skipped == set()


def test_two_annotators_are_not_asked_the_same(blobs):
    X, y = blobs
    session = LabelingSession(X)
    for _ in range(10):
        a, b = session.next(2, annotator="a"), session.next(2, annotator="b")
        assert not set(a.tolist()) & set(b.tolist())
        session.label(a[0], y[a[0]], annotator="a")
        session.label(b[0], y[b[0]], annotator="b")
    assert session.undo(annotator="a") == a[0]
    assert b[0] in session.labels
    short = LabelingSession(X, lease=0.0)  # a lease that has run out
    assert short.next(annotator="a") == short.next(annotator="b")


def test_every_row_can_be_asked_and_then_none_is_left():
    X = np.arange(14.0)[:, None]
    session = answered(LabelingSession(X), np.where(X[:, 0] < 7, 1, 2), 13)
    assert session.next(5).size == 1
    row = session.next()[0]
    session.skip(row)
    assert session.next(3).size == 0
    assert session.predictions().tolist()[:6] == [1] * 6


def test_threads_lose_nothing(blobs, tmp_path):
    X, y = blobs
    session = LabelingSession(X, log=tmp_path / "log")
    errors = []

    def work(name):
        try:
            for _ in range(20):
                row = session.next(annotator=name)[0]
                session.label(row, y[row], annotator=name)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    session.refresh() if session.labels else None
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(session.labels) == 80
    session.close()
    assert LabelingSession(X, log=tmp_path / "log").labels == session.labels


def test_labels_at_the_start_are_kept_and_are_no_checks(blobs):
    X, y = blobs
    given = [v if i % 9 == 0 else None for i, v in enumerate(y)]
    session = LabelingSession(X, given)
    assert len(session.labels) == 27
    assert (session.predictions() == y).mean() > 0.95
    assert session.estimate() is None
    codes = np.where(np.arange(240) % 9 == 0, np.unique(y, return_inverse=True)[1], -1)
    assert len(LabelingSession(X, codes).labels) == 27
    floats = np.where(codes < 0, np.nan, codes)
    assert LabelingSession(X, floats).labels == LabelingSession(X, codes).labels


@pytest.mark.parametrize("kind", ["sparse", "frame", "list", "images", "float32"])
def test_kinds_of_data(blobs, kind):
    X, y = blobs
    if kind == "sparse":
        X = sp.csr_matrix(np.maximum(X, 0))
    elif kind == "frame":
        X = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 0] > 0, "up", "down")})
        X.loc[3, "c"] = None
    elif kind == "list":
        X = X.tolist()
    elif kind == "images":
        X = np.repeat(X, 8, axis=1).reshape(-1, 4, 4)
    else:
        X = X.astype(np.float32)
    session = answered(LabelingSession(X), y, 8)
    assert session.predictions().shape == y.shape


def test_bad_input_names_the_argument(blobs):
    X, y = blobs
    session = LabelingSession(X)
    for call, message in [
        (lambda: session.label(240, "x"), "row=240 must be an integer from 0 to 239"),
        (lambda: session.label(-1, "x"), "row=-1"),
        (lambda: session.label(1.5, "x"), r"row=1\.5"),
        (lambda: session.label(1, ""), "value=''"),
        (lambda: session.label(1, None), "value=None"),
        (lambda: session.label(1, "\ud800"), "lone surrogate"),
        (lambda: session.label(1, "x", annotator="\ud800"), "annotator="),
        (lambda: session.label(1, float("nan")), "value=nan"),
        (lambda: session.next(0), "n=0"),
        (lambda: session.save("x.npz"), "two classes"),
        (lambda: LabelingSession(X, y[:5]), "y has 5 entries, X has 240 rows"),
        (lambda: LabelingSession(X[:0]), "X has shape"),
        (lambda: LabelingSession([["a"], ["b"]]), "X must hold numbers"),
        (lambda: LabelingSession(X * np.nan), "NaN|finite|missing"),
        (lambda: LabelingSession(X, random_state=-1), "random_state=-1"),
        (lambda: LabelingSession(X, [1, "a"] + [None] * 238), "several types"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    session.label(1, "x")
    with pytest.raises(ValueError, match="value=2 is a number"):
        session.label(2, 2)
    assert session.labels == {1: "x"}


@pytest.mark.slow
def test_a_large_table_is_asked_through_a_sample(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3)) + 6 * (np.arange(5000) % 3)[:, None]
    session = LabelingSession(X)
    y = np.arange(5000) % 3
    session.label(4999, 0 if y[4999] == 0 else int(y[4999]))
    answered(session, y, 20)
    selector = session._selector
    first = selector._sample
    assert first.sketch.rows.size == 2000
    assert (session.predictions() == y).mean() > 0.99
    # Once most of the sample is answered, the background draws the next one, not the question.
    session.in_background()
    for row in first.sketch.rows[:1200].tolist():
        session.label(row, int(y[row]))
    session.next()
    assert selector._sample is first
    session.follow()
    assert np.intersect1d(selector._sample.sketch.rows, list(session.labels)).size == 0


def test_saved_models_and_tables_are_read_again(blobs, tmp_path):
    X, y = blobs
    session = answered(LabelingSession(X), y, 12)
    session.skip(session.next()[0])
    session.save(tmp_path / "model.npz")
    model = GraphClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(model.transduction_, session.predictions())
    session.save(tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert [r["label_predicted"] for r in rows] == session.predictions().tolist()
    assert {int(r["row"]) - 1: r["label"] for r in rows if r["label"]} == session.labels
    assert sum(r["label_skipped"] == "yes" for r in rows) == 1


def test_labels_are_written_as_they_were_given(tmp_path):
    session = LabelingSession(np.arange(6.0)[:, None])
    session.label(0, "=HYPERLINK()")
    session.label(5, "-1")
    session.save(tmp_path / "t.csv")
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert rows[0]["label"] == "=HYPERLINK()"
    assert rows[5]["label"] == "-1"
    session.save(tmp_path / "t.csv", escape=True)
    rows = list(csv.DictReader((tmp_path / "t.csv").open()))
    assert rows[0]["label"] == "'=HYPERLINK()"
    assert rows[5]["label"] == "-1"


def test_the_predictions_come_to_rest():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    session = answered(LabelingSession(X), y, 10)
    session.refresh()
    answered(session, y, 32)
    session.refresh()
    early = session.estimate()  # ten labels do not find ten digits
    assert early.changed > 0.01
    assert not early.settled
    for row in range(300):
        session.label(row, y[row])
    assert session.predictions().tolist() == y.tolist()
    found = session.estimate()
    assert found.changed == np.mean(session._stability._past[-2][1] != y)
    assert found.settled == (found.changed <= 0.01)
    assert len(session.next()) == 0


def test_by_default_the_classifier_is_the_default_one(blobs):
    X, y = blobs
    session = answered(gdpa.LabelingSession(X), y, 8)
    model = session.classifier()
    assert model.graph == CommitteeClassifier().graph
    np.testing.assert_array_equal(model.transduction_, session.predictions())
    assert (session.predictions() == y).mean() > 0.95


def test_large_data_are_followed_by_adding_labels(monkeypatch):
    """Beyond some rows labels are added to the last fit, and mean the same."""
    X, y = make_blobs(300, centers=3, cluster_std=1.0, random_state=2)
    session = LabelingSession(X)
    predictor = session._predictor
    predictor.fresh_rows = 100
    fits = []
    fit = predictor.fit
    monkeypatch.setattr(predictor, "fit", lambda labels: fits.append(1) or fit(labels))
    answered(session, y, 12)
    session.refresh()
    answered(session, y, 10)
    session.undo()
    followed = session.predictions()
    assert len(fits) == 1
    assert session.estimate() is not None
    fresh = LabelingSession(X)
    for row, value in session.labels.items():
        fresh.label(row, value)
    assert (fresh.predictions() == followed).mean() > 0.97
    # A class that is new is a reason to fit again, and so are twice as many labels.
    before = len(fits)
    session.label(session.next()[0], 7)
    session.refresh()
    assert len(fits) == before + 1


def test_a_column_whose_range_overflows_is_refused_before_any_answer(tmp_path):
    X = np.array([[1.7e308, 0.0], [-1.7e308, 1.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="column 0; their range overflows"):
        LabelingSession(X, log=tmp_path / "labels.jsonl")
    assert not (tmp_path / "labels.jsonl").exists()


def test_a_clock_that_jumps_changes_no_answer(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    now = itertools.cycle([2e9, 1e9, 0.0, 1.7e9])
    plain = time.gmtime
    monkeypatch.setattr(time, "gmtime", lambda: plain(next(now)))
    with gdpa.LabelingSession(X, log=tmp_path / "log") as session:
        for row in (30, 31, 32, 33):
            session.label(row, "xy"[row % 2], annotator="a")
        assert session.undo(annotator="a") == 33  # the last answer, not the one with the last time
        kept = dict(session.labels)
    with gdpa.LabelingSession(X, log=tmp_path / "log") as session:
        assert dict(session.labels) == kept
        assert not session.log_notes
        assert session.undo(annotator="a") == 32
