"""A damaged work folder, or changed input, never changes a result without an error."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import pytest
from parquet_parts import clusters, content, fit, pa, predict, table_columns, write_parts

from gdpa.distributed import DamagedFileError, export
from gdpa.distributed.folder import BLOCK, Folder
from gdpa.distributed.inputs import open_inputs
from gdpa.distributed.plan import _load_plan
from gdpa.tables import TableError

SYNC = {"scheduler": "synchronous"}
FLIPS = 40


class Stop(Exception):
    """Stands for whatever ends a client."""


def flip(path, rng):
    """Change one bit of a file, anywhere; return the bytes as they were."""
    before = path.read_bytes()
    raw = bytearray(before)
    raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(raw))
    return before


def files_in(folder, rng, count):
    """Some files, each kind (what the name ends with) as likely as any other."""
    kinds = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            kinds.setdefault(path.name.partition(".")[2] + path.parent.name, []).append(path)
    names = sorted(kinds)
    return [rng.choice(kinds[names[i % len(names)]]) for i in range(count)]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    table = pa.table(table_columns(*clusters(1100, 3, 0.2)))
    pattern = write_parts(folder / "in", table.slice(0, 1000), [500, 500])
    new = write_parts(folder / "new", table.slice(1000).drop_columns(["y"]), [100])
    options = {"id_column": "id", "n_parts": 2, "self_loop": 0.1, "keep": True, **SYNC}
    fit(pattern, "y", work=folder / "work", out=folder / "out", **options)
    predict(new, work=folder / "work", out=folder / "more", **SYNC)
    return folder, pattern, new, options


def test_predictions_with_a_flipped_bit_are_the_same_or_refused(fitted, tmp_path):
    folder, _, new, _ = fitted
    expected, work = content(folder / "more"), tmp_path / "work"
    shutil.copytree(folder / "work", work)
    rng = np.random.default_rng(0)
    refused = 0
    for number, path in enumerate(files_in(work, rng, FLIPS)):
        before = flip(path, rng)
        _load_plan.cache_clear()
        out = tmp_path / f"out-{number}"
        try:
            predict(new, work=work, out=out, **SYNC)
            assert content(out) == expected
        except DamagedFileError:
            refused += 1
        path.write_bytes(before)
    assert refused > 5


STAGES = ("encode rows", "measure recall", "search neighbours", "build graph", "predict")


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_fit_continued_with_a_flipped_bit_is_the_same_or_refused(fitted, tmp_path, stage):
    folder, pattern, _, options = fitted
    expected, work, out = content(folder / "out"), tmp_path / "work", tmp_path / "out"
    options = options | {"work": work, "out": out}

    def halt(event):
        if event.stage == stage and event.done == 1:
            raise Stop

    with pytest.raises(Stop):
        fit(pattern, "y", callback=halt, **options)
    shutil.copytree(work, tmp_path / "stopped")
    rng = np.random.default_rng(1)
    refused = 0
    for name in files_in(work, rng, FLIPS // 4):
        shutil.rmtree(work)
        shutil.copytree(tmp_path / "stopped", work)
        flip(name, rng)
        _load_plan.cache_clear()
        try:
            fit(pattern, "y", **options)
            assert content(out) == expected
        except DamagedFileError:
            refused += 1
        for file in out.glob("*.parquet"):
            file.unlink()
    assert refused > 0


def test_an_export_with_a_flipped_bit_is_refused(fitted, tmp_path):
    folder, *_ = fitted
    work = tmp_path / "work"
    shutil.copytree(folder / "work", work)
    path = work / "model" / "00001.scores.npy"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(bytes(raw))
    with pytest.raises(DamagedFileError, match=r"00001\.scores\.npy is damaged"):
        export(work, tmp_path / "model.npz", n_rows=990)


def test_predictions_that_were_changed_are_written_again(fitted, tmp_path):
    folder, pattern, _, options = fitted
    for name in ("work", "out"):
        shutil.copytree(folder / name, tmp_path / name)
    expected = content(folder / "out")
    options = options | {"work": tmp_path / "work", "out": folder / "out"}
    path = folder / "out" / "part-1.parquet"
    flip(path, np.random.default_rng(0))
    fit(pattern, "y", **options)
    assert content(folder / "out") == expected


def test_input_that_was_changed_is_refused(fitted, tmp_path):
    """Also where the size, the time of the file and the footer stay the same."""
    _, pattern, _, options = fitted

    def halt(event):
        if event.stage == "encode rows":
            raise Stop

    source = tmp_path / "in"
    X, truth, known = clusters(400, 3, 0.2)
    columns = table_columns(X, truth, known)
    pattern = write_parts(source, columns, [200, 200], compression="none", use_dictionary=False)
    options = {**options, "work": tmp_path / "work", "out": tmp_path / "out"}
    with pytest.raises(Stop):
        fit(pattern, "y", callback=halt, **options)
    path = source / "part-1.parquet"
    stat, raw = path.stat(), bytearray(path.read_bytes())
    at = raw.index(X[300, 1].tobytes())
    raw[at + 2] ^= 1
    path.write_bytes(bytes(raw))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ValueError, match=r"the content of .*\.parquet was") as refused:
        fit(pattern, "y", **options)
    before, now = re.search(r"parquet was (.*), now it is (.*);", str(refused.value)).groups()
    assert before != now
    assert "CRC" in now


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_bit_of_the_input_that_flips_during_a_run_is_noticed(tmp_path, compression):
    rows = table_columns(*clusters(600, 3, 0.2))
    write_parts(tmp_path / "in", rows, [600], compression=compression)
    inputs = open_inputs(str(tmp_path / "in"), piece_rows=200)
    names = [name for name, _ in inputs.schema]
    expected = [piece.read(names) for piece in inputs.pieces]
    (path,) = (tmp_path / "in").glob("*.parquet")
    rng = np.random.default_rng(0)
    noticed = 0
    for _ in range(100):
        before = flip(path, rng)
        for piece, table in zip(inputs.pieces, expected, strict=True):
            try:
                found = piece.read(names)
            except (TableError, OSError, ValueError):
                noticed += 1
            else:
                assert found.equals(table)
        path.write_bytes(before)
    assert noticed > 50
    assert [piece.read(["f0"]) for piece in inputs.pieces] == [t.select(["f0"]) for t in expected]


def test_arrays_of_any_kind_come_back_and_every_flipped_bit_is_noticed(tmp_path):
    folder = Folder(str(tmp_path))
    rng = np.random.default_rng(0)
    for array in (
        rng.random((3000, 7)),
        rng.random((5, 3)).astype(np.float32),
        np.arange(2 * BLOCK // 8 - 16),  # ends with a block
        np.empty((0, 4)),
        np.empty((4, 0), dtype=np.int32),
        np.array([True, False]),
    ):
        folder.write_array("x.npy", array)
        n = array.shape[0]
        for start, stop in ((0, None), (0, 1), (n // 2, n // 2 + 2), (n - 1, n), (n, n + 3)):
            part = folder.read_array("x.npy", max(0, start), stop)
            expected = array[max(0, start) : stop]
            assert part.dtype == array.dtype
            assert np.array_equal(part, expected)
            assert part.shape == expected.shape
        for _ in range(60):
            before = flip(tmp_path / "x.npy", rng)
            with pytest.raises(DamagedFileError):
                folder.read_array("x.npy")
            (tmp_path / "x.npy").write_bytes(before)
        for size in (0, 50, 130, len(before) - 1):
            (tmp_path / "x.npy").write_bytes(before[:size])
            assert not folder.is_intact("x.npy")
    folder.write_json("x.json", {"a": np.float64(0.5), "b": [1, None]})
    assert folder.read_json("x.json") == {"a": 0.5, "b": [1, None]}
    for _ in range(60):
        before = flip(tmp_path / "x.json", rng)
        with pytest.raises(DamagedFileError):
            folder.read_json("x.json")
        (tmp_path / "x.json").write_bytes(before)
