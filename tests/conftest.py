"""Fixtures shared by all tests."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

# One thread per test process: small matrices, and as many processes as cores.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings

# The same examples on every run and every machine: a red test can be rerun.
settings.register_profile(
    "gdpa",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("gdpa")

ROOT = Path(__file__).resolve().parents[1]


def _shared(variable: str, folder: str, witness: str) -> Path:
    for path in (os.environ.get(variable), ROOT.parent / "shared" / folder):
        if path and (Path(path) / witness).exists():
            return Path(path)
    pytest.skip(f"needs {folder} files: set {variable} to a folder with {witness}")


@pytest.fixture(scope="session")
def raw_files() -> Path:
    """Folder with the public files of the data sets, as their homes serve them."""
    return _shared("GDPA_DATA_HOME", "datasets", "raw/README.md") / "raw"


def _paper_home() -> str | None:
    for path in (os.environ.get("GDPA_DATA_HOME"), ROOT.parent / "shared" / "datasets"):
        if path and Path(path).is_dir():
            return str(path)
    return None


@pytest.fixture(scope="session")
def paper_set():
    """Load one of the paper's data sets; skip if it is neither shipped nor in the cache."""
    from reproduction.datasets import load

    def read(name: str):
        try:
            return load(name, data_home=_paper_home(), download=False)
        except FileNotFoundError:
            pytest.skip(
                f"{name} is not shipped: python -m reproduction datasets {name} --fetch gets it"
            )

    return read


@pytest.fixture(scope="session")
def paper_sets_at_hand() -> set[str]:
    """Names of the sets that :func:`paper_set` can load."""
    from reproduction.datasets import cached_file, card, data_home, list_datasets

    home = data_home(_paper_home())
    return {n for n in list_datasets() if not card(n).sources or cached_file(n, home)}


@pytest.fixture
def random_graph():
    """Factory of random connected weighted graphs."""

    def make(n: int, seed: int, *, density: float = 0.3, low: float = 0.1) -> sp.csr_array:
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.random((n, n)) < density, 1) * rng.uniform(low, 1.0, (n, n))
        order = rng.permutation(n)  # a spanning path keeps it connected
        for a, b in itertools.pairwise(order):
            i, j = min(a, b), max(a, b)
            upper[i, j] = upper[i, j] or rng.uniform(low, 1.0)
        return sp.csr_array(upper + upper.T)

    return make
