"""The page of the walk is recorded, and a fit stays as short a way as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.walk import CALLS, ROOT, walk

PAGE = Path(__file__).parents[2] / "docs" / "walk.md"
MOST_FILES = {"2,000 points": 22, "2,000 nodes": 10}


@pytest.mark.parametrize("end", list(MOST_FILES))
@pytest.mark.filterwarnings("ignore")
def test_a_call_enters_few_files(end):
    name = next(call for call in CALLS if call.endswith(end))
    CALLS[name]()()  # imports
    found = walk(CALLS[name]())
    assert len(found.files) <= MOST_FILES[end], found.files
    assert found.depth <= 12
    assert len(found.steps) <= 150


def test_the_page_names_files_that_exist():
    text = PAGE.read_text(encoding="utf-8")
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("- `")]
    assert len(listed) > 10
    for file in listed:
        assert (ROOT / file).is_file(), file
    for name in CALLS:
        assert f"| `{name}` |" in text
