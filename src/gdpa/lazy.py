"""Import the public names of a package on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def load_on_use(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that imports names on first use (PEP 562).

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping of str to str
        Each name and the module of the package that defines it; a module's own name is the module.

    Returns
    -------
    callable
        Imports a name and stores it in the package, so that it is called once per name.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{homes[name]}")
        value = module if homes[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load
