"""The report: one self-contained HTML page about a fitted classifier."""

from typing import TYPE_CHECKING

from ..lazy import load_on_use

if TYPE_CHECKING:
    from .data import ReportData, gather
    from .page import render

__all__ = ["ReportData", "gather", "render"]

# gdpa fit needs only the evaluation; load the rest when a report is written.
__getattr__ = load_on_use(__name__, data="ReportData gather", page="page render")
