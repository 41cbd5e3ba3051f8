"""One solver per file, one base, one registry."""

from .base import Outcome, Run, Solver, StopSolver
from .registry import MethodInfo, get_solver, list_methods, solve

__all__ = [
    "MethodInfo",
    "Outcome",
    "Run",
    "Solver",
    "StopSolver",
    "get_solver",
    "list_methods",
    "solve",
]
