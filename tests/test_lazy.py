"""Names of packages that are loaded on first use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import gdpa
from gdpa.lazy import postpone_imports

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


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with one name and one module, and a module that imports both."""
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "__init__.py").write_text("name = 'loaded'\n")
    (tmp_path / "heavy" / "part.py").write_text("other = 'part'\n")
    (tmp_path / "user.py").write_text("import heavy\nfrom heavy.part import other\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "heavy"
    for name in ("heavy", "heavy.part", "user"):
        sys.modules.pop(name, None)


def test_a_postponed_package_is_imported_when_it_is_used(package):
    with postpone_imports(package):
        user = importlib.import_module("user")
        assert user.other == "part"
        assert "name" not in vars(sys.modules[package])
    assert package not in sys.modules
    assert user.heavy.name == "loaded"
    assert sys.modules[package].name == "loaded"


def test_a_postponed_package_can_be_used_at_once(package):
    with postpone_imports(package):
        assert importlib.import_module("user").heavy.name == "loaded"
    loaded = sys.modules[package]
    with postpone_imports(package):
        assert importlib.import_module(package) is loaded
    assert sys.modules[package] is loaded


def test_missing_packages_stay_missing():
    with postpone_imports("there_is_no_such_package"), pytest.raises(ImportError):
        importlib.import_module("there_is_no_such_package")
