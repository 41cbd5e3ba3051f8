"""The paper's data sets by name, and generators of test problems."""

from .cache import DataFileError, data_home
from .cards import Card
from .catalogue import card, list_datasets
from .citation import CitationNetwork, load_citation
from .download import DownloadError
from .generators import (
    gaussian_clusters,
    linked_classes,
    make_moons_graph,
    moons,
    restoration,
)
from .loader import Dataset, fetch, load

__all__ = [
    "Card",
    "CitationNetwork",
    "DataFileError",
    "Dataset",
    "DownloadError",
    "card",
    "data_home",
    "fetch",
    "gaussian_clusters",
    "linked_classes",
    "list_datasets",
    "load",
    "load_citation",
    "make_moons_graph",
    "moons",
    "restoration",
]
