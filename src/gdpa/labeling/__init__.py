"""Labelling: the session (without HTTP), the server and the page."""

from .accuracy import Estimate
from .goal import Goal, checks_needed
from .session import LabelingSession
from .statement import Statement

__all__ = ["Estimate", "Goal", "LabelingSession", "Statement", "checks_needed"]
