"""A share of the fuzzing, and that it tells a finding from a refusal."""

from __future__ import annotations

import base64
import dataclasses
import json
import os

import pytest

if os.name != "posix":
    pytest.skip("alarms and limits of memory", allow_module_level=True)

from benchmarks.campaign import page
from benchmarks.fuzz import __main__ as fuzzing
from benchmarks.fuzz.targets import targets

TARGETS = targets()


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)
    result = fuzzing.fuzz(name, TARGETS[name], 300, seed=1)
    assert result["findings"] == []
    assert result["right"] + result["clear error"] == 300
    assert result["lines"] > 30
    assert (tmp_path / f"{name}.json").exists()


def test_every_seed_and_stored_input_is_read_or_refused():
    for name, target in TARGETS.items():
        for raw in target.seeds:
            assert fuzzing.execute(target, raw) in ("right", "clear error"), name


def test_an_unexpected_exception_is_a_finding(tmp_path, monkeypatch):
    def read(raw):
        if b"1e999" in raw:
            raise IndexError("list index out of range")

    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)
    broken = dataclasses.replace(TARGETS["csv"], read=read)
    found = fuzzing.fuzz("csv", broken, 500, seed=0)["findings"]
    assert found
    assert all(b"1e999" in base64.b64decode(f["input"]) for f in found)


def test_the_totals_are_stored_and_written_into_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "CORPUS", tmp_path)
    monkeypatch.setattr(page, "TOTALS", tmp_path / "totals.json")
    monkeypatch.setattr(page, "RELIABILITY", tmp_path / "page.md")
    page.RELIABILITY.write_text(f"before\n{page.fuzzing()}\nafter\n")
    # The limit of memory would stay with the process of the tests.
    monkeypatch.setattr(fuzzing.resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(fuzzing, "PLACE", tmp_path / "none")
    assert fuzzing.main(["csv", "--executions", "20", "--out", str(page.TOTALS)]) == 0
    stored = json.loads(page.TOTALS.read_text())
    assert stored["targets"]["csv"]["executions"] == 20
    assert stored["findings"] == []
    for _ in range(2):  # the block is replaced, not added
        page.update_fuzzing()
    text = page.RELIABILITY.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert text.count("20 executions (csv 20) and 0 findings, at commit ") == 1
