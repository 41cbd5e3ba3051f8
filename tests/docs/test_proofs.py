"""The published proofs: complete, small, and accepted by the checker for the instances at hand."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from gdpa import Proof, verify_proof

ROOT = Path(__file__).resolve().parents[2]
PROOFS = sorted((ROOT / "docs" / "proofs").glob("*.json.gz"))
MEASURED = json.loads((ROOT / "benchmarks" / "hard.json").read_text())["proved"]


def instance(name: str) -> Path:
    """The file of an instance; the test is skipped if it is not there."""
    folder = Path(os.environ.get("GDPA_PROBLEMS", ROOT.parent / "shared" / "problems"))
    for place in ("gset", "biqmac/ising"):
        path = folder / place / f"{name}.txt.gz"
        if path.exists():
            return path
    pytest.skip(f"needs {name}.txt.gz of Gset or Biq Mac: set GDPA_PROBLEMS to their folder")


def test_every_measured_proof_is_published_as_it_was_checked():
    names = {path.name.removesuffix(".json.gz") for path in PROOFS}
    assert names == MEASURED.keys()
    for path in PROOFS:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest == MEASURED[path.name.removesuffix(".json.gz")]["sha256"]


def test_the_page_lists_the_published_proofs():
    page = (ROOT / "docs" / "quadratic.md").read_text()
    listed = re.findall(r"^\| `([^`]+)` \| ([\d,]+) \|", page, flags=re.MULTILINE)
    values = {name: float(value.replace(",", "")) for name, value in listed}
    assert values == {name: cell["value"] for name, cell in MEASURED.items()}


def marked(path: Path) -> object:
    """A parameter with the name of the instance; large ones are slow."""
    name = path.name.removesuffix(".json.gz")
    slow = MEASURED[name]["couplings"] > 10_000
    return pytest.param(path, id=name, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize("path", [marked(path) for path in PROOFS])
def test_the_checker_accepts_a_published_proof(path):
    problem = verify_proof.read_problem(
        str(instance(path.name.removesuffix(".json.gz"))), "max-cut"
    )
    proof = Proof.load(path)
    assert verify_proof.verdict(problem, dict(proof.document)) == "optimal"


def test_a_published_proof_of_another_graph_is_refused():
    problem = verify_proof.read_problem(str(instance("G12")), "max-cut")
    proof = Proof.load(ROOT / "docs" / "proofs" / "G34.json.gz")
    verdict = verify_proof.verdict(problem, dict(proof.document))
    assert verdict == "wrong, because it belongs to another problem"
