"""The committee: unlike members, judged by labels that they have not seen, vote.

Each member's left-out log-loss decides its weight,

    w ~ exp(-sqrt(m) (loss - least loss)),   m labels left out,

so that a member is thrown out by nothing less than the noise of the loss, and with more labels the
better ones carry more. Each member is sharpened by its own left-out labels first; the weighted mean
is the answer. Evidence of the user's models is judged in the same way and keeps at most the share
of the vote with which the left-out labels are predicted no worse than without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..options import FitOptions
from .member import LinkedMember, Member, Trial, judged_labels, log_loss, sharpened

__all__ = ["OWN", "Committee", "Judgement", "judge"]

FloatArray = NDArray[np.float64]

# The member that is the state's own graph.
OWN = "neighbours"
# Weights and sharpness where no label can be left out. With one label a class the neighbours alone
# are best on digits (88.6 %) and no better than the others on tables; so weighted the committee
# loses 0.7 points on digits and has the least error of all on tables (2 points below the
# neighbours). Scores of a graph fade with the distance to a label: their shares want sharpening.
PRIOR_WEIGHTS = {OWN: 4.0, "links": 4.0, "links and features": 8.0}
PRIOR_SHARPNESS = {OWN: 4.0, "importance": 4.0, "forest graph": 4.0}
# A member below this weight could turn no vote.
LEAST_WEIGHT = 0.01
# What the forest's members are judged too badly by: by a fifth of their trees. On real tables,
# the paper's sets and generated ones their log-loss on rows never labelled is lower than on labels
# left out by 0.03 to 0.06 more than that of the other members. With any one of 16 tables left out
# the other fifteen choose this allowance over none, and weights as soft as they are, not half or
# twice so.
HANDICAP = 0.05
HANDICAPPED = ("forest", "forest graph", "forest kernel")
# Log-loss that is not worth another graph where there are many nodes: a fifth of a percent of the
# rows or less go wrong without it.
LEAST_GAIN = 0.003
SHARES_OF_EVIDENCE = (1.0, 0.5, 0.25, 0.125, 0.0)


@dataclass(frozen=True)
class Judgement:
    """What the left-out labels say about the members.

    Parameters
    ----------
    names : tuple of str
        The members.
    weights : ndarray of shape (n_members,)
        Their weights; they add up to 1.
    losses : ndarray of shape (n_members,) or None
        Left-out log-losses; None where no label could be left out.
    sharpness : ndarray of shape (n_members,)
        Exponent of each member's shares.
    loss : float or None
        Log-loss of the whole committee.
    without_evidence : float or None
        The same without the user's models, where there are any.
    """

    names: tuple[str, ...]
    weights: FloatArray
    losses: FloatArray | None
    sharpness: FloatArray
    loss: float | None = None
    without_evidence: float | None = None

    def mix(
        self,
        shares: Sequence[FloatArray | None],
        silent: Mapping[str, NDArray[Any]] | None = None,
    ) -> FloatArray:
        """Weighted mean of the members' sharpened shares.

        None stands for a member that is not asked; `silent` are rows that a member, by its name,
        has no word on. The weights of the others are raised to add up to 1.
        """
        total: Any = 0.0
        heard: Any = 0.0
        plain: Any = 0.0
        for name, weight, s, beta in zip(
            self.names, self.weights, shares, self.sharpness, strict=True
        ):
            if weight > 0 and s is not None:
                w: Any = weight
                if silent and name in silent and silent[name].size:
                    w = np.full((s.shape[0], 1), weight)
                    w[silent[name]] = 0.0
                said = sharpened(s, beta)
                total = total + w * said
                heard = heard + w
                plain = plain + weight * said
        if np.ndim(heard) and (heard == 0).any():  # nobody has a word: what they fall back to
            total = np.where(heard > 0, total, plain)
            heard = np.where(heard > 0, heard, plain.sum(axis=1, keepdims=True))
        return np.asarray(total / heard)


@dataclass(frozen=True)
class Committee:
    """Members and their weights.

    Parameters
    ----------
    judgement : Judgement
        Weights and sharpness of all that were judged.
    members : tuple of Member
        Those that carry weight, but for the state's own graph.
    importances : ndarray of shape (n_features,) or None
        How much each column decides in the forest.
    width : int or None
        How many features the members take.
    """

    judgement: Judgement
    members: tuple[Member, ...]
    importances: FloatArray | None = None
    width: int | None = None

    @property
    def graph_name(self) -> str:
        """The member that is the state's own graph."""
        return self.judgement.names[0]

    def _mixed(
        self,
        graph_shares: FloatArray | None,
        others: Mapping[str, FloatArray | None],
        silent: Mapping[str, NDArray[Any]] | None = None,
    ) -> FloatArray:
        found = {self.graph_name: graph_shares, **others}
        return self.judgement.mix([found.get(name) for name in self.judgement.names], silent)

    def vote(self, shares: FloatArray, unreached: NDArray[np.intp]) -> FloatArray:
        """Shares of all nodes, from those of the state's own graph.

        Parameters
        ----------
        shares : ndarray of shape (n_nodes, n_classes)
            What that graph says.
        unreached : ndarray of int
            Nodes on which it has no word.

        Returns
        -------
        ndarray of shape (n_nodes, n_classes)
            What all of them say.
        """
        silent = {m.name: m.state.unreached for m in self.members if hasattr(m, "state")}
        silent[self.graph_name] = unreached
        return self._mixed(shares, {m.name: m.shares for m in self.members}, silent)

    def vote_rows(
        self, X: Any, shares: FloatArray | None, links: sp.csr_array | None = None
    ) -> FloatArray:
        """Shares of new rows.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_rows, n_features)
            Their features, re-scaled as the estimator was asked to; None where there are only
            links.
        shares : ndarray of shape (n_rows, n_classes) or None
            What the state's own graph says about them.
        links : csr_array of shape (n_rows, n_nodes), optional
            Their links in a given graph.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            What all members say.
        """
        said = self.said(X, links)
        silent = None
        if links is not None:
            silent = {self.graph_name: np.flatnonzero(np.diff(links.indptr) == 0)}
        weights = dict(zip(self.judgement.names, self.judgement.weights, strict=True))
        if shares is not None and not any(
            weights[name] > 0
            for name, s in {self.graph_name: shares, **said}.items()
            if s is not None
        ):
            return shares  # only features carry weight, and there are only links
        if shares is None and not any(s is not None for s in said.values()):
            raise ValueError(
                "the given graph alone carries this answer: new rows need adjacency=, their links "
                "to the fitted nodes"
            )
        return self._mixed(shares, said, silent)

    def said(self, X: Any, links: sp.csr_array | None) -> dict[str, FloatArray | None]:
        """What each member but the own graph says about new rows; None where it has no word."""
        found: dict[str, FloatArray | None] = {}
        for m in self.members:
            if isinstance(m, LinkedMember):
                found[m.name] = m.predict_linked(X, links)
            else:
                found[m.name] = None if X is None else m.predict(X)
        return found

    def graph_share(
        self,
        graph_shares: FloatArray | None,
        said: Mapping[str, FloatArray | None],
        codes: NDArray[Any],
        linked: NDArray[np.bool_],
    ) -> FloatArray:
        """Part of the vote for a row's class that is cast by members that know a given graph.

        Parameters
        ----------
        graph_shares : ndarray of shape (n_rows, n_classes) or None
            What the given graph says.
        said : mapping of str to ndarray or None
            What the members say.
        codes : ndarray of int of shape (n_rows,)
            The class that each row got.
        linked : ndarray of bool of shape (n_rows,)
            Which rows have a link at all; the others owe it nothing.

        Returns
        -------
        ndarray of shape (n_rows,)
            Parts from 0 to 1.
        """
        j, rows = self.judgement, np.arange(codes.size)
        knows = {m.name for m in self.members if isinstance(m, LinkedMember)} | {self.graph_name}
        heard = {self.graph_name: graph_shares, **said}
        by_links, total = np.zeros(codes.size), np.zeros(codes.size)
        for name, weight, beta in zip(j.names, j.weights, j.sharpness, strict=True):
            shares = heard.get(name)
            if weight > 0 and shares is not None:
                vote = weight * sharpened(shares, beta)[rows, codes]
                total += vote
                by_links += vote if name in knows else 0.0
        found = np.divide(by_links, total, out=np.zeros(codes.size), where=total > 0)
        return np.asarray(np.where(linked, found, 0.0))

    def more_labels(
        self, nodes: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> Committee:
        """The same members and weights after further labels; scores of graphs move."""
        moved = tuple(m.more_labels(nodes, codes, options, tol) for m in self.members)
        return replace(self, members=moved)

    def with_classes(self, classes: NDArray[Any], place: NDArray[np.intp]) -> Committee:
        """The same members beside more classes."""
        return replace(self, members=tuple(m.with_classes(classes, place) for m in self.members))


def soft_weights(losses: FloatArray, n_labels: int, least: float = LEAST_WEIGHT) -> FloatArray:
    """Weights ``exp(-sqrt(m) (loss - least loss))`` that add up to 1; 0 below `least`."""
    w = np.exp(-np.sqrt(n_labels) * (losses - losses.min()))
    w /= w.sum()
    w[w < least] = 0.0
    return np.asarray(w / w.sum())


def judge(
    trials: Sequence[Trial],
    codes: NDArray[Any],
    n_evidence: int = 0,
    least_weight: float = LEAST_WEIGHT,
) -> Judgement:
    """Weigh the members.

    Parameters
    ----------
    trials : sequence of Trial
        The members with their left-out shares; those of the user's models last.
    codes : ndarray of int of shape (n_labels,)
        Classes of the labels.
    n_evidence : int, default=0
        How many of them are the user's models.
    least_weight : float, default=0.01
        Weights below this are 0.

    Returns
    -------
    Judgement
        Weights and sharpness.
    """
    names = tuple(t.name for t in trials)
    shares = [t.left_out for t in trials if t.left_out is not None]
    if len(shares) < len(trials):
        weights = np.array([PRIOR_WEIGHTS.get(name, 1.0) for name in names])
        sharpness = np.array([PRIOR_SHARPNESS.get(name, 1.0) for name in names])
        return Judgement(names, weights / weights.sum(), None, sharpness)
    found = [log_loss(s, codes) for s in shares]
    losses = np.array([loss for loss, _ in found])
    m = int(judged_labels(codes, shares[0].shape[1]).sum())
    # Never worth more than a factor e.
    fair = losses - min(HANDICAP, m**-0.5) * np.isin(names, HANDICAPPED)
    inside = np.arange(len(trials)) < len(trials) - n_evidence
    if names[0] != OWN:
        # Beside a given graph every second member may know nothing but noise. Each alone would
        # cost little; those that do no better than the classes' shares have no say.
        p = np.bincount(codes) / codes.size
        chance = float(-(p[p > 0] * np.log(p[p > 0])).sum())
        hopeless = inside & (losses >= chance)
        fair[hopeless if hopeless.sum() < inside.sum() else False] = np.inf
    first = Judgement(
        names,
        soft_weights(fair, m, least_weight),
        losses,
        np.array([beta for _, beta in found]),
    )

    def with_weights(weights: FloatArray) -> Judgement:
        tried = replace(first, weights=weights)
        return replace(tried, loss=log_loss(tried.mix(shares), codes)[0])

    if inside.all() or not inside.any():
        return with_weights(first.weights)
    inner, outer = np.zeros(len(trials)), np.zeros(len(trials))
    inner[inside] = soft_weights(fair[inside], m, least_weight)
    outer[~inside] = soft_weights(fair[~inside], m, least_weight)
    given = float(first.weights[~inside].sum())
    tried = [
        with_weights((1.0 - part * given) * inner + part * given * outer)
        for part in SHARES_OF_EVIDENCE
    ]
    best = min(tried, key=lambda j: float(j.loss or 0.0))
    return replace(best, without_evidence=tried[-1].loss)


def without(judgement: Judgement, name: str) -> FloatArray:
    """Weights if a member did not vote."""
    weights = np.where(np.array(judgement.names) == name, 0.0, judgement.weights)
    total = float(weights.sum())
    return np.asarray(weights / total) if total > 0 else judgement.weights


def unnoticed(
    judgement: Judgement, trials: Sequence[Trial], codes: NDArray[Any], name: str
) -> bool:
    """Whether left-out labels are predicted as well without a member, up to the noise or a hair."""
    shares = [t.left_out for t in trials]
    judged = judged_labels(codes, int(codes.max()) + 1)
    at_label = np.arange(codes.size), codes

    def loss(weights: FloatArray) -> FloatArray:
        p = replace(judgement, weights=weights).mix(shares)[at_label][judged]
        return np.asarray(-np.log(np.maximum(p, 1e-12)))

    others = without(judgement, name)
    if others is judgement.weights:  # nobody else votes
        return False
    gain = loss(others) - loss(judgement.weights)
    noise = float(gain.std()) / np.sqrt(max(gain.size, 1))
    return bool(gain.mean() <= max(noise, LEAST_GAIN))
