"""The report: one HTML page about a fitted classifier, without script and without network."""

from .data import ReportData, gather
from .page import render

__all__ = ["ReportData", "gather", "render"]
