"""Write the page "Evidence", its charts and the results of the README from stored results.

    python -m benchmarks.evidence            # write docs/evidence.md, its charts and the README
    python -m benchmarks.evidence --check    # exit with 1 if a file would change

Nothing is measured here: each section names the command that stores its results.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import charts
from .claim import Claim
from .claims import CLAIMS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence.md"
CHARTS = ROOT / "docs" / "_static" / "evidence"
README = ROOT / "README.md"
BEGIN = "<!-- results: written by python -m benchmarks.evidence -->"
END = "<!-- end of the results -->"
FOLDED_ROWS = 12  # longer tables are folded

INTRODUCTION = """\
# Evidence

Every measured claim, with its numbers, the command that measures it and the measured commit.
`python -m benchmarks.evidence` writes this page from the stored results in `benchmarks/`.
"""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def section(claim: Claim) -> str:
    """Return a section of the page."""
    parts = [f"({claim.name})=", f"## {claim.title}", "", claim.says, ""]
    if claim.chart is not None:
        parts += [f"![{claim.alt}](_static/evidence/{claim.name}.svg)", ""]
    if claim.rows:
        body = ["::::{container} gdpa-stack", "", table(claim.header, claim.rows), "", "::::"]
        if len(claim.rows) > FOLDED_ROWS:
            body = ["<details><summary>All numbers</summary>", "", *body, "", "</details>"]
        parts += [*body, ""]
    if claim.notes:
        parts += [" ".join(claim.notes), ""]
    commands = ", ".join(f"`{command}`" for command in claim.commands)
    parts += [f"Measured by {commands} at commit {claim.commits}.", ""]
    return "\n".join(parts)


def page(claims: Sequence[Claim]) -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *(section(claim) for claim in claims)])


def readme_results(claims: Sequence[Claim]) -> str:
    """Return the results of the README: one line, one number and one comparison each."""
    rows = []
    for claim in claims:
        if claim.readme is not None:
            task, ours, peer = claim.readme.split(" | ")
            rows.append([f"[{task}](docs/evidence.md#{claim.name})", f"**{ours}**", peer])
    return table(["task", "gdpa", "for comparison"], rows)


def with_results(text: str, results: str) -> str:
    """Return the README with these results between its two markers."""
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    return f"{head}{BEGIN}\n\n{results}\n\n{END}{tail}"


def files(charts_folder: Path) -> dict[Path, str]:
    """Draw the charts into a folder, and return the text of every file that is written."""
    claims = [claim() for claim in CLAIMS]
    written = {PAGE: page(claims)}
    for claim in claims:
        if claim.chart is not None:
            path = charts_folder / f"{claim.name}.svg"
            charts.save(claim.chart, path, claim.height)
    text = README.read_text(encoding="utf-8")
    if BEGIN in text:
        written[README] = with_results(text, readme_results(claims))
    return written


def main(argv: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file changes")
    options = parser.parse_args(argv)
    if options.check:
        with tempfile.TemporaryDirectory() as folder:
            changed = [
                path
                for path, text in files(Path(folder)).items()
                if not path.exists() or path.read_text(encoding="utf-8") != text
            ]
        for path in changed:
            print(f"out of date: {path.relative_to(ROOT)}")
        return int(bool(changed))
    for path, text in files(CHARTS).items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
