"""The paper's data sets by name, and generators of test problems."""

from .cache import DataFileError, data_home
from .cards import Card
from .catalogue import card, list_datasets
from .download import DownloadError
from .loader import Dataset, fetch, load

__all__ = [
    "Card",
    "DataFileError",
    "Dataset",
    "DownloadError",
    "card",
    "data_home",
    "fetch",
    "list_datasets",
    "load",
]
