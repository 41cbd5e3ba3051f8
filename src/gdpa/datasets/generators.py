"""Generators of test problems: moons, clusters, linked classes, restoration of a signal.

The restoration problem of the paper's Table 1 is to maximise ``x' P x`` with

    P = [1  c'; c  W],

where W is the unweighted line graph (1-hop or 2-hop) and c is the signal ``[1..1, -1..-1]`` plus
white noise of standard deviation sigma.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from ..checks import check_positive
from ..problem import BinaryQuadratic, GraphProblem

SignArray = NDArray[np.int8]


def _level(name: str, value: float) -> float:
    if not np.isfinite(value) or value < 0:
        raise ValueError(f"{name}={value!r} must be a finite number, at least 0")
    return float(value)


def moons(
    n_samples: int = 300, *, noise: float = 0.1, random_state: int | None = None
) -> tuple[NDArray[np.float64], SignArray]:
    """Generate two interleaved half circles.

    Parameters
    ----------
    n_samples : int, default=300
        Number of points; the classes differ by at most one point.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise.
    random_state : int, optional
        Random seed.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, in random order.
    y : ndarray of int8 of shape (n_samples,)
        Labels in {-1, +1}.

    Examples
    --------
    >>> from gdpa.datasets import moons
    >>> X, y = moons(100, random_state=0)
    >>> X.shape, int(y.sum())
    ((100, 2), 0)
    """
    n = check_positive(n_samples, "n_samples", 2)
    noise = _level("noise", noise)
    rng = np.random.default_rng(random_state)
    upper = n - n // 2
    angle = np.pi * np.concatenate([np.linspace(0, 1, upper), np.linspace(0, 1, n // 2)])
    y = np.repeat(np.array([1, -1], dtype=np.int8), [upper, n // 2])
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[y < 0] = np.array([1.0, 0.5]) - X[y < 0]
    X += noise * rng.standard_normal(X.shape)
    order = rng.permutation(n)
    return X[order], y[order]


def make_moons_graph(
    n_samples: int = 300,
    *,
    n_labeled: int = 10,
    n_neighbors: int = 10,
    noise: float = 0.1,
    laplacian: str = "combinatorial",
    random_state: int | None = None,
) -> tuple[GraphProblem, SignArray]:
    """Generate a classification problem on the neighbour graph of two moons.

    Parameters
    ----------
    n_samples : int, default=300
        Number of nodes.
    n_labeled : int, default=10
        Number of known labels, half of them of each class.
    n_neighbors : int, default=10
        Number of neighbours; two points have an edge of weight 1 if either is a neighbour of the
        other.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise.
    laplacian : {"combinatorial", "normalized"}, default="combinatorial"
        Laplacian of the problem.
    random_state : int, optional
        Random seed.

    Returns
    -------
    problem : GraphProblem
        The graph with the known labels.
    y : ndarray of int8
        All true labels.
    """
    from sklearn.neighbors import kneighbors_graph

    X, y = moons(n_samples, noise=noise, random_state=random_state)
    smaller = min(int((y > 0).sum()), int((y < 0).sum()))
    if not 2 <= check_positive(n_labeled, "n_labeled", 2) <= 2 * smaller:
        raise ValueError(f"n_labeled={n_labeled} must be from 2 to {2 * smaller}")
    if check_positive(n_neighbors, "n_neighbors", 1) >= n_samples:
        raise ValueError(f"n_neighbors={n_neighbors} must be from 1 to {n_samples - 1}")
    nearest = sp.csr_array(kneighbors_graph(X, n_neighbors))
    W = nearest.maximum(nearest.T)
    labels = np.zeros_like(y)
    for sign, count in ((1, n_labeled - n_labeled // 2), (-1, n_labeled // 2)):
        # The points are in random order, so the first of a class are a random sample.
        labels[np.flatnonzero(y == sign)[:count]] = sign
    return GraphProblem(W, labels, laplacian=laplacian), y


def gaussian_clusters(
    n_samples: int,
    *,
    n_features: int = 8,
    n_clusters: int = 20,
    n_classes: int = 2,
    separation: float = 1.5,
    dtype: DTypeLike = np.float64,
    random_state: int | None = None,
) -> tuple[NDArray[Any], NDArray[np.integer[Any]]]:
    """Generate Gaussian clusters of unit variance, several per class.

    Parameters
    ----------
    n_samples : int
        Number of points; cluster sizes differ by at most one.
    n_features : int, default=8
        Dimension.
    n_clusters : int, default=20
        Number of clusters; cluster k belongs to class ``k mod n_classes``.
    n_classes : int, default=2
        Number of classes.
    separation : float, default=1.5
        Standard deviation of the centres in each direction.
    dtype : {float64, float32}, default=float64
        Type of the features. The points are drawn in this type, without a copy in float64.
    random_state : int, optional
        Random seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The points.
    y : ndarray of shape (n_samples,)
        -1 and +1 (int8) for two classes, else 0 to ``n_classes - 1`` (int32).

    Examples
    --------
    >>> import numpy as np
    >>> from gdpa.datasets import gaussian_clusters
    >>> X, y = gaussian_clusters(1000, dtype=np.float32, random_state=0)
    >>> X.shape, X.dtype, int(y.sum())
    ((1000, 8), dtype('float32'), 0)
    """
    n_classes = check_positive(n_classes, "n_classes", 2)
    n_clusters = check_positive(n_clusters, "n_clusters", n_classes)
    n = check_positive(n_samples, "n_samples", n_clusters)
    d = check_positive(n_features, "n_features", 1)
    separation = _level("separation", separation)
    real: Any = np.dtype(dtype)
    if real not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype!r} must be float32 or float64")
    rng = np.random.default_rng(random_state)
    centres = separation * rng.standard_normal((n_clusters, d))
    cluster = rng.permutation(np.arange(n, dtype=np.int32) % n_clusters)
    X: NDArray[Any] = rng.standard_normal((n, d), dtype=real)
    X += centres.astype(real)[cluster]
    label = cluster % n_classes
    if n_classes == 2:
        return X, np.where(label == 0, 1, -1).astype(np.int8)
    return X, label


def linked_classes(
    n_nodes: int,
    *,
    n_classes: int = 3,
    n_features: int = 16,
    degree: float = 6.0,
    homophily: float = 0.8,
    separation: float = 0.5,
    random_state: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64], sp.csr_array]:
    """Generate classes that both features and links reveal, to an adjustable degree.

    Parameters
    ----------
    n_nodes : int
        Number of nodes; class sizes differ by at most one.
    n_classes : int, default=3
        Number of classes.
    n_features : int, default=16
        Number of features: a centre for each class, plus Gaussian noise of variance 1.
    degree : float, default=6
        Mean number of links per node, including duplicates, which are merged.
    homophily : float, default=0.8
        Share of the links within a class. With ``1 / n_classes`` links carry no information, with 0
        they only join different classes.
    separation : float, default=0.5
        Standard deviation of the centres in each direction; 0 makes the features pure noise.
    random_state : int, optional
        Random seed.

    Returns
    -------
    X : ndarray of shape (n_nodes, n_features)
        Features.
    y : ndarray of int of shape (n_nodes,)
        Classes, 0 to ``n_classes - 1``.
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Links of weight 1.

    Examples
    --------
    >>> from gdpa.datasets import linked_classes
    >>> X, y, W = linked_classes(500, random_state=0)
    >>> X.shape, W.shape, sorted(set(y.tolist()))
    ((500, 16), (500, 500), [0, 1, 2])
    """
    k = check_positive(n_classes, "n_classes", 2)
    n = check_positive(n_nodes, "n_nodes", k)
    d = check_positive(n_features, "n_features", 1)
    if not 0.0 <= homophily <= 1.0:
        raise ValueError(f"homophily={homophily!r} must be from 0 to 1")
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n) % k)
    centres = _level("separation", separation) * rng.standard_normal((k, d))
    X = rng.standard_normal((n, d))
    X += centres[y]
    m = round(_level("degree", degree) * n / 2)
    first = rng.integers(0, n, m)
    other = (y[first] + rng.integers(1, k, m)) % k
    wanted = np.where(rng.random(m) < homophily, y[first], other)
    # Nodes sorted by class, so that a random member of a class is a random position in its range.
    order = np.argsort(y, kind="stable")
    sizes = np.bincount(y, minlength=k)
    starts = np.cumsum(sizes) - sizes
    second = order[starts[wanted] + rng.integers(0, sizes[wanted])]
    proper = first != second
    ends = first[proper], second[proper]
    W = sp.coo_array((np.ones(ends[0].size), ends), shape=(n, n)).tocsr()
    W = sp.csr_array(W + W.T)
    W.data[:] = 1.0
    W.sort_indices()
    return X, y, W


def restoration(
    n: int, *, hops: int = 1, sigma: float = 1.0, random_state: int | None = None
) -> tuple[BinaryQuadratic, SignArray]:
    """Generate the restoration of a noisy binary signal on a line (the paper's Table 1).

    Parameters
    ----------
    n : int
        Length N of the signal.
    hops : {1, 2}, default=1
        Each sample is joined to its neighbours at distance 1, or at distances 1 and 2.
    sigma : float, default=1
        Standard deviation of the noise.
    random_state : int, optional
        Random seed.

    Returns
    -------
    problem : BinaryQuadratic
        ``P = [1 c'; c W]``, N+1 variables; variable 0 is the anchor.
    signal : ndarray of int8 of shape (n,)
        The true signal: the first half +1, the second -1. It belongs to variables 1 to N.

    Examples
    --------
    >>> from gdpa.datasets import restoration
    >>> problem, signal = restoration(6, sigma=0.0)
    >>> problem.P.toarray()[0]
    array([ 1.,  1.,  1.,  1., -1., -1., -1.])
    """
    n = check_positive(n, "n", 2)
    if hops not in (1, 2):
        raise ValueError(f"hops={hops!r} must be 1 or 2")
    sigma = _level("sigma", sigma)
    rng = np.random.default_rng(random_state)
    half = (n + 1) // 2
    signal = np.repeat(np.array([1, -1], dtype=np.int8), [half, n - half])
    c = sp.csr_array((signal + sigma * rng.standard_normal(n))[:, None])
    offsets = [k for k in (1, 2)[:hops] if k < n]
    W = sp.diags_array(
        [np.ones(n - k) for k in offsets] * 2, offsets=[*offsets, *(-k for k in offsets)]
    )
    P = sp.block_array([[sp.csr_array([[1.0]]), c.T], [c, W]], format="csr")
    return BinaryQuadratic(P, anchor=0), signal
