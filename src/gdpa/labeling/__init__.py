"""Labelling: the session (no HTTP), the server, the page."""

from .session import LabelingSession
from .session_model import Estimate

__all__ = ["Estimate", "LabelingSession"]
