"""The benchmarks' runner: fresh processes, limits, skipped packages, resumed runs, the report."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return {
        name: importlib.import_module(f"benchmarks.{name}")
        for name in ("runner", "cases", "report", "__main__")
    }


def case(bench, plan, claims=lambda medians: []):
    return bench["runner"].Case("toy", "A toy", lambda quick: plan, claims, ("seconds",))


def test_every_planned_function_exists(bench):
    for item in bench["cases"].CASES.values():
        for quick in (True, False):
            for m in item.plan(quick):
                module, name = m.function.split(":")
                assert callable(getattr(importlib.import_module(module), name)), m.label
                json.dumps(m.arguments)


def test_ends_of_a_measurement(bench):
    Measurement, run = bench["runner"].Measurement, bench["runner"].run_once
    good = run(Measurement("a", "platform:uname", {}))
    assert good["status"].startswith("failed")  # a tuple is no dict of numbers
    missing = run(Measurement("b", "platform:uname", needs=("no_such_package",)))
    assert missing["status"] == "skipped: no_such_package not installed"
    slow = run(Measurement("c", "time:sleep", {}, limit=0.01))
    assert slow["status"] == "time limit"
    assert slow["more_than_s"] >= 0.01


def test_medians_and_ratios(bench):
    runner = bench["runner"]
    runs = [{"status": "ok", "seconds": s, "name": "x"} for s in (3.0, 1.0, 2.0)]
    middle = runner.median([*runs, {"status": "time limit", "more_than_s": 9.0}])
    assert middle == {"status": "ok", "runs": 3, "seconds": 2.0, "name": "x"}
    medians = {"ours": middle, "theirs": {"status": "time limit", "more_than_s": 9.0}}
    assert runner.speedup(medians, "ours", "theirs") == 4.5
    assert runner.speedup(medians, "theirs", "ours") is None
    assert runner.Claim("t", 4.5, 4.0).holds is True
    assert runner.Claim("t", 4.5, 4.0, at_least=False).holds is False
    assert runner.Claim("t", None, 4.0).holds is None


def test_a_run_is_kept_and_resumed(bench, tmp_path, monkeypatch):
    runner = bench["runner"]
    order = []

    def fake(m):
        order.append(m.label)
        return {"status": "ok", "seconds": float(len(order))}

    monkeypatch.setattr(runner, "run_once", fake)
    plan = [runner.Measurement(x, "a:b") for x in ("one", "two")]
    store = runner.Store(tmp_path)
    runner.run_case(case(bench, plan), store, quick=False, repeats=2, say=lambda text: None)
    assert order == ["one", "two", "one", "two"]  # interleaved
    again = runner.Store(tmp_path)
    assert again.finished("toy", quick=False)
    assert not again.finished("toy", quick=True)
    assert not again.finished("other", quick=False)


def test_the_report_says_what_was_measured(bench, tmp_path, monkeypatch):
    runner, report = bench["runner"], bench["report"]
    monkeypatch.setattr(
        runner, "run_once", lambda m: {"status": "ok", "seconds": 1.5, "error_percent": 11.25}
    )
    store = runner.Store(tmp_path)
    plan = [runner.Measurement(x, "a:b") for x in ("one", "two")]
    claims = [runner.Claim("a ratio", 0.5, 1.0)]
    runner.run_case(
        case(bench, plan, lambda medians: claims), store, quick=False, repeats=1, say=print
    )
    monkeypatch.setattr(report, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(report, "PLOTS", tmp_path / "plots")
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    monkeypatch.setattr(report, "PERFORMANCE", page)
    report.write_report(json.loads(store.path.read_text()))
    text = (tmp_path / "RESULTS.md").read_text()
    assert "## A toy" in text
    assert "| one | 1.5 | 1 |" in text
    assert "| a ratio | 0.5 | at least 1 | **no** |" in text
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert "old" not in page.read_text()


def test_command_line(bench, capsys):
    main = bench["__main__"].main
    assert main(["--list"]) == 0
    assert "million" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--case", "no-such-case"])
    assert "no-such-case" in capsys.readouterr().err
    assert sys.modules["benchmarks.cases"] is bench["cases"]
