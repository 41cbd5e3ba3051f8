"""The estimate before a spread starts: what it counts is compared with what a run counts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from parquet_parts import pa, pq
from test_spread import HERE, random_network, without_unused, write

from gdpa.cli.app import run as main
from gdpa.distributed import SpreadOptions, Workers, forecast_spread, spread
from gdpa.distributed import forecast as module


def write_grid(folder, side, n_labels=20):
    """Write a square grid with random weights and labels."""
    rng = np.random.default_rng(0)
    node = np.arange(side * side)
    right, down = node[node % side < side - 1], node[: side * (side - 1)]
    source, target = np.r_[right, down], np.r_[right + 1, down + side]
    weight = rng.uniform(0.5, 1.5, source.size)
    folder.mkdir(exist_ok=True)
    edges = pa.table({"source": source, "target": target, "weight": weight})
    pq.write_table(edges, folder / "edges.parquet", row_group_size=5000)
    labeled = rng.permutation(node)[:n_labels]
    labels = pa.table({"node": labeled, "label": np.arange(n_labels) % 2})
    pq.write_table(labels, folder / "labels.parquet")
    return str(folder / "edges.parquet"), str(folder / "labels.parquet")


@pytest.mark.parametrize("seed", range(6))
def test_a_small_graph_is_solved_whole(tmp_path, seed):
    """Text and integer identifiers, several classes, repeated edges, self-loops, islands."""
    network = without_unused(random_network(seed, decades=(1,)))
    edges, labels = write(network, tmp_path)
    found = forecast_spread(edges, labels, workers=HERE)
    result = spread(edges, labels, out=tmp_path / "out", workers=HERE)
    assert found.whole
    assert found.steps == result.steps
    assert found.nodes == pytest.approx(result.nodes, rel=0.05, abs=1)
    assert found.edges == network.source.size
    assert found.parts == result.parts
    assert found.moved_bytes == result.bytes_moved == 0


def test_a_piece_predicts_the_steps_of_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE_NODES", 2000)
    edges, labels = write_grid(tmp_path, 120)
    workers = Workers(scheduler="synchronous", n_workers=3)
    options = SpreadOptions(n_parts=3)
    found = forecast_spread(edges, labels, options=options, workers=workers)
    largest = []

    def watch(_):
        work = tmp_path / "work"
        largest.append(sum(f.stat().st_size for f in work.rglob("*") if f.is_file()))

    result = spread(
        edges, labels, out=tmp_path / "out", work=tmp_path / "work", options=options,
        workers=workers, callback=watch,
    )  # fmt: skip
    assert not found.whole
    assert found.nodes == pytest.approx(result.nodes, rel=0.01)
    assert 0.5 < found.steps / result.steps < 2
    assert 0.5 < found.moved_bytes / result.bytes_moved < 2
    assert 0.5 < found.disk_bytes / max(largest) < 2
    assert found.total_seconds == pytest.approx(sum(found.seconds.values()))


def test_classes_beyond_one_batch_are_solved_in_several(tmp_path):
    edges, _ = write_grid(tmp_path, 30)
    labels = tmp_path / "many.parquet"
    pq.write_table(pa.table({"node": np.arange(200), "label": np.arange(200) % 20}), labels)
    found = forecast_spread(edges, str(labels), workers=HERE)
    result = spread(edges, str(labels), out=tmp_path / "out", workers=HERE)
    assert found.steps == result.steps
    assert found.seconds["solve"] > 0


def test_memory_grows_with_the_graph_and_shrinks_with_parts_and_workers():
    about = {
        "n_entries": 10**8, "n_nodes": 10**7, "n_halo": 10**6, "n_parts": 8, "n_groups": 2,
        "n_columns": 2,
    }  # fmt: skip
    size = module.worker_bytes(**about)
    for name in ("n_entries", "n_nodes", "n_columns"):
        assert module.worker_bytes(**about | {name: 4 * about[name]}) > size
    assert module.worker_bytes(**about | {"n_parts": 16, "n_groups": 4}) < size


def test_the_command_prints_the_estimate_and_starts_nothing(tmp_path, capsys):
    edges, labels = write_grid(tmp_path, 20)
    before = sorted(tmp_path.rglob("*"))
    arguments = ["distributed", "plan", edges, "--labels", labels, "--workers", "2"]
    assert main([*arguments, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["workers"] == 2
    assert said["total_seconds"] > 0
    assert said["worker_bytes"] > 0
    assert main(arguments) == 0
    text = capsys.readouterr().err
    assert "time: about" in text
    assert "memory: about" in text
    assert "disk: about" in text
    assert sorted(tmp_path.rglob("*")) == before
