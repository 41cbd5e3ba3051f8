"""Spreading labels over edges in parts is the same solve as on one machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from parquet_parts import content, pa, pq
from scipy.sparse.csgraph import connected_components

from gdpa.distributed import SpreadOptions, Workers, spread
from gdpa.graph.adjacency import laplacian_parts
from gdpa.problem import ClassProblem
from gdpa.solvers.poisson import Poisson, positive_scores
from gdpa.system import LabeledSystem

HERE = Workers(scheduler="synchronous")


@dataclass
class Network:
    """Edges between nodes 0 to n - 1, their identifiers, and the labels of some."""

    n: int
    source: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    labeled: np.ndarray
    codes: np.ndarray
    ids: np.ndarray

    @property
    def n_classes(self):
        return int(self.codes.max()) + 1

    @property
    def W(self):
        ends = (np.r_[self.source, self.target], np.r_[self.target, self.source])
        W = sp.coo_array((np.r_[self.weight, self.weight], ends), shape=(self.n, self.n)).tocsr()
        W.setdiag(0)
        W.eliminate_zeros()
        return sp.csr_array(W)

    @property
    def reached(self):
        component = connected_components(self.W)[1]
        return np.isin(component, component[self.labeled])


def ends_of_edges(kind, n, rng):
    """Sources and targets of a kind of graph on about n nodes."""
    m = int(rng.integers(n // 2, 4 * n))
    if kind == "path":
        return np.arange(n - 1), np.arange(1, n)
    if kind == "grid":
        side = max(2, round(np.sqrt(n)))
        node = np.arange(side * side)
        right, down = node[node % side < side - 1], node[: side * (side - 1)]
        return np.r_[right, down], np.r_[right + 1, down + side]
    if kind == "tree":
        child = np.arange(1, n)
        return child, (rng.random(n - 1) * child).astype(int)
    if kind == "power law":
        return tuple((n * rng.random(m) ** 3).astype(int) for _ in range(2))
    if kind == "bipartite":
        half = n // 2
        return rng.integers(0, half, m), rng.integers(half, n, m)
    if kind == "cliques":
        base = 6 * rng.integers(0, max(n // 6, 1), m)
        return base + rng.integers(0, 6, m), base + rng.integers(0, 6, m)
    return rng.integers(0, n, m), rng.integers(0, n, m)


KINDS = ("random", "path", "grid", "tree", "power law", "bipartite", "cliques")


def random_network(seed, decades=(1, 3, 5)):
    """Islands, repeated edges in both directions, self-loops, hubs, weights over many decades."""
    rng = np.random.default_rng(seed)
    source, target = ends_of_edges(KINDS[seed % len(KINDS)], int(rng.integers(12, 200)), rng)
    n = int(max(source.max(), target.max())) + 1
    if rng.random() < 0.3:
        source[: source.size // 2] = 0
    if rng.random() < 0.5:  # repeated edges, some of them backwards
        again = rng.integers(0, source.size, source.size // 3)
        source, target = np.r_[source, target[again]], np.r_[target, source[again]]
    m = source.size
    weight = np.ones(m)
    if rng.random() < 0.6:
        width = rng.choice(decades)
        weight = 10.0 ** rng.uniform(-width, width, m)
    if rng.random() < 0.2:
        weight[::7] = 0.0
    n_classes = int(rng.integers(2, 5))
    labeled = np.sort(rng.permutation(n)[: max(n_classes, n // 8)])
    codes = np.arange(labeled.size) % n_classes
    ids = rng.permutation(10**6)[:n] - 500_000
    if seed % 2:
        ids = np.array([f"näme of {i * 7919}" + "x" * (i % 17) for i in range(n)])
    return Network(n, source, target, weight, labeled, codes, ids)


def without_unused(network):
    """Remove nodes that are in no edge and unlabelled."""
    used = np.unique(np.r_[network.source, network.target, network.labeled])
    ends = [np.searchsorted(used, part) for part in (network.source, network.target)]
    labeled = np.searchsorted(used, network.labeled)
    return Network(used.size, *ends, network.weight, labeled, network.codes, network.ids[used])


def write(network, folder):
    """Write a network as two edge files and one file of labels."""
    (folder / "edges").mkdir(parents=True)
    edges = pa.table(
        {
            "source": network.ids[network.source],
            "target": network.ids[network.target],
            "weight": network.weight,
        }
    )
    half = edges.num_rows // 2
    pq.write_table(edges.slice(0, half), folder / "edges" / "a.parquet", row_group_size=17)
    pq.write_table(edges.slice(half), folder / "edges" / "b.parquet")
    classes = [f"c{code}" for code in network.codes]
    labels = pa.table({"node": network.ids[network.labeled], "label": classes})
    pq.write_table(labels, folder / "labels.parquet")
    return str(folder / "edges"), str(folder / "labels.parquet")


def columns(result, network, name):
    """Values of all classes by node; 0 for nodes that are in no edge and unlabelled."""
    table = pa.concat_tables([pq.read_table(file) for file in result.files])
    place = {identifier: i for i, identifier in enumerate(network.ids.tolist())}
    rows = [place[identifier] for identifier in table.column("node").to_pylist()]
    assert len(set(rows)) == len(rows)
    values = np.zeros((network.n, network.n_classes))
    for c in range(network.n_classes):
        values[rows, c] = table.column(f"{name}_c{c}").fill_null(0.0).to_numpy()
    return values


def ordinary_scores(network, options):
    """The scores on one machine."""
    adjacency, diagonal = laplacian_parts(network.W, options.laplacian)
    system = LabeledSystem(
        adjacency,
        diagonal,
        network.labeled,
        np.eye(network.n_classes)[network.codes],
        label_weight=options.label_weight,
        self_loop=options.self_loop,
    )
    return np.where(network.reached[:, None], system.solve(tol=1e-13).x, 0.0)


def random_options(seed):
    rng = np.random.default_rng(seed + 10**6)
    return SpreadOptions(
        laplacian=str(rng.choice(["combinatorial", "normalized"])),
        self_loop=float(rng.choice([0.0, 0.0, 0.01, 0.5])),
        label_weight=float(rng.choice([np.inf, np.inf, 3.0])),
        n_parts=int(rng.integers(1, 6)),
        part_entries=int(rng.choice([100, 400, 10**6])),
        scores=True,
    )


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 30)) for seed in range(200)]
)
def test_scores_are_those_of_one_machine(tmp_path, seed):
    """Two hundred graphs of every kind, with any number of parts and of groups of parts."""
    network, options = random_network(seed), random_options(seed)
    edges, labels = write(network, tmp_path)
    workers = Workers(scheduler="synchronous", n_workers=1 + seed % 4)
    result = spread(edges, labels, out=tmp_path / "out", options=options, workers=workers)
    assert result.converged
    expected = ordinary_scores(network, options)
    # With the normalised Laplacian, scores grow with the root of the degree.
    largest = max(1.0, np.abs(expected).max())
    assert np.abs(columns(result, network, "score") - expected).max() < 1e-6 * largest
    W = network.W
    assert result.edges == W.nnz // 2
    assert result.loops == np.count_nonzero(network.source == network.target)
    used = np.unique(np.r_[network.source, network.target, network.labeled])
    assert result.nodes == used.size
    assert result.unreached == np.count_nonzero(~network.reached[used])


@pytest.mark.parametrize("seed", range(12))
def test_poisson_potentials_are_those_of_one_machine(tmp_path, seed):
    network = without_unused(random_network(seed, decades=(1, 3)))
    edges, labels = write(network, tmp_path)
    options = SpreadOptions(
        method="poisson", scores=True, class_probabilities=True, n_parts=1 + seed % 4,
        part_entries=400,
    )  # fmt: skip
    result = spread(edges, labels, out=tmp_path / "out", options=options, workers=HERE)
    assert result.converged
    W = network.W
    targets = np.eye(network.n_classes)[network.codes]
    problem = ClassProblem(W, "combinatorial", W, W.sum(axis=1), network.labeled, targets)
    u = Poisson(tol=1e-13).potential(problem, targets).x
    found = columns(result, network, "score")
    u[~network.reached] = 0.0
    assert np.abs(found - u).max() < 1e-6 * max(np.abs(u).max(), 1.0)
    expected = positive_scores(u)
    expected /= expected.sum(axis=1, keepdims=True)
    expected[~network.reached] = 0.0
    assert np.abs(columns(result, network, "probability") - expected).max() < 1e-6


@pytest.mark.slow
def test_the_same_bytes_on_repetition_and_with_other_workers(tmp_path):
    pytest.importorskip("distributed")
    network = random_network(8, decades=(1,))
    edges, labels = write(network, tmp_path)
    options = SpreadOptions(n_parts=5, part_entries=400, scores=True, self_loop=0.01)
    found = []
    for name, workers in (("a", HERE), ("b", HERE), ("c", Workers(n_workers=2))):
        spread(edges, labels, out=tmp_path / name, options=options, workers=workers)
        found.append(content(tmp_path / name))
    assert len(found[0]) >= 5
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_the_order_of_the_edges_does_not_matter(tmp_path):
    network = random_network(4)
    edges, labels = write(network, tmp_path / "a")
    options = SpreadOptions(n_parts=3, scores=True)
    spread(edges, labels, out=tmp_path / "out-a", options=options, workers=HERE)
    order = np.random.default_rng(0).permutation(network.source.size)
    network.source, network.target = network.target[order], network.source[order]
    network.weight = network.weight[order]
    edges, labels = write(network, tmp_path / "b")
    spread(edges, labels, out=tmp_path / "out-b", options=options, workers=HERE)
    assert content(tmp_path / "out-b") == content(tmp_path / "out-a")


@pytest.mark.slow
def test_a_dask_client_can_be_given(tmp_path):
    distributed = pytest.importorskip("distributed")
    network = random_network(2)
    edges, labels = write(network, tmp_path)
    with distributed.Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        result = spread(edges, labels, out=tmp_path / "out", workers=Workers(scheduler=client))
        assert client.status == "running"
    assert result.converged


def test_labels_come_out_with_the_type_they_had(tmp_path):
    network = Network(
        4, np.array([0, 1, 2]), np.array([1, 2, 3]), np.ones(3), np.array([0, 3]),
        np.array([0, 1]), np.arange(4),
    )  # fmt: skip
    edges, _ = write(network, tmp_path)
    labels = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"node": [0, 3], "label": [7, 9]}), labels)
    result = spread(edges, str(labels), out=tmp_path / "out", workers=HERE)
    table = pa.concat_tables([pq.read_table(file) for file in result.files])
    assert table.column("prediction").to_pylist() == [7, 7, 9, 9]
    assert np.allclose(table.column("probability").to_numpy(), [1, 2 / 3, 2 / 3, 1])
    assert table.column("labeled").to_pylist() == [True, False, False, True]
    assert result.predicted == {"7": 1, "9": 1}


def test_nodes_without_a_label_in_reach_have_no_prediction(tmp_path):
    network = Network(
        6, np.array([0, 2, 4]), np.array([1, 3, 5]), np.ones(3), np.array([0, 2]),
        np.array([0, 1]), np.array(list("abcdef")),
    )  # fmt: skip
    edges, labels = write(network, tmp_path)
    result = spread(edges, labels, out=tmp_path / "out", workers=HERE)
    table = pa.concat_tables([pq.read_table(file) for file in result.files])
    rows = table.select(["node", "prediction"]).to_pylist()
    answers = {row["node"]: row["prediction"] for row in rows}
    assert answers == {"a": "c0", "b": "c0", "c": "c1", "d": "c1", "e": None, "f": None}
    assert result.unreached == 2
    assert "2 nodes are not connected to any label" in " ".join(result.notes)


def test_self_loops_are_explained(tmp_path):
    network = Network(
        3, np.array([0, 1, 2, 2]), np.array([1, 2, 2, 2]), np.ones(4), np.array([0, 2]),
        np.array([0, 1]), np.arange(3),
    )  # fmt: skip
    edges, labels = write(network, tmp_path)
    result = spread(edges, labels, out=tmp_path / "out", workers=HERE)
    assert result.loops == 2
    assert "2 self-loops in the input were ignored" in result.notes[0]


def test_nodes_far_from_labels_get_the_shares_of_their_neighbours(tmp_path):
    """With a large self-loop scores on a long path vanish; the prediction does not."""
    n = 60
    network = Network(
        n, np.arange(n - 1), np.arange(1, n), np.ones(n - 1), np.array([0, 1]),
        np.array([1, 0]), np.arange(n),
    )  # fmt: skip
    edges, labels = write(network, tmp_path)
    options = SpreadOptions(self_loop=3.0, n_parts=3, scores=True)
    result = spread(edges, labels, out=tmp_path / "out", options=options, workers=HERE)
    table = pa.concat_tables([pq.read_table(file) for file in result.files])
    scores = columns(result, network, "score")
    assert scores[-1].sum() < 1e-12
    assert table.column("prediction").to_pylist()[1:] == ["c0"] * (n - 1)
    assert min(table.column("probability").to_pylist()[1:]) > 0.99
