r"""How sure are we: accuracy on the rows without a label, from rows that were asked at random.

A share of the questions is drawn evenly from all rows that are open at that moment. Neither the
model that they judge nor the choice of the other questions knows their answers, so each is an
honest trial of the present model; the interval is that of a share. The model that is used has
seen these labels as well, so it is rather better than the estimate says.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """Accuracy on the unlabelled rest.

    Parameters
    ----------
    accuracy : float
        Share of random checks that the model, without them, got right.
    low, high : float
        90 % interval.
    checks : int
        Random checks so far.
    right : int
        How many of them the model got right.
    changed : float or None
        Share of the rows whose prediction the latest labels changed; None before it can be told.
    settled : bool
        Whether more labels no longer help: the predictions have come to rest.
    """

    accuracy: float
    low: float
    high: float
    checks: int
    right: int
    changed: float | None = None
    settled: bool = False
