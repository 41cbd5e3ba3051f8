"""Load scikit-learn's trees in half the time, without packages that they import and do not use."""

from __future__ import annotations

from ..lazy import postpone_imports

with postpone_imports("pandas", "scipy.stats", "sklearn.neighbors"):
    import sklearn.tree  # noqa: F401
