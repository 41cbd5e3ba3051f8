"""Put the pages of a version beside those of others: python publish_docs.py SITE PAGES VERSION."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

TO_STABLE = (
    '<!doctype html><title>gdpa</title><meta http-equiv="refresh" content="0; url=stable/">\n'
)


def publish(site: Path, pages: Path, version: str) -> list[str]:
    """Copy `site` to ``pages/version``; return all versions, newest first.

    The newest release is also copied to ``stable``, to which the front page leads, and
    ``versions.json`` lists all of them for the menu of the theme.
    """
    if re.fullmatch(r"\d+\.\d+\.\d+([a-z0-9.]*)", version) is None:
        raise SystemExit(f"version={version!r} must be like 1.2.3")
    _replace(site, pages / version)
    numbered = [p.name for p in pages.iterdir() if re.match(r"\d+\.\d+\.\d+", p.name)]
    versions = sorted(numbered, key=_key, reverse=True)
    releases = [v for v in versions if re.fullmatch(r"[\d.]+", v)]
    if version == (releases or versions)[0]:
        _replace(site, pages / "stable")
    listed = [{"version": v, "url": f"../{v}/", "preferred": v == versions[0]} for v in versions]
    (pages / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(TO_STABLE, encoding="utf-8")
    (pages / ".nojekyll").touch()
    return versions


def _replace(site: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)


def _key(version: str) -> tuple[list[int], bool, str]:
    number, rest = re.match(r"([\d.]+)(.*)", version).groups()  # type: ignore[union-attr]
    return [int(part) for part in number.strip(".").split(".")], not rest, rest


if __name__ == "__main__":
    print(publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
