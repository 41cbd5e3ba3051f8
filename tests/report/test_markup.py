"""Text from data in HTML."""

from __future__ import annotations

from gdpa.report.markup import escape


def test_escape_cuts_endless_text_and_controls():
    assert len(escape("x" * 10_000)) == 200
    assert escape("a\0b\x1b") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert escape("<&>\"'") == "&lt;&amp;&gt;&quot;&#x27;"
