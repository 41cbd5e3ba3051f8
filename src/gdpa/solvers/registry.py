"""Registry of all methods by name, and :func:`solve`, which runs one of them.

A solver's module is imported when its method is first used. Importing the package stays cheap, and
a missing extra affects only the methods that need it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, fields
from typing import Any

from ..errors import UnsupportedProblemError, nearest_name
from ..problem import BinaryQuadratic, Problem
from ..problem.cut_form import is_sparse
from ..solution import Solution
from .base import OtherMethodsError, Solver
from .switching import switched_form

# name -> "module:Class" or the class itself, in the order of list_methods().
METHODS: dict[str, str | type[Solver]] = {
    "harmonic": "harmonic:Harmonic",
    "gdpa": "gdpa:GDPA",
    "gdpa-published": "comparators.gdpa_published:GDPAPublished",
    "sdr-interior-point": "sdr_interior_point:SDRInteriorPoint",
    "sdr-admm": "comparators.sdr_admm:SDRADMM",
    "modified-dual-interior-point": "comparators.modified_dual:ModifiedDualInteriorPoint",
    "modified-dual-admm": "comparators.modified_dual:ModifiedDualADMM",
    "sdr-low-rank": "sdr_low_rank:SDRLowRank",
    "min-cut": "min_cut:MinCut",
    "search": "signed_search:SignedSearch",
    "branch-and-bound": "branch_and_bound:BranchAndBound",
    "branch-and-cut": "branch_and_cut:BranchAndCut",
    "vote": "vote:Vote",
    "poisson": "poisson:Poisson",
    "class-sizes": "class_sizes:ClassSizes",
    "sdcut": "comparators.sdcut:SDcut",
    "bcr": "comparators.bcr:BCR",
    "sns": "comparators.sns:SNS",
    "glr-box": "comparators.glr_box:GLRBox",
    "spectral": "comparators.spectral:Spectral",
}


@dataclass(frozen=True)
class MethodInfo:
    """One row of the list of methods.

    Parameters
    ----------
    name : str
        What to pass as ``method=``.
    summary : str
        Short description.
    kind : str
        "exact", "relaxation", "heuristic" or "limit".
    binary_quadratic : bool
        Whether it accepts a :class:`~gdpa.BinaryQuadratic`.
    signed : bool
        Whether it accepts negative couplings.
    extras : tuple of str
        Extras it needs; empty if the core dependencies are enough.
    options : tuple of str
        Names of its options.
    """

    name: str
    summary: str
    kind: str
    binary_quadratic: bool
    signed: bool
    extras: tuple[str, ...]
    options: tuple[str, ...]


def get_solver(name: str) -> type[Solver]:
    """Return the solver class of a method."""
    if name not in METHODS:
        raise ValueError(f"method={name!r} is not known; {nearest_name(name, list(METHODS))}")
    entry = METHODS[name]
    if not isinstance(entry, str):
        return entry
    module, attribute = entry.split(":")
    solver: type[Solver] = getattr(
        importlib.import_module(f".{module}", package=__package__), attribute
    )
    return solver


def register(name: str, solver: type[Solver]) -> None:
    """Add your own method to the registry.

    Parameters
    ----------
    name : str
        What to pass as ``method=``. It must not be the name of another method.
    solver : type
        A subclass of :class:`~gdpa.solvers.Solver`.
    """
    if name == "auto" or METHODS.get(name, solver) is not solver:
        raise ValueError(f"name={name!r} is already a method; choose another name")
    METHODS[name] = solver


def choose_method(problem: Problem, *, proof: bool = False) -> str:
    """Return the method that ``method="auto"`` selects; with `proof`, if a proof is to be written.

    This is "harmonic" for a graph with labels and non-negative weights. For other problems it is
    "min-cut" if the couplings are non-negative or can be switched to be, because the cut is then
    the exact optimum. Otherwise it is "branch-and-bound" up to 60 variables and "search" beyond.
    If a proof is to be written, it is "branch-and-cut" for sparse couplings.
    """
    quadratic = isinstance(problem, BinaryQuadratic)
    if proof and quadratic and is_sparse(problem.n_nodes, problem.n_edges):
        return "branch-and-cut"
    if not quadratic and not getattr(problem, "signed", False):
        return "harmonic"
    if not problem.signed or switched_form(problem.reduced()) is not None:
        return "min-cut"
    return "branch-and-bound" if problem.n_nodes <= 60 else "search"


def _option_names(method: str) -> tuple[str, ...]:
    """Return the names of a method's options."""
    return tuple(f.name for f in fields(get_solver(method)))


def list_methods() -> tuple[MethodInfo, ...]:
    """List all methods, with the problems they accept and the extras they need.

    Returns
    -------
    tuple of MethodInfo
        One per method.
    """
    rows = []
    for name in METHODS:
        solver = get_solver(name)
        rows.append(
            MethodInfo(
                name=name,
                summary=solver.summary,
                kind=solver.kind,
                binary_quadratic=solver.binary_quadratic,
                signed=solver.signed,
                extras=tuple(dict.fromkeys(extra for _, extra in solver.extras)),
                options=_option_names(name),
            )
        )
    return tuple(rows)


def solve(problem: Problem, method: str = "auto", **options: Any) -> Solution:
    """Solve a problem by a method of the registry.

    Parameters
    ----------
    problem : GraphProblem or BinaryQuadratic
        What to solve.
    method : str, default="auto"
        Name of the method; see :func:`list_methods`. "auto" is the harmonic function for a graph.
        For a binary quadratic problem it is the exact minimum cut where that is valid, otherwise
        branch and bound up to 60 variables, otherwise search with the semidefinite relaxation. If
        only one of these has a given option, that one is used, but a minimum cut ignores
        `time_limit`, `effort` and `n_jobs`. ``Solution.method`` names the choice.
    **options
        Options of the method. All methods have `tol`, `max_iter`, `x0`, `callback` and
        `random_state`.

    Returns
    -------
    Solution
        Labels, scores, bounds and history.

    Examples
    --------
    >>> import gdpa
    >>> W = [[0, 1, 0, 0], [1, 0, 0.1, 0], [0, 0.1, 0, 1], [0, 0, 1, 0]]
    >>> gdpa.solve(gdpa.GraphProblem(W, [1, 0, 0, -1])).labels.tolist()
    [1, 1, -1, -1]
    """
    if method == "auto":
        method = choose_method(problem)
        limits = {"time_limit", "effort", "n_jobs"} & options.keys()
        if method == "min-cut" and options.keys() - limits <= set(_option_names(method)):
            # The cut is exact without the limits of a search, which are only checked.
            get_solver("search")(**{name: options.pop(name) for name in limits})
        if method != "harmonic":
            candidates = (method, "branch-and-bound", "search")
            accepting = (m for m in candidates if options.keys() <= set(_option_names(m)))
            method = next(accepting, method)
    accepted = list(_option_names(method))
    for option in options:
        if option not in accepted:
            raise ValueError(
                f"method {method!r} has no option {option!r}; {nearest_name(option, accepted)}"
            )
    try:
        return get_solver(method)(**options).solve(problem)
    except OtherMethodsError as error:
        able = []
        for m in list_methods():
            quadratic = m.binary_quadratic or not isinstance(problem, BinaryQuadratic)
            if quadratic and (m.signed or not problem.signed):
                able.append(m.name)
        raise UnsupportedProblemError(
            f"{error}; methods that accept it: {', '.join(able)}"
        ) from None
