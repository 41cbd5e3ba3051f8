"""Examples in docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import gdpa


def modules_with_examples() -> list[str]:
    names = [m.name for m in pkgutil.walk_packages(gdpa.__path__, "gdpa.")]
    finder = importlib.machinery.PathFinder
    found = []
    for name in names:
        package = importlib.import_module(name.rpartition(".")[0])
        spec = finder.find_spec(name, package.__path__)
        if spec is not None and spec.origin is not None:
            with open(spec.origin, encoding="utf-8") as file:
                if ">>> " in file.read():
                    found.append(name)
    return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0, "examples in comments are not run"
    assert failed == 0
