"""Draw which packages of gdpa import which others.

    python -m benchmarks.imports    # write docs/_static/architecture.svg

Packages stand in columns: each imports only packages in columns to its left. An arrow from A to B
says that B is built on A; arrows that follow from others are left out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import gdpa

SOURCE = Path(gdpa.__file__).parent
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "_static" / "architecture.svg"
# Modules beside the packages that everything may use; they are one box.
BASE = "base"
# Modules beside the packages that stand for themselves.
ROOMS = ("certificate", "solution", "paper", "proof")


def room(parts: tuple[str, ...]) -> str:
    """Return the package of a module, given its path below gdpa."""
    if len(parts) == 1:
        return parts[0] if parts[0] in ROOMS else BASE
    return parts[0]


def modules() -> Iterator[tuple[tuple[str, ...], Path]]:
    """Yield every module as its path below gdpa."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts not in (("__init__",), ("__main__",)):
            yield parts, path


def imported_rooms(parts: tuple[str, ...], path: Path) -> set[str]:
    """Return the packages that a module imports when it is loaded, or when its command runs."""
    package = parts[:-1]
    known = {entry.name.removesuffix(".py") for entry in SOURCE.iterdir()}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree) if parts[0] == "cli" else tree.body:
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        start = package[: len(package) - node.level + 1]
        target = (*start, *(node.module or "").split("."))
        names = [target] if node.module else [(*start, alias.name) for alias in node.names]
        for name in names:
            stem = tuple(part for part in name if part)
            if stem and stem[0] in known:
                inside = len(stem) > 1 or (SOURCE / stem[0]).is_dir()
                found.add(stem[0] if inside else room(stem[:1]))
    return found


def packages() -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    edges: dict[str, set[str]] = {}
    for parts, path in modules():
        own = room(parts if parts[-1] != "__init__" else (*parts[:-1], "__init__"))
        edges.setdefault(own, set()).update(imported_rooms(parts, path) - {own})
    return edges


def reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    """Return all packages that a package is built on."""
    found: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(edges.get(name, ()))
    return found


def direct(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out the imports that follow from others."""
    return {
        name: {
            target
            for target in targets
            if not any(target in reachable(edges, other) for other in targets - {target})
        }
        for name, targets in edges.items()
    }


def columns(edges: dict[str, set[str]]) -> dict[str, int]:
    """Return the column of each package: one more than the last column that it imports."""
    found: dict[str, int] = {}
    while len(found) < len(edges):
        ready = [
            name for name, targets in edges.items() if name not in found and targets <= set(found)
        ]
        if not ready:
            raise ValueError(f"packages import each other in a circle: {set(edges) - set(found)}")
        for name in ready:
            found[name] = 1 + max((found[target] for target in edges[name]), default=-1)
    return found


def draw(path: Path = PICTURE) -> None:
    """Draw the picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    edges = packages()
    shown = direct(edges)
    place: dict[str, tuple[float, float]] = {}
    by_column: dict[int, list[str]] = {}
    for name, column in columns(edges).items():
        by_column.setdefault(column, []).append(name)
    for column, names in by_column.items():
        for row, name in enumerate(sorted(names)):
            place[name] = (column, (len(names) - 1) / 2 - row)
    with mpl.rc_context({"svg.hashsalt": "gdpa", "svg.fonttype": "path", "font.size": 10}):
        tallest = max(map(len, by_column.values()))
        figure, ax = plt.subplots(figsize=(1.15 * len(by_column), 0.55 * tallest + 0.4))
        for name, targets in shown.items():
            for target in targets:
                ax.annotate(
                    "",
                    xy=place[name],
                    xytext=place[target],
                    arrowprops={
                        "arrowstyle": "-|>",
                        "color": "#9aa5ad",
                        "shrinkA": 24,
                        "shrinkB": 24,
                        "connectionstyle": "arc3,rad=0.08",
                    },
                )
        for name, (x, y) in place.items():
            box = {"boxstyle": "round,pad=0.35", "facecolor": "#e8f1f8", "edgecolor": "#0072B2"}
            ax.text(x, y, name, ha="center", va="center", bbox=box, fontsize=8)
        ax.set_xlim(-0.6, len(by_column) - 0.4)
        ax.set_ylim(-tallest / 2 - 0.2, tallest / 2 + 0.2)
        ax.axis("off")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)


def main() -> int:
    """Run the command."""
    draw()
    print(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
