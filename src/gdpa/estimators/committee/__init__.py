"""The committee: unlike members, judged by labels that they have not seen, vote."""

from .committee import Committee, Judgement
from .fitting import KINDS, change_labels, fit_committee, votes
from .storage import pack_state, unpack_state

__all__ = [
    "KINDS",
    "Committee",
    "Judgement",
    "change_labels",
    "fit_committee",
    "pack_state",
    "unpack_state",
    "votes",
]
