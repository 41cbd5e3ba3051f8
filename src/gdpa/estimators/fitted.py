"""Fitted state of the estimators: labels, predictions, and what is needed for more of them.

:class:`FittedClassifier` is what every fitted classifier has. :class:`SingleGraph` is one graph
solved by one method, :class:`Committee` the weighted mean of several members. The labels are stored
here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray, NDArray
from ..codec import check_numbers, storable
from ..gershgorin.bounds import class_bounds, relaxation_bound
from ..graph.features import Features
from ..graph.picture_features import PictureFeatures
from ..graph.rescale import Rescaler
from ..solution import Solution
from .class_shares import class_offset
from .heads.class_sizes import FittedClassSizes
from .heads.harmonic import FittedGraph
from .labels import LabelCoding, expand_class_columns
from .members import FittedMember
from .options import CheckedOptions
from .probabilities import LEAST_SHARE, match_masses, sharpen, to_shares
from .tuning import NO_HELD_OUT, Tuning
from .weights import MemberWeights


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedClassifier:
    """Complete state of a fitted classifier.

    Parameters
    ----------
    labels : LabelCoding
        Class numbers of the samples and the classes.
    tuning : Tuning
        Setting of the graph in ``graph_``, and held-out scores of the classifier.
    shares : ndarray of shape (n_samples, n_classes)
        Shares of the classes.
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
        Samples about which nothing is known.
    n_features : int
        Number of features.
    sparse : bool
        Whether they are sparse.
    rescaler : Rescaler, PictureFeatures or None
        Rescaling of the features, or how they are learned from pictures.
    """

    labels: LabelCoding
    tuning: Tuning
    shares: FloatArray = field(repr=False)
    codes: NDArray[np.integer]
    prior: FloatArray
    sharpness: float
    offset: FloatArray
    unreached: NDArray[np.integer]
    n_features: int
    sparse: bool = False
    rescaler: Rescaler | PictureFeatures | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        n = self.n_samples
        k = self.labels.classes.size
        check_numbers("shares", self.shares, (n, k), at_least=0)
        check_numbers("codes", self.codes, (n,), at_least=0, at_most=k - 1)
        check_numbers("prior", self.prior, (k,), at_least=0)
        check_numbers("offset", self.offset, (k,), at_least=-1e3, at_most=1e3)
        check_numbers("unreached", self.unreached, (None,), at_least=0, at_most=n - 1)
        if abs(self.prior.sum() - 1) > 1e-6 or np.abs(self.shares.sum(axis=1) - 1).max() > 1e-6:
            raise ValueError("prior or shares do not add up to 1")
        if np.unique(self.labels.codes[self.labels.codes >= 0]).size < k:
            raise ValueError("a class has no label")
        m = self.labels.labeled.size
        checked = self.tuning.checked
        if checked is not None:
            check_numbers("checked", checked, (None,), at_least=0, at_most=m - 1)
        if self.tuning.left_out is not None:
            rows = m if checked is None else checked.size
            check_numbers("left_out", self.tuning.left_out, (rows, k))
        if not 0 < self.sharpness < 1e4 or self.n_features < 0:
            raise ValueError("sharpness or n_features are out of range")

    # What each kind of classifier says about itself.

    @property
    def first(self) -> FittedGraph:
        """The graph in ``graph_``."""
        raise NotImplementedError

    @property
    def weighting(self) -> MemberWeights | None:
        """Weights of the members; None if there is only one graph."""
        return None

    @property
    def importances(self) -> FloatArray | None:
        """Importances of the features in a forest; None if there is none."""
        return None

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray:
        """Return the shares of new rows from their features, links or both."""
        raise NotImplementedError

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: CheckedOptions, tol: float
    ) -> Self:
        """Return the classifier with added, corrected or removed labels (-1)."""
        raise NotImplementedError

    def with_classes(self, classes: NDArray[np.generic]) -> Self:
        """Return the classifier with more classes (sorted), whose shares are 0 so far."""
        raise NotImplementedError

    # What all of them have in common.

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.labels.codes.size)

    @property
    def calibrated(self) -> bool:
        """Whether the probabilities are calibrated on held-out labels."""
        return self.tuning.source not in NO_HELD_OUT

    @property
    def linked(self) -> bool:
        """Whether the user gave a graph in addition to features."""
        return self.first.knows_links

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

    def decided(self) -> Self:
        """Return this classifier with the winner of each sample; given labels are kept."""
        winners = self.winners(self.shares)
        return replace(self, codes=np.where(self.labels.codes < 0, winners, self.labels.codes))

    def left_out(self) -> tuple[NDArray[np.intp], FloatArray] | None:
        """Return the samples with a held-out label and their held-out shares, or None."""
        scores = self.tuning.left_out
        rows = self.labels.labeled
        if self.tuning.checked is not None:
            rows = rows[self.tuning.checked]
        if scores is None or scores.shape[0] != rows.size:
            return None
        return rows, to_shares(scores, self.prior)

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
        graph = self.first.graph
        linked = (np.diff(graph.W.indptr) > 0) & (graph.kind == "precomputed")
        return np.asarray(linked, dtype=np.float64)

    def _more_classes(self, classes: NDArray[np.generic]) -> tuple[NDArray[np.intp], Self]:
        """Return the places of the classes among more of them, and the common parts with these."""
        place = np.searchsorted(classes, self.labels.classes)
        k = classes.size
        common = replace(
            self,
            labels=self.labels.with_classes(classes, place),
            tuning=replace(self.tuning, left_out=None, checked=None),
            shares=expand_class_columns(self.shares, place, k),
            codes=place[self.codes],
            prior=expand_class_columns(self.prior, place, k),
            offset=expand_class_columns(self.offset, place, k),
        )
        return place, common

    # Certificates.

    def solutions(self) -> tuple[Solution, ...]:
        """Return one solution per class against the rest; for two classes only the second."""
        first = self.first
        run = first.run
        if first.records:
            return first.records
        problem = first.graph.problem(self.labels)
        k = self.labels.classes.size
        codes = self.codes
        names = ("residual", "matvecs", "edge_visits", "drift")
        info = MappingProxyType({name: getattr(run, name) for name in names})
        asked = range(1, 2) if k == 2 else range(k)
        records = []
        for c, trivial in zip(asked, class_bounds(problem).tolist(), strict=True):
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
        problem = self.first.graph.problem(self.labels)
        k = self.labels.classes.size
        total = sum(
            problem.against_rest(c).objective(np.where(self.codes == c, 1.0, -1.0))
            for c in range(k)
        )
        return min(total * (0.5 if k > 1 else 1.0), float(np.finfo(float).max))


@storable("single graph")
@dataclass(frozen=True, eq=False, kw_only=True)
class SingleGraph(FittedClassifier):
    """One graph, solved by one method.

    Parameters
    ----------
    solved : FittedGraph
        The graph with its scores.
    """

    solved: FittedGraph

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        super().check_stored()
        check_numbers("shares of the graph", self.solved.shares, self.shares.shape, at_least=0)

    @property
    def first(self) -> FittedGraph:
        """The graph in ``graph_``."""
        return self.solved

    @classmethod
    def build(
        cls,
        solved: FittedGraph,
        labels: LabelCoding,
        tuning: Tuning,
        options: CheckedOptions,
        *,
        sharpness: float,
        n_features: int,
        sparse: bool = False,
        rescaler: Rescaler | PictureFeatures | None = None,
    ) -> Self:
        """Turn the scores of a graph into probabilities of this sharpness."""
        free = labels.codes < 0
        free[solved.abstaining] = False
        offset = np.zeros(labels.classes.size)
        if options.class_prior is not None and labels.classes.size > 1:
            offset = match_masses(sharpen(solved.shares[free], sharpness), solved.prior)
        return cls(
            labels=labels,
            tuning=tuning,
            shares=solved.shares,
            codes=labels.codes,
            prior=solved.prior,
            sharpness=sharpness,
            offset=offset,
            unreached=solved.abstaining,
            n_features=n_features,
            sparse=sparse,
            rescaler=rescaler,
            solved=solved,
        ).decided()

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray:
        """Return the shares of new rows from their neighbours or links."""
        if X is not None and self.rescaler is not None:
            X = self.rescaler.transform(X)
        shares = self.solved.predict(X, links, self.labels)
        if shares is None:
            raise ValueError("the model needs the links of the new rows to the fitted samples")
        return shares

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: CheckedOptions, tol: float
    ) -> Self:
        """Return the classifier with other labels; scores near them are updated.

        The held-out scores belong to the old labels and are dropped. The calibration stays.
        """
        labels = self.labels.with_labels(rows, codes)
        return self.build(
            self.solved.with_labels(self.labels, labels, options, tol),
            labels,
            replace(self.tuning, left_out=None, checked=None),
            options,
            sharpness=self.sharpness,
            n_features=self.n_features,
            sparse=self.sparse,
            rescaler=self.rescaler,
        )

    def with_classes(self, classes: NDArray[np.generic]) -> Self:
        """Return the classifier with more classes (sorted), whose shares are 0 so far."""
        place, common = self._more_classes(classes)
        return replace(common, solved=self.solved.with_classes(place, classes.size))


@storable("committee")
@dataclass(frozen=True, eq=False, kw_only=True)
class Committee(FittedClassifier):
    """The weighted mean of several members.

    Parameters
    ----------
    members : dict of str to FittedMember
        The members with weight, and the graph in ``graph_``.
    graph_name : str
        Which of them is the graph in ``graph_``.
    member_weights : MemberWeights
        Weights of all members that were tried.
    forest_importances : ndarray of shape (n_features,) or None
        Feature importances of the forest.
    """

    members: dict[str, FittedMember]
    graph_name: str
    member_weights: MemberWeights
    forest_importances: FloatArray | None = None

    def check_stored(self) -> None:
        """Raise an error if the parts do not fit together."""
        super().check_stored()
        if not isinstance(self.members.get(self.graph_name), FittedGraph):
            raise ValueError(f"the member {self.graph_name!r:.40} must be a graph")
        if not set(self.members) <= set(self.member_weights.names):
            raise ValueError("a member has no weight")
        for name, member in self.members.items():
            check_numbers(f"shares of {name}", member.shares, self.shares.shape, at_least=0)
        if self.forest_importances is not None:
            check_numbers("importances", self.forest_importances, (None,), at_least=0)

    @property
    def first(self) -> FittedGraph:
        """The graph in ``graph_``."""
        member = self.members[self.graph_name]
        assert isinstance(member, FittedGraph)
        return member

    @property
    def weighting(self) -> MemberWeights:
        """Weights of the members."""
        return self.member_weights

    @property
    def importances(self) -> FloatArray | None:
        """Importances of the features in the forest; None if no forest was grown."""
        return self.forest_importances

    @classmethod
    def build(
        cls,
        members: dict[str, FittedMember],
        graph_name: str,
        weights: MemberWeights,
        labels: LabelCoding,
        tuning: Tuning,
        options: CheckedOptions,
        *,
        sharpness: float,
        n_features: int,
        sparse: bool = False,
        rescaler: Rescaler | PictureFeatures | None = None,
        importances: FloatArray | None = None,
        known_offset: FloatArray | None = None,
    ) -> Self:
        """Combine fitted members, and shift the classes to given or estimated shares.

        `known_offset` is the shift if there are no held-out scores to estimate it with.
        """
        known = labels.labeled
        codes = labels.codes[known]
        k = labels.classes.size
        abstaining = {name: member.abstaining for name, member in members.items()}
        shares = weights.combine({name: m.shares for name, m in members.items()}, abstaining)
        shares[known] = np.eye(k)[codes]
        unreached = np.arange(labels.codes.size)
        for rows in abstaining.values():
            unreached = np.intersect1d(unreached, rows)
        prior = np.bincount(codes, minlength=k) / codes.size
        if isinstance(options.class_prior, np.ndarray):
            prior = options.class_prior
        free = labels.codes < 0
        free[unreached] = False
        offset = np.zeros(k)
        if options.class_prior is not None and k > 1:
            offset = match_masses(sharpen(shares[free], sharpness), prior)
        elif tuning.left_out is not None:
            judged = codes if tuning.checked is None else codes[tuning.checked]
            held_out = sharpen(to_shares(tuning.left_out, prior), sharpness)
            offset = class_offset(sharpen(shares[free], sharpness), held_out, judged)
        elif known_offset is not None:
            offset = known_offset
        return cls(
            labels=labels,
            tuning=tuning,
            shares=shares,
            codes=labels.codes,
            prior=prior,
            sharpness=sharpness,
            offset=offset,
            unreached=unreached,
            n_features=n_features,
            sparse=sparse,
            rescaler=rescaler,
            members=members,
            graph_name=graph_name,
            member_weights=weights,
            forest_importances=importances,
        ).decided()

    def predict(self, X: Features | None, links: sp.csr_array | None = None) -> FloatArray:
        """Return the shares of new rows from their features, links or both.

        A row that coincides with fitted samples gets their labels if they have any, otherwise their
        mean shares.
        """
        found, same = self._member_shares(X, links)
        by_graph = found[self.graph_name]
        if not any(p is not None and self.weighting.of(name) for name, p in found.items()):
            if by_graph is None:
                raise ValueError(
                    "only members that use the given graph have weight: pass adjacency=, the links "
                    "of the new rows to the fitted samples"
                )
            return by_graph  # only feature members have weight, but only links are given
        silent = {name: member.abstains(links) for name, member in self.members.items()}
        shares = self.weighting.combine(found, silent)
        if same is not None and by_graph is not None:
            # If any of the coinciding samples have labels, only these count.
            given = np.flatnonzero(np.diff(same[:, self.labels.labeled].indptr))
            hit = np.setdiff1d(np.flatnonzero(np.diff(same.indptr)), given)
            shares[hit] = (same[hit] @ self.shares) / np.diff(same.indptr)[hit, None]
            shares[given] = by_graph[given]
        return shares

    def _member_shares(
        self, X: Features | None, links: sp.csr_array | None
    ) -> tuple[dict[str, FloatArray | None], sp.csr_array | None]:
        """Return each member's prediction for new rows, and the samples they coincide with."""
        if X is not None and self.rescaler is not None:
            X = self.rescaler.transform(X)
        found: dict[str, FloatArray | None] = {}
        if X is None or self.linked:
            for name, member in self.members.items():
                found[name] = member.predict(X, links, self.labels)
            return found, None
        # Class sizes use the neighbours that the graph in graph_ has found.
        found[self.graph_name], same, weights = self.first.predict_rows(X, self.labels)
        for name, member in self.members.items():
            if isinstance(member, FittedClassSizes):
                found[name] = member.by_weights(weights, same)
            elif name != self.graph_name:
                found[name] = member.predict(X, links, self.labels)
        return found, same

    def graph_share(
        self, X: Features | None = None, links: sp.csr_array | None = None
    ) -> FloatArray:
        """Return the share of each row's prediction that comes from members that use links."""
        if not self.linked:
            return super().graph_share(X, links)
        found: Mapping[str, FloatArray | None]
        if links is None:
            found = {name: member.shares for name, member in self.members.items()}
            codes = self.codes
            edges = self.first.graph.W
        else:
            codes = self.winners(self.predict(X, links))
            found, _ = self._member_shares(X, links)
            edges = links
        rows = np.arange(codes.size)
        by_links = np.zeros(codes.size)
        total = np.zeros(codes.size)
        w = self.weighting
        for name, weight, beta in zip(w.names, w.weights, w.sharpness.tolist(), strict=True):
            shares = found.get(name)
            if weight > 0 and shares is not None:
                vote = weight * sharpen(shares, beta, least=LEAST_SHARE)[rows, codes]
                total += vote
                by_links += vote if self.members[name].knows_links else 0.0
        part = np.divide(by_links, total, out=np.zeros(codes.size), where=total > 0)
        return np.asarray(np.where(np.diff(edges.indptr) > 0, part, 0.0))

    def with_labels(
        self, rows: NDArray[np.intp], codes: NDArray[np.int32], options: CheckedOptions, tol: float
    ) -> Self:
        """Return the committee with other labels.

        Members, weights and calibration stay, and graphs update their scores. The held-out scores
        belong to the old labels and are dropped.
        """
        labels = self.labels.with_labels(rows, codes)
        inner = replace(options, class_prior=None)
        members = {
            name: member.with_labels(self.labels, labels, inner, tol)
            for name, member in self.members.items()
        }
        return self.build(
            members,
            self.graph_name,
            self.weighting,
            labels,
            replace(self.tuning, left_out=None, checked=None),
            options,
            sharpness=self.sharpness,
            n_features=self.n_features,
            sparse=self.sparse,
            rescaler=self.rescaler,
            importances=self.importances,
            known_offset=self.offset,
        )

    def with_classes(self, classes: NDArray[np.generic]) -> Self:
        """Return the committee with more classes (sorted), whose shares are 0 so far."""
        place, common = self._more_classes(classes)
        members = {
            name: member.with_classes(place, classes.size) for name, member in self.members.items()
        }
        return replace(common, members=members)
