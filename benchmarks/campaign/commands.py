"""The command line with signals at random moments: outputs are whole, old, or not there."""

from __future__ import annotations

import functools
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from gdpa.cli.app import run as run_command

from . import children
from .outcome import CLEAR, RIGHT, generator, must

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
OLD = "what was there before\n"


@functools.cache
def table() -> str:
    """A small table with a target that is mostly empty."""
    rng = np.random.default_rng(0)
    lines = ["a,b,c,target"]
    for i in range(80):
        a, b = rng.normal(size=2) + 3 * (i % 2)
        lines.append(f"{a:.3f},{b:.3f},{'xyz'[i % 3]},{['no', 'yes'][i % 2] if i < 16 else ''}")
    return "\n".join(lines) + "\n"


def command(folder: Path, out: str) -> list[str]:
    """The command that is disturbed."""
    return [
        *("fit", str(folder / "table.csv"), "--target", "target", "--quiet"),
        *("--out", str(folder / out), "--model", str(folder / f"{out}.npz")),
        *("--report", str(folder / f"{out}.html")),
    ]


def run(seed: int) -> str:
    """One command, one signal, and once more without."""
    rng = generator("commands", seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "table.csv").write_text(table())
        outputs = [folder / "p.csv", folder / "p.csv.npz", folder / "p.csv.html"]
        (folder / "log").touch()
        for path in outputs:
            path.write_text(OLD)
        pid = children.forked(lambda: run_command(command(folder, "p.csv")), folder / "log")
        time.sleep(float(rng.uniform(0.0, 1.0)) ** 2 * 1.2)
        sign = SIGNALS[int(rng.integers(3))]
        children.kill(pid, sign)
        code = children.ended(pid, 10)
        must(code is not None, f"still running 10 s after {sign.name}")
        must(code in (0, 1, 130, 143, -sign), f"exit code {code} after {sign.name}")
        untouched = [path.read_bytes() == OLD.encode() for path in outputs]
        if code not in (0, 1) and sign != signal.SIGKILL:
            must(all(untouched), f"interrupted, yet written: {untouched}")
        pid = children.forked(lambda: run_command(command(folder, "p.csv")), folder / "log")
        again = children.ended(pid, 60)
        must(
            again in (0, 1),
            f"the next run ends with {again}: {(folder / 'log').read_text()[-800:]}",
        )
        must(not list(folder.glob(".gdpa-*")), "an unfinished folder is left")
        predictions = outputs[0].read_text().splitlines()
        must(len(predictions) >= 64 + 1, "predictions for every row")
        must(outputs[2].read_text().rstrip().endswith("</html>"), "half a report")
        pid = children.forked(
            lambda: run_command(
                [
                    "predict",
                    str(outputs[1]),
                    str(folder / "table.csv"),
                    "-q",
                    "--out",
                    str(folder / "q.csv"),
                ]
            ),
            folder / "log",
        )
        used = children.ended(pid, 60)
        log = (folder / "log").read_text()
        must(used in (0, 1), f"the model cannot be used ({used}): {log[-500:]}")
    return RIGHT if code in (0, 1) else CLEAR
