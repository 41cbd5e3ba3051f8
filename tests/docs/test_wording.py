"""Words that readers stumbled over do not come back: everything a person reads is plain English."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What stood there, and what to write instead.
PHRASES = {
    r"labels? left out": "held-out labels",
    r"found again": "cross-validated accuracy",
    r"what is made of each column": "how each column was encoded",
    r"(?:unlike members|members that vote)": "ensemble of different models",
    r"make this again": "reproduce this",
    r"who decides": "model weights",
    r"seed of what is random": "random seed",
    r"0: a free one": "0 picks a free port",
    r"found; by ending": "detected automatically; from the file extension",
    r"most worth labelling": "list the rows to label next",
    r"kernel judged": "evaluated kernel",
    r"cut where it is said": "validated in ...",
    r"spared where nothing would notice": "skipped if the held-out loss does not rise",
    r"says as an update does": "fields copied from Update to FitRun",
    r"up to the noise(?! of)|or a hair": "within one standard error",
    r"not endless": "truncated",
    r"nothing is left to chance": "results are deterministic",
    r"an honest word": "an unbiased estimate",
    r"no idea": "uncertain",
    r"ends that no row has": "edges to unknown rows",
    r"lanes it throws away|warns nobody": "suppress spurious warnings",
    r"not to be had": "not available",
    r"nobody needs": "unused",
}
NAMES = {
    "BEHIND", "_behind", "unnoticed", "said", "heard", "silent", "OWN", "own_shares", "voted",
    "_decided", "MANY", "wider", "and_also", "Arranged",
    "Surroundings", "bring_near", "Growing", "TextNumbers", "most_alike", "count_faint", "Desk",
    "_Bench", "MOST_ALIKE",
}  # fmt: skip
FILES = {"shares.py", "looking.py", "showing.py", "checking.py", "predicting.py", "reporting.py"}


@functools.cache
def texts() -> dict[Path, str]:
    folders = ("src", "docs", "examples", "benchmarks", "reproduction", "paper", "packaging")
    inner = [p for folder in folders for p in sorted((ROOT / folder).rglob("*"))]
    kinds = {".py", ".md", ".rst", ".html", ".js", ".jinja", ".yaml"}
    wanted = [p for p in [*sorted(ROOT.glob("*.md")), *inner] if p.suffix in kinds]
    # The wording guide quotes them; the rest is generated.
    left = ("WORDING.md", "wording.py")
    kept = [p for p in wanted if p.name not in left and "_build" not in p.parts]
    return {path: path.read_text(encoding="utf-8") for path in kept}


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_phrase_that_readers_stumbled_over_is_left(phrase):
    pattern = re.compile(phrase.replace(" ", r"\s+(?:# ?)?"), re.IGNORECASE)
    found = []
    for path, content in texts().items():
        found += [
            f"{path.relative_to(ROOT)}:{content.count(chr(10), 0, hit.start()) + 1}"
            for hit in pattern.finditer(content)
        ]
    assert not found, f"write {PHRASES[phrase]!r}"


def test_names_say_what_a_thing_is():
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        if path.name in FILES:
            found.append(path.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = (
                node.name
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
                else node.id
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                else ""
            )
            if name in NAMES:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno} {name}")
    assert not found
