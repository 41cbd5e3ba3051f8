"""Labelling: the session (no HTTP), the server, the page."""

from .estimate import Estimate
from .session import LabelingSession

__all__ = ["Estimate", "LabelingSession"]
