"""The benchmark of links: networks are what they say, and the page follows the numbers."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return {
        name: importlib.import_module(f"benchmarks.{name}")
        for name in ("links", "link_data", "link_page")
    }


def test_generated_networks_are_like_the_real_ones(bench):
    data = bench["link_data"]
    X, W, truth = data.citation_like("like Citeseer", 0)
    assert X.shape == (3_327, 3_703)
    assert set(np.unique(X.data)) == {1.0}
    assert 25 < X.nnz / X.shape[0] < 40
    assert (W != W.T).nnz == 0
    assert 2.3 < W.nnz / W.shape[0] < 3.1
    assert (np.diff(W.indptr) == 0).sum() > 40
    rows = np.repeat(np.arange(truth.size), np.diff(W.indptr))
    assert 0.6 < (truth[rows] == truth[W.indices]).mean() < 0.85
    train, test = data.random_split(truth, 1)
    assert np.bincount(truth[train]).tolist() == [20] * 6
    assert np.intersect1d(train, test).size == 0


def test_the_results_say_no_where_a_claim_fails(bench):
    page, links = bench["link_page"], bench["links"]
    results = {"cora": {}, "size": {}}
    for arguments in links.plan("cora", 0):
        value = 83.0 if arguments["split"] == "public" else 81.0
        cell = {"accuracy": value, "cpu": 2.0, "graph share": 0.9}
        results["cora"][json.dumps(arguments, sort_keys=True)] = cell
    for arguments in links.plan("size", 1000):
        cell = {"accuracy": 90.0, "peak GB": 1.0, "data GB": 0.5, "edges": 5}
        cell["cpu"] = 10.0 if arguments["how"] == "graph alone" else 25.0
        results["size"][json.dumps(arguments, sort_keys=True)] = cell
    text = page.page(results)
    assert "| public split, % | 83.00 | at least 82.5 | yes |" in text
    assert "| mean of the random splits, % | 81.00 | at least 81.5 | **no** |" in text
    assert "| 10 classes: times the CPU time of the graph alone | 2.50 | at most 3 | yes |" in text
    for name, (value, source) in page.PUBLISHED.items():
        assert f"{name}, published ({source}) | {value}" in text
