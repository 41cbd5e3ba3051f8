"""What a release consists of: the wheel, the locked versions, the workflows, the recipe."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import gdpa

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Whatever else is installed is hidden: what is left is what `pip install` of the wheel alone gives.
ALONE = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

EXTRAS = {"typer", "rich", "jinja2", "pyarrow", "pandas", "matplotlib", "dask", "PIL",
          "distributed", "starlette", "uvicorn", "clarabel", "scs", "networkx", "openpyxl", "dimod"}
sys.meta_path.insert(0, Hidden())
sys.path.insert(0, WHEEL)
import gdpa
assert gdpa.__file__.startswith(WHEEL), gdpa.__file__
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    (built,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(built)


def run_alone(wheel, tmp_path, code):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    text = f"WHEEL = {str(tmp_path)!r}\n{ALONE}\n{code}"
    return subprocess.run(
        [sys.executable, "-I", "-c", text],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert wheel.name == f"gdpa-{gdpa.__version__}-py3-none-any.whl"
    assert {name.split("/")[0] for name in names} == {"gdpa", f"gdpa-{gdpa.__version__}.dist-info"}
    source = {str(p.relative_to(ROOT / "src")).replace("\\", "/")
              for p in (ROOT / "src" / "gdpa").rglob("*")
              if p.is_file() and "__pycache__" not in p.parts}  # fmt: skip
    assert {name for name in names if name.startswith("gdpa/")} == source
    assert "gdpa/py.typed" in names
    data = {name for name in names if name.endswith((".npz", ".csv", ".zip", ".pkl"))}
    assert data == {f"gdpa/datasets/examples/{name}.csv" for name in ("federalist", "reviews")}
    assert wheel.stat().st_size < 1_500_000


@pytest.mark.slow
def test_the_wheel_alone_fits_and_predicts(wheel, tmp_path):
    done = run_alone(
        wheel,
        tmp_path,
        "X, y = gdpa.datasets.moons(60, random_state=0)\n"
        "y[20:] = 0\n"
        "print(gdpa.GraphClassifier(unlabeled=0).fit(X, y).predict(X).size)\n"
        "print(gdpa.CommitteeClassifier(unlabeled=0).fit(X, y).predict(X).size)\n",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["60", "60"]


def test_the_command_of_the_wheel_alone_names_the_extra(wheel, tmp_path):
    done = run_alone(wheel, tmp_path, "from gdpa.cli import main\nmain(['--help'])")
    assert done.returncode == 2, done.stderr
    assert "pip install '.[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_locked_versions_have_hashes_and_cover_what_is_declared():
    text = (ROOT / ".ci" / "requirements.txt").read_text(encoding="utf-8")
    entries = re.findall(
        r"^([a-z0-9._-]+)==(\S+)((?:.*\\\n\s+--hash=sha256:[0-9a-f]{64})+)", text, re.M
    )
    pinned = re.findall(r"^([a-z0-9._-]+)==", text, re.M)
    assert len(entries) == len(pinned) > 50
    assert "://" not in text
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["lint"], *extras["test"], *extras["cli"]]
    names = {re.match(r"[A-Za-z0-9._-]+", r)[0].lower() for r in wanted} - {"gdpa"}
    assert names <= set(pinned), names - set(pinned)


def test_actions_are_pinned_by_commit():
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for use in re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", use), (workflow.name, use)


def test_hooks_are_pinned_by_commit():
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    revisions = re.findall(r"^ *rev: *(\S+)", text, re.MULTILINE)
    assert revisions
    assert all(re.fullmatch(r"[0-9a-f]{40}", revision) for revision in revisions)


def test_every_job_installs_locked_versions_or_says_why_not():
    yaml = pytest.importorskip("yaml")
    unlocked = {"floors", "pre-releases"}
    seen = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
            for step in job["steps"]:
                for line in str(step.get("run", "")).splitlines():
                    if "pip install" not in line:
                        continue
                    if not ("--require-hashes" in line or "--no-deps" in line):
                        seen.add(name)
                        # Never on code that somebody proposes, and without secrets.
                        assert "schedule" in job["if"]
                        assert "pull_request" not in job["if"]
                        assert "secrets." not in str(job)
    assert seen == unlocked


def test_the_recipe_asks_for_what_the_package_does():
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert f'version = "{gdpa.__version__}"' in recipe
    for requirement in PROJECT["dependencies"]:
        assert re.sub(r"(>=)", r" \1", requirement) in recipe


def _script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".github" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_of_all_versions_stay(tmp_path):
    publish = _script("publish_docs").publish
    site, pages = tmp_path / "site", tmp_path / "pages"
    site.mkdir()
    pages.mkdir()
    for version in ("0.9.0", "0.10.0", "0.11.0rc1", "0.9.1"):
        (site / "index.html").write_text(version)
        versions = publish(site, pages, version)
    assert versions == ["0.11.0rc1", "0.10.0", "0.9.1", "0.9.0"]
    assert (pages / "0.9.0" / "index.html").read_text() == "0.9.0"
    assert (pages / "stable" / "index.html").read_text() == "0.10.0"
    listed = json.loads((pages / "versions.json").read_text())
    assert [entry["version"] for entry in listed] == versions
    with pytest.raises(SystemExit, match=r"must be like 1\.2\.3"):
        publish(site, pages, "../up")
