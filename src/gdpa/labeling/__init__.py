"""Labelling: the session (without HTTP), the server and the page."""

from .accuracy import Estimate
from .guarantee import Goal, checks_needed
from .proof import Statement
from .session import LabelingSession

__all__ = ["Estimate", "Goal", "LabelingSession", "Statement", "checks_needed"]
