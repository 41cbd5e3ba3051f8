"""Who hears how far a fit has come, and from when on."""

import logging
import sys

import pytest
from sklearn.datasets import load_iris

from gdpa import CommitteeClassifier
from gdpa.estimators import options as reporting

MEMBERS = ["neighbours", "forest", "linear", "kernel", "forest graph"]


@pytest.fixture
def fit():
    X, y = load_iris(return_X_y=True)
    y[20:50] = y[70:100] = y[120:150] = -1

    def run(**options):
        CommitteeClassifier(**options).fit(X, y)

    return run


@pytest.fixture
def fresh(monkeypatch):
    """A logger that nobody has set up."""
    logger = logging.Logger("gdpa.estimators")
    monkeypatch.setattr(reporting, "logger", logger)
    return logger


def test_a_short_fit_is_silent(fit, caplog, monkeypatch):
    monkeypatch.setattr(reporting, "PATIENCE", 1e6)
    with caplog.at_level("INFO", logger="gdpa.estimators"):
        fit()
    assert caplog.text == ""


def test_a_long_fit_speaks_unasked(fit, caplog, monkeypatch):
    monkeypatch.setattr(reporting, "PATIENCE", 0.0)
    with caplog.at_level("INFO", logger="gdpa.estimators"):
        fit()
    for member in MEMBERS:
        assert f"member: {member}, action: cross-validated" in caplog.text
    assert "stage: tuning" in caplog.text
    assert "iteration" not in caplog.text
    assert all(line.rstrip().endswith(" s)") for line in caplog.messages)


@pytest.mark.parametrize(
    ("verbose", "terminal", "heard"),
    [(1, False, True), (1, True, True), (0, True, True), (0, False, False)],
)
def test_without_logging_set_up(fit, fresh, capsys, monkeypatch, verbose, terminal, heard):
    monkeypatch.setattr(reporting, "PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    fit(verbose=verbose)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("gdpa: stage: graph") == heard
    assert (said.err == "") == (not heard)


def test_a_handler_of_the_user_is_enough(fit, fresh, capsys):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    fresh.addHandler(handler)
    fit(verbose=1)
    assert records
    assert capsys.readouterr().err == ""
