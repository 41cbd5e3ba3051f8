"""List the sentences of docs, messages and docstrings that changed most between two commits.

python -m benchmarks.wording 27d759a HEAD > benchmarks/WORDING.md
"""

from __future__ import annotations

import ast
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator

SENTENCES = 200
HEAD = """\
# Wording guide

Everything a person reads is in plain English: standard terms, the subject named, one idea per
sentence. Would you say it to a colleague? The {count} sentences below changed most between the
commits {old} and {new}, each with the most similar sentence that replaced it. They show what
readers stumbled over. Made by `{command}`.

"""


def show(commit: str, path: str) -> str:
    done = subprocess.run(["git", "show", f"{commit}:{path}"], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def paths(commit: str) -> list[str]:
    done = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", commit, "README.md", "docs", "src"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    generated = ("REPRODUCTION", "docs/reproduction/", "walk.md", "WORDING.md")
    return [
        path
        for path in done.stdout.split()
        if path.endswith((".md", ".py")) and not any(part in path for part in generated)
    ]


def strings(source: str) -> Iterator[str]:
    """Yield docstrings and other strings of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def sentences(commit: str) -> dict[str, str]:
    """Return the sentences of a commit, each with a file that has it."""
    found: dict[str, str] = {}
    for path in paths(commit):
        content = show(commit, path)
        if path.endswith(".md"):
            content = re.sub(r"```.*?```", "", content, flags=re.DOTALL)
            pieces = [p for p in re.split(r"\n\s*\n|\n[-*#|]", content) if "|" not in p]
        else:
            pieces = [p for text in strings(content) for p in re.split(r"\n\s*\n", text)]
        for piece in pieces:
            for sentence in re.split(r"(?<=[.:?!])\s+(?=[A-Z`])", " ".join(piece.split())):
                words = re.findall(r"[A-Za-z]{2,}", sentence)
                prose = len(words) >= 8 and sentence[0].isalpha() and sentence.endswith(".")
                if prose and len(sentence) < 240 and not re.search(r"[{}<>]|\$|---| : ", sentence):
                    found.setdefault(sentence, path)
    return found


def pairs(old: dict[str, str], new: dict[str, str]) -> list[tuple[float, str, str, str]]:
    """Match each sentence that is gone with the most similar one that is new."""
    gone = [s for s in old if s not in new]
    added = [(s, {*re.findall(r"\w{4,}", s.lower())}) for s in new if s not in old]
    matched = []
    for sentence in gone:
        words = {*re.findall(r"\w{4,}", sentence.lower())}
        near = sorted(added, key=lambda a: -len(words & a[1]) / (1 + len(words | a[1])))[:3]
        for other, its in near:
            if len(words) >= 4 and len(words & its) >= 0.4 * len(words | its):  # the same subject
                kept = difflib.SequenceMatcher(None, sentence, other, autojunk=False).ratio()
                matched.append((kept, sentence, other, new[other]))
                break
    return matched


def main() -> None:
    old, new = sys.argv[1:3]
    names = [
        subprocess.run(["git", "rev-parse", "--short=7", name], capture_output=True, text=True)
        .stdout.strip()
        for name in (old, new)
    ]  # fmt: skip
    listed, before, after = [], set(), set()
    for _, sentence, other, path in sorted(pairs(sentences(old), sentences(new))):
        if sentence not in before and other not in after:
            before.add(sentence)
            after.add(other)
            listed.append(f"- before: {sentence}\n\n  after: {other} (`{path}`)\n")
    listed = listed[:SENTENCES]
    command = f"python -m benchmarks.wording {names[0]} {names[1]}"
    print(HEAD.format(count=len(listed), old=names[0], new=names[1], command=command))
    print("\n".join(listed), end="")


if __name__ == "__main__":
    main()
