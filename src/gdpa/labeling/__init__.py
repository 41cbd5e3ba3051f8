"""Labelling: the session (no HTTP), the server, the page."""

from .accuracy import Estimate
from .session import LabelingSession

__all__ = ["Estimate", "LabelingSession"]
