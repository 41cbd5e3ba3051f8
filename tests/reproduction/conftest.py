"""Data sets of the tests of experiments."""

from __future__ import annotations

import pytest


@pytest.fixture
def data_home(tmp_path_factory, monkeypatch):
    """An empty cache: the sets of these tests come with the package."""
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("GDPA_DATA_HOME", str(home))
    return home
