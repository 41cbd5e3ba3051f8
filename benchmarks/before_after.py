"""Compare the time of fits, solves and eigenvectors between two commits, in interleaved runs.

    python -m benchmarks.before_after --old PATH [--new PATH] [--cases fit-2000 ...] [--repeats 5]
    python -m benchmarks.before_after --old PATH --cases defaults    # what the defaults cost

"fit" is one neighbour graph, "default" the default estimator, "spreading" scikit-learn's
LabelSpreading, "command" a process ``gdpa fit`` on a table. "busy" fits beside two processes that
keep the processors busy, "busy-single" does the same with one thread of BLAS.

PATH is a checkout of the old commit (``git worktree add PATH COMMIT``). Every measurement is a
process of its own; old and new take turns, and the ratio is that of the pair: its median tells, the
others how sure it is. CPU time, in which other work on the machine shows least, and wall time. The
graph of the solves is made once, by the new commit, and given to both. Labels of both must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

DEFAULTS = (
    *("default-2000", "default-100000", "fit-100000", "spreading-100000"),
    *("command-400", "busy-2000", "busy-single-2000"),
)
CASES = ("fit-2000", "fit-100000", "fit-1000000", "solve-100000", "eigenvector-100000", *DEFAULTS)
# Repeats within a process, the median of which counts: short runs are noisy.
WITHIN = {
    "default-2000": 5,
    "busy-2000": 3,
    "busy-single-2000": 3,
    "fit-2000": 7,
    "solve-100000": 3,
    "eigenvector-100000": 3,
    "fit-100000": 2,
}


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    """20 Gaussian clusters in 8 dimensions, two classes, 1 % of the labels, at least 100."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.standard_normal((20, 8))
    group = rng.integers(0, 20, n)
    X = (centres[group] + rng.standard_normal((n, 8))).astype(np.float32)
    y = np.full(n, -1)
    some = rng.choice(n, max(100, n // 100), replace=False)
    y[some] = group[some] % 2
    return X, y


def make_graph(path: Path, n: int) -> None:
    """Neighbour graph for the solves."""
    import scipy.sparse as sp

    from gdpa.graph import neighbor_graph

    sp.save_npz(path, neighbor_graph(points(n)[0], 10, n_jobs=-1))


def cpu_seconds() -> float:
    """CPU time of this process and of those that it started and waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run_command(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Run ``gdpa fit`` on a table with a few labels, from the start of Python to the end."""
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data.csv", Path(folder) / "out.csv"
        lines = [
            ",".join([*(f"{v:.4f}" for v in row), ("", "a", "b")[c + 1]])
            for row, c in zip(X, y, strict=True)
        ]
        data.write_text("\n".join([",".join("abcdefgh") + ",y", *lines]) + "\n")
        command = [sys.executable, "-m", "gdpa", "fit", str(data), "-t", "y", "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        return np.array([line.split(",")[1] == "a" for line in out.read_text().split()[1:]])


def measure(case: str, graph: Path) -> dict[str, Any]:
    """Run one case in this process: seconds, and signs to compare."""
    import scipy.sparse as sp
    from sklearn.semi_supervised import LabelSpreading

    import gdpa
    from gdpa.linalg import first_eigenvector

    kind, n = case.rsplit("-", 1)
    X, y = points(int(n))
    # Before the estimator was split in three there was one class.
    default = getattr(gdpa, "CommitteeClassifier", None) or gdpa.GDPAClassifier
    single = getattr(gdpa, "GraphClassifier", None) or partial(gdpa.GDPAClassifier, graph="knn")
    beside: list[subprocess.Popen[bytes]] = []
    if kind == "command":
        job = partial(run_command, X, y)
    elif kind in ("fit", "default", "spreading", "busy", "busy-single"):
        new = {"fit": single, "spreading": partial(LabelSpreading, kernel="knn", n_neighbors=10)}
        job = lambda: new.get(kind, default)().fit(X, y).transduction_  # noqa: E731
        new.get(kind, default)().fit(X[:300], np.arange(300) % 2)  # imports
        if kind.startswith("busy"):
            loop = [sys.executable, "-c", "while True: pass"]
            beside = [subprocess.Popen(loop) for _ in range(2)]
    else:
        W = sp.csr_array(sp.load_npz(graph))
        if kind == "solve":
            problem = gdpa.GraphProblem(W, np.where(y < 0, 0, 2 * y - 1))
            job = lambda: gdpa.solve(problem).labels  # noqa: E731
        else:
            A = sp.csr_array(sp.diags_array(W.sum(axis=1) + np.where(y < 0, 0.0, 1.0)) - W)
            job = lambda: np.sign(first_eigenvector(A).vector)  # noqa: E731
    times = []
    try:
        for _ in range(WITHIN.get(case, 1)):
            cpu, wall = cpu_seconds(), time.perf_counter()
            signs = job()
            times.append((cpu_seconds() - cpu, time.perf_counter() - wall))
    finally:
        for process in beside:
            process.kill()
    cpu, wall = (statistics.median(part) for part in zip(*times, strict=True))
    return {
        "cpu": cpu,
        "wall": wall,
        "signs": [int(s) for s in signs[:: max(1, len(signs) // 5000)]],
    }


def in_process(tree: Path, case: str, graph: Path) -> dict[str, Any]:
    """Measure with the package of a checkout."""
    command = [sys.executable, __file__, "--measure", case, "--graph", str(graph)]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment.pop(name, None)
        if case.startswith("busy-single"):
            environment[name] = "1"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case} with {tree}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(argv: list[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--old", type=Path, help="checkout of the old commit")
    parser.add_argument("--new", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--cases", nargs="+", choices=(*CASES, "defaults"), default=CASES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--graph", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if options.measure == "graph":
        make_graph(options.graph, 100_000)
        return
    if options.measure:
        print(json.dumps(measure(options.measure, options.graph)))
        return
    if options.old is None:
        parser.error("--old PATH is needed")
    if "defaults" in options.cases:
        options.cases = [*DEFAULTS, *(c for c in options.cases if c not in (*DEFAULTS, "defaults"))]
    walls: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.npz"
        if any(case.startswith(("solve", "eigenvector")) for case in options.cases):
            command = [sys.executable, __file__, "--measure", "graph", "--graph", str(graph)]
            environment = os.environ | {"PYTHONPATH": str(options.new / "src")}
            subprocess.run(command, env=environment, check=True)
        print(
            f"{'case':22s}  old s   new s (wall)  CPU ratio (least to most)    wall ratio  "
            "same labels"
        )
        for case in options.cases:
            pairs = []
            for _ in range(options.repeats):
                pairs.append([in_process(t, case, graph) for t in (options.old, options.new)])
            cpu = [new["cpu"] / old["cpu"] for old, new in pairs]
            wall = [new["wall"] / old["wall"] for old, new in pairs]
            same = np.mean([np.equal(old["signs"], new["signs"]).mean() for old, new in pairs])
            old, new = (statistics.median(pair[i]["wall"] for pair in pairs) for i in (0, 1))
            walls[case] = old, new
            print(
                f"{case:22s}{old:7.2f}{new:8.2f}{statistics.median(cpu):16.3f} "
                f"({min(cpu):.3f} to {max(cpu):.3f}){statistics.median(wall):14.3f}{same:12.2%}",
                flush=True,
            )
    for text, upper, lower, bound in (
        ("default over one graph, 100,000 points", "default-100000", "fit-100000", "<= 1.5"),
        ("LabelSpreading over default, 100,000", "spreading-100000", "default-100000", ">= 5"),
        (
            "default beside busy processes over one thread",
            "busy-2000",
            "busy-single-2000",
            "<= 1.3",
        ),
    ):
        if upper in walls and lower in walls:
            before, after = (a / b for a, b in zip(walls[upper], walls[lower], strict=True))
            print(f"{text}: old {before:.2f}, new {after:.2f} (aim {bound})")


if __name__ == "__main__":
    main()
