"""Import the names of a package on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
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
