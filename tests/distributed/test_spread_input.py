"""What a spread refuses, and how it says so; damaged input and work folders."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from parquet_parts import content, pa, pq
from test_spread import HERE, random_network, write

from gdpa.distributed import DamagedFileError, SpreadOptions, spread
from gdpa.distributed.folder import Folder
from gdpa.distributed.ids import hash_bytes
from gdpa.tables import TableError


class Stop(Exception):
    """Stands for whatever ends a client."""


def path_graph(folder, **columns):
    """Write a path a - b - c with labels at its ends, with other columns if given."""
    folder.mkdir(exist_ok=True)
    edges = {"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, 2.0]}
    labels = {"node": ["a", "c"], "label": ["x", "y"]}
    for name, values in columns.items():
        table = labels if name in labels else edges
        table[name] = values
    pq.write_table(pa.table(edges), folder / "edges.parquet")
    pq.write_table(pa.table(labels), folder / "labels.parquet")
    return str(folder / "edges.parquet"), str(folder / "labels.parquet")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weight": [1.0, -2.0]}, r"edges\.parquet, row 2: weight -2\.0 in column 'weight'"),
        ({"weight": [float("nan"), 1.0]}, "row 1: weight nan"),
        ({"weight": [1.0, float("inf")]}, "row 2: weight inf"),
        ({"weight": pa.array([None, 1.0])}, "row 1: weight None"),
        ({"weight": [1e-300, 1.0]}, "row 1: weight 1e-300 .* must be 0 or a number between"),
        ({"weight": ["1", "2"]}, "column 'weight' .* is string; weights must be numbers"),
        ({"source": pa.array(["a", None])}, "row 2: the identifier in column 'source' is missing"),
        ({"source": [1.5, 2.5]}, "column 'source' .*: identifiers must be text or integers"),
        ({"source": [1, 2]}, "is int64, but 'target' is string; store both in the same way"),
        ({"node": [1, 2]}, "'node' .* is int64, but the nodes of the edges are text"),
        ({"label": ["x", "x"]}, "the only class is 'x'; two are needed"),
        ({"label": pa.array([None, None], pa.string())}, "no node has a label"),
        ({"node": ["a", "a"]}, "node 'a' is labelled 'x' and 'y'; a node can have one label"),
        ({"node": pa.array(["a", None])}, "row 2: the identifier in column 'node' is missing"),
    ],
)
def test_bad_input_is_named(tmp_path, columns, message):
    edges, labels = path_graph(tmp_path, **columns)
    options = SpreadOptions(weight="weight")
    with pytest.raises(TableError, match=message):
        spread(edges, labels, out=tmp_path / "out", options=options, workers=HERE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method='magic'"),
        ({"laplacian": "other"}, "laplacian='other'"),
        ({"label_weight": 0}, "label_weight=0 must be a positive number"),
        ({"self_loop": -1.0}, "self_loop=-1.0 must be a number, at least 0"),
        ({"tol": 0}, "tol=0 must be a positive number"),
        ({"n_parts": 0}, "n_parts=0 must be a whole number of at least 1"),
        ({"method": "poisson", "self_loop": 0.1}, "method='poisson' has no label_weight"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        SpreadOptions(**options)


def test_missing_columns_are_named(tmp_path):
    edges, labels = path_graph(tmp_path)
    for options, message in (
        (SpreadOptions(source="origin"), "no column 'origin'; .*source"),
        (SpreadOptions(weight="w"), "no column 'w'"),
        (SpreadOptions(label="class"), "no column of labels 'class'"),
    ):
        with pytest.raises(TableError, match=message):
            spread(edges, labels, out=tmp_path / "out", options=options, workers=HERE)


def test_large_unsigned_identifiers_are_refused(tmp_path):
    big = pa.array([2**63, 1], pa.uint64())
    small = pa.array([1, 2], pa.uint64())
    edges, labels = path_graph(tmp_path, source=big, target=small, node=pa.array([1, 2]))
    with pytest.raises(TableError, match=r"row 1: identifier 9223372036854775808 .* as text"):
        spread(edges, labels, out=tmp_path / "out", workers=HERE)


def test_hashes_differ_for_texts_that_differ_little():
    """Lengths around the eight bytes that are read at once, and trailing zeros."""
    texts = [b"a" * k for k in range(40)] + [b"a" * k + b"\0" for k in range(40)]
    texts += [b"a" * k + bytes([c]) for k in (0, 7, 8, 15) for c in range(1, 200) if c != 97]
    ends = np.cumsum([0, *map(len, texts)])
    content = np.frombuffer(b"".join(texts), dtype=np.uint8)
    found = hash_bytes(content, ends)
    assert np.unique(found).size == len(texts)
    assert not np.isin(hash_bytes(content, ends, 1), found).any()
    alone = [hash_bytes(np.frombuffer(t, np.uint8), np.array([0, len(t)]))[0] for t in texts]
    assert np.array_equal(alone, found)


def test_two_names_with_the_same_hash_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "gdpa.distributed.ids.hash_bytes",
        lambda content, ends, seed: (np.arange(ends.size - 1) * 0).astype(np.uint64),
    )
    edges, labels = path_graph(tmp_path)
    with pytest.raises(TableError, match="have the same hash; run again with another hash_seed"):
        spread(edges, labels, out=tmp_path / "out", workers=HERE)


def stopped(edges, labels, folder, stage):
    """Stop a run in a stage."""

    def halt(event):
        if event.stage == stage:
            raise Stop

    options = SpreadOptions(n_parts=3, part_entries=400, scores=True)
    arguments = {"out": folder / "out", "work": folder / "work", "options": options}
    with pytest.raises(Stop):
        spread(edges, labels, callback=halt, workers=HERE, **arguments)
    return arguments


STAGES = ("sample edges", "split edges", "build rows", "components", "scores", "write predictions")


@pytest.mark.parametrize("stage", STAGES)
def test_a_stopped_run_goes_on_with_the_same_bytes(tmp_path, stage):
    edges, labels = write(random_network(8), tmp_path)
    arguments = stopped(edges, labels, tmp_path, stage)
    spread(edges, labels, workers=HERE, **arguments)
    whole = arguments | {"out": tmp_path / "whole", "work": tmp_path / "other"}
    spread(edges, labels, workers=HERE, **whole)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("stage", STAGES[1:])
def test_damage_is_refused_or_changes_nothing(tmp_path, stage):
    """Flipped bits, files in the place of others, missing, empty or cut off."""
    edges, labels = write(random_network(5), tmp_path)
    arguments = stopped(edges, labels, tmp_path, stage)
    work = tmp_path / "work"
    shutil.copytree(work, tmp_path / "stopped")
    whole = arguments | {"out": tmp_path / "whole", "work": tmp_path / "other"}
    spread(edges, labels, workers=HERE, **whole)
    expected = content(tmp_path / "whole")
    rng = np.random.default_rng(0)
    names = [path.relative_to(work) for path in sorted(work.rglob("*")) if path.is_file()]
    refused = 0
    for number in range(25):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(tmp_path / "stopped", work)
        path = work / names[rng.integers(len(names))]
        raw = bytearray(path.read_bytes())
        if number % 5 == 0:
            raw[rng.integers(len(raw))] ^= 1 << int(rng.integers(8))
            path.write_bytes(bytes(raw))
        elif number % 5 == 1:
            path.write_bytes((work / names[rng.integers(len(names))]).read_bytes())
        elif number % 5 == 2:
            path.unlink()
        elif number % 5 == 3:
            path.write_bytes(b"")
        else:
            path.write_bytes(bytes(raw[: len(raw) // 2]))
        try:
            spread(edges, labels, workers=HERE, **arguments)
        except (ValueError, FileNotFoundError):
            refused += 1
        else:
            assert content(tmp_path / "out") == expected
        for file in (tmp_path / "out").glob("*.parquet"):
            file.unlink()
    assert refused > 0


TAMPERED = {
    "a missing result": lambda data: data["stages"]["plan"][0]["result"].pop("n_hubs"),
    "a missing part": lambda data: data["stages"]["build rows"].pop(),
    "no halo": lambda data: data["stages"]["build rows"][0]["result"].update(halo=[]),
    "no nodes": lambda data: data["stages"]["build rows"][0]["result"].pop("nodes"),
    "no list": lambda data: data.pop("removed"),
    "another list": lambda data: data.update(stages=[]),
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_records_that_do_not_fit_together_are_a_value_error(tmp_path, change):
    """Their checksums are right."""
    edges, labels = write(random_network(5), tmp_path)
    arguments = stopped(edges, labels, tmp_path, "components")
    folder = Folder(str(tmp_path / "work"))
    data = folder.read_json("manifest.json")
    change(data)
    folder.write_json("manifest.json", data)
    with pytest.raises(ValueError, match=r"do not fit together .* empty work folder"):
        spread(edges, labels, workers=HERE, **arguments)


def test_an_edge_file_that_changes_during_the_run_is_refused(tmp_path):
    edges, labels = write(random_network(5), tmp_path)
    path = next((tmp_path / "edges").glob("b.parquet"))

    def flip(event):
        if event.stage == "split edges" and event.done == 0:
            raw = bytearray(path.read_bytes())
            raw[40] ^= 1
            path.write_bytes(bytes(raw))

    with pytest.raises(TableError, match=r"b\.parquet has changed since the run began"):
        spread(edges, labels, out=tmp_path / "out", workers=HERE, callback=flip)


def test_a_damaged_file_is_named(tmp_path):
    edges, labels = write(random_network(5), tmp_path)
    arguments = stopped(edges, labels, tmp_path, "components")
    path = tmp_path / "work" / "rows" / "00000.data.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedFileError, match=r"00000\.data\.npy is damaged"):
        spread(edges, labels, workers=HERE, **arguments)
