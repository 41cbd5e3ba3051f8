"""Mutation testing: change one operator, constant or statement, and see whether a test fails.

    python -m benchmarks.mutation --out run.json [--sample 150] [--seed 0] [--only linalg]
    python -m benchmarks.mutation --page run.json

The tests are collected once. A first pass records which tests execute which lines. Then every
mutant runs in a fork of its own, where the code of one function is replaced, on the tests that
execute the changed line, quickest first, until one fails. A mutant counts as killed, too, if a test
takes more than ten times its processor time plus three seconds. Messages of exceptions and
warnings, type annotations, default arguments and code that runs at import are not mutated, nor are
names that a call uses only in a message (`NAMING`), because tests assert the sense of messages, not
all words.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import importlib
import json
import os
import pickle
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "gdpa"
PACKAGES = {
    "system": ("system/*.py", ["tests/system"]),
    "linalg": ("linalg/*.py", ["tests/linalg", "tests/system/test_products.py"]),
    "certificate": ("certificate.py", ["tests/test_certificate.py"]),
    "codec": ("codec*.py", ["tests/test_codec.py"]),
    "journal": (
        "labeling/journal.py",
        ["tests/labeling/test_journal.py", "tests/labeling/test_full_disk.py"],
    ),
}
# Functions whose text arguments appear in messages only.
NAMING = {"check_positive", "_check_block", "any_error_as_value_error", "_refusal", "pack_object"}
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,  # codespell:ignore
    ast.NotIn: ast.In,  # codespell:ignore
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass
class Mutant:
    """One change: where it is, and its number in the file."""

    package: str
    path: Path
    function: str
    line: int
    column: int
    before: str
    after: str
    number: int
    module: ast.Module | None

    @property
    def name(self) -> str:
        place = f"{self.path.relative_to(SOURCE)}:{self.line}:{self.column}"
        return f"{place} {self.before} -> {self.after}"


def changes(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the replacements of one node; None removes a statement."""
    if isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp | ast.AugAssign):
        operators = node.ops if isinstance(node, ast.Compare) else [node.op]
        for place, operator in enumerate(operators):
            if type(operator) in SWAPS:
                changed: Any = copy.deepcopy(node)
                if isinstance(changed, ast.Compare):
                    changed.ops[place] = SWAPS[type(operator)]()
                else:
                    changed.op = SWAPS[type(operator)]()
                yield changed
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bool):
            yield ast.Constant(not value)
        elif isinstance(value, int | float):
            yield ast.Constant(value + 1)
        elif isinstance(value, str):
            yield ast.Constant(f"XX{value}")
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        changed = copy.deepcopy(node)
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield changed
    elif isinstance(node, ast.Return | ast.Assign) and not (
        node.value is None or isinstance(node.value, ast.Constant)
    ):
        changed = copy.deepcopy(node)
        changed.value = ast.Constant(None)
        yield changed
    elif isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def is_left_alone(node: ast.AST) -> bool:
    """Tell whether a node is a message, an annotation or a docstring."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.AnnAssign | ast.Assert):
        return not (isinstance(node, ast.AnnAssign) and node.value is not None)
    if isinstance(node, ast.Expr):
        value = node.value
        call = isinstance(value, ast.Call) and ast.unparse(value.func) == "warnings.warn"
        return call or isinstance(value, ast.Constant)
    return False


def is_name(node: ast.AST, child: ast.AST) -> bool:
    """Tell whether `child` is text that the call `node` uses only in a message."""
    text_only = isinstance(child, ast.Constant) and isinstance(child.value, str)
    called = ast.unparse(node.func) if isinstance(node, ast.Call) and text_only else ""
    return called.rpartition(".")[2] in NAMING


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield (parent, field, index) of all nodes inside a function's body."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "args"} and not isinstance(
            node, ast.Call
        ):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not (is_left_alone(child) or is_name(node, child)):
                yield node, name, index
                yield from places(child)


def functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the outermost functions and methods with their qualified names."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{prefix}{node.name}.")


def text(node: ast.AST | None) -> str:
    if node is None:
        return "nothing"
    words = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return words if len(words) < 80 else words[:77] + "..."


def mutants(package: str, path: Path, wanted: int = -1) -> list[Mutant]:
    """List all mutants of one file; the wanted one comes with its module."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    listed = []
    for name, function in functions(module.body):
        for parent, field, index in places(function):
            held = getattr(parent, field)
            node = held if index is None else held[index]
            for changed in changes(node):
                if changed is None:
                    continue
                _put(parent, field, index, changed)
                module_of = copy.deepcopy(module) if wanted == len(listed) else None
                # Writing all changes out takes longer than most tests: not for one wanted mutant.
                words = (text(node), text(changed)) if wanted < 0 else ("", "")
                listed.append(
                    Mutant(
                        package, path, name, node.lineno, node.col_offset, *words, len(listed),
                        module_of,
                    )
                )  # fmt: skip
                _put(parent, field, index, node)
    return listed


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def find_code(code: CodeType, name: str) -> CodeType:
    """Return the code object of a function or method of a compiled module."""
    for part in name.split("."):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return code


def find_function(module: ModuleType, name: str) -> FunctionType:
    """Return the function behind properties, caches and other decorators."""
    held: Any = module
    for part in name.split("."):
        held = vars(held)[part]
    while not isinstance(held, FunctionType) or hasattr(held, "__wrapped__"):
        held = next(
            found
            for key in ("__wrapped__", "fget", "func", "__func__")
            if (found := getattr(held, key, None)) is not None
        )
    return held


def apply(mutant: Mutant) -> None:
    """Replace the code of the mutated function in this process."""
    dotted = ".".join(mutant.path.relative_to(SOURCE.parent).with_suffix("").parts)
    module = importlib.import_module(dotted.removesuffix(".__init__"))
    tree = mutants(mutant.package, mutant.path, mutant.number)[mutant.number].module
    assert tree is not None
    compiled = compile(ast.fix_missing_locations(tree), str(mutant.path), "exec")
    code = find_code(compiled, mutant.function)
    find_function(module, mutant.function).__code__ = code


def in_a_fork(work: Callable[[], Any], cpu: float, wall: float) -> Any:
    """Return what `work` returns in a child process, or "timeout" or "crash"."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 2))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with os.fdopen(writing, "wb") as stream:
                pickle.dump(work(), stream)
        finally:
            os._exit(0)
    os.close(writing)
    os.set_blocking(reading, False)
    answer, until = b"", time.monotonic() + wall
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        while True:
            try:
                part = os.read(reading, 1 << 16)
            except BlockingIOError:
                break
            if not part:
                break
            answer += part
        if ended:
            break
        if time.monotonic() > until:
            os.kill(child, 9)
        time.sleep(0.005)
    os.close(reading)
    if not answer:
        return "timeout" if os.WIFSIGNALED(status) else "crash"
    return pickle.loads(answer)


class Run:
    """A pytest plugin that runs the mutants instead of the tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.results: list[dict[str, Any]] = []
        git = ["git", "rev-parse", "--short=12", "HEAD"]
        self.commit = subprocess.run(git, cwd=ROOT, capture_output=True, text=True).stdout.strip()
        self.command = " ".join(["python -m benchmarks.mutation", *sys.argv[1:]])
        if options.out.exists():
            self.results = json.loads(options.out.read_text())["results"]
        self.counts: dict[str, int] = {}

    def pytest_collection(self) -> None:
        """Do not shrink the examples of failing properties."""
        settings.register_profile(
            "mutation",
            parent=settings.get_profile("gdpa"),
            phases=[Phase.explicit, Phase.generate],
            report_multiple_bugs=False,
        )
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        kept = self.options.trace
        if kept and kept.exists():
            baseline = pickle.loads(kept.read_bytes())
        else:
            baseline = in_a_fork(functools.partial(self.trace, items), 3600, 7200)
            if not isinstance(baseline, tuple):
                raise SystemExit(f"the tests alone: {baseline}")
            if kept:
                kept.write_bytes(pickle.dumps(baseline))
        lines, seconds = baseline
        chosen = self.choose()
        done = {result["mutant"] for result in self.results}
        for mutant in chosen:
            if mutant.name in done:
                continue
            # A line inside a statement may not be recorded: its first line is.
            near = range(mutant.line, mutant.line - 8, -1)
            covering = next(filter(None, (lines.get((str(mutant.path), k)) for k in near)), ())
            short = (n for n in covering if n in items and seconds[n] <= self.options.longest)
            names = sorted(short, key=seconds.__getitem__)
            limit = 5 + sum(3 + 10 * seconds[name] for name in names)
            tests = [(items[name], seconds[name]) for name in names]
            killer = (
                in_a_fork(functools.partial(self.attempt, mutant, tests), limit, 40 * limit)
                if tests
                else None
            )
            self.results.append(
                {
                    "package": mutant.package,
                    "mutant": mutant.name,
                    "function": mutant.function,
                    "tests": len(tests),
                    "killed": killer,
                }
            )
            self.write()
            print(len(self.results), len(chosen), mutant.name, killer, file=sys.stderr)
        self.write()
        return True

    def write(self) -> None:
        """Keep the results so far: a run that is stopped continues with the same command."""
        state = {
            "command": self.command,
            "commit": self.commit,
            "seed": self.options.seed,
            "counts": self.counts,
            "results": self.results,
        }
        self.options.out.write_text(json.dumps(state, indent=1) + "\n")

    def choose(self) -> list[Mutant]:
        drawn = []
        for package in self.options.only:
            paths = sorted(SOURCE.glob(PACKAGES[package][0]))
            everything = [m for path in paths for m in mutants(package, path)]
            random.Random(self.options.seed).shuffle(everything)
            self.counts[package] = len(everything)
            stop = self.options.skip + (self.options.sample or len(everything))
            drawn += everything[self.options.skip : stop]
        if again := self.options.again:
            kept = json.loads(again.read_text())["results"]
            self.results = [result for result in kept if result["killed"] is not None]
            alive = {result["mutant"] for result in kept if result["killed"] is None}
            drawn = [mutant for mutant in drawn if mutant.name in alive]
        return drawn

    def trace(
        self, items: dict[str, pytest.Item]
    ) -> tuple[dict[Any, set[str]], dict[str, float]] | str:
        """Run the tests once; return which of them execute each line, and their CPU times."""
        measured = coverage.Coverage(data_file=None, include=[f"{SOURCE}/*"], config_file=False)
        seconds = {}
        for name, item in items.items():
            measured.start()
            measured.switch_context(name)
            start = time.process_time()
            reports = runtestprotocol(item, log=False, nextitem=None)
            seconds[name] = time.process_time() - start
            measured.stop()
            if any(report.failed for report in reports):
                return f"{name} fails without a mutant"
        data = measured.get_data()
        lines: dict[Any, set[str]] = {}
        for path in data.measured_files():
            for line, names in data.contexts_by_lineno(path).items():
                lines[path, line] = {name for name in names if name in items}
        return lines, seconds

    def attempt(self, mutant: Mutant, tests: list[tuple[pytest.Item, float]]) -> str | None:
        """Return the first test that fails on a mutant."""
        apply(mutant)  # an error here would be ours
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        for item, seconds in tests:
            # Beyond this limit, the process is killed.
            allowed = int(time.process_time() + 4 + 10 * seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (min(allowed, most), most))
            reports = runtestprotocol(item, log=False, nextitem=None)
            if any(report.failed for report in reports):
                return item.nodeid
        return None


def page(runs: list[dict[str, Any]]) -> str:
    """Return the page of some runs."""
    rows, survivors = [], []
    results = [result for run in runs for result in run["results"]]
    for package, total in {k: v for run in runs for k, v in run["counts"].items()}.items():
        drawn = [result for result in results if result["package"] == package]
        alive = sorted(
            f"- `{result['mutant']}` ({result['function']}, {result['tests']} tests)"
            for result in drawn
            if result["killed"] is None
        )
        rows.append((package, total, len(drawn), len(drawn) - len(alive), len(alive)))
        survivors += alive
    table = [
        f"| {name} | {total:,} | {drawn:,} | {killed:,} | {alive} | {100 * killed / drawn:.1f} % |"
        for name, total, drawn, killed, alive in rows
    ]
    # Packages are drawn at different rates, so each counts by its number of mutants.
    every = sum(row[1] for row in rows)
    share = sum(total * killed / drawn for _, total, drawn, killed, _ in rows) / every
    drawn = sum(row[2] for row in rows)
    table.append(f"| all, weighted by mutants | {every:,} | {drawn:,} | | | {100 * share:.1f} % |")
    lines = [
        "# Mutation testing",
        "",
        *(f"- `{run['command']}`, commit {run['commit']}, seed {run['seed']}" for run in runs),
        "",
        "| package | mutants | drawn | killed | survived | killed |",
        "|---|---|---|---|---|---|",
        *table,
        "",
        "## Survivors",
        "",
        *survivors,
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation testing of the numerical core.")
    parser.add_argument("--only", nargs="+", choices=PACKAGES, default=list(PACKAGES))
    parser.add_argument("--sample", type=int, help="mutants of each package; all unless given")
    parser.add_argument("--skip", type=int, default=0, help="skip so many of the drawn order")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", default=[], help="more tests")
    parser.add_argument(
        "--longest",
        type=float,
        default=float("inf"),
        help="leave out tests that take more seconds, so the killed share is a lower bound",
    )
    parser.add_argument("--out", type=Path, help="results; a file that exists is continued")
    parser.add_argument("--trace", type=Path, help="keep the first pass in this file")
    parser.add_argument("--again", type=Path, help="only the survivors of this run")
    parser.add_argument(
        "--new", nargs="+", help="with --again: only these tests, as the others have been survived"
    )
    parser.add_argument("--page", nargs="+", type=Path, help="print the page of these runs")
    options = parser.parse_args()
    if options.page:
        print(page([json.loads(path.read_text()) for path in options.page]), end="")
        return
    run = Run(options)
    tests = [test for package in options.only for test in PACKAGES[package][1]] + options.tests
    tests = options.new or tests
    pytest.main(
        ["-q", "-p", "no:cacheprovider", "-p", "no:timeout", "--tb=native", *tests], plugins=[run]
    )


if __name__ == "__main__":
    main()
