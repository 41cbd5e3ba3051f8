"""The paper's 17 data sets and cod-rna by name, downloaded from their public homes."""

from .cache import DataFileError, cached_file, data_home
from .catalogue import SHIPPED, Card, card, list_datasets
from .download import DownloadError
from .loader import Dataset, fetch, load

__all__ = [
    "SHIPPED",
    "Card",
    "DataFileError",
    "Dataset",
    "DownloadError",
    "cached_file",
    "card",
    "data_home",
    "fetch",
    "list_datasets",
    "load",
]
