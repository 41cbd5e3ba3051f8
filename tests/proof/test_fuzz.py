"""A share of the fuzzing, and that it tells a finding from a refusal."""

from __future__ import annotations

import base64
import dataclasses
import os

import pytest

if os.name != "posix":
    pytest.skip("alarms and limits of memory", allow_module_level=True)

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
