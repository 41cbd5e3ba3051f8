"""Size limits that choose between algorithms.

One frozen dataclass is passed from the estimator down to the linear algebra, so that a test can run
the algorithms for a million points on a hundred. Limits of a single model are in its own module.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Size limits of a fit.

    Parameters
    ----------
    tree_features : int
        Maximum number of features for which a KD-tree is faster than exhaustive search (5,000 to
        50,000 points, clustered and not).
    brute_points, tree_points : int
        Maximum number of points for which exact search is the default, by exhaustive search and by
        KD-tree; it takes a few seconds at most.
    low_features : int
        Maximum number of features for which a KD-tree is the fastest at any size.
    scanned_points : int
        Maximum number of points to compare with a query of an approximate search with more than
        `tree_features` features. The remaining neighbours are hardly nearer than other points.
        On 70,000 MNIST images 1,000 / 3,000 / 10,000 give a recall of 0.80 / 0.96 / 0.99 in 6 / 10
        / 13 CPU seconds, and 10.2 / 6.7 / 6.1 % errors with five labels per class (two draws).
    auto_nodes : int
        Maximum number of nodes for which ``n_neighbors="auto"`` compares three graphs. For more,
        the search takes longer than the choice is worth (Gaussian mixtures, 5,000 to 100,000
        points).
    small_nodes : int
        Maximum number of nodes for which every setting is tried on every graph. For more, the
        other graphs are compared at the best setting of the first.
    large_nodes : int
        Larger graphs use three folds instead of five, and three candidate self-loops.
    huge_nodes : int
        Larger graphs with at least `screened_labels` labels hold out one fold only.
    fewest_labels : int
        Minimum number of labels, in classes with at least two, for cross-validation.
    screened_labels : int
        Number of labels from which one held-out third of them chooses the self-loop.
    most_labels, most_unknowns : int
        Maximum number of labels, and of labels times nodes, for leave-one-out in closed form, which
        needs one column per label.
    single_block : int
        Number of labels times nodes from which the closed form runs in single precision, with an
        error of about 1e-7 and in a third of the time (2,000 nodes, 100 labels).
    calibration_labels : int
        Minimum number of held-out labels to calibrate probabilities by their log-loss.
    dense_below : int
        Systems with fewer unknowns are solved by a dense Cholesky factorisation.
    full_least, full_most : int
        Range of the number of nodes in which graphs with a fourth of all possible edges may be
        factorised; the factor needs as much memory as the graph.
    factor_products, factor_nodes : int
        Cost of a factorisation in products with the graph: `factor_products`, plus one per
        `factor_nodes` nodes.
    slow_rows, jacobi_steps : int
        Minimum number of rows, and of iterations with the Jacobi preconditioner, for which a
        two-level preconditioner is used (neighbour graphs of 2,000 to 10,000 nodes in 2 and 8
        dimensions).
    order_rows : int
        Smaller graphs are not reordered, because their vectors fit in the cache.
    single_rows : int
        Number of rows from which iterations run in single precision, refined in double precision.
    thread_nnz : int
        Products with fewer stored entries use one thread.
    forest_trees : int
        Number of trees of the forest of the ensemble; half of them if members are evaluated on a
        sample.
    forest_labels : int
        Maximum number of labels to fit trees on, which takes most of the time of a fit with many.
    judged_nodes, judged_labels : int
        With more nodes, the members of the ensemble are evaluated on a sample with this number of
        labels.
    exact_leaves : int
        Maximum number of nodes for which the leaves of all pairs are compared; larger forests are
        embedded.
    """

    tree_features: int = 10
    brute_points: int = 20_000
    tree_points: int = 50_000
    low_features: int = 5
    scanned_points: int = 3_000
    auto_nodes: int = 5_000
    small_nodes: int = 1_000
    large_nodes: int = 10_000
    huge_nodes: int = 50_000
    fewest_labels: int = 8
    screened_labels: int = 1_000
    most_labels: int = 500
    most_unknowns: int = 250_000
    single_block: int = 50_000
    calibration_labels: int = 20
    dense_below: int = 500
    full_least: int = 500
    full_most: int = 5_000
    factor_products: int = 12
    factor_nodes: int = 400
    slow_rows: int = 2_500
    jacobi_steps: int = 100
    order_rows: int = 400_000
    single_rows: int = 50_000
    thread_nnz: int = 1_000_000
    forest_trees: int = 200
    forest_labels: int = 10_000
    judged_nodes: int = 5_000
    judged_labels: int = 2_000
    exact_leaves: int = 5_000


DEFAULT_POLICY = Policy()
