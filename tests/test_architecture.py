"""Rules of the project: no import cycles, reasons for late imports, and one version."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import gdpa

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
FILES = sorted((SRC / "gdpa").rglob("*.py"))


def module_name(path: Path) -> str:
    parts = list(path.relative_to(SRC).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imported(node: ast.AST, module: str, is_package: bool) -> list[str]:
    """Modules of this package that an import statement names."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = module.split(".")
        if node.level:
            base = base[: len(base) - node.level + is_package]
            stem = ".".join([*base, *([node.module] if node.module else [])])
        else:
            stem = node.module or ""
        names = [
            f"{stem}.{alias.name}" if f"{stem}.{alias.name}" in MODULES else stem
            for alias in node.names
        ]
    else:
        return []
    return [name for name in names if name in MODULES]


def functions(tree: ast.AST) -> set[int]:
    """Identities of all nodes inside functions."""
    return {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(node)
    }


def module_level_imports(name: str) -> set[str]:
    """All of them, those under ``if TYPE_CHECKING`` included."""
    path = MODULES[name]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = functions(tree)
    return {
        target
        for node in ast.walk(tree)
        if id(node) not in inside
        for target in imported(node, name, path.name == "__init__.py")
        if target != name
    }


def cycles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    work.append((target, iter(sorted(edges[target]))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        component.append(stack.pop())
                        if component[-1] == node:
                            break
                    if len(component) > 1:
                        found.append(sorted(component))
    return found


def test_the_search_for_cycles_finds_one():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_no_cycle_of_modules_not_even_for_type_checking():
    edges = {name: module_level_imports(name) for name in MODULES}
    assert "gdpa.graph.adjacency" in edges["gdpa.problem.graph_problem"]
    assert cycles(edges) == []


# Imports inside functions, outside of the command line (whose commands load what they need when
# they run, so that `gdpa --help` is quick): what may be imported late, and why.
EXTRAS = {
    "clarabel": "extra sdp",
    "dask": "extra distributed",
    "distributed": "extra distributed",
    "matplotlib": "extra plot",
    "pandas": "only where the caller has frames",
    "pyarrow": "extra tables",
    "starlette": "extra label",
    "anyio": "extra label, comes with starlette",
    "uvicorn": "extra label",
    "polars": "only where the caller has frames",
}
START_UP = {
    "sklearn": "half of the time of `import gdpa` would be parts of it that most calls do not use",
    "scipy": "optimize, spatial and csgraph take as long as everything else together",
    "joblib": "imports multiprocessing",
    "threadpoolctl": "looks at all libraries of the process",
    "multiprocessing": "only where processes are started",
}
PLATFORM = {"fcntl": "POSIX only", "resource": "POSIX only", "msvcrt": "Windows only"}
INTERNAL = {
    "gdpa.distributed": "runs on workers, which load what their task needs",
    "gdpa.solvers.sdr_interior_point": "the engine of an extra",
    "gdpa.estimators.base": "reports, only where one is written",
    "gdpa.labeling": "reports and pages, only where one is asked for",
}


def late_imports() -> list[tuple[str, str]]:
    """(module, what it imports inside functions)."""
    found = []
    for name, path in MODULES.items():
        if name.startswith("gdpa.cli"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = functions(tree)
        for node in ast.walk(tree):
            if id(node) not in inside or not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            own = imported(node, name, path.name == "__init__.py")
            if own or (isinstance(node, ast.ImportFrom) and node.level):
                found += [(name, target) for target in own or ["gdpa"]]
            elif isinstance(node, ast.Import):
                found += [(name, alias.name.partition(".")[0]) for alias in node.names]
            else:
                found.append((name, (node.module or "").partition(".")[0]))
    return found


@pytest.mark.slow
def test_imports_inside_functions_have_a_reason():
    without = [
        (name, target)
        for name, target in late_imports()
        if target not in {**EXTRAS, **START_UP, **PLATFORM}
        and not (target.startswith("gdpa") and any(name.startswith(own) for own in INTERNAL))
    ]
    assert without == []
    assert ("gdpa.datasets.generators", "sklearn") in late_imports()


def test_dir_shows_public_names_only():
    assert set(dir(gdpa)) == set(gdpa.__all__)
    assert all(hasattr(gdpa, name) for name in gdpa.__all__)


def test_one_source_of_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    source = project["tool"]["hatch"]["version"]["path"]
    assert (ROOT / source).read_text().count(f'__version__ = "{gdpa.__version__}"') == 1
    others = [
        path for path in FILES if re.search(r"""__version__ = ["']""", path.read_text("utf-8"))
    ]
    assert others == [ROOT / source]


def test_every_dependency_declares_its_floor():
    floors = runpy.run_path(str(ROOT / ".github" / "floors.py"))["floors"]
    found = floors((ROOT / "pyproject.toml").read_text())
    assert {"numpy", "scipy", "scikit-learn", "typer", "matplotlib"} <= set(found)
    installed = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
    for name, version in found.items():
        if name.lower() in installed:
            have = [int(p) for p in re.findall(r"\d+", installed[name.lower()])[:3]]
            assert have >= [int(p) for p in re.findall(r"\d+", version)][:3], name


def test_processor_settings_are_the_same_in_the_workflow_and_in_contributing():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    cores = re.findall(r"coretype: (\w+)", workflow)
    disabled = re.findall(r"disabled: (.+)", workflow)
    assert {"Haswell", "SkylakeX", "Zen", "Nehalem"} == set(cores)
    assert len(disabled) == 2
    for core in cores:
        assert f"OPENBLAS_CORETYPE={core}" in guide
    for features in disabled:
        assert f'NPY_DISABLE_CPU_FEATURES="{features}"' in guide


@pytest.mark.parametrize("name", ["SECURITY.md", "CITATION.cff", ".pre-commit-config.yaml"])
def test_files_that_people_look_for(name):
    assert (ROOT / name).stat().st_size > 200
