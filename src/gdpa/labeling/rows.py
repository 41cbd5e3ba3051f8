"""Display rows: cells sorted by importance, a text, an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..tables import Column

MOST_CELLS = 60


class Images(Protocol):
    """One image per row."""

    def get(self, row: int) -> tuple[bytes, str]:
        """Return the content and media type of the image of a row."""

    def name(self, row: int) -> str:
        """Return the name of the image file of a row."""


@dataclass(frozen=True)
class RowView:
    """The rows of a table for display to annotators.

    Parameters
    ----------
    names : sequence of str
        Names of the displayed columns.
    columns : sequence of Column
        Cells of the displayed columns.
    text : Column, optional
        Text to display in full.
    images : Images, optional
        Images to display.
    ids : sequence of str, optional
        Names of the rows; by default, numbers from 1.
    note : str
        Message about the images.
    """

    names: Sequence[str] = ()
    columns: Sequence[Column] = ()
    text: Column | None = None
    images: Images | None = None
    ids: Sequence[str] | None = None
    note: str = ""

    def name(self, row: int) -> str:
        """Return the name of a row."""
        return f"row {row + 1}" if self.ids is None else _short(self.ids[row], 80)

    def describe(self, row: int, order: Sequence[int] | None = None) -> dict[str, Any]:
        """Return a row for display.

        Parameters
        ----------
        row : int
            The row.
        order : sequence of int, optional
            Order of the columns, most important first.

        Returns
        -------
        dict
            ``row``, ``name``, ``cells`` (names and values), ``text``, ``picture`` (whether there is
            an image), ``note`` and ``more`` (number of hidden columns).
        """
        places = list(range(len(self.names))) if order is None else list(order)
        shown = [
            {"name": _short(self.names[j], 80), "value": _short(self.columns[j].cell(row), 400)}
            for j in places[:MOST_CELLS]
        ]
        return {
            "row": row,
            "name": self.name(row),
            "cells": shown,
            "more": max(0, len(places) - MOST_CELLS),
            "text": None if self.text is None else _short(self.text.cell(row), 50_000),
            "picture": self.images is not None,
            "note": self.note,
        }

    def summary(self, row: int) -> str:
        """Return a short description of a row, for lists."""
        if self.text is not None:
            return _short(self.text.cell(row), 60)
        if self.images is not None or not self.columns:
            return ""
        return _short(", ".join(c.cell(row) for c in self.columns[:3]), 60)


def _short(text: str, most: int) -> str:
    """Truncate a text and state its length."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … ({len(text):,} characters)"
