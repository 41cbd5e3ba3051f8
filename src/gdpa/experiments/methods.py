"""What is compared: the package's methods, the paper's modes of GDPA, scikit-learn's classifiers.

Two methods carry a sign oracle. The authors ran BCR with its matrix negated and SNS on +L although
it maximises, and report for both the better of x and -x, judged on the hidden labels. Here, and
nowhere else in the package, this is repeated (``sign_oracle``), so that their columns can be
compared; the "stated" variants use no hidden label.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import nearest_name
from ..problem import GraphProblem
from ..solution import Solution
from .protocol import PaperRun
from .published import TABLE2_COLUMNS

__all__ = [
    "METHODS",
    "MethodSpec",
    "Prediction",
    "check_methods",
    "has_licence",
    "predict",
    "solve_with",
    "warm_up",
]


@dataclass(frozen=True)
class MethodSpec:
    """One method of the experiments.

    Parameters
    ----------
    name : str
        What ``--methods`` takes.
    label : str
        Name in tables and figures.
    kind : {"solver", "gdpa-classifier", "sklearn"}
        Whether it is a method of :func:`gdpa.solve`, the estimator, or one of scikit-learn's.
    method : str
        Name in the registry, where it is a solver.
    options : mapping
        Options of the solver.
    paper : str or None
        Column of the paper's Table 2 that it is set beside.
    sign_oracle : bool
        Whether the better of x and -x on the hidden labels is reported, as the authors did.
    group : {"GDPA", "relaxation", "other", "classifier"}
        Which table per data set it stands in.
    default : bool
        Whether Table 2 runs it without being asked by name.
    runtime : bool
        Whether the figure of running times shows it.
    """

    name: str
    label: str
    kind: str = "solver"
    method: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    paper: str | None = None
    sign_oracle: bool = False
    group: str = "other"
    default: bool = True
    runtime: bool = False

    @property
    def column(self) -> str | None:
        """Its column in the authors' stored results."""
        if self.name == "harmonic":
            return "GLR"
        return TABLE2_COLUMNS.get(self.paper, self.paper) if self.paper else None


_ALL = (
    MethodSpec("gdpa-published", "GDPA as published", method="gdpa-published",
               group="GDPA", paper="GDPA", runtime=True),
    MethodSpec("gdpa-as-written", "GDPA as written", method="gdpa", group="GDPA",
               options={"lp": "highs"}, paper="GDPA", runtime=True),
    MethodSpec("gdpa", "GDPA, default", method="gdpa", group="GDPA", runtime=True),
    MethodSpec("gdpa-classifier", "GDPAClassifier", kind="gdpa-classifier", group="GDPA"),
    MethodSpec("vote", "One-step vote", method="vote", group="GDPA", runtime=True),
    MethodSpec("sdr-interior-point", "SDR, interior point", method="sdr-interior-point",
               paper="SeDuMi", group="relaxation", runtime=True),
    MethodSpec("sdr-mosek", "SDR, MOSEK", method="sdr-interior-point",
               options={"engine": "mosek"}, paper="MOSEK", group="relaxation"),
    MethodSpec("sdr-admm", "SDR, ADMM", method="sdr-admm", paper="CDCS", group="relaxation",
               runtime=True),
    MethodSpec("sdr-low-rank", "SDR, low rank", method="sdr-low-rank", group="relaxation",
               runtime=True),
    MethodSpec("sdr-printed", "SDR as printed", method="sdr-printed", group="relaxation"),
    MethodSpec("modified-dual-admm", "Modified dual, ADMM", method="modified-dual-admm",
               paper="CDCS (modified dual)", group="relaxation", runtime=True),
    MethodSpec("modified-dual-published", "Modified dual as published",
               method="modified-dual-published", paper="CDCS (modified dual)",
               group="relaxation"),
    MethodSpec("modified-dual-interior-point", "Modified dual, interior point",
               method="modified-dual-interior-point", paper="CDCS (modified dual)",
               group="relaxation", default=False),
    MethodSpec("bcr-authors", "BCR, authors' variant", method="bcr",
               options={"variant": "authors"}, paper="BCR", sign_oracle=True, runtime=True),
    MethodSpec("bcr", "BCR as stated", method="bcr"),
    MethodSpec("sdcut", "SDcut", method="sdcut", paper="SDcut", runtime=True),
    MethodSpec("glr-box", "GLR-box", method="glr-box", paper="GLR-box", runtime=True),
    MethodSpec("sns-authors", "SNS, authors' variant", method="sns",
               options={"variant": "authors"}, paper="SNS", sign_oracle=True, runtime=True),
    MethodSpec("sns", "SNS as stated", method="sns"),
    MethodSpec("harmonic", "Harmonic (closed-form GLR)", method="harmonic", runtime=True),
    MethodSpec("min-cut", "Exact minimum cut", method="min-cut", runtime=True),
    MethodSpec("spectral", "SPEC", method="spectral"),
    MethodSpec("label-spreading-rbf", "LabelSpreading, rbf", kind="sklearn", group="classifier"),
    MethodSpec("label-spreading-knn", "LabelSpreading, knn", kind="sklearn", group="classifier"),
    MethodSpec("logistic-regression", "LogisticRegression", kind="sklearn", group="classifier"),
    MethodSpec("svc", "SVC, rbf", kind="sklearn", group="classifier"),
    MethodSpec("random-forest", "RandomForest", kind="sklearn", group="classifier"),
)  # fmt: skip

METHODS: dict[str, MethodSpec] = {spec.name: spec for spec in _ALL}


def has_licence(name: str) -> bool:
    """Whether a method can be had: all can but MOSEK, which those install who pay for it."""
    return name != "sdr-mosek" or find_spec("mosek") is not None


def check_methods(names: Any, accepted: Any = None) -> tuple[str, ...]:
    """Check names of methods.

    Parameters
    ----------
    names : iterable of str
        What was asked for.
    accepted : iterable of str, optional
        What is possible; all methods by default.

    Returns
    -------
    tuple of str
        The names, each once, in the order given.

    Raises
    ------
    ValueError
        If one is not known, with the nearest name.
    """
    choices = list(METHODS if accepted is None else accepted)
    for name in names:
        if name not in choices:
            raise ValueError(f"methods has {name!r}; {nearest_name(name, choices)}")
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Labels of a fold by one method, and how they came about.

    Parameters
    ----------
    labels : ndarray of int8
        A label for each sample of the fold.
    converged : bool
        Whether the method says so.
    message : str
        Its last word.
    solution : Solution or None
        The whole answer, where it is a solver's.
    """

    labels: NDArray[np.int8]
    converged: bool = True
    message: str = ""
    solution: Solution | None = None


def predict(name: str, run: PaperRun, problem: GraphProblem) -> Prediction:
    """Classify the unlabelled samples of one run.

    Parameters
    ----------
    name : str
        Name of the method.
    run : PaperRun
        Features and known labels.
    problem : GraphProblem
        The same run as a problem; built outside, so that time measures the method alone.

    Returns
    -------
    Prediction
        The labels. Hidden labels were not looked at.
    """
    spec = METHODS[name]
    with warnings.catch_warnings():
        # What they say is in the row: `converged` and `message`.
        warnings.simplefilter("ignore")
        if spec.kind == "solver":
            return solve_with(spec, problem)
        if spec.kind == "gdpa-classifier":
            return _gdpa_classifier(run)
        return Prediction(labels=_sklearn(name, run))


def solve_with(spec: MethodSpec, problem: GraphProblem) -> Prediction:
    """Run a solver on a problem.

    Parameters
    ----------
    spec : MethodSpec
        The method.
    problem : GraphProblem
        The problem.

    Returns
    -------
    Prediction
        Labels and the whole solution.
    """
    from ..solvers.registry import solve

    solution = solve(problem, spec.method, **dict(spec.options))
    return Prediction(solution.labels, solution.converged, solution.message, solution)


def _gdpa_classifier(run: PaperRun) -> Prediction:
    from ..estimators import GDPAClassifier

    # One graph, as all others here have, told that 0 marks a hidden label (-1 is a class here).
    model = GDPAClassifier(graph="knn", unlabeled=0, n_jobs=1)
    model.fit(run.X, run.labels.astype(np.int64))
    return Prediction(labels=np.asarray(model.transduction_).astype(np.int8))


def _sklearn(name: str, run: PaperRun) -> NDArray[np.int8]:
    """Train on the labelled half, predict the other; LabelSpreading sees both."""
    known = run.labels[run.labeled]
    labels = run.labels.copy()
    if (known == known[0]).all():
        labels[:] = known[0]
        return labels
    if name.startswith("label-spreading"):
        from sklearn.semi_supervised import LabelSpreading

        n_neighbors = min(7, run.y.size - 1)
        kernel = name.rsplit("-", 1)[1]
        # gamma=1 is the paper's kernel; scikit-learn's default of 20 leaves nodes without weight.
        model = LabelSpreading(kernel=kernel, gamma=1.0, n_neighbors=n_neighbors, max_iter=1000)
        marked = np.where(run.labels > 0, 1, np.where(run.labels < 0, 0, -1))
        model.fit(run.X, marked)
        return np.where(model.transduction_ == 1, 1, -1).astype(np.int8)
    model = _supervised(name)
    model.fit(run.X[run.labeled], known)
    labels[run.unlabeled] = model.predict(run.X[run.unlabeled])
    return labels


def _supervised(name: str) -> Any:
    if name == "logistic-regression":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)
    if name == "svc":
        from sklearn.svm import SVC

        return SVC()
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=0, n_jobs=1)


_warm: set[str] = set()


def warm_up(name: str) -> None:
    """Run a method once on a tiny problem, so that imports are not part of its first time.

    Parameters
    ----------
    name : str
        Name of the method.
    """
    spec = METHODS[name]
    if name in _warm:
        return
    _warm.add(name)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = np.where(np.arange(24) % 2 == 0, 1, -1).astype(np.int8)
    X[:, 0] += y
    half = np.arange(12)
    labels = np.where(np.arange(24) < 12, y, 0).astype(np.int8)
    run = PaperRun(
        dataset="", rescaling="", fold=0, n_folds=1, split=1, indices=np.arange(24), X=X,
        labels=labels, y=y, labeled=half, unlabeled=half + 12,
    )  # fmt: skip
    attempt: Callable[..., Prediction] = predict
    try:
        attempt(spec.name, run, run.problem())
    except Exception:  # the real run will say what is wrong
        return
