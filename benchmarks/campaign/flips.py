"""One bit of the work folder of a distributed run flipped: the same result, or a clear error."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gdpa.distributed import TableFitOptions, Workers, fit, predict
from gdpa.distributed.plan import _load_plan

from .outcome import RIGHT, generator, must, quiet, refused

STAGES = ("encode rows", "search neighbours", "build graph", "predict")
HERE = Workers(scheduler="synchronous")
OPTIONS: dict[str, Any] = {
    "options": TableFitOptions(id_column="id", n_parts=2, self_loop=0.1),
    "workers": HERE,
    "keep": True,
}


class _Stop(Exception):
    """Ends a run in the middle."""


@functools.cache
def home() -> tuple[Any, Path]:
    """A folder with input, a finished run, runs stopped in the middle, and what they must give."""
    holder = tempfile.TemporaryDirectory()
    folder = Path(holder.name)
    rng = np.random.default_rng(0)
    n = 330
    codes = np.arange(n) % 2
    X = rng.normal(size=(n, 3)) + 2.0 * codes[:, None]
    labels = pa.array(np.array(["no", "yes"])[codes], mask=rng.random(n) > 0.2)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": labels, "id": np.arange(n)})
    for name, first, last in (("in/0", 0, 150), ("in/1", 150, 300), ("new/0", 300, n)):
        (folder / name).parent.mkdir(exist_ok=True)
        part = table.slice(first, last - first)
        part = part.drop_columns(["y"]) if name == "new/0" else part
        pq.write_table(part, folder / f"{name}.parquet")
    pattern = f"{folder}/in/*.parquet"
    fit(pattern, "y", work=folder / "work", out=folder / "out", **OPTIONS)
    predict(
        f"{folder}/new/*.parquet",
        work=folder / "work",
        out=folder / "more",
        workers=HERE,
    )
    for stage in STAGES:

        def halt(event: Any, stage: str = stage) -> None:
            if event.stage == stage and event.done == 1:
                raise _Stop

        try:
            fit(
                pattern,
                "y",
                work=folder / stage,
                out=folder / f"{stage}, out",
                callback=halt,
                **OPTIONS,
            )
        except _Stop:
            continue
    return holder, folder


def content(out: Path) -> dict[str, bytes]:
    """Bytes of the predictions."""
    return {file.name: file.read_bytes() for file in sorted(out.glob("*.parquet"))}


def run(seed: int) -> str:
    """One bit."""
    rng = generator("flips", seed)
    folder = home()[1]
    resumed = bool(rng.random() < 0.4)
    source = folder / (str(rng.choice(STAGES)) if resumed else "work")
    with tempfile.TemporaryDirectory() as name, quiet():
        work, out = Path(name) / "work", Path(name) / "out"
        shutil.copytree(source, work)
        kinds: dict[str, list[Path]] = {}
        for path in sorted(work.rglob("*")):
            if path.is_file() and path.stat().st_size:
                kinds.setdefault(path.name.partition(".")[2] + path.parent.name, []).append(path)
        files = kinds[str(rng.choice(sorted(kinds)))]
        path = files[int(rng.integers(len(files)))]
        raw = bytearray(path.read_bytes())
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(raw))
        _load_plan.cache_clear()
        try:
            if resumed:
                fit(f"{folder}/in/*.parquet", "y", work=work, out=out, **OPTIONS)
            else:
                new = f"{folder}/new/*.parquet"
                predict(new, work=work, out=out, workers=HERE)
        except (ValueError, MemoryError) as error:
            return refused(error) + "|flips=1"
        expected = content(folder / ("out" if resumed else "more"))
        must(content(out) == expected, f"a flipped bit of {path.relative_to(work)} changes results")
    return f"{RIGHT}|flips=1"
