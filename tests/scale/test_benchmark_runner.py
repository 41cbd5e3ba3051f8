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


def run(bench, folder, plan, repeats=1):
    store = bench["runner"].Store(folder)
    try:
        record = bench["runner"].run_case(
            case(bench, plan), store, quick=False, repeats=repeats, say=lambda text: None
        )
    finally:
        store.rows.close()
    return {m["label"]: m["runs"] for m in record["measurements"]}


def test_ends_of_a_measurement(bench, tmp_path):
    Measurement = bench["runner"].Measurement
    found = run(bench, tmp_path, [
        Measurement("good", "builtins:dict", {"seconds": 1.5}),
        Measurement("bad", "platform:uname", {}),  # a tuple is no dict of numbers
        Measurement("missing", "platform:uname", needs=("no_such_package",)),
    ])  # fmt: skip
    assert found["good"][0]["seconds"] == 1.5
    assert found["good"][0]["peak_mb"] > 1
    assert found["bad"][0]["status"].startswith("failed")
    assert found["missing"] == [{"status": "skipped: no_such_package not installed"}]


def test_a_measurement_over_its_limit_is_stopped_and_not_repeated(bench, tmp_path):
    Measurement = bench["runner"].Measurement
    plan = [Measurement("slow", "benchmarks.worker:wait", {"seconds": 60.0}, limit=0.05)]
    found = run(bench, tmp_path, plan, repeats=3)
    assert found["slow"] == [{"status": "time limit", "more_than_s": 0.05}]


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


def test_a_run_is_kept_and_resumed(bench, tmp_path):
    runner = bench["runner"]
    plan = [runner.Measurement(x, "builtins:dict", {"seconds": 1.0}) for x in ("one", "two")]
    said = []
    store = runner.Store(tmp_path)
    runner.run_case(case(bench, plan), store, quick=False, repeats=2, say=said.append)
    assert [text.split(": ")[1] for text in said] == ["one", "two", "one", "two"]  # interleaved
    store.rows.close()
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == 4
    (tmp_path / "results.jsonl").write_text("\n".join(lines[:3]) + "\n")  # killed before the last
    again = runner.Store(tmp_path)
    assert again.finished("toy", quick=False)
    assert not again.finished("toy", quick=True)
    assert not again.finished("other", quick=False)
    runner.run_case(case(bench, plan), again, quick=False, repeats=2, say=said.append)
    again.rows.close()
    kept = (tmp_path / "results.jsonl").read_text().splitlines()
    assert kept[:3] == lines[:3]
    assert len(kept) == 4


def test_the_report_says_what_was_measured(bench, tmp_path):
    runner, report = bench["runner"], bench["report"]
    store = runner.Store(tmp_path)
    numbers = {"seconds": 1.5, "error_percent": 11.25}
    plan = [runner.Measurement(x, "builtins:dict", numbers) for x in ("one", "two")]
    claims = [runner.Claim("a ratio", 0.5, 1.0)]
    runner.run_case(
        case(bench, plan, lambda medians: claims), store, quick=False, repeats=1, say=print
    )
    data = json.loads(store.path.read_text())
    text = report.page(data)
    assert "## A toy" in text
    assert "| one | 1.5 | 1 |" in text
    assert "| a ratio | 0.5 | at least 1 | **no** |" in text
    kept = tmp_path / "speed.json"
    kept.write_text(json.dumps({"cases": {"older": {"rows": []}}}))
    report.store_rows(data, kept)
    cases = json.loads(kept.read_text())["cases"]
    assert set(cases) == {"older", "toy"}
    assert [row["label"] for row in cases["toy"]["rows"]] == ["one", "two"]
    assert cases["toy"]["rows"][0]["seconds"] == 1.5


def test_command_line(bench, capsys):
    main = bench["__main__"].main
    assert main(["--list"]) == 0
    assert "million" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--case", "no-such-case"])
    assert "no-such-case" in capsys.readouterr().err
    assert sys.modules["benchmarks.cases"] is bench["cases"]
