"""Encodings of mixed tables, side by side: accuracy with few labels, time, memory.

    python -m benchmarks.encodings accuracy     # 16 tables, 5 and 20 labels a class
    python -m benchmarks.encodings penguins     # 20 labels a class, 20 in all
    python -m benchmarks.encodings texts        # free text, beside skrub's encoders
    python -m benchmarks.encodings speed        # 100,000 x 20 mixed, 20,000 columns
    python -m benchmarks.encodings memory       # 1,000,000 x 20 mixed: frame, CSV, Parquet

Every part prints a table. "by hand" is the encoding of
``benchmarks.table_data``; "gdpa fit" writes the rows as a CSV file with the hidden labels left
empty and runs the command on it. The other rows encode the same rows for the same classifier.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .table_data import LABELS, TARGETS, encode, folder, names, problem, read

SEEDS = 3
ROWS = 1_500


def by_hand(columns: list[list[str]]) -> Any:
    return encode(columns)


def ours(columns: list[list[str]]) -> Any:
    from gdpa.tables import TableEncoder

    return TableEncoder().fit_transform({f"c{j}": cells for j, cells in enumerate(columns)})


def _frame(columns: list[list[str]]) -> Any:
    import io

    import pandas

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(f"c{j}" for j in range(len(columns)))
    writer.writerows(zip(*columns, strict=True))
    text.seek(0)
    return pandas.read_csv(text, na_values=["?", "<null>"])


def column_transformer(columns: list[list[str]]) -> Any:
    """scikit-learn's parts, as its guide puts them together."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
    ).fit_transform(_frame(columns))


def skrub_table(columns: list[list[str]]) -> Any:
    """skrub's TableVectorizer; its numbers are not scaled, so that everything is, afterwards."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from skrub import TableVectorizer

    pipe = make_pipeline(TableVectorizer(), SimpleImputer(), StandardScaler())
    return np.asarray(pipe.fit_transform(_frame(columns)))


def skrub_squashing(columns: list[list[str]]) -> Any:
    """skrub's TableVectorizer with its robust scaler for numbers, as it does for linear models."""
    from sklearn.impute import SimpleImputer
    from skrub import SquashingScaler, TableVectorizer

    Z = TableVectorizer(numeric=SquashingScaler()).fit_transform(_frame(columns))
    return SimpleImputer().fit_transform(np.asarray(Z, dtype=np.float64))


ENCODINGS: dict[str, Callable[[list[list[str]]], Any]] = {
    "by hand": by_hand,
    "gdpa.tables": ours,
    "ColumnTransformer": column_transformer,
    "skrub, standardised": skrub_table,
    "skrub, squashed": skrub_squashing,
}


def _gdpa(X: Any, codes: Any) -> Any:
    from gdpa import CommitteeClassifier

    return CommitteeClassifier().fit(X, codes).transduction_


def _supervised(make: Callable[[], Any]) -> Callable[[Any, Any], Any]:
    def run(X: Any, codes: Any) -> Any:
        known = codes >= 0
        return make().fit(X[known], codes[known]).predict(X)

    return run


def _classifiers() -> dict[str, Callable[[Any, Any], Any]]:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    return {
        "gdpa": _gdpa,
        "logistic": _supervised(lambda: LogisticRegression(max_iter=1000)),
        "forest": _supervised(lambda: ExtraTreesClassifier(200, random_state=0)),
        "neighbours": _supervised(lambda: KNeighborsClassifier(3, weights="distance")),
    }


def _rows(name: str, seed: int) -> list[list[str]]:
    """The cells of the rows that ``table_data.problem`` takes."""
    columns, target = read(name)
    rows = np.random.default_rng(seed).permutation(len(target))[:ROWS]
    classes, truth = np.unique(np.array(target)[rows], return_inverse=True)
    rows = rows[np.bincount(truth, minlength=classes.size)[truth] >= 20]
    return [[cells[i] for i in rows] for cells in columns]


def command(name: str, columns: list[list[str]], codes: Any) -> Any:
    """Predictions of ``gdpa fit`` on a CSV file."""
    from gdpa.cli.app import run

    with tempfile.TemporaryDirectory() as folder_name:
        path, out = Path(folder_name, f"{name}.csv"), Path(folder_name, "out.csv")
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            target = TARGETS.get(name, "target")
            writer.writerow([*(f"c{j}" for j in range(len(columns))), target])
            labels = ["NA" if c < 0 else f"class {c}" for c in codes]
            writer.writerows(zip(*columns, labels, strict=True))
        code = run(["fit", str(path), "-t", target, "--out", str(out), "--quiet"])
        assert code in (0, 1), code
        with out.open(newline="") as file:
            return np.array([int(r["prediction"].split()[1]) for r in csv.DictReader(file)])


def accuracy(options: argparse.Namespace) -> None:
    if folder() is None:
        print("skipped: no tables; set GDPA_DATA_HOME to a folder with tables/*.csv")
        return
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    classifiers = {k: v for k, v in _classifiers().items() if k in options.classifiers}
    for name in options.tables or names():
        for per_class in LABELS:
            for seed in range(options.seeds):
                task = problem(name, per_class, seed)
                columns = _rows(name, seed)
                test = task.codes < 0

                def note(row: str, classifier: str, predicted: Any) -> None:
                    share = 100.0 * float((predicted == task.truth)[test].mean())  # noqa: B023
                    key = f"{name}/{per_class}"  # noqa: B023
                    found.setdefault((row, classifier), {}).setdefault(key, []).append(share)

                for row in options.encodings:
                    X = ENCODINGS[row](columns)
                    for classifier, run in classifiers.items():
                        note(row, classifier, run(X, task.codes))
                if "gdpa" in classifiers and not options.no_command:
                    note("gdpa fit, CSV", "gdpa", command(name, columns, task.codes))
        print(name, file=sys.stderr, flush=True)
    print(
        f"| encoding | classifier | mean accuracy % | against by hand | n={options.seeds} seeds |"
    )
    print("|---|---|---|---|---|")
    for (row, classifier), cells in found.items():
        base = found.get(("by hand", classifier), cells)
        mine = {k: float(np.mean(v)) for k, v in cells.items()}
        lead = np.array([mine[k] - float(np.mean(base[k])) for k in mine])
        worst = min(mine, key=lambda k: mine[k] - float(np.mean(base[k])))
        print(
            f"| {row} | {classifier} | {np.mean(list(mine.values())):.2f} | {lead.mean():+.2f} | "
            f"worst {lead.min():+.1f} ({worst}) |"
        )
    for row, classifier in found:
        cells = {k: v for k, v in found[row, classifier].items() if k.startswith("penguins/20")}
        if row == "gdpa fit, CSV" and cells:
            print(f"\npenguins, 20 labels a class, {row}: {np.mean(*cells.values()):.1f} %")


def penguins(options: argparse.Namespace) -> None:
    """Twenty labels a class, and twenty in all, beside logistic regression on the same encoding."""
    columns, target = read("penguins")
    X, truth = ours(columns), np.unique(target, return_inverse=True)[1]
    print("| penguins | gdpa % | least | logistic regression % |\n|---|---|---|---|")
    for name in ("20 labels in all", "20 labels a class"):
        shares = []
        for seed in range(options.seeds):
            rng = np.random.default_rng(1000 + seed)
            parts = [np.flatnonzero(truth == c) for c in range(3)]
            known = np.concatenate([rng.permutation(part)[:20] for part in parts])
            while name.endswith("all") and (known.size > 20 or np.unique(truth[known]).size < 3):
                known = rng.permutation(truth.size)[:20]
            codes = np.full(truth.size, -1)
            codes[known] = truth[known]
            both = [run(X, codes) for run in (_gdpa, _classifiers()["logistic"])]
            shares.append([100.0 * float((p == truth)[codes < 0].mean()) for p in both])
        mean, least = np.mean(shares, axis=0), np.min(shares, axis=0)
        print(f"| {name} | {mean[0]:.1f} | {least[0]:.1f} | {mean[1]:.1f} |", flush=True)


def texts(options: argparse.Namespace) -> None:
    """Docstrings of the standard library: from which of ten packages are they?"""
    import ast
    import sysconfig

    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    from gdpa.tables import TableEncoder

    home = Path(sysconfig.get_paths()["stdlib"])
    packages = ("asyncio", "email", "tkinter", "unittest", "xml", "idlelib", "multiprocessing")
    words, labels = [], []
    for package in packages:
        found = set()
        for file in sorted((home / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8", errors="replace"))):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    found.add(" ".join((ast.get_docstring(node) or "").split())[:300])
        kept = sorted(d for d in found if len(d) > 40)[:300]
        words += kept
        labels += [package] * len(kept)
    y = np.unique(labels, return_inverse=True)[1]

    def skrub_encoder(name: str) -> Any:
        import pandas
        import skrub

        encoder = getattr(skrub, name)(n_components=30)
        return np.asarray(encoder.fit_transform(pandas.Series(words, name="t")), dtype=np.float64)

    encodings: dict[str, Callable[[], Any]] = {
        "gdpa.tables": lambda: TableEncoder(columns={"t": "text"}).fit_transform({"t": words}),
        "skrub.StringEncoder": lambda: skrub_encoder("StringEncoder"),
        "skrub.MinHashEncoder": lambda: skrub_encoder("MinHashEncoder"),
    }
    print(f"{len(words)} texts, {len(packages)} classes, 20 labels a class")
    print("| encoder | logistic % | neighbours % | seconds |\n|---|---|---|---|")
    for name, make in encodings.items():
        start = time.process_time()
        X = make()
        spent = time.process_time() - start
        shares: list[list[float]] = [[], []]
        for seed in range(5):
            rng = np.random.default_rng(seed)
            known = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:20] for c in set(y)])
            rest = np.setdiff1d(np.arange(y.size), known)
            for share, model in zip(
                shares,
                (LogisticRegression(C=10, max_iter=500), KNeighborsClassifier(3)),
                strict=True,
            ):
                guess = model.fit(X[known], y[known]).predict(X[rest])
                share.append(100.0 * float((guess == y[rest]).mean()))
        print(f"| {name} | {np.mean(shares[0]):.1f} | {np.mean(shares[1]):.1f} | {spent:.2f} |")


def mixed(n: int, seed: int = 0) -> Any:
    """A frame of 20 columns of every kind, of which two groups differ."""
    import pandas

    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    words = np.array(["".join(rng.choice(list("abcdefghijklmnop"), 6)) for _ in range(2000)])
    data: dict[str, Any] = {f"number{j}": rng.normal(size=n) * 10.0**j + group for j in range(8)}
    for j in range(4):
        data[f"category{j}"] = rng.choice([f"c{k}" for k in range(4 + 3 * j)], n)
    data["flag"] = rng.random(n) < 0.3
    data["other flag"] = rng.random(n) < 0.2 + 0.6 * group
    data["size"] = rng.choice(["low", "medium", "high"], n)
    seconds = rng.integers(0, 900 * 86400, n).astype("timedelta64[s]")
    data["when"] = np.datetime64("2019-01-01") + seconds
    data["text"] = [" ".join(w) for w in words[rng.integers(0, 2000, (n, 6))]]
    data["city"] = words[rng.integers(0, 500, n)]
    data["id"] = np.arange(n)
    data["gaps"] = np.where(rng.random(n) < 0.1, np.nan, rng.random(n))
    return pandas.DataFrame(data), np.where(rng.random(n) < 0.01, group, -1)


def speed(options: argparse.Namespace) -> None:
    from gdpa import CommitteeClassifier
    from gdpa.tables import TableEncoder

    frame, y = mixed(100_000)
    start = time.process_time()
    X = TableEncoder().fit_transform(frame)
    encoding = time.process_time() - start
    start = time.process_time()
    CommitteeClassifier(n_jobs=1).fit(X, y)
    fit = time.process_time() - start
    print(f"100,000 x 20 mixed columns, {X.shape[1]} features: encoding {encoding:.1f} s of CPU,")
    print(f"the fit that follows {fit:.1f} s: {100 * encoding / (encoding + fit):.0f} % of both")
    values = np.random.default_rng(0).normal(size=(500, 20_000))
    table = {f"c{j}": values[:, j] for j in range(20_000)}
    start = time.process_time()
    encoder = TableEncoder().fit(table)
    learned = time.process_time()
    encoder.transform(table)
    print(
        f"500 rows x 20,000 columns: fit {learned - start:.1f} s, transform "
        f"{time.process_time() - learned:.1f} s"
    )


MEASURE = """
import ctypes
import sys
import pandas
import pyarrow.parquet
from gdpa.tables import TableEncoder, read_table
def memory(what):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if what in line) // 1024
warm = pandas.DataFrame({"a": range(0, 60, 2), "c": list("abc") * 10, "t": ["x y"] * 29 + ["z"]})
TableEncoder().fit_transform(warm)  # what is imported on the way is no table
form, path = sys.argv[1:]
if form == "frame":
    given = pandas.read_parquet(path)
    pyarrow.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)  # what reading has left behind is not there for the taking
start = memory("VmRSS")
open("/proc/self/clear_refs", "w").write("5")  # forget the peak so far
if form == "file":
    given = read_table(path)
held = memory("VmRSS") - start
encoder = TableEncoder().fit(given)
X = encoder.encode(given)[0]
print(held, X.nbytes // 2**20, memory("VmHWM") - start)
"""


def memory(options: argparse.Namespace) -> None:
    """Peaks of child processes, as Linux counts them."""
    rows = options.rows
    numeric = rows * 20 * 8 // 2**20
    print(f"{rows:,} rows of 20 mixed columns; as many numbers are {numeric} MB\n")
    print("| | table read, MB | features, MB | peak above the start, MB | in numeric tables |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as home:
        parquet, text = Path(home, "t.parquet"), Path(home, "t.csv")
        frame, _ = mixed(rows)
        frame.to_parquet(parquet)
        frame.to_csv(text, index=False)
        del frame
        for name, form, path in (
            ("a pandas frame", "frame", parquet),
            ("its CSV file", "file", text),
            ("its Parquet file", "file", parquet),
        ):
            ended = subprocess.run(
                [sys.executable, "-c", MEASURE, form, str(path)],
                capture_output=True,
                text=True,
                check=True,
            )
            held, features, peak = map(int, ended.stdout.split())
            shown = f"{held} | {features} | {peak} | {peak / numeric:.1f}"
            print(f"| {name} | {shown} |", flush=True)


PARTS = {part.__name__: part for part in (accuracy, penguins, texts, speed, memory)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encodings", description=__doc__)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--encodings", nargs="+", choices=list(ENCODINGS), default=list(ENCODINGS))
    parser.add_argument("--classifiers", nargs="+", default=list(_classifiers()))
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the memory's table")
    parser.add_argument("--no-command", action="store_true", help="leave out gdpa fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    PARTS[options.part](options)


if __name__ == "__main__":
    main()
