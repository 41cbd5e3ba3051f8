"""Several threads and processes at once: the same results, and files that stay whole."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

import gdpa

from . import children
from .outcome import RIGHT, generator, must, quiet


def run(seed: int) -> str:
    """Fits in threads against fits one by one; saves of processes to one path."""
    rng = generator("together", seed)
    with quiet():
        return _threads(rng) if rng.random() < 0.5 else _processes(rng)


def _data(rng: np.random.Generator) -> tuple[Any, Any]:
    n = int(rng.integers(20, 80))
    codes = np.arange(n) % 3
    X = rng.normal(size=(n, 4)) + codes[:, None]
    return X, np.where(rng.random(n) < 0.4, codes, -1)


def _threads(rng: np.random.Generator) -> str:
    sets = [_data(rng) for _ in range(3)]
    for _, y in sets:
        y[:3] = 0, 1, 2
    alone = [gdpa.CommitteeClassifier(n_jobs=2).fit(X, y) for X, y in sets]
    got: list[Any] = [None] * len(sets)
    failures: list[BaseException] = []

    def work(k: int) -> None:
        try:
            X, y = sets[k]
            got[k] = gdpa.CommitteeClassifier(n_jobs=2).fit(X, y).predict_proba(X)
            other = alone[k].predict_proba(X)
            must(np.array_equal(got[k], other), "threads change the result")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(sets))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return RIGHT


def _processes(rng: np.random.Generator) -> str:
    X, y = _data(rng)
    y[:3] = 0, 1, 2
    model = gdpa.CommitteeClassifier().fit(X, y)
    want = model.predict_proba(X)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "model.npz"
        (folder / "model.npz.part").write_text("mine")
        model.save(path)

        def save_often() -> int:
            for _ in range(5):
                model.save(path)
            return 0

        pids = [children.forked(save_often, folder / "log") for _ in range(3)]
        for _ in range(8):
            loaded = gdpa.CommitteeClassifier.load(path)
            must(np.allclose(loaded.predict_proba(X), want, atol=1e-12), "another model")
        codes = [children.ended(pid, 20) for pid in pids]
        must(codes == [0, 0, 0], f"{codes}: {(folder / 'log').read_text()[-800:]}")
        must((folder / "model.npz.part").read_text() == "mine", "a file of the user's is gone")
        must(not [p for p in os.listdir(folder) if p.startswith(".gdpa-")], "leftovers")
    return RIGHT
