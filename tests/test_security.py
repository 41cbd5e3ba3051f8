"""Every promise of SECURITY.md is held by tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def promises():
    """The items of the list of promises."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    part = text.split("## What the package promises")[1].split("\n## ")[0]
    return re.split(r"^- ", part, flags=re.MULTILINE)[1:]


def test_every_promise_names_a_test_that_exists():
    assert len(promises()) >= 10
    for promise in promises():
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promise)
        assert named, f"no test holds: {promise[:60]}"
        for path, function in named:
            source = (ROOT / path).read_text(encoding="utf-8")
            assert f"def {function}(" in source, f"{path} has no {function}"


def test_what_is_not_promised_is_listed():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    part = text.split("## What it does not promise")[1].split("\n## ")[0]
    assert part.count("\n- ") >= 5
