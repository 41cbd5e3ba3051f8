"""Generators of test problems."""

from .generators import gaussian_clusters, linked_classes, make_moons_graph, moons, restoration

__all__ = ["gaussian_clusters", "linked_classes", "make_moons_graph", "moons", "restoration"]
