"""Fitted state of every estimator: members, their weights, and calibrated probabilities.

The weight of a member follows from its cross-validated log-loss,

    w ~ exp(-sqrt(m) (loss - least loss)),   m held-out labels.

Differences within the noise of the loss do not exclude a member, and with more labels the better
members get more weight. Each member is first sharpened by its own held-out labels; the ensemble
predicts the weighted mean. The total weight of user-supplied models is limited so that the held-out
loss is no worse than without them. A single graph is an ensemble of one member without weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..arrays import FloatArray, NDArray
from ..codec import check_numbers, storable
from ..errors import DegenerateProblemWarning
from ..gershgorin.bounds import class_bounds, relaxation_bound
from ..graph.rescale import Rescaler
from ..notebook import card
from ..solution import Solution
from ..system import arrange
from ..system.left_out import LARGE_FOLDS
from .few_labels import supported_trust
from .labels import LabelCoding, expand_class_columns, stratified_folds
from .members.base import Features, FitData, FittedMember, Member, cross_validated_loss, subsample
from .members.class_sizes import ClassSizesMember, FittedClassSizes, supports_class_sizes
from .members.forest import ForestMember
from .members.graph_alone import GRAPH_MEMBERS
from .members.graphs import (
    AUTO_NEIGHBORS,
    FittedGraph,
    ForestGraphMember,
    NeighborMember,
    SampleGraph,
    WhitenedMember,
    graph_candidates,
    solve_graph,
)
from .members.kernel import ForestKernelMember, KernelMember
from .members.linear import GaussianMember, LinearMember, SelfTrainedMember
from .members.links import LINK_MEMBERS
from .members.smoothed import SmoothedMember
from .members.user_models import user_members
from .options import FitOptions, report
from .probabilities import (
    FEWEST_COUNTS,
    LEAST_SHARE,
    estimate_class_shares,
    fit_sharpness,
    judged_labels,
    left_out_loss,
    match_masses,
    sharpen,
    to_shares,
    warn_about,
)
from .tuning import DEFAULT, NO_HELD_OUT, Given, Setting, Tuning, tune

# The members, in the order in which they are tried. On real tables each of them is best on some
# tables and none on most, so the ensemble gains from their differences.
MEMBERS: Mapping[str, type[Member]] = {
    "neighbours": NeighborMember,
    "class sizes": ClassSizesMember,
    "forest": ForestMember,
    "linear": LinearMember,
    "self-trained": SelfTrainedMember,
    "kernel": KernelMember,
    "gaussian": GaussianMember,
    "whitened": WhitenedMember,
    "forest graph": ForestGraphMember,
    "forest kernel": ForestKernelMember,
}
# With many samples or links, a member is skipped if the weight of another member is below this
# fraction of the largest weight. It is dropped if it is redundant, because it needs a neighbour
# search or comparisons with all labels. The first rule always holds. It was chosen on 16 tables.
SKIP_RULES = {
    "self-trained": ("linear", 0.06),
    "whitened": ("neighbours", 0.0),
    "forest graph": ("forest", 0.3),
    "forest kernel": ("forest", 0.3),
    "neighbour forest": ("neighbour columns", 0.15),
}
# Minimum for the forest in the skip rules if there are links. Chosen on PubMed.
FOREST_BESIDE_LINKS = 0.15
# Weights and sharpness if no label can be held out. Chosen on digits and tables with one label per
# class. Graph scores decay with the distance to a label, so their shares are sharpened.
PRIOR_WEIGHTS = {"neighbours": 2.0, "links": 4.0, "links and features": 8.0, "class sizes": 8.0}
PRIOR_SHARPNESS = {"neighbours": 4.0, "forest graph": 4.0}
# Largest change of a class's log-probability if no label can be held out and all classes have as
# many labels. Graphs with so few labels often let one class win almost everywhere, so the shares of
# the classes move towards those of the other members. Chosen on 16 tables and digits with one label
# per class, ten seeds: with one set left out at a time the others choose 1, whose error is 0.03
# points lower but which costs more with two labels per class. Equal shares as the target lower the
# error by 0.3 points on these tables and raise it by 10 and more if shares are 70/20/10.
MOST_OFFSET = 0.5
# Smaller weights are set to 0. The second number is for weights from a subsample, where a member
# with weight must be fitted to many samples.
LEAST_WEIGHT, LEAST_SAMPLE_WEIGHT = 0.01, 0.05
# Subtracted from the held-out loss of forest members, which only a fifth of their trees predict.
# Chosen on 16 real tables, leaving one out at a time.
FOREST_ALLOWANCE = 0.05
FOREST_MEMBERS = ("forest", "forest graph", "forest kernel")
# Not used on dense embeddings, where the smoothed member replaces linear models and trees only
# dilute it, nor on embeddings with links. Chosen on MiniLM embeddings and TF-IDF of TREC and Subj.
NOT_ON_EMBEDDINGS = (*FOREST_MEMBERS, "linear", "self-trained")
# With many samples a smaller gain in log-loss does not justify another graph.
LEAST_GAIN = 0.003


@storable("weights")
@dataclass(frozen=True, eq=False)
class MemberWeights:
    """Weights of the members, and their held-out losses.

    Parameters
    ----------
    names : tuple of str
        The members.
    weights : ndarray of shape (n_members,)
        Their weights, which add up to 1.
    losses : ndarray of shape (n_members,) or None
        Cross-validated log-losses; None if no label could be held out.
    sharpness : ndarray of shape (n_members,)
        Exponent of each member's shares.
    loss : float or None
        Cross-validated log-loss of the ensemble.
    loss_without_models : float or None
        The same without the user-supplied models, if there are any.
    rule : str
        How the weights were chosen: "held-out loss", or with too few labels "fixed" or "cut and
        stability" (if class sizes are used).
    trust : float
        Weight of the combined probabilities in a mixture with equal probabilities; below 1 if no
        label could be held out.
    offset : ndarray of shape (n_classes,), optional
        Added to the logarithms of the combined probabilities before `trust` applies.
    """

    names: tuple[str, ...]
    weights: FloatArray
    losses: FloatArray | None
    sharpness: FloatArray
    loss: float | None = None
    loss_without_models: float | None = None
    rule: str = "held-out loss"
    trust: float = 1.0
    offset: FloatArray | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        m = len(self.names)
        check_numbers("weights", self.weights, (m,), at_least=0, at_most=1.0 + 1e-9)
        check_numbers("sharpness", self.sharpness, (m,), at_least=0)
        if not 0 <= self.trust <= 1:
            raise ValueError(f"trust={self.trust!r} must be between 0 and 1")
        if self.losses is not None:
            check_numbers("losses", self.losses, (m,))
        if len(set(self.names)) < m or abs(self.weights.sum() - 1.0) > 1e-6:
            raise ValueError("names must differ, and weights must add up to 1")

    def _lines(self) -> list[tuple[str, str]]:
        """Return the name and the numbers of each member and of the ensemble."""
        lines = [("member", "weight" + ("" if self.losses is None else "  held-out log-loss"))]
        for i in np.argsort(-self.weights, kind="stable").tolist():
            loss = "" if self.losses is None else f"  {self.losses[i]:.3f}"
            lines.append((self.names[i], f"{self.weights[i]:6.3f}{loss}"))
        if self.loss is not None:
            lines.append(("ensemble", f"{1:6.3f}  {self.loss:.3f}"))
        return lines

    def __repr__(self) -> str:
        lines = [f"{name:20s} {numbers}" for name, numbers in self._lines()]
        return "\n".join([*lines, f"weights chosen by: {self.rule}"])

    def _repr_html_(self) -> str:
        return card("Ensemble", self._lines(), f"Weights chosen by: {self.rule}.")

    def of(self, name: str) -> float:
        """Return the weight of a member; 0 if there is no member of that name."""
        return float(self.weights[self.names.index(name)]) if name in self.names else 0.0

    def without(self, name: str) -> FloatArray:
        """Return the weights without a member; unchanged if no other member has weight."""
        weights = np.where(np.array(self.names) == name, 0.0, self.weights)
        total = float(weights.sum())
        return np.asarray(weights / total) if total > 0 else self.weights

    def combine(
        self,
        member_probabilities: Sequence[FloatArray | None],
        abstaining: Sequence[NDArray[np.integer]] | None = None,
    ) -> FloatArray:
        """Return the weighted mean of the members' sharpened probabilities.

        Members with None are not used. `abstaining` lists the rows for which each member has no
        information. The weights of the other members are scaled to add up to 1.
        """
        total = available = fallback = np.zeros((1, 1))
        for i, shares in enumerate(member_probabilities):
            if self.weights[i] > 0 and shares is not None:
                w = np.full((shares.shape[0], 1), self.weights[i])
                p = w * sharpen(shares, float(self.sharpness[i]), least=LEAST_SHARE)
                fallback = fallback + p
                if abstaining is not None:
                    w[abstaining[i]] = p[abstaining[i]] = 0.0
                total, available = total + p, available + w
        none = available == 0  # all members abstain, so their prior shares are used
        total = np.where(none, fallback, total)
        p = total / np.where(none, total.sum(axis=1, keepdims=True), available)
        if self.offset is not None:
            p = sharpen(p, 1.0, self.offset)
        return np.asarray(self.trust * p + (1.0 - self.trust) / p.shape[1])


def soft_weights(losses: FloatArray, n_labels: int, least: float = LEAST_WEIGHT) -> FloatArray:
    """Return weights ``exp(-sqrt(m) (loss - least loss))`` that add up to 1; 0 below `least`."""
    w = np.exp(-np.sqrt(n_labels) * (losses - losses.min()))
    w /= w.sum()
    w[w < least] = 0.0
    return np.asarray(w / w.sum())


def weigh(
    held_out: Mapping[str, FloatArray | None],
    codes: NDArray[np.integer],
    n_models: int = 0,
    least_weight: float = LEAST_WEIGHT,
) -> MemberWeights:
    """Compute the weights and sharpness of the members from their held-out losses.

    Parameters
    ----------
    held_out : mapping of str to ndarray of shape (n_labels, n_classes) or None
        Held-out probabilities of the members, with user-supplied models last.
    codes : ndarray of int of shape (n_labels,)
        Classes of the labels.
    n_models : int, default=0
        Number of user-supplied models.
    least_weight : float, default=0.01
        Smaller weights are set to 0.
    """
    names, n = tuple(held_out), len(held_out)
    shares, losses, sharpness = [], np.empty(n), np.empty(n)
    for i, (name, p) in enumerate(held_out.items()):
        if p is None:
            losses[i], sharpness[i] = PRIOR_WEIGHTS.get(name, 1.0), PRIOR_SHARPNESS.get(name, 1.0)
        else:
            each, sharpness[i] = cross_validated_loss(p, codes)
            losses[i] = each.mean()
            shares.append(p)
    # Class sizes replace the neighbours, because both use the same graph.
    replaced = np.isin(names, "neighbours") & ("class sizes" in names)
    # With too few labels to hold out, Poisson learning replaces the harmonic function.
    replaced |= np.isin(names, "links") & ("poisson" in names) & (len(shares) < n)
    if len(shares) < n:
        weights = np.where(replaced, 0.0, losses)
        rule = "cut and stability" if "class sizes" in names else "fixed"
        return MemberWeights(names, weights / weights.sum(), None, sharpness, rule=rule)
    m = int(judged_labels(codes, shares[0].shape[1]).sum())
    # The minimum limits the effect of the allowance to a factor of e.
    fair = losses - min(FOREST_ALLOWANCE, m**-0.5) * np.isin(names, FOREST_MEMBERS)
    fair[replaced] = np.inf
    inside = np.arange(n) < n - n_models
    if names[0] == "links":
        # With links the features may be noise, and many useless members would add up. Members no
        # better than the class frequencies get no weight.
        p = np.bincount(codes) / codes.size
        chance = float(-(p[p > 0] * np.log(p[p > 0])).sum())
        useless = inside & (losses >= chance)
        fair[useless if useless.sum() < inside.sum() else False] = np.inf
    first = soft_weights(fair, m, least_weight)
    candidates = [first]
    if n_models and inside.any():
        inner, outer = np.zeros(n), np.zeros(n)
        inner[inside] = soft_weights(fair[inside], m, least_weight)
        outer[~inside] = soft_weights(fair[~inside], m, least_weight)
        candidates = []
        for part in (1.0, 0.5, 0.25, 0.125, 0.0):
            given = part * float(first[~inside].sum())
            candidates.append((1.0 - given) * inner + given * outer)
    found = []
    for weights in candidates:
        tried = MemberWeights(names, weights, losses, sharpness)
        loss = float(cross_validated_loss(tried.combine(shares), codes)[0].mean())
        found.append(replace(tried, loss=loss))
    if len(found) == 1:
        return found[0]
    losses_found = np.array([w.loss for w in found])
    return replace(found[int(losses_found.argmin())], loss_without_models=found[-1].loss)


def is_redundant(
    weighting: MemberWeights,
    held_out: Mapping[str, FloatArray | None],
    codes: NDArray[np.integer],
    name: str,
) -> bool:
    """Return whether removing a member does not raise the held-out loss.

    Differences within one standard error, or below LEAST_GAIN, do not count.
    """
    others = weighting.without(name)
    if others is weighting.weights:  # no other member has weight
        return False
    judged = judged_labels(codes, int(codes.max()) + 1)
    losses = []
    for weights in (others, weighting.weights):
        p = replace(weighting, weights=weights).combine(list(held_out.values()))
        at_label = p[np.arange(codes.size), codes][judged]
        losses.append(-np.log(np.maximum(at_label, 1e-12)))
    gain = losses[0] - losses[1]
    noise = float(gain.std()) / np.sqrt(max(gain.size, 1))
    return bool(gain.mean() <= max(noise, LEAST_GAIN))


def choose_class_sizes(
    member: ClassSizesMember,
    data: FitData,
    codes: NDArray[np.integer],
    held_out: tuple[FloatArray | None, FloatArray | None],
    ready: dict[str, FittedMember],
) -> bool:
    """Return whether class sizes replace the harmonic function on the neighbour graph.

    They do if their labelling is stable and has a smaller cut, and if their held-out loss is not
    worse by more than one standard error. `held_out` has the probabilities of class sizes and of
    the neighbours, or None with too few labels. Members fitted here are stored in `ready`.
    """
    losses = [cross_validated_loss(p, codes)[0] for p in held_out if p is not None]
    if losses:
        excess = losses[0] - losses[1]
        if excess.mean() > excess.std() / np.sqrt(excess.size):
            return False
    graph, sized = NeighborMember().fit(data), member.fit(data)
    ready |= {"neighbours": graph, member.name: sized}
    return supports_class_sizes(graph, sized)


def should_skip(name: str, held_out: Mapping[str, FloatArray | None], part: FitData) -> bool:
    """Return whether :data:`SKIP_RULES` exclude a member."""
    basis, least = SKIP_RULES.get(name, ("", 0.0))
    if basis not in held_out or part.folds is None:
        return False
    found = weigh(held_out, part.codes, least_weight=0.0)
    if basis == "forest" and part.links is not None:
        least = max(least, FOREST_BESIDE_LINKS)
    return bool(found.weights[found.names.index(basis)] < least * found.weights.max())


@storable("ensemble")
@dataclass(frozen=True, eq=False)
class Ensemble:
    """Complete state of a fitted classifier.

    Parameters
    ----------
    labels : LabelCoding
        Class numbers of the samples and the classes.
    members : tuple of FittedMember
        The first is the graph in ``graph_``; the others have weight.
    weighting : MemberWeights or None
        Weights of all evaluated members; None for a single graph.
    tuning : Tuning
        Setting of the first graph, and held-out scores of the ensemble.
    shares : ndarray of shape (n_samples, n_classes)
        Combined shares.
    codes : ndarray of int of shape (n_samples,)
        Class number of every sample; given labels are kept.
    prior : ndarray of shape (n_classes,)
        Class prior.
    sharpness : float
        Exponent that turns shares into probabilities.
    offset : ndarray of shape (n_classes,)
        Shift of the log-probabilities that matches the class prior or estimated class shares; zeros
        without either.
    unreached : ndarray of int
        Samples for which no member has information.
    n_features : int
        Number of features.
    sparse : bool
        Whether they are sparse.
    rescaler : Rescaler or None
        Rescaling of the features.
    importances : ndarray of shape (n_features,) or None
        Feature importances of the forest.
    """

    labels: LabelCoding
    members: tuple[FittedMember, ...]
    weighting: MemberWeights | None
    tuning: Tuning
    shares: FloatArray = field(repr=False)
    codes: NDArray[np.integer]
    prior: FloatArray
    sharpness: float
    offset: FloatArray
    unreached: NDArray[np.integer]
    n_features: int
    sparse: bool = False
    rescaler: Rescaler | None = None
    importances: FloatArray | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n, k = self.labels.codes.size, self.labels.classes.size
        if not self.members or not isinstance(self.members[0], FittedGraph):
            raise ValueError("the first member must be a graph")
        for member in self.members:
            check_numbers(f"shares of {member.name}", member.shares, (n, k), at_least=0)
        check_numbers("shares", self.shares, (n, k), at_least=0)
        check_numbers("codes", self.codes, (n,), at_least=0, at_most=k - 1)
        check_numbers("prior", self.prior, (k,), at_least=0)
        check_numbers("offset", self.offset, (k,), at_least=-1e3, at_most=1e3)
        check_numbers("unreached", self.unreached, (None,), at_least=0, at_most=n - 1)
        if abs(self.prior.sum() - 1) > 1e-6 or np.abs(self.shares.sum(axis=1) - 1).max() > 1e-6:
            raise ValueError("prior or shares do not add up to 1")
        if np.unique(self.labels.codes[self.labels.codes >= 0]).size < k:
            raise ValueError("a class has no label")
        names = [member.name for member in self.members]
        if self.weighting is None and len(names) > 1:
            raise ValueError("several members need weights")
        if self.weighting is not None and not set(names) <= set(self.weighting.names):
            raise ValueError("a member has no weight")
        checked, held_out = self.tuning.checked, self.tuning.left_out
        m = self.labels.labeled.size
        if checked is not None:
            check_numbers("checked", checked, (None,), at_least=0, at_most=m - 1)
        if held_out is not None:
            check_numbers("left_out", held_out, (m if checked is None else checked.size, k))
        if not 0 < self.sharpness < 1e4 or self.n_features < 0:
            raise ValueError("sharpness or n_features are out of range")
        if self.importances is not None:
            check_numbers("importances", self.importances, (None,), at_least=0)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.labels.codes.size)

    @property
    def first(self) -> FittedGraph:
        """The graph in ``graph_``."""
        member = self.members[0]
        assert isinstance(member, FittedGraph)
        return member

    @property
    def calibrated(self) -> bool:
        """Whether the probabilities are calibrated on held-out labels."""
        return self.tuning.source not in NO_HELD_OUT

    @property
    def linked(self) -> bool:
        """Whether the user gave a graph in addition to features."""
        return self.members[0].knows_links

    def probabilities(self, shares: FloatArray | None = None) -> FloatArray:
        """Return calibrated probabilities for the samples or for given shares."""
        return sharpen(self.shares if shares is None else shares, self.sharpness, self.offset)

    def winners(self, shares: FloatArray) -> NDArray[np.intp]:
        """Return the class number of each row of shares.

        Without an offset the shares are compared directly, because sharpening clips them and could
        create ties.
        """
        p = self.probabilities(shares) if self.offset.any() else shares
        return np.asarray(np.argmax(p, axis=1))

    def left_out(self) -> tuple[NDArray[np.intp], FloatArray] | None:
        """Return the samples with a held-out label and their held-out shares, or None."""
        scores, rows = self.tuning.left_out, self.labels.labeled
        if self.tuning.checked is not None:
            rows = rows[self.tuning.checked]
        if scores is None or scores.shape[0] != rows.size:
            return None
        return rows, to_shares(scores, self.prior)

    # New rows.

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray:
        """Return the shares of new rows from their features, links or both.

        A row that coincides with fitted samples gets their labels if they have any, otherwise their
        mean shares.
        """
        found, same = self._member_probabilities(X, links)
        by_graph = found[self.first.name]
        if self.weighting is None and by_graph is not None:
            return by_graph
        assert self.weighting is not None
        asked = [found.get(name) for name in self.weighting.names]
        if not any(p is not None and w for p, w in zip(asked, self.weighting.weights, strict=True)):
            if by_graph is None:
                raise ValueError(
                    "only members that use the given graph have weight: pass adjacency=, the links "
                    "of the new rows to the fitted samples"
                )
            return by_graph  # only feature members have weight, but only links are given
        abstaining = None
        if links is not None:
            abstaining = [np.empty(0, dtype=np.intp)] * len(asked)
            abstaining[0] = np.flatnonzero(np.diff(links.indptr) == 0)
        shares = self.weighting.combine(asked, abstaining)
        if same is not None and by_graph is not None:
            # If any of the coinciding samples have labels, only these count.
            given = np.flatnonzero(np.diff(same[:, self.labels.labeled].indptr))
            hit = np.setdiff1d(np.flatnonzero(np.diff(same.indptr)), given)
            shares[hit] = (same[hit] @ self.shares) / np.diff(same.indptr)[hit, None]
            shares[given] = by_graph[given]
        return shares

    def _member_probabilities(
        self, X: Features | None, links: sp.csr_array | None
    ) -> tuple[dict[str, FloatArray | None], sp.csr_array | None]:
        """Return each member's prediction for new rows, and the samples they coincide with."""
        if X is not None and self.rescaler is not None:
            X = self.rescaler.transform(X)
        found: dict[str, FloatArray | None] = {}
        same = weights = None
        for member in self.members:
            if member is self.first and not self.linked and X is not None:
                found[member.name], same, weights = self.first.predict_rows(X)
            elif weights is not None and isinstance(member, FittedClassSizes):
                found[member.name] = member.by_weights(weights, same)
            else:
                found[member.name] = member.predict(X, links)
        return found, same

    def graph_share(
        self, X: Features | None = None, links: sp.csr_array | None = None
    ) -> FloatArray:
        """Return the share of each row's prediction that comes from members that use links.

        It is 0 for rows without a link. With a precomputed graph and no features it is 1 for all
        other rows, without a given graph it is 0.

        Parameters
        ----------
        X, links
            New rows and their links; the samples of the fit if neither is given.
        """
        if not self.linked or self.weighting is None:
            graph = self.first.graph
            linked = (np.diff(graph.W.indptr) > 0) & (graph.kind == "precomputed")
            return np.asarray(linked, dtype=np.float64)
        found: dict[str, FloatArray | None]
        if links is None:
            found, codes = {m.name: m.shares for m in self.members}, self.codes
            edges = self.first.graph.W
        else:
            codes, edges = self.winners(self.predict(X, links)), links
            found, _ = self._member_probabilities(X, links)
        knows = {m.name for m in self.members if m.knows_links}
        rows, by_links, total = np.arange(codes.size), np.zeros(codes.size), np.zeros(codes.size)
        w = self.weighting
        for name, weight, beta in zip(w.names, w.weights, w.sharpness.tolist(), strict=True):
            shares = found.get(name)
            if weight > 0 and shares is not None:
                vote = weight * sharpen(shares, beta, least=LEAST_SHARE)[rows, codes]
                total += vote
                by_links += vote if name in knows else 0.0
        part = np.divide(by_links, total, out=np.zeros(codes.size), where=total > 0)
        return np.asarray(np.where(np.diff(edges.indptr) > 0, part, 0.0))

    # Certificates.

    def solutions(self) -> tuple[Solution, ...]:
        """Return one solution per class against the rest; for two classes only the second."""
        first, run = self.first, self.first.run
        if first.records:
            return first.records
        problem, k, codes = first.graph.problem(self.labels), self.labels.classes.size, self.codes
        names = ("residual", "matvecs", "edge_visits", "drift")
        info = MappingProxyType({name: getattr(run, name) for name in names})
        records = []
        for c, trivial in zip(
            range(1, 2) if k == 2 else range(k), class_bounds(problem).tolist(), strict=True
        ):
            x = np.where(codes == c, 1, -1).astype(np.int8)
            against_rest = problem.against_rest(c)
            scores = 2.0 * first.scores[:, c] - first.scores.sum(axis=1)
            certified = bool(np.isfinite(trivial)) and run.method == "harmonic"
            relaxed = relaxation_bound(against_rest, scores) if certified else -np.inf
            records.append(
                Solution(
                    method=run.method,
                    labels=x,
                    scores=scores,
                    objective=against_rest.objective(x),
                    lower_bound=max(trivial, relaxed) if certified else -np.inf,
                    bound_status="certified" if certified else "none",
                    bound_kind="relaxation" if relaxed > trivial else "trivial",
                    iterations=run.iterations,
                    converged=run.converged,
                    message=run.message,
                    unreached=np.asarray(self.unreached, dtype=np.intp),
                    seconds=MappingProxyType({"recovery": run.seconds}),
                    info=info,
                )
            )
        return tuple(records)

    def objective(self) -> float:
        """Return the smoothness ``x' L x`` of the labels, half of the sum over classes.

        For each class x is +1 on its samples and -1 on all others. With two classes both terms are
        equal, and the result is the objective of the binary problem.
        """
        problem, k = self.first.graph.problem(self.labels), self.labels.classes.size
        total = 0.0
        for c in range(k):
            total += problem.against_rest(c).objective(np.where(self.codes == c, 1.0, -1.0))
        return min(total * (0.5 if k > 1 else 1.0), float(np.finfo(float).max))

    # Other labels.

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: FitOptions, tol: float
    ) -> Ensemble:
        """Return the ensemble with added, corrected or removed labels (-1).

        Members, weights and calibration stay, and graphs update their scores. The held-out scores
        belong to the old labels and are dropped.
        """
        labels = self.labels.with_labels(rows, codes)
        inner = options if self.weighting is None else replace(options, class_prior=None)
        members = [member.with_labels(rows, codes, inner, tol) for member in self.members]
        tuning = replace(self.tuning, left_out=None, checked=None)
        return build_ensemble(
            *(labels, members, self.weighting, tuning, options, self.sharpness),
            n_features=self.n_features,
            sparse=self.sparse,
            rescaler=self.rescaler,
            importances=self.importances,
        )

    def with_classes(self, classes: NDArray[np.generic]) -> Ensemble:
        """Return the ensemble with more classes (sorted), whose shares are 0 so far."""
        place, k = np.searchsorted(classes, self.labels.classes), classes.size
        labels, weighting = self.labels.with_classes(classes, place), self.weighting
        if weighting is not None and weighting.offset is not None:
            weighting = replace(weighting, offset=expand_class_columns(weighting.offset, place, k))
        return replace(
            self,
            weighting=weighting,
            labels=labels,
            members=tuple(member.with_classes(labels, place) for member in self.members),
            tuning=replace(self.tuning, left_out=None, checked=None),
            shares=expand_class_columns(self.shares, place, k),
            codes=place[self.codes],
            prior=expand_class_columns(self.prior, place, k),
            offset=expand_class_columns(self.offset, place, k),
        )


def build_ensemble(
    labels: LabelCoding,
    members: Sequence[FittedMember],
    weighting: MemberWeights | None,
    tuning: Tuning,
    options: FitOptions,
    sharpness: float | None = None,
    **about: Any,
) -> Ensemble:
    """Combine fitted members, and calibrate them unless a sharpness is given."""
    known, k, first = labels.labeled, labels.classes.size, members[0]
    codes, unreached, policy = labels.codes[known], first.abstaining, options.policy
    assert isinstance(first, FittedGraph)
    given = isinstance(options.class_prior, np.ndarray)
    prior = np.asarray(options.class_prior) if given else first.prior
    if weighting is None:
        shares = first.shares
    else:
        fitted, asked, abstaining = {}, [], []
        for member in members:
            fitted[member.name] = member
            unreached = np.intersect1d(unreached, member.abstaining)
        for name in weighting.names:
            one = fitted.get(name)
            asked.append(None if one is None else one.shares)
            abstaining.append(np.empty(0, np.intp) if one is None else one.abstaining)
        shares = weighting.combine(asked, abstaining)
        shares[known] = np.eye(k)[codes]
    if sharpness is None:
        checked = codes if tuning.checked is None else codes[tuning.checked]
        sharpness = fit_sharpness(tuning.left_out, checked, fewest=policy.calibration_labels)
    offset, free = np.zeros(k), labels.codes < 0
    free[unreached] = False
    counts = np.bincount(codes, minlength=k)
    if options.class_prior is not None and k > 1:
        offset = match_masses(sharpen(shares[free], sharpness), prior)
    elif (
        weighting is not None
        and weighting.losses is not None
        and counts.min() >= FEWEST_COUNTS
        and counts.max() - counts.min() <= 1
    ):
        # Nearly equal counts indicate labels drawn class by class, which hide the class shares.
        labeled = counts / codes.size
        estimated = estimate_class_shares(sharpen(shares[free], sharpness), labeled)
        offset = 0.5 * np.log(estimated / labeled)
    parts = (labels, tuple(members), weighting, tuning, shares, labels.codes, prior)
    ensemble = Ensemble(*parts, float(sharpness), offset, unreached, **about)
    decided = np.where(labels.codes < 0, ensemble.winners(shares), labels.codes)
    return replace(ensemble, codes=decided)


def fit_ensemble(
    X: Features,
    labels: LabelCoding,
    options: FitOptions,
    *,
    links: sp.csr_array | None = None,
    models: Sequence[BaseEstimator] = (),
    members: Mapping[str, type[Member]] = MEMBERS,
    rescaler: Rescaler | None = None,
) -> Ensemble:
    """Cross-fit the members, compute their weights, and fit those with weight.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Checked and rescaled features.
    labels : LabelCoding
        The labels.
    options : FitOptions
        Options of the fit.
    links : csr_array of shape (n_samples, n_samples), optional
        Checked user-supplied graph of the samples.
    models : sequence of estimators, optional
        User-supplied models.
    members : mapping of str to class, optional
        The members; the first is the neighbour graph.
    rescaler : Rescaler, optional
        Rescaling that was applied to the features.
    """
    codes, k, policy = labels.codes[labels.labeled], labels.classes.size, options.policy
    several = codes[judged_labels(codes, k)]
    enough = np.unique(several).size >= 2 and several.size >= policy.fewest_labels
    folds = stratified_folds(codes, 5) if enough else None
    given = options.class_prior
    if isinstance(given, str):
        given = np.bincount(codes, minlength=k) / codes.size
    data = FitData(X, labels, folds, replace(options, class_prior=None), links, class_shares=given)
    part, kept = data, None
    many = X.shape[0] > policy.judged_nodes
    if folds is not None and many:
        part, kept = subsample(data)
    kinds = [*(() if links is None else LINK_MEMBERS), *members.values()]
    if X.shape[1] == 0:  # links without features
        kinds = list(GRAPH_MEMBERS)
    if data.is_embedding:
        if links is not None or not sp.issparse(X):
            kinds = [kind for kind in kinds if kind.name not in NOT_ON_EMBEDDINGS]
        if links is None:
            kinds.insert(1, SmoothedMember)
    candidates: list[Member] = []
    for kind in kinds:
        candidates.append(kind())
    W = NeighborMember().graph(data)[0].W if links is None else links
    report(options, stage="graph", nodes=X.shape[0], edges=int(W.nnz) // 2)
    if models:
        candidates += user_members(models, [m.name for m in candidates], options.random_state)
    held_out: dict[str, FloatArray | None] = {}
    tried: list[Member] = []
    ready: dict[str, FittedMember] = {}
    for member in candidates:
        skipping = kept is not None or links is not None or member.name == "self-trained"
        if (
            not (folds is None and (member.needs_folds or (many and member.needs_search)))
            and part.labeled.size <= member.labels_per_class * part.n_classes
            and member.suits(part)
            and not (skipping and should_skip(member.name, held_out, part))
            and not (folds is None and many and "class sizes" in held_out)
        ):
            p = None if folds is None else member.cross_fit(part)
            if isinstance(member, ClassSizesMember):
                found = (p, held_out["neighbours"])
                if not choose_class_sizes(member, data, part.codes, found, ready):
                    continue
            held_out[member.name] = p
            tried.append(member)
            report(options, stage="member", member=member.name, action="cross-validated")
    weighting = weigh(
        held_out, part.codes, len(models), LEAST_WEIGHT if kept is None else LEAST_SAMPLE_WEIGHT
    )
    # With many samples, drop members that need another neighbour search if they are redundant:
    # with links the smoothed member needs none. The forest is dropped only if the trial rests on
    # many labels: with few it raised the error.
    searching = "smoothed" if links is None else "neighbours"
    costly = [] if kept is None else [*SKIP_RULES, searching][1:]
    if X.shape[0] > policy.huge_nodes and part.codes.size >= policy.screened_labels:
        costly.append("forest")
    for name in costly:
        if weighting.of(name) > 0 and is_redundant(weighting, held_out, part.codes, name):
            weighting = replace(weighting, weights=weighting.without(name))
    if kept is not None and kept.size == codes.size and "forest" in part.cache:
        data.cache["forest"] = part.cache["forest"]  # the same labels grow the same trees
    loss, source, whole = 1.0, "too few labels", None
    if folds is not None:
        whole = weighting.combine(list(held_out.values()))
        judged = judged_labels(part.codes, k)
        loss = left_out_loss(part.targets[judged], whole[judged])
        source = "k-fold" if kept is None else "sample"
    about = {"weights": dict(zip(weighting.names, weighting.weights.tolist(), strict=True))}
    report(options, stage="tuning", source=source, tried=len(tried), loss=loss, **about)
    fitted: list[FittedMember] = []
    for member, weight in zip(tried, weighting.weights.tolist(), strict=True):
        if weight > 0 or not fitted:
            fitted.append(ready.get(member.name) or member.fit(data))
            report(options, stage="member", member=member.name, action="fitted", weight=weight)
    assert isinstance(fitted[0], FittedGraph)
    if folds is None:
        free = labels.codes < 0
        shares = {member.name: member.shares[free] for member in fitted}
        asked, counts = [shares.get(name) for name in weighting.names], np.bincount(codes)
        p = weighting.combine(asked)
        others = [s for name, s in shares.items() if name not in PRIOR_SHARPNESS and free.any()]
        equal = given is None and links is None and np.ptp(counts) <= 1
        if weighting.rule == "fixed" and equal and others:
            target = np.maximum(np.mean(others, axis=(0, 1)), 1e-6)
            offset = match_masses(p, target, tol=1e-3, max_iter=100)
            weighting = replace(weighting, offset=np.clip(offset, -MOST_OFFSET, MOST_OFFSET))
            p = weighting.combine(asked)
        votes = np.array([weighting.of(name) for name in shares])
        trust = supported_trust(p, [s.argmax(axis=1) for s in shares.values()], votes)
        weighting = replace(weighting, trust=trust)
    tuning = Tuning(fitted[0].setting, loss, source, whole, len(tried), checked=kept)
    ensemble = build_ensemble(
        *(labels, fitted, weighting, tuning, options),
        n_features=X.shape[1] if rescaler is None else rescaler.columns.size,
        sparse=sp.issparse(X),
        rescaler=rescaler,
        importances=part.cache["forest"].forest.importances if "forest" in part.cache else None,
    )
    warn_about(ensemble, fitted[0].run)
    return ensemble


def tuning_of_method(
    graph: SampleGraph, labels: LabelCoding, tuning: Tuning, options: FitOptions
) -> Tuning:
    """Return the chosen setting with the held-out scores and the loss of ``options.method``.

    The method is refitted once per fold, without the labels of the fold.
    """
    codes, known, k = labels.codes[labels.labeled], labels.labeled, labels.classes.size
    n_folds = LARGE_FOLDS if graph.n_nodes > options.policy.large_nodes else 5
    folds = stratified_folds(codes, n_folds)
    shares = np.zeros((codes.size, k))
    silent = replace(options, callback=None, verbose=0, class_prior=None)
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        present, remaining = np.unique(codes[~held], return_inverse=True)
        without = np.full(labels.codes.size, -1, dtype=np.int32)
        without[known[~held]] = remaining
        coding = LabelCoding(without, labels.classes[present])
        with warnings.catch_warnings(action="ignore"):  # the fit on all labels warns itself
            fitted = solve_graph(graph, coding, tuning.setting, silent)
        shares[np.ix_(held, present)] = fitted.shares[known[held]]
        report(options, stage="fold", fold=fold + 1, of=int(folds.max()) + 1)
    judged = judged_labels(codes, k)
    return replace(
        tuning,
        loss=left_out_loss(np.eye(k)[codes[judged]], shares[judged]),
        source="k-fold",
        left_out=shares,
        checked=None,
    )


def fit_single_graph(
    X: Features, labels: LabelCoding, options: FitOptions, *, rescaler: Rescaler | None = None
) -> Ensemble:
    """Fit one graph: choose its setting by cross-validation, then solve.

    The harmonic function chooses the setting for every method, because it is cheap to leave labels
    out of it. The held-out scores are those of the method itself, refitted fold by fold.
    """
    n, k, codes = X.shape[0], labels.classes.size, labels.codes[labels.labeled]
    counts = [options.n_neighbors or 1]
    if options.n_neighbors is None:
        auto = AUTO_NEIGHBORS if n <= options.policy.auto_nodes else AUTO_NEIGHBORS[:1]
        counts = list(dict.fromkeys(max(min(count, n - 1), 1) for count in auto))
    candidates = graph_candidates(X, options, counts)
    report(options, stage="graph", nodes=n, edges=int(candidates[0].W.nnz) // 2)
    if k == 1:
        warnings.warn(
            f"y has only one class, {labels.classes.tolist()[0]!r}; every sample is assigned to it",
            DegenerateProblemWarning,
            stacklevel=3,
        )
    arranged = None
    if len(candidates) == 1 and n > options.policy.large_nodes:
        arranged = arrange(candidates[0].adjacency, options.policy)
    if candidates[0].signed:  # labels are kept exactly, and there is nothing to choose
        tuning = Tuning(Setting(np.inf, 0.0), 1.0, "signed weights", None, 0)
    else:
        systems, targets = [], np.eye(k)[codes]
        for graph in candidates:
            systems.append(graph.system(labels.labeled, targets, DEFAULT, options, arranged))
        tuning = tune(systems, codes, Given(options.label_weight, options.self_loop))
        if options.method != "harmonic" and tuning.left_out is not None:
            graph = candidates[tuning.candidate]
            tuning = tuning_of_method(graph, labels, tuning, options)
    report(
        options,
        stage="tuning",
        source=tuning.source,
        tried=tuning.tried,
        loss=tuning.loss,
        label_weight=tuning.setting.label_weight,
        self_loop=tuning.setting.self_loop,
    )
    graph = candidates[tuning.candidate]
    fitted = solve_graph(graph, labels, tuning.setting, options, arranged=arranged)
    ensemble = build_ensemble(
        *(labels, [fitted], None, tuning, options),
        n_features=X.shape[1] if rescaler is None else rescaler.columns.size,
        sparse=sp.issparse(X) and options.graph != "precomputed",
        rescaler=rescaler,
    )
    warn_about(ensemble, fitted.run)
    return ensemble
