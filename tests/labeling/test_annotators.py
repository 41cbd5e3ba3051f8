"""A short run of ``benchmarks.annotators``: several annotators at a server that is killed."""

from __future__ import annotations

import os

import pytest

from benchmarks.annotators import ACKNOWLEDGED, NO_REPLY, Sent, compare, paragraph, run


@pytest.mark.slow
def test_no_acknowledged_answer_is_lost_and_none_invented():
    if os.name != "posix":
        pytest.skip("the server is killed with a POSIX signal")
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    result = run(6, 4.0, 1, pause=0.05, n_rows=600)
    assert result["wrong"] == []
    assert (result["lost"], result["invented"], result["gave_up"]) == (0, 0, 0)
    assert 0 < result["acknowledged"] <= result["lines"]
    median, most, worst = result["save_ms"]
    assert 0 <= median <= most <= worst
    text = paragraph(result)
    assert f"{result['acknowledged']:,} answers acknowledged, 0 lost, 0 invented" in text
    assert f"at commit {result['commit']}" in text


def test_the_comparison_sees_losses_inventions_and_other_orders():
    a, b, c = (("answer", row, "x") for row in range(3))

    def sent(*events):
        return [Sent(event, state) for event, state in events]

    both = sent((a, ACKNOWLEDGED), (b, ACKNOWLEDGED))
    assert compare(both, [a, b]) == ""
    for wrong in ([a], [b], [b, a], [a, b, b], [a, c, b], []):
        assert compare(both, wrong) != ""
    # Sent again after no reply: written once or twice, never more often.
    again = sent((a, NO_REPLY), (a, ACKNOWLEDGED), (b, NO_REPLY))
    for right in ([a], [a, a], [a, b], [a, a, b]):
        assert compare(again, right) == ""
    for wrong in ([], [b], [a, a, a], [a, b, b]):
        assert compare(again, wrong) != ""
