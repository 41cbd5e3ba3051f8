"""Names of packages that are loaded on first use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import gdpa

PACKAGES = ("gdpa", "gdpa.estimators", "gdpa.distributed", "gdpa.tables")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_stays(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is vars(module)[name]


@pytest.mark.parametrize("package", PACKAGES)
def test_unknown_names_are_named(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = importlib.import_module(package).nothing


def test_modules_are_themselves():
    assert gdpa.graph is importlib.import_module("gdpa.graph")


def test_the_package_alone_loads_no_library():
    script = "import sys, gdpa; print({'numpy', 'scipy', 'sklearn'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == "set()"
