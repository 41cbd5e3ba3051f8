"""Generators of test problems, and example files."""

from .example_files import example_files
from .generators import gaussian_clusters, linked_classes, make_moons_graph, moons, restoration

__all__ = [
    "example_files",
    "gaussian_clusters",
    "linked_classes",
    "make_moons_graph",
    "moons",
    "restoration",
]
