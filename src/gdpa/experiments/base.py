"""What an experiment is: rows to compute, how one is computed, and what is shown of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from .config import Config
from .store import Row, Task
from .tables import Table

__all__ = ["Experiment", "Findings", "Started", "finished_rows"]

# Called when data are loaded and the method starts: a time limit counts from there.
Started = Callable[[], None]


@dataclass(frozen=True)
class Findings:
    """Sentences about the rows at hand.

    Parameters
    ----------
    holds : tuple of str
        What of the paper holds.
    fails : tuple of str
        What does not.
    """

    holds: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()


def finished_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that have a result."""
    return [row for row in rows if row.status == "ok"]


class Experiment(ABC):
    """One part of the reproduction; subclasses say what it is."""

    name: ClassVar[str]
    summary: ClassVar[str]
    # Methods that it can run; empty where there is no choice.
    methods: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def tasks(self, config: Config) -> list[Task]:
        """List the rows to compute.

        Parameters
        ----------
        config : Config
            The extent.

        Returns
        -------
        list of Task
            The rows.
        """

    @abstractmethod
    def compute(self, params: Mapping[str, Any], started: Started) -> dict[str, Any]:
        """Compute one row.

        Parameters
        ----------
        params : mapping
            Of the task.
        started : callable
            To be called when the method starts.

        Returns
        -------
        dict
            Finite numbers, booleans and strings.
        """

    @abstractmethod
    def tables(self, rows: Sequence[Row], config: Config) -> list[Table]:
        """Set our numbers beside the paper's.

        Parameters
        ----------
        rows : sequence of Row
            Computed rows.
        config : Config
            The extent.

        Returns
        -------
        list of Table
            The tables; none where there is nothing to show.
        """

    def figure(self, rows: Sequence[Row]) -> dict[str, Any] | None:
        """Gather what :mod:`gdpa.plotting.figures` draws under the experiment's name.

        Parameters
        ----------
        rows : sequence of Row
            Computed rows.

        Returns
        -------
        dict or None
            The data; None where the experiment has no figure.
        """
        return None

    def findings(self, rows: Sequence[Row]) -> Findings:
        """Say what holds and what does not.

        Parameters
        ----------
        rows : sequence of Row
            Computed rows.

        Returns
        -------
        Findings
            Sentences; none about what is not there.
        """
        return Findings()
