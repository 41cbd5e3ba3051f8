"""gdpa datasets."""

from __future__ import annotations


def test_datasets_shows_a_card(process):
    ended = process("datasets", "wdbc", "--json")
    assert ended.code == 0
    (card,) = ended.document["datasets"]
    assert (card["n_samples"], card["n_features"]) == (569, 30)
