"""Estimates are checked before work starts."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gdpa import GDPAClassifier, memory
from gdpa.graph import full_graph, neighbor_graph
from gdpa.graph.neighbors import NeighborIndex
from gdpa.memory import available_memory, check_memory


@pytest.fixture
def one_megabyte(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**6)
    monkeypatch.setattr(memory, "MIN_CHECKED_BYTES", 0)


def test_available_memory_is_a_plausible_number():
    assert 10**7 < available_memory() <= sys.maxsize


def test_the_least_of_system_and_container_counts(monkeypatch, tmp_path):
    meminfo, limit, usage = (tmp_path / name for name in ("meminfo", "limit", "usage"))
    meminfo.write_text("MemTotal: 99 kB\nMemAvailable:   5000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    monkeypatch.setattr(memory, "_CGROUPS", ((limit, usage),))
    assert available_memory() == 5000 * 1024
    limit.write_text("max\n")
    usage.write_text("1000\n")
    assert available_memory() == 5000 * 1024
    limit.write_text("4000\n")
    assert available_memory() == 3000
    usage.write_text("9000\n")
    assert available_memory() == 0


def test_an_unknown_limit_refuses_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_system_memory", lambda: None)
    monkeypatch.setattr(memory, "_process_memory", lambda: None)
    monkeypatch.setattr(memory, "_CGROUPS", ())
    assert available_memory() == sys.maxsize


def test_message_names_need_and_supply(one_megabyte):
    check_memory(8e5, "a thing", "shrink it")
    with pytest.raises(
        MemoryError, match=r"a thing needs about 0.002 GB, but only 0.001 GB.*shrink it"
    ):
        check_memory(2e6, "a thing", "shrink it")


def test_full_graph_is_refused_with_advice(one_megabyte):
    with pytest.raises(MemoryError, match=r"full graph of 1000 nodes.*neighbor_graph"):
        full_graph(np.zeros((1000, 1)))


def test_neighbor_graph_is_refused_before_the_search(one_megabyte, monkeypatch):
    monkeypatch.setattr(NeighborIndex, "neighbors", None)
    with pytest.raises(MemoryError, match=r"graph of 10000 nodes with 10 neighbours"):
        neighbor_graph(np.zeros((10_000, 2)), 10)


def test_search_structure_is_refused(one_megabyte):
    with pytest.raises(MemoryError, match=r"kd-tree search of 100000 points with 5 features"):
        NeighborIndex(np.zeros((100_000, 5)), algorithm="exact")


def test_answer_is_refused(one_megabyte):
    index = NeighborIndex(np.arange(3000.0)[:, None])
    with pytest.raises(MemoryError, match="2000 neighbours of 3000 points"):
        index.neighbors(2000)


def test_the_largest_run_of_the_paper_is_refused_as_a_full_graph(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 24 * 10**9)
    X = np.random.default_rng(0).normal(size=(24_432, 3))
    y = np.where(np.arange(24_432) < 100, np.arange(24_432) % 2, -1)
    for variant in ("repaired", "published"):
        with pytest.raises(MemoryError, match="full graph of 24432 nodes needs about"):
            GDPAClassifier(graph="full", variant=variant).fit(X, y)
