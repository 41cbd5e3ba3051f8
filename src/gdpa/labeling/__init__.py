"""Labelling: the session (without HTTP), the server and the page."""

from .accuracy import Estimate
from .session import LabelingSession

__all__ = ["Estimate", "LabelingSession"]
