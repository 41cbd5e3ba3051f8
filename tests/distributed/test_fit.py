"""Fits on parts, end to end: the answer, and what a second run finds."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from parquet_parts import clusters, content, fit, pq, predictions, table_columns, write_parts

from gdpa import GraphClassifier
from gdpa.distributed import export
from gdpa.distributed.cluster import Runner
from gdpa.distributed.folder import Folder
from gdpa.distributed.pipeline import default_parts
from gdpa.graph import neighbor_graph
from gdpa.tables import TableEncoder

FEATURES = [f"f{j}" for j in range(4)]


class Stop(Exception):
    """Stands for whatever ends a client."""


def run(pattern, tmp_path, name="run", **options):
    options = {"scheduler": "synchronous", "id_column": "id", **options}
    out = tmp_path / f"{name}-out"
    return fit(pattern, "y", work=tmp_path / f"{name}-work", out=out, **options), out


def assembled(folder, n_parts, n):
    """The graph of all parts, in the order of the rows."""
    rows = [folder.read_array(f"parts/{p:05d}.row.npy") for p in range(n_parts)]
    row = np.concatenate(rows)
    starts = np.concatenate([[0], np.cumsum([r.size for r in rows])])
    entries = []
    for p in range(n_parts):
        data, indices, indptr, halo = (
            folder.read_array(f"rows/{p:05d}.{what}.npy")
            for what in ("data", "indices", "indptr", "halo")
        )
        at = starts[p] + np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        nodes = np.sort(np.concatenate([np.arange(starts[p], starts[p + 1]), halo]))
        entries.append((data, row[at], row[nodes[indices]]))
    data, i, j = (np.concatenate(part) for part in zip(*entries, strict=True))
    return sp.csr_array((data, (i, j)), shape=(n, n))


def test_predictions_are_those_of_one_machine(parts, tmp_path):
    pattern, _, truth, known = parts
    options = {"n_parts": 3, "recall": 1.0, "metric": "plain", "keep": True}
    options["class_probabilities"] = True
    result, out = run(pattern, tmp_path, **options)
    found = predictions(out)
    names = ["id", "prediction", "probability", "probability_a", "probability_b"]
    assert found.column_names == names
    assert found.column("id").to_pylist() == (7 * np.arange(1800)).tolist()
    assert sorted(f.name for f in out.glob("*.parquet")) == [f"part-{i}.parquet" for i in range(3)]
    predicted = np.array(found.column("prediction").to_pylist())
    assert (predicted[known] == np.array(["a", "b"])[truth[known]]).all()
    frame = pq.read_table(tmp_path / "in").select(FEATURES)
    Z = TableEncoder().fit_transform(frame)
    model = GraphClassifier(n_neighbors=10, self_loop=result.self_loop, label_weight=np.inf)
    model.fit(Z, np.where(known, truth, -1))
    alone = np.array(["a", "b"])[model.transduction_]
    assert (predicted == alone).mean() > 0.99
    assert result.recall == 1.0
    assert result.converged
    assert (result.rows, result.labeled) == (1800, known.sum())
    assert sum(result.predicted.values()) == (~known).sum()
    assert any("single neighbour graph" in note for note in result.notes)
    assert any("`gdpa fit` is usually more accurate" in note for note in result.notes)
    # Held-out accuracy is that of rows without a label, up to the noise of 108 labels.
    right = (predicted == np.array(["a", "b"])[truth])[~known].mean()
    assert result.n_held_out == 108
    assert abs(result.accuracy - right) < 4 * np.sqrt(right * (1 - right) / 108)
    wanted = f"held-out accuracy: {100 * result.accuracy:.1f} % of 108 held-out labels"
    assert any(wanted in note for note in result.notes)
    P = np.column_stack([found.column(name).to_numpy() for name in names[3:]])
    assert np.allclose(P.sum(axis=1), 1.0, atol=1e-6)
    top = found.column("probability").to_numpy()
    assert np.array_equal(top[~known], P[~known].max(axis=1))
    W = assembled(Folder(str(tmp_path / "run-work")), 3, 1800)
    expected = neighbor_graph(Z, 10, algorithm="exact")
    assert (abs(W - expected) > 1e-9).nnz < 0.002 * expected.nnz
    assert (abs(W - W.T) > 0).nnz == 0


def test_a_second_run_has_nothing_to_do_and_a_lost_output_is_written_again(parts, tmp_path):
    pattern = parts[0]
    first, out = run(pattern, tmp_path)
    before = content(out)
    events = []
    second, _ = run(pattern, tmp_path, callback=events.append)
    assert not events
    assert content(out) == before
    assert second.predicted == first.predicted
    (out / "part-1.parquet").unlink()
    run(pattern, tmp_path)
    assert content(out) == before


def test_another_run_is_refused(parts, tmp_path):
    pattern, X, truth, known = parts
    run(pattern, tmp_path)
    with pytest.raises(ValueError, match="belongs to another run: n_neighbors was 10, now it is"):
        run(pattern, tmp_path, n_neighbors=9)
    write_parts(tmp_path / "in", table_columns(X + 1, truth, known), [700, 700, 400])
    with pytest.raises(
        ValueError, match=r"the content of .*\.parquet was .*CRC .* now it is .*CRC"
    ):
        run(pattern, tmp_path)
    write_parts(tmp_path / "in", table_columns(X, truth, known), [700, 700, 400])
    run(pattern, tmp_path)
    old = tmp_path / "old-work"
    Folder(str(old)).write_json("manifest.json", {"version": 2})
    with pytest.raises(ValueError, match="has format 2, but this version of gdpa uses format"):
        run(pattern, tmp_path, "old")
    shutil.rmtree(tmp_path / "run-work")
    with pytest.raises(ValueError, match=r"output folder .* already has"):
        run(pattern, tmp_path)
    (tmp_path / "other-work").mkdir()
    (tmp_path / "other-work" / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"has files but no manifest\.json"):
        run(pattern, tmp_path, "other")


def test_number_of_parts_and_pieces_do_not_change_the_predictions(tmp_path):
    X, truth, known = clusters(1500, 3, n_classes=3, seed=5)
    columns = table_columns(X, truth, known)
    one = write_parts(tmp_path / "one", columns, [1500])
    many = write_parts(tmp_path / "many", columns, [100, 900, 1, 499], row_group_size=200)
    answers = []
    for pattern, parts in ((one, 1), (many, 3)):
        result, out = run(pattern, tmp_path, f"p{parts}", n_parts=parts, self_loop=0.1)
        assert result.parts == parts
        answers.append(predictions(out))
    one, many = answers
    assert one.column("id").equals(many.column("id"))
    pairs = zip(*(a.column("prediction").to_pylist() for a in answers), strict=True)
    assert np.mean([a == b for a, b in pairs]) > 0.995


def test_stopped_after_any_few_tasks_it_goes_on_where_it_was(parts, tmp_path):
    """And half-written files that lie about are neither read nor left."""
    pattern = parts[0]
    _, out = run(pattern, tmp_path, "whole", n_parts=2)
    expected = content(out)
    stops = 0
    for _ in range(60):
        seen = []

        def halt(event, seen=seen):
            seen.append(event)
            if len(seen) > 12:
                raise Stop

        try:
            _, out = run(pattern, tmp_path, "stopped", n_parts=2, callback=halt)
            break
        except Stop:
            stops += 1
            half = tmp_path / "stopped-work" / "parts"
            half.mkdir(exist_ok=True)
            (half / "00000.X.npy.unfinished-abc").write_bytes(b"half")
    assert 3 < stops < 59
    assert content(out) == expected
    assert not list((tmp_path / "stopped-work").rglob("*unfinished*"))


def test_damaged_files_of_an_open_stage_and_missing_ones_are_made_again(parts, tmp_path):
    pattern = parts[0]
    _, out = run(pattern, tmp_path, "whole", n_parts=2)
    expected = content(out)

    def halt(event):
        if event.stage == "search neighbours" and event.done == 1:
            raise Stop

    with pytest.raises(Stop):
        run(pattern, tmp_path, n_parts=2, callback=halt)
    listing = tmp_path / "run-work" / "search" / "00000.node.npy"
    raw = bytearray(listing.read_bytes())
    raw[-1] ^= 255
    listing.write_bytes(bytes(raw))
    _, out = run(pattern, tmp_path, n_parts=2)
    assert content(out) == expected
    (tmp_path / "run-work" / "parts" / "00001.X.npy").unlink()
    with pytest.raises(ValueError, match=r"00001\.X\.npy, written by stage .* is missing"):
        export(tmp_path / "run-work", tmp_path / "model.npz")
    run(pattern, tmp_path, n_parts=2)
    assert content(out) == expected
    export(tmp_path / "run-work", tmp_path / "model.npz")


def test_manifest_names_parameters_and_all_files(parts, tmp_path):
    run(parts[0], tmp_path, keep=True, n_parts=2)
    folder = Folder(str(tmp_path / "run-work"))
    manifest = folder.read_json("manifest.json")
    assert manifest["parameters"]["target"] == "y"
    stages = {k: v for k, v in manifest["stages"].items() if k not in manifest["removed"]}
    files = [file for records in stages.values() for record in records for file in record["files"]]
    assert {"manifest.json", *files} == set(folder.names())
    assert all(folder.is_intact(file) for file in files)
    # Arrays are plain .npy files, whatever follows them.
    X = np.load(tmp_path / "run-work" / "parts" / "00000.X.npy")
    assert np.array_equal(X, folder.read_array("parts/00000.X.npy"))


def test_object_store(parts, tmp_path):
    """No renames, no folders: the same files, and a second run that finds them."""
    fsspec = pytest.importorskip("fsspec")
    pattern = parts[0]
    _, out = run(pattern, tmp_path, "local", n_parts=2)
    system = fsspec.filesystem("memory")
    for file in sorted((tmp_path / "in").glob("*.parquet")):
        system.pipe_file(f"/store/in/{file.name}", file.read_bytes())
    options = {"id_column": "id", "n_parts": 2, "scheduler": "synchronous"}
    options |= {"work": "memory://store/work", "out": "memory://store/out"}
    try:
        fit("memory://store/in/*.parquet", "y", **options)
        for name, raw in content(out).items():
            assert system.cat_file(f"/store/out/{name}") == raw
        events = []
        fit("memory://store/in/*.parquet", "y", callback=events.append, **options)
        assert not events
    finally:
        system.rm("/store", recursive=True)


def test_more_classes_than_are_solved_together(tmp_path):
    """Twenty classes, each a cluster; their scores come in two batches."""
    rng = np.random.default_rng(0)
    truth = np.arange(1200) % 20
    X = 6.0 * rng.normal(size=(20, 4))[truth] + rng.normal(size=(1200, 4))
    known = rng.random(1200) < 0.2
    names = [f"class {c:02d}" for c in range(20)]
    pattern = write_parts(tmp_path / "in", table_columns(X, truth, known, names), [600, 600])
    result, out = run(pattern, tmp_path, n_parts=2, self_loop=0.1)
    assert list(result.classes) == names
    right = np.array(predictions(out).column("prediction").to_pylist()) == np.array(names)[truth]
    assert right.mean() > 0.9


def test_files_without_a_record_do_not_count(parts, tmp_path):
    """As a store without atomic renames may leave them: under the right name, cut or wrong."""
    pattern = parts[0]
    _, out = run(pattern, tmp_path, "whole", n_parts=2)
    work = tmp_path / "run-work"

    def halt(event):
        if event.stage == "sort into parts" and event.done == 1:
            raise Stop

    with pytest.raises(Stop):
        run(pattern, tmp_path, n_parts=2, callback=halt)
    assert (work / "records" / "sort-into-parts" / "000000.json").exists()
    (work / "parts" / "00001.X.npy").write_bytes((work / "parts" / "00000.X.npy").read_bytes())
    (work / "search").mkdir()
    (work / "search" / "00000.node.npy").write_bytes(b"\x93NUMPY half of a file")
    (work / "records" / "search-neighbours").mkdir(parents=True)
    (work / "records" / "search-neighbours" / "000001.json").write_bytes(b'{"files": ["search/00')
    _, again = run(pattern, tmp_path, n_parts=2)
    assert content(again) == content(out)


def test_parts_follow_the_workers_that_a_run_began_with(parts, tmp_path, monkeypatch):
    counts = [default_parts(n, 1) for n in (10, 250_000, 1_000_000, 10**9)]
    assert counts == [1, 1, 4, 512]
    counts = [default_parts(1_000_000, workers) for workers in (2, 3, 100)]
    assert counts == [16, 20, 100]
    assert default_parts(40_000, 2) == 2
    pattern = parts[0]

    def halt(event):
        if event.stage == "sort into parts":
            raise Stop

    monkeypatch.setattr(Runner, "n_workers", 3)
    with pytest.raises(Stop):
        run(pattern, tmp_path, callback=halt)
    monkeypatch.setattr(Runner, "n_workers", 1)
    result, out = run(pattern, tmp_path)
    assert result.parts == 3
    _, given = run(pattern, tmp_path, "given", n_parts=3)
    assert content(out) == content(given)


def test_workers_load_no_scikit_learn():
    """What tasks import: a worker pays for each module in memory and at its start."""
    tasks = ("inputs", "neighbors", "new_rows", "parts", "plan", "predictions", "rows", "solve")
    code = "import sys\n" + "".join(f"import gdpa.distributed.{name}\n" for name in tasks)
    code += "print([m for m in ('sklearn', 'pandas', 'scipy.stats') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
