"""What is compared: the package's methods, the paper's modes of GDPA, scikit-learn's classifiers.

Two methods carry a sign oracle. The authors ran BCR with its matrix negated and SNS on +L although
it maximises, and report for both the better of x and -x, judged on the hidden labels. This is
repeated only here (``sign_oracle``), so that their columns can be compared; the "stated" variants
use no hidden label.
"""

from __future__ import annotations

import contextlib
import tomllib
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from gdpa.errors import nearest_name
from gdpa.problem import GraphProblem
from gdpa.solution import Solution
from gdpa.solvers.registry import get_solver

from .protocol import PaperRun
from .solvers import SOLVERS

# The paper's names of the columns in the authors' files, where the two differ.
_COLUMNS = {"CDCS": "CDCS-8", "CDCS (modified dual)": "CDCS-20"}


def program_of(solver: str, options: Mapping[str, Any]) -> str:
    """Return what runs in words: the solver with its options."""
    return f"{solver}({', '.join(f'{key}={value!r}' for key, value in options.items())})"


@dataclass(frozen=True)
class MethodSpec:
    """One method of the experiments.

    Parameters
    ----------
    name : str
        What ``--methods`` takes.
    label : str
        Name in tables and figures.
    group : str
        Methods of a group share a table; ``tables.toml`` names the groups.
    paper : str or None
        Column of the paper's Table 2 that it is compared with.
    solver : str, bool
        Name of the solver; True if that is `name`, False if it is an estimator.
    options : mapping
        Options of the solver.
    sign_oracle : bool
        Whether the better of x and -x on the hidden labels is reported, as the authors did.
    default : bool
        Whether Table 2 runs it without being asked by name.
    runtime : bool
        Whether the figure of running times shows it.
    look : tuple or None
        Numbers of colour and marker, and line style in figures.
    """

    name: str
    label: str
    group: str
    paper: str | None = None
    solver: str | bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    sign_oracle: bool = False
    default: bool = True
    runtime: bool = False
    look: tuple[int, int, str] | None = None

    @property
    def program(self) -> str:
        """What runs: the solver with its options, or the name of the estimator."""
        if not self.solver:
            return self.name
        return program_of(self.name if self.solver is True else str(self.solver), self.options)

    @property
    def column(self) -> str | None:
        """Its column in the authors' stored results."""
        if self.name == "harmonic":
            return "GLR"
        return _COLUMNS.get(self.paper, self.paper) if self.paper else None


_SUPERVISED = {
    "logistic-regression": LogisticRegression(max_iter=1000),
    "svc": SVC(),
    "random-forest": RandomForestClassifier(n_estimators=100, random_state=0, n_jobs=1),
}
_FILE = tomllib.loads((files(__package__) / "methods.toml").read_text(encoding="utf-8"))
METHODS = {name: MethodSpec(name=name, **entry) for name, entry in _FILE.items()}
RUNTIME_METHODS = tuple(name for name, spec in METHODS.items() if spec.runtime)


def has_licence(name: str) -> bool:
    """Return whether a method can run: all can but MOSEK, which needs a paid licence."""
    return name != "sdr-mosek"


def check_methods(names: Iterable[str], accepted: Iterable[str] = METHODS) -> tuple[str, ...]:
    """Return the names of methods, each once; an unknown one raises with the nearest name."""
    choices = list(accepted)
    for name in names:
        if name not in choices:
            raise ValueError(f"methods has {name!r}; {nearest_name(name, choices)}")
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Labels of a fold by one method.

    Parameters
    ----------
    labels : ndarray of int8
        A label for each sample of the fold.
    solution : Solution or None
        The whole solution, if the method is a solver.
    """

    labels: NDArray[np.int8]
    solution: Solution | None = None

    @property
    def converged(self) -> bool:
        """Whether the method reports convergence."""
        return self.solution is None or bool(self.solution.converged)


def predict(name: str, run: PaperRun, problem: GraphProblem) -> Prediction:
    """Classify the unlabelled samples of one run, without looking at the hidden labels.

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
        The labels.
    """
    spec = METHODS[name]
    if spec.solver:
        return solve_with(spec, problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Prediction(_estimator_labels(name, run))


def solve_with(spec: MethodSpec, problem: GraphProblem) -> Prediction:
    """Run a solver on a problem; the row says whether it converged, so nothing is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name = spec.name if spec.solver is True else str(spec.solver)
        solver = SOLVERS.get(name) or get_solver(name)
        solution = solver(**spec.options).solve(problem)
    return Prediction(solution.labels, solution)


def graph_classifier() -> Any:
    """Return this package's estimator on one neighbour graph; 0 marks a hidden label."""
    from gdpa import GraphClassifier

    return GraphClassifier(unlabeled=0, n_jobs=1)


def _estimator_labels(name: str, run: PaperRun) -> NDArray[np.int8]:
    """Train on the labelled half, predict the other; the first three estimators see both."""
    if name == "graph-classifier":
        model = graph_classifier().fit(run.X, run.labels.astype(np.int64))
        return np.asarray(model.transduction_).astype(np.int8)
    known = run.labels[run.labeled]
    labels = run.labels.copy()
    if (known == known[0]).all():
        labels[:] = known[0]
        return labels
    if name.startswith("label-spreading"):
        n_neighbors, kernel = min(7, run.y.size - 1), name.rsplit("-", 1)[1]
        # gamma=1 is the paper's kernel; scikit-learn's default of 20 leaves nodes without weight.
        model = LabelSpreading(kernel=kernel, gamma=1.0, n_neighbors=n_neighbors, max_iter=1000)
        marked = np.where(run.labels > 0, 1, np.where(run.labels < 0, 0, -1))
        model.fit(run.X, marked)
        return np.where(model.transduction_ == 1, 1, -1).astype(np.int8)
    model = _SUPERVISED[name].fit(run.X[run.labeled], known)
    labels[run.unlabeled] = model.predict(run.X[run.unlabeled])
    return labels


@cache
def warm_up(name: str) -> None:
    """Run a method once on a tiny problem, so that imports are not part of its first time."""
    y = np.where(np.arange(24) % 2 == 0, 1, -1).astype(np.int8)
    X = np.random.default_rng(0).normal(size=(24, 3))
    X[:, 0] += y
    half = np.arange(12)
    labels = np.where(np.arange(24) < 12, y, 0).astype(np.int8)
    run = PaperRun("", "", 0, 1, 1, np.arange(24), X, labels, y, half, half + 12)
    with contextlib.suppress(Exception):  # the real run will report what is wrong
        predict(name, run, run.problem())
