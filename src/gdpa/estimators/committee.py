"""The committee: which members it has, and how it is fitted.

A member is a view of the data and a head. The view says what is looked at, the head what is done
with it. :func:`fit_committee` tries every member on held-out labels, weighs the members by one rule
(:mod:`.weights`), and fits those with weight. To add a member, add a line to :data:`MEMBERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from ..graph.features import Features
from ..graph.picture_features import PictureFeatures
from ..graph.rescale import Rescaler
from .data import N_FOLDS, Codes, FitData, Fold, Kind, Sample, folds_of, subsample
from .few_labels import equal_confidence, supported_trust
from .fitted import Committee
from .heads.base import Head
from .heads.class_sizes import Sizes
from .heads.evidence import Evidence
from .heads.gaussian import Gaussian
from .heads.harmonic import FittedGraph, Harmonic
from .heads.kernel import Kernel, LeafKernel
from .heads.linear import Logistic, SelfTrained
from .heads.poisson import PoissonLearning
from .heads.trees import OwnTrees, Trees
from .heads.user_models import user_heads
from .labels import LabelCoding, stratified_folds
from .members import FittedMember
from .options import CheckedOptions, report
from .probabilities import fit_sharpness, judged_labels, left_out_loss, warn_about
from .trials import Trial, cross_validated_loss, try_settings
from .tuning import DEFAULT, LARGE_SELF_LOOPS, Tuning
from .views import (
    COLUMNS,
    FEW_NEIGHBORHOOD_COLUMNS,
    FOREST_GRAPH,
    LINK_GRAPH,
    NEIGHBOR_GRAPH,
    NEIGHBORHOOD,
    SMOOTHED,
    STANDARDISED,
    WHITENED_GRAPH,
    GraphView,
    Views,
)
from .weights import (
    LEAST_SAMPLE_WEIGHT,
    LEAST_WEIGHT,
    MemberWeights,
    WeightRule,
    only_needed,
    rule_for,
    weigh,
)


@dataclass(frozen=True)
class Member:
    """A line of the table of members.

    Parameters
    ----------
    name : str
        Its name.
    head : Head
        What is done, with the view that it looks at.
    kinds : tuple of str
        Kinds of data that it is tried on.
    """

    name: str
    head: Head
    kinds: tuple[Kind, ...]


ROWS: tuple[Kind, ...] = ("table", "pictures", "embedding", "bag of words")
PLAIN: tuple[Kind, ...] = ("table", "pictures", "bag of words")
TEXT: tuple[Kind, ...] = ("embedding", "bag of words", "links")
LINKED: tuple[Kind, ...] = ("links",)
ALONE: tuple[Kind, ...] = ("links without features",)

SMOOTHED_MODEL = Logistic(SMOOTHED, added=2)

# On real data each member is best on some sets and none on most, so the committee gains from their
# differences. Beside links, trees and linear models look at the neighbourhood too.
MEMBERS = (
    Member("links", Harmonic(LINK_GRAPH, LARGE_SELF_LOOPS), LINKED + ALONE),
    Member("poisson", PoissonLearning(LINK_GRAPH), ALONE),
    Member("link class sizes", Sizes(LINK_GRAPH), ALONE),
    Member("neighbours", Harmonic(NEIGHBOR_GRAPH), ROWS + LINKED),
    Member("class sizes", Sizes(NEIGHBOR_GRAPH), ROWS),
    Member("smoothed", SMOOTHED_MODEL, TEXT),
    Member("links and features", Evidence(LINK_GRAPH, SMOOTHED_MODEL, "smoothed"), LINKED),
    Member("neighbour columns", Logistic(NEIGHBORHOOD), LINKED),
    Member("neighbour forest", OwnTrees(FEW_NEIGHBORHOOD_COLUMNS), LINKED),
    Member("forest", Trees(COLUMNS), PLAIN),
    Member("linear", Logistic(STANDARDISED), PLAIN),
    Member("self-trained", SelfTrained(STANDARDISED), PLAIN),
    Member("kernel", Kernel(COLUMNS), ROWS + LINKED),
    Member("gaussian", Gaussian(STANDARDISED), PLAIN),
    Member("whitened", Harmonic(WHITENED_GRAPH), ROWS),
    Member("forest graph", Harmonic(FOREST_GRAPH), PLAIN),
    Member("forest kernel", LeafKernel(COLUMNS), PLAIN),
)

# The neighbour graph is tried on all samples if they have at least this many times the labels of
# the subsample: no other view gains as much from more labels.
MANY_TIMES_THE_LABELS = 3


def fit_committee(
    X: Features,
    labels: LabelCoding,
    options: CheckedOptions,
    *,
    links: sp.csr_array | None = None,
    models: Sequence[BaseEstimator] = (),
    members: Sequence[Member] = MEMBERS,
    rule: WeightRule | None = None,
    rescaler: Rescaler | PictureFeatures | None = None,
) -> Committee:
    """Try the members on held-out labels, weigh them, and fit those with weight.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        Checked and rescaled features.
    labels : LabelCoding
        The labels.
    options : CheckedOptions
        Options of the fit.
    links : csr_array of shape (n_samples, n_samples), optional
        Checked user-supplied graph of the samples.
    models : sequence of estimators, optional
        User-supplied models.
    members : sequence of Member, optional
        The members.
    rule : WeightRule, optional
        How members are weighed; by default the rule for this kind of data.
    rescaler : Rescaler or PictureFeatures, optional
        Rescaling that was applied to the features, or how they were learned from pictures.
    """
    of_pictures = isinstance(rescaler, PictureFeatures)
    data = given_data(X, labels, options, links, of_pictures=of_pictures)
    heads: dict[str, Head] = {m.name: m.head for m in members if data.kind in m.kinds}
    own = user_heads(models, list(heads), options.random_state)
    heads |= own
    graph_name = "neighbours" if links is None else "links"

    sample = subsample(data)  # the data itself if it is small
    views = Views(data, fold_numbers(data))
    on_sample = views.on_sample(sample)
    report(options, stage="graph", nodes=data.n_samples, edges=n_edges(views))

    heads, trials = try_members(heads, views, on_sample, sample)
    held_out = {name: trial.held_out for name, trial in trials.items()}
    weights = weigh(
        held_out or list(heads),
        sample.data.codes,
        rule or rule_for(data.kind),
        models=own,
        least=LEAST_SAMPLE_WEIGHT if data.many else LEAST_WEIGHT,
    )
    if data.many and trials:
        weights = only_needed(weights, held_out, sample.data.codes)
    fitted = fit_members(heads, trials, weights, views, keep=graph_name)
    if trials:
        weights = answered_everywhere(heads, trials, weights, views, fitted, sample.data.codes)
    else:
        weights = without_held_out(weights, fitted, labels)
    tuning = held_out_tuning(trials, weights, data, sample)
    graph = fitted[graph_name]
    assert isinstance(graph, FittedGraph)
    committee = Committee.build(
        fitted,
        graph_name,
        weights,
        labels,
        replace(tuning, setting=graph.setting, tried=len(heads)),
        options,
        sharpness=calibrated_sharpness(tuning, sample, options),
        n_features=X.shape[1] if rescaler is None else rescaler.columns.size,
        sparse=sp.issparse(X),
        rescaler=rescaler,
        importances=views.importances if on_sample is views else on_sample.importances,
    )
    warn_about(committee, graph.run)
    return committee


def given_data(
    X: Features,
    labels: LabelCoding,
    options: CheckedOptions,
    links: sp.csr_array | None,
    *,
    of_pictures: bool = False,
) -> FitData:
    """Return the data of a fit; the class prior applies to the committee, not to its members."""
    shares = options.class_prior
    if isinstance(shares, str):  # "labeled"
        codes = labels.codes[labels.labeled]
        shares = np.bincount(codes, minlength=labels.classes.size) / codes.size
    return FitData(
        X,
        labels,
        replace(options, class_prior=None),
        links,
        class_shares=shares,
        of_pictures=of_pictures,
    )


def fold_numbers(data: FitData) -> Codes | None:
    """Return the fold of each label; None if there are too few labels to hold any out."""
    return stratified_folds(data.codes, N_FOLDS) if data.enough_labels else None


def n_edges(views: Views) -> int:
    """Return the number of edges of the graph in ``graph_``."""
    looked_at = views.neighbors if views.data.links is None else views.links
    return int(looked_at.graph.W.nnz) // 2


def trial_folds(head: Head, data: FitData, sample: Sample) -> tuple[bool, list[Fold]]:
    """Return whether a head is tried on all samples, and the folds that it predicts.

    The labels to predict are always those of the subsample. On all samples they are predicted at
    once, or in few folds: every solve takes long.
    """
    where = head.view.tried_on
    on_links = where == "whole" and data.links is not None
    many_times = data.codes.size >= MANY_TIMES_THE_LABELS * sample.positions.size
    at_once = where == "whole if many labels" and data.links is None and many_times
    if not data.many or not (on_links or at_once):
        return False, folds_of(sample.folds)
    n_folds = N_FOLDS
    if at_once:
        n_folds = 1
    elif data.n_samples > data.options.policy.huge_nodes:
        n_folds = 1 if many_times else 2
    numbers = np.full(data.codes.size, -1, dtype=np.int32)
    numbers[sample.positions] = sample.folds % n_folds
    return True, folds_of(numbers)


def try_members(
    heads: Mapping[str, Head], views: Views, on_sample: Views, sample: Sample
) -> tuple[dict[str, Head], dict[str, Trial]]:
    """Return the heads that apply to the data, and their trials; no trials with too few labels."""
    data = views.data
    applied: dict[str, Head] = {}
    trials: dict[str, Trial] = {}
    for name, given in heads.items():
        head = given.prepared(views, trials)
        if head is None:
            continue
        applied[name] = head
        if views.folds is None:
            continue
        whole, folds = trial_folds(head, data, sample)
        looked_at = views if whole else on_sample
        trials[name] = try_settings(
            partial(head.held_out, looked_at),
            head.settings(looked_at),
            folds,
            looked_at.data.codes,
            data.n_classes,
        )
        report(data.options, stage="member", member=name, action="cross-validated")
    return applied, trials


def fit_members(
    heads: Mapping[str, Head],
    trials: Mapping[str, Trial],
    weights: MemberWeights,
    views: Views,
    *,
    keep: str,
) -> dict[str, FittedMember]:
    """Fit the members with weight and the graph in ``graph_`` to all samples and labels."""
    fitted: dict[str, FittedMember] = {}
    for name, head in heads.items():
        weight = weights.of(name)
        if weight > 0 or name == keep:
            trial = trials.get(name)
            setting = head.settings(views)[-1] if trial is None else trial.setting
            fitted[name] = head.fit(views, setting)
            report(views.data.options, stage="member", member=name, action="fitted", weight=weight)
    return fitted


def answered_everywhere(
    heads: Mapping[str, Head],
    trials: Mapping[str, Trial],
    weights: MemberWeights,
    views: Views,
    fitted: dict[str, FittedMember],
    codes: Codes,
) -> MemberWeights:
    """Fit one more member if those with weight leave samples without an answer.

    Graphs know nothing about samples without a path to a label. The member with the lowest held-out
    loss among those that do not spread labels over a graph gets the least weight, so it decides
    only where the others are silent.
    """
    silent = [
        set(member.abstaining.tolist()) for name, member in fitted.items() if weights.of(name) > 0
    ]
    assert weights.losses is not None
    losses = dict(zip(weights.names, weights.losses.tolist(), strict=True))
    able = [
        name
        for name in trials
        if weights.of(name) == 0 and not isinstance(heads[name].view, GraphView)
    ]
    if not set.intersection(*silent) or not able:
        return weights
    best = min(able, key=lambda name: losses[name])
    fitted[best] = heads[best].fit(views, trials[best].setting)
    new = (1.0 - LEAST_WEIGHT) * weights.weights
    new[weights.names.index(best)] = LEAST_WEIGHT
    found = replace(weights, weights=new)
    held_out = {name: trial.held_out for name, trial in trials.items()}
    loss = cross_validated_loss(found.combine(held_out), codes)[0].mean()
    return replace(found, loss=float(loss))


def held_out_tuning(
    trials: Mapping[str, Trial], weights: MemberWeights, data: FitData, sample: Sample
) -> Tuning:
    """Return the held-out scores of the committee and their loss."""
    loss = 1.0
    source = "too few labels"
    scores = None
    if trials:
        scores = weights.combine({name: trial.held_out for name, trial in trials.items()})
        judged = judged_labels(sample.data.codes, data.n_classes)
        loss = left_out_loss(sample.data.targets[judged], scores[judged])
        source = "sample" if data.many else "k-fold"
    report(
        data.options,
        stage="tuning",
        source=source,
        tried=len(weights.names),
        loss=loss,
        weights=dict(zip(weights.names, weights.weights.tolist(), strict=True)),
    )
    checked = sample.positions if trials and data.many else None
    return Tuning(DEFAULT, loss, source, scores, len(weights.names), checked=checked)


def without_held_out(
    weights: MemberWeights, fitted: Mapping[str, FittedMember], labels: LabelCoding
) -> MemberWeights:
    """Give all members the same confidence, and lower it to what their agreement supports."""
    free = labels.codes < 0
    shares = {name: member.shares[free] for name, member in fitted.items()}
    counted = [name for name in shares if weights.of(name) > 0]
    sharpness = weights.sharpness.copy()
    places = [weights.names.index(name) for name in counted]
    sharpness[places] = equal_confidence([shares[name] for name in counted])
    weights = replace(weights, sharpness=sharpness)
    labelings = [p.argmax(axis=1) for p in shares.values()]
    votes = np.array([weights.of(name) for name in shares])
    trust = supported_trust(weights.combine(shares), labelings, votes)
    return replace(weights, trust=trust)


def calibrated_sharpness(tuning: Tuning, sample: Sample, options: CheckedOptions) -> float:
    """Return the sharpness of the committee's probabilities, fitted on its held-out scores."""
    fewest = options.policy.calibration_labels
    return fit_sharpness(tuning.left_out, sample.data.codes, fewest=fewest)
