"""The report: one HTML page about a fitted classifier, without script and without network."""

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .data import ReportData, gather
    from .page import render

__all__ = ["ReportData", "gather", "render"]

# Held-out labels are evaluated without a page: the page is loaded where one is written.
__getattr__ = load_on_use(
    __name__, {"ReportData": "data", "gather": "data", "render": "page", "page": "page"}
)
