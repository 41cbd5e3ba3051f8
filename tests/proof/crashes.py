"""Die at the k-th change of a file, for every k, and look at what is left.

Run as ``python tests/proof/crashes.py SCENARIO FOLDER``; see test_crashes.py. A child process makes
the change with every operation counted. At the k-th it ends without any clean-up, in the middle of
a write with half of it on disk; then the scenario checks that old or new is there, whole.
"""

from __future__ import annotations

import builtins
import io
import itertools
import json
import os
import shutil
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np

import gdpa
from gdpa.distributed.cluster import InProcess, Runner
from gdpa.distributed.folder import Folder
from gdpa.distributed.manifest import Manifest
from gdpa.labeling.journal import Journal
from reproduction.datasets.cache import write_csv


class Operations:
    """Counts the operations of this process that change files, and ends it at one of them."""

    def __init__(self, last: int) -> None:
        self.count, self.last = 0, last
        self.open = io.open
        builtins.open = io.open = self.opened  # type: ignore[assignment]
        for name in ("replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync"):
            setattr(os, name, self.counted(getattr(os, name)))

    def is_last(self) -> bool:
        self.count += 1
        return self.count > self.last

    def counted(self, function):
        def call(*arguments, **options):
            if self.is_last():
                os._exit(9)
            return function(*arguments, **options)

        return call

    def opened(self, *arguments, **options):
        return Written(self, self.open(*arguments, **options))


class Written:
    """A file whose writes are counted."""

    def __init__(self, operations: Operations, file) -> None:
        self._operations, self._file = operations, file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def __iter__(self):
        return iter(self._file)

    def write(self, data):
        if self._operations.is_last():
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            os._exit(9)
        return self._file.write(data)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def truncate(self, *arguments):
        if self._operations.is_last():
            os._exit(9)
        return self._file.truncate(*arguments)


class Model:
    """A saved model is replaced by another."""

    def __init__(self) -> None:
        X, y = gdpa.datasets.moons(40, random_state=0)
        y = np.where(np.arange(40) < 10, y, 0)
        fitted = [gdpa.GraphClassifier(n_neighbors=k, unlabeled=0).fit(X, y) for k in (3, 5)]
        self.old, self.new = fitted

    def prepare(self, folder: Path) -> None:
        self.old.save(folder / "model.npz")

    def change(self, folder: Path) -> None:
        self.new.save(folder / "model.npz")

    def check(self, folder: Path) -> str:
        stored = gdpa.GraphClassifier.load(folder / "model.npz").n_neighbors
        self.new.save(folder / "model.npz")  # what was left behind is removed
        assert os.listdir(folder) == ["model.npz"], os.listdir(folder)
        return {3: "old", 5: "new"}[stored]


class Labels:
    """Three events are added to a journal of two."""

    about: ClassVar = {"rows": 9}

    def prepare(self, folder: Path) -> None:
        self.write(folder, range(2))

    def write(self, folder: Path, events) -> None:
        journal = Journal(folder / "log", self.about)
        for i in events:
            journal.write({"row": i, "value": "ä"})
            # In a way that is not counted: it is not of the journal.
            handle = os.open(folder / "acknowledged", os.O_WRONLY | os.O_TRUNC | os.O_CREAT)
            os.write(handle, b"%d" % i)
            os.close(handle)
        journal.close()

    def change(self, folder: Path) -> None:
        self.write(folder, range(2, 5))

    def check(self, folder: Path) -> str:
        acknowledged = int((folder / "acknowledged").read_bytes())
        journal = Journal(folder / "log", self.about)
        rows = [event["row"] for event in journal.events]
        journal.close()
        # All that was acknowledged, in order, and at most the one that was under way.
        assert rows == list(range(len(rows))), rows
        assert acknowledged + 1 <= len(rows) <= acknowledged + 2, (acknowledged, rows)
        return "old" if len(rows) == acknowledged + 1 else "new"


class NewLabels(Labels):
    """A journal is begun."""

    def prepare(self, folder: Path) -> None:
        (folder / "acknowledged").write_bytes(b"-1")

    def change(self, folder: Path) -> None:
        Journal(folder / "log", self.about).close()

    def check(self, folder: Path) -> str:
        existed = (folder / "log").exists()
        assert Journal(folder / "log", self.about).events == []
        return "new" if existed else "old"


def task(output, *, part, shift=0):
    """Write an array and a result."""
    output.save(f"made/{part:05d}", values=np.arange(100.0) + part + shift)
    return {"sum": float(np.arange(100.0).sum() + 100 * (part + shift))}


class WorkFolder:
    """A distributed run of two stages, of which the second needs the files of the first."""

    def prepare(self, folder: Path) -> None:
        pass

    def change(self, folder: Path) -> None:
        self.run(folder)

    def run(self, folder: Path) -> tuple[list, list]:
        manifest = Manifest(Folder(str(folder / "work")))
        manifest.open({"rows": 3})
        manifest.folder.remove_unfinished()
        manifest.check()
        runner = Runner(InProcess(), manifest)
        first = runner.stage("first", task, [{"part": part} for part in range(3)])
        second = runner.stage("second", self.add, first_parts=3)
        manifest.discard("first")
        return first, second

    @staticmethod
    def add(output, *, first_parts):
        """Add what the first stage wrote."""
        parts = [output.folder.load(f"made/{p:05d}", "values") for p in range(first_parts)]
        total = float(np.concatenate([*itertools.chain(*parts)]).sum())
        output.json("total.json", {"total": total})
        return {"total": total}

    def check(self, folder: Path) -> str:
        started = (folder / "work" / "manifest.json").exists()
        first, second = self.run(folder)
        assert [r["sum"] for r in first] == [4950.0, 5050.0, 5150.0]
        assert second == [{"total": 15150.0}]
        assert not [n for n in os.listdir(folder / "work") if "unfinished" in n]
        return "new" if started else "old"


class Cache:
    """A data set is written to the cache."""

    def prepare(self, folder: Path) -> None:
        self.write(folder, 1.0)

    def change(self, folder: Path) -> None:
        self.write(folder, 2.0)

    def write(self, folder: Path, value: float) -> None:
        write_csv(folder / "set.csv", np.full((50, 3), value), np.ones(50, dtype=np.int8))

    def check(self, folder: Path) -> str:
        X = np.loadtxt(folder / "set.csv", delimiter=",", skiprows=1)[:, :3]
        assert X.shape == (50, 3)
        assert len(np.unique(X)) == 1
        return {1.0: "old", 2.0: "new"}[X[0, 0]]


SCENARIOS = {
    "model": Model, "labels": Labels, "new-labels": NewLabels, "work-folder": WorkFolder,
    "cache": Cache,
}  # fmt: skip


def main(name: str, place: str) -> None:
    """Print how many operations there are, and how often old and new were found."""
    scenario = SCENARIOS[name]()
    found: list[str] = []
    for last in itertools.count():
        folder = Path(place) / f"{name}-{last}"
        folder.mkdir()
        scenario.prepare(folder)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                Operations(last)
                scenario.change(folder)
                code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9), f"operation {last}: exit code {code}"
        found.append(scenario.check(folder))
        shutil.rmtree(folder)
        if code == 0:
            break
    print(json.dumps({"operations": len(found) - 1, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
