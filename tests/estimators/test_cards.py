"""What a fitted classifier shows of itself."""

from __future__ import annotations

import numpy as np
import pytest

from gdpa import CommitteeClassifier, LabelingSession


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    group = np.arange(80) % 2
    X = {"v": rng.normal(size=80) + 4 * group, "<b>": rng.choice(["x<y", "z"], 80)}
    y = [("<i>no</i>", "yes")[g] if i < 12 else None for i, g in enumerate(group)]
    return CommitteeClassifier(unlabeled=None).fit(X, y), X


def test_the_report_is_one_page(fitted, tmp_path):
    model, X = fitted
    path = model.report(tmp_path / "out.html", X, ids=[f"row {i}" for i in range(80)])
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "<script" not in text
    assert "&lt;b&gt;" in text  # the column, escaped
    assert "largest class" in text
    assert "row 1" in text
    assert model.report(tmp_path / "plain.html").exists()
    with pytest.raises(ValueError, match="ids has 2 rows, the classifier has 80"):
        model.report(tmp_path / "x.html", ids=["a", "b"])
    with pytest.raises(ValueError, match="X has 1 rows"):
        model.report(tmp_path / "x.html", {"v": [1.0]})
    assert not (tmp_path / "x.html").exists()


def test_cards_are_small_safe_and_without_script(fitted):
    model, _ = fitted
    html = model._repr_html_()
    assert html == model._repr_mimebundle_()["text/html"]
    assert len(html) < 4000
    assert "<script" not in html
    assert "&lt;i&gt;no" in html
    assert "80, of which 12 labelled" in html
    for shown in (model.tuning_, model.solution_, model.columns_, model.committee_):
        assert "<script" not in shown._repr_html_()
    for name in model.committee_.names:
        assert name in model.committee_._repr_html_()
        assert name in repr(model.committee_)
    assert "array(" not in repr(model.committee_)


def test_a_session_says_how_far_it_is():
    session = LabelingSession([[0.0], [1.0], [2.0]], ["<b>", None, None])
    session.skip(1)
    assert repr(session) == "LabelingSession(rows: 3; labelled: 1; skipped: 1; classes: <b> 1)"
    assert "&lt;b&gt; 1" in session._repr_html_()
    assert "none yet" in repr(LabelingSession([[0.0], [1.0]]))
