"""Print the oldest versions that pyproject.toml declares, as constraints for pip.

python .github/floors.py > floors.txt && python -m pip install -e '.[test]' -c floors.txt
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def floors(text: str) -> dict[str, str]:
    """Lower bounds of all dependencies, extras included; of two for one package the higher."""
    project = tomllib.loads(text)["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    found: dict[str, str] = {}
    for requirement in (r for group in groups for r in group):
        if requirement.startswith(f"{project['name']}["):
            continue
        match = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9][0-9.post]*)", requirement)
        if match is None:
            raise SystemExit(f"{requirement!r} declares no lower bound of the form name>=version")
        name, version = match.groups()
        if name not in found or _numbers(version) > _numbers(found[name]):
            found[name] = version
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[1]
    for name, version in sorted(floors((here / "pyproject.toml").read_text()).items()):
        print(f"{name}=={version}")
