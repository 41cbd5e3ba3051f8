"""The page that shows how a fit walks through the code."""

from __future__ import annotations

from pathlib import Path

from benchmarks.walk import CALLS, ROOT, walk

PAGE = Path(__file__).parents[2] / "docs" / "walk.md"


def test_a_walk_lists_every_function_once_under_its_caller():
    import gdpa.errors

    found = walk(lambda: gdpa.errors.unknown_choice("kind", "fest", ("fast", "exact")))
    assert [(depth, function) for depth, _, function in found.steps] == [
        (1, "unknown_choice"),
        (2, "nearest_name"),
    ]


def test_the_page_shows_every_call_and_names_files_that_exist():
    text = PAGE.read_text(encoding="utf-8")
    for name in CALLS:
        assert f"## {name}" in text
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("- `")]
    assert listed
    for file in listed:
        assert (ROOT / file).is_file(), file
