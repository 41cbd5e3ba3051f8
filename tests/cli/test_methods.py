"""gdpa methods."""

from __future__ import annotations

from gdpa import list_methods


def test_methods_lists_the_registry_and_json_is_one_document(process):
    ended = process("methods", "--json")
    assert ended.code == 0
    assert [m["name"] for m in ended.document["methods"]] == [m.name for m in list_methods()]
    assert ended.document["status"] == "done"
    assert ended.err == ""
