"""Install the built wheel alone in an environment, and use it: python check_wheel.py ENV DIST."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main(environment: Path, dist: Path) -> None:
    """Fail unless the wheel works without any extra, and names the one that a command needs."""
    (wheel,) = dist.glob("*.whl")
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    python = str(folder / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    code = (
        "import gdpa; X, y = gdpa.datasets.moons(60, random_state=0); y[20:] = 0;"
        "print(gdpa.GraphClassifier(unlabeled=0).fit(X, y).predict(X)[:3])"
    )
    subprocess.run([python, "-I", "-c", code], check=True)
    command = [str(folder / "gdpa"), "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2, told
    assert "pip install 'gdpa[cli]'" in told.stderr, told


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
