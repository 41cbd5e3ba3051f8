"""Size limits that choose between algorithms.

One frozen record is passed down from the estimator to the linear algebra, so that a test can take
the way of a million points with a hundred. Limits of a single model stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Size limits of a fit.

    Parameters
    ----------
    tree_features : int
        Up to so many features the KD-tree beats products of whole blocks (5,000 to 50,000 points,
        clustered and not; at 12 features it takes 0.7 to 4 times their time, at 16 2 to 12 times).
    brute_points, tree_points : int
        Up to so many points exact search takes a few seconds at most, and is preferred: by products
        of whole blocks, and by KD-tree.
    low_features : int
        Up to so many features the tree is the fastest at any size.
    scanned_points : int
        With more than `tree_features` features the search for the last neighbours may visit half of
        the points, and what it finds is hardly nearer than others: by default so many are compared.
    auto_nodes : int
        Up to so many nodes ``n_neighbors="auto"`` compares three graphs; beyond, the search for 20
        neighbours costs more than the choice gains (Gaussian mixtures, 5,000 to 100,000 points).
    small_nodes : int
        Up to so many nodes every setting is tried on every graph; beyond, the other graphs are
        compared at the setting that the first one chose.
    large_nodes : int
        Above so many nodes folds are three in place of five, and three self-loops are tried.
    huge_nodes : int
        Above so many nodes, with `screened_labels`, one fold is all that is left out: its loss is
        certain to a few thousandths there.
    fewest_labels : int
        Labels in classes of two or more below which nothing can be learnt by leaving them out.
    screened_labels : int
        From so many labels on a third of them chooses the self-loop.
    most_labels, most_unknowns : int
        Leave-one-out in closed form up to so many labels, and labels times nodes: its block has one
        column per label.
    single_block : int
        From so many labels times nodes on that closed form is run in single precision, which
        leaves it right to some 1e-7; products and projections take a third of the time (2,000
        nodes, 100 labels).
    calibration_labels : int
        Labels that must have been left out before their log-loss sets the sharpness.
    dense_below : int
        Systems with fewer unknowns are factorised: a dense Cholesky takes less than the set-up of
        an iteration.
    full_least, full_most : int
        Graphs with a fourth of all possible edges and so many nodes may be factorised: the factor
        takes the memory of the graph.
    factor_products, factor_nodes : int
        A factorisation costs so many products with the graph, and one more per so many nodes.
    slow_rows, jacobi_steps : int
        From so many rows on a coarse system pays if Jacobi takes more steps than this (neighbour
        graphs of 2,000 nodes, where it is even, to 10,000, in 2 and 8 dimensions).
    order_rows : int
        Vectors of fewer rows stay in the cache, in any order of the nodes.
    single_rows : int
        From so many rows on iterations run in single precision, refined in double.
    thread_nnz : int
        Below so many stored entries starting threads costs more than it saves.
    forest_trees : int
        Trees of the forest behind the committee: 40 for each of five folds err as little as 100.
        Half of them where members are judged on a sample.
    forest_labels : int
        Labels that trees are grown on at most; growing is the dearest part of a fit with many.
    judged_nodes, judged_labels : int
        Of more nodes the committee's members are judged on a sample with so many labels: the
        losses are certain to a few hundredths there, and the sample costs no more than the search.
    exact_leaves : int
        Up to so many nodes all pairs are compared leaf by leaf; beyond, leaves become points.
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
