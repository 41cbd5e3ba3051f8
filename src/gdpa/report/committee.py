"""Who decides, and by which columns: the committee's part of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..estimators.probabilities import confidence_of
from .charts import bars
from .markup import escape, paragraph, percent, table

__all__ = ["CommitteeCard", "cautions", "committee_card", "committee_section"]

MOST_COLUMNS = 15

EXPLAINED = {
    "neighbours": "graph of nearest neighbours in the columns as they are",
    "importance": "graph of neighbours in columns weighted by their importance",
    "forest graph": "graph of rows that share leaves of the forest",
    "forest": "extremely randomised trees",
    "forest kernel": "kernel machine on shared leaves of the forest",
    "linear": "logistic regression",
    "self-trained": "logistic regression, also on rows that it is sure of",
    "kernel": "kernel machine",
    "gaussian": "Gaussian clouds, one per class",
    "whitened": "graph of neighbours in columns made uncorrelated",
    "links": "graph of the given links alone",
    "smoothed": "logistic regression on features smoothed along the links",
    "smoothed forest": "extremely randomised trees on features smoothed along the links",
    "links and features": "graph of the given links, with the smoothed model as evidence",
    "union": "graph of links and nearest neighbours together",
}


@dataclass(frozen=True)
class CommitteeCard:
    """Members and columns.

    Parameters
    ----------
    names : tuple of str
        The members, the heaviest first.
    weights : tuple of float
        Their shares of the vote.
    losses : tuple of float or None
        Log-loss of each on labels left out; None where none could be.
    loss : float or None
        Log-loss of all together.
    columns : tuple of str
        Columns of the data, the most important first.
    importances : tuple of float
        How much each decides in the forest.
    graph_share : float or None
        Mean part of the vote that a given graph has on rows without a label; None without one.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    losses: tuple[float, ...] | None
    loss: float | None
    columns: tuple[str, ...]
    importances: tuple[float, ...]
    graph_share: float | None = None


def committee_card(model: Any, columns: Any = ()) -> CommitteeCard | None:
    """Gather what the committee is.

    Parameters
    ----------
    model : CommitteeClassifier
        Fitted classifier.
    columns : sequence of ColumnPlan
        What the features were made of, where that is known.

    Returns
    -------
    CommitteeCard or None
        None for a single graph.
    """
    found = model.committee_
    if found is None:
        return None
    order = np.argsort(-found.weights, kind="stable")
    names, values = _by_column(model, columns)
    unknown = model.ensemble_.labels.codes < 0
    share = None
    if model.ensemble_.linked:
        share = float(model.graph_share_[unknown].mean()) if unknown.any() else 0.0
    top = np.argsort(-values, kind="stable")[:MOST_COLUMNS]
    return CommitteeCard(
        tuple(found.names[i] for i in order),
        tuple(float(found.weights[i]) for i in order),
        None if found.losses is None else tuple(float(found.losses[i]) for i in order),
        found.loss,
        tuple(names[i] for i in top),
        tuple(float(values[i]) for i in top),
        share,
    )


def _by_column(model: Any, columns: Any) -> tuple[list[str], Any]:
    """Importances of columns: the sum over the features that a column became."""
    values = getattr(model, "feature_importances_", np.zeros(0))
    plans = [plan for plan in columns if plan.n_features]
    if plans and sum(plan.n_features for plan in plans) == values.size:
        ends = np.cumsum([plan.n_features for plan in plans])
        sums = np.diff(np.concatenate([[0.0], np.cumsum(values)[ends - 1]]))
        return [plan.name for plan in plans], np.maximum(sums, 0.0)
    named = getattr(model, "feature_names_in_", None)
    if named is None:
        named = [f"column {j + 1}" for j in range(values.size)]
    return [str(name) for name in named], values


def cautions(model: Any) -> tuple[str, ...]:
    """What left-out labels say against the probabilities, in sentences."""
    found = confidence_of(model.ensemble_)
    if found is None:
        return ()
    return tuple(s[:1].upper() + s[1:] + "." for s in found.sentences())


def committee_section(card: CommitteeCard | None) -> str:
    """HTML of the section.

    Parameters
    ----------
    card : CommitteeCard or None
        What to show.

    Returns
    -------
    str
        HTML that is already safe.
    """
    if card is None:
        return paragraph(
            "One graph decides alone; a committee votes by default (CommitteeClassifier)."
        )
    losses = card.losses or (None,) * len(card.names)
    rows = [
        (name, EXPLAINED.get(name, "a model that was given"), percent(w), _loss(loss))
        for name, w, loss in zip(card.names, card.weights, losses, strict=True)
    ]
    text = paragraph(_words(card))
    if card.graph_share is not None:
        text += paragraph(
            f"The links carry {percent(card.graph_share)} of the answer: that part of the vote, on "
            "the mean of the rows without a label, is cast by members that know them."
        )
    html = text + table(
        ["member", "what it is", "share", "loss"],
        rows,
        caption="Members of the committee; the loss is the log-loss of labels left out",
        numeric=(2, 3),
        first_is_header=True,
    )
    if not card.columns or not any(card.importances):
        return html
    chart = bars(
        "importances",
        card.columns,
        card.importances,
        title="Which columns matter",
        axis="share of the decisions in the forest",
    )
    text = "How much each column decides in the forest that some of the members are made of."
    return f"{html}<figure>{chart}<figcaption>{escape(text)}</figcaption></figure>"


def _loss(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.3f}"


def _words(card: CommitteeCard) -> str:
    if card.losses is None:
        return (
            "Several unlike classifiers vote. There are too few labels to leave any out, so their "
            "shares are what did well elsewhere."
        )
    alone = min(card.losses)
    words = (
        "Several unlike classifiers vote. Each was judged by labels that had no part in it, and "
        "has the share that it earned."
    )
    if card.loss is not None:
        words += f" The best alone has a loss of {alone:.3f}, all together {card.loss:.3f}."
    return words
