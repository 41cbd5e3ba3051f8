"""What a fitted classifier shows of itself: columns, a card in notebooks, a report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..notebook import card
from ..tables.columns import ColumnList
from .attributes import Attributes

__all__ = ["Showing"]


class Showing(Attributes):
    """Views of a fitted classifier."""

    encoder_: Any
    state_: Any
    classes_: Any
    tuning_: Any
    graph_: Any
    n_neighbors_: Any

    @property
    def columns_(self) -> ColumnList:
        """What was made of each column of the data frame fitted on."""
        encoder = getattr(self, "encoder_", None)
        if encoder is None:
            raise AttributeError("columns_ is there after fit on a data frame, not on an array")
        columns: ColumnList = encoder.columns_
        return columns

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        *,
        title: str = "gdpa report",
        ids: Sequence[Any] | None = None,
        sure: float = 0.75,
    ) -> Path:
        """Write a page about the fitted classifier: one HTML file, no script, no network.

        Parameters
        ----------
        path : path-like
            Where to.
        X : DataFrame, optional
            The table that was fitted, for the cells of the rows to label next.
        title : str, default="gdpa report"
            Title of the page.
        ids : sequence, optional
            Names of the rows; numbers from 1 by default.
        sure : float, default=0.75
            Probability below which a prediction is called unsure.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import tempfile, pathlib, gdpa
        >>> X = {"size": [1.0, 1.2, 1.1, 5.0, 5.2, 5.1], "kind": ["a", "b"] * 3}
        >>> y = ["low", None, None, None, None, "high"]
        >>> model = gdpa.GDPAClassifier(unlabeled=None, n_neighbors=2).fit(X, y)
        >>> page = model.report(pathlib.Path(tempfile.mkdtemp()) / "out.html", X)
        >>> page.read_text()[:15]
        '<!DOCTYPE html>'
        """
        # The report stands to the right of the classifier; only this method looks there.
        from ..files import written_whole
        from ..report import gather, render
        from ..tables.table import is_frame

        state = self.state_
        encoder = getattr(self, "encoder_", None)
        names = None if ids is None else [str(name) for name in ids]
        for what, given in (("ids", names), ("X", X if is_frame(X) else None)):
            size = None if given is None else _length(given)
            if size is not None and size != state.n_nodes:
                raise ValueError(f"{what} has {size} rows, the classifier has {state.n_nodes}")
        data = gather(
            self,
            None,
            title=title,
            notes=() if encoder is None else encoder.notes_,
            table=X if is_frame(X) else None,
            columns=() if encoder is None else encoder.columns_,
            sure=sure,
            ids=names,
        )
        with written_whole(path) as staged:
            staged.write_text(render(data), encoding="utf-8")
        return Path(path)

    def _card(self) -> str:
        state = self.state_
        known = int(state.coding.labeled.size)
        counts = np.bincount(state.labels, minlength=self.classes_.size)
        listed = ", ".join(f"{c} {n:,}" for c, n in zip(self.classes_[:6], counts, strict=False))
        more = f" and {self.classes_.size - 6} more" if self.classes_.size > 6 else ""
        tuning = self.tuning_
        facts: list[tuple[str, Any]] = [
            ("samples", f"{state.n_nodes:,}, of which {known:,} labelled"),
            ("labels found", listed + more),
            ("graph", f"{self.graph_.nnz // 2:,} edges, {self.n_neighbors_} neighbours"),
            ("settings", f"chosen by {tuning.source}, {tuning.tried} tried"),
        ]
        if getattr(self, "encoder_", None) is not None:
            used = sum(plan.encoding is not None for plan in self.columns_)
            facts.append(("columns", f"{used} of {len(self.columns_)} in use; see columns_"))
        return card(f"{type(self).__name__} (fitted)", facts)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        if hasattr(self, "_state"):
            return {"text/plain": repr(self), "text/html": self._card()}
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return bundle

    def _repr_html_(self) -> str:
        if hasattr(self, "_state"):
            return self._card()
        return str(super()._repr_html_inner())  # type: ignore[misc]


def _length(given: Any) -> int:
    from ..tables.frames import table_of

    return len(given) if isinstance(given, list) else table_of(given).n_rows
