"""Import names and packages on first use."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


def load_on_use(package: str, **modules: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that imports names on first use (PEP 562).

    Parameters
    ----------
    package : str
        Name of the package.
    **modules : str
        The names that each module of the package defines, separated by blanks; the module's own
        name is the module.

    Returns
    -------
    callable
        Imports a name and stores it in the package, so that it is called once per name.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{homes[name]}")
        value = module if homes[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class _Postponed(ModuleType):
    """Takes the place of a package until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextmanager
def postpone_imports(*packages: str) -> Iterator[None]:
    """Import other packages without these, which they import but may never use.

    A package is imported when one of its names is used; its own modules can be imported without it.
    Only for a process that has no other thread yet: one could meanwhile import the same package.

    Parameters
    ----------
    *packages : str
        Full names, parents before their parts; packages that are missing or loaded are left alone.
    """
    try:
        for name in packages:
            spec = None if name in sys.modules else importlib.util.find_spec(name)
            if spec is not None:
                sys.modules[name] = package = _Postponed(name)
                package.__path__ = spec.submodule_search_locations or []
                parent, _, short = name.rpartition(".")
                if parent:
                    setattr(sys.modules[parent], short, package)
        yield
    finally:
        for name in packages:
            if isinstance(sys.modules.get(name), _Postponed):
                del sys.modules[name]
