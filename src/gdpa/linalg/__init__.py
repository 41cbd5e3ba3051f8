"""Linear algebra of the solvers: first eigenvector, SPD systems, preconditioners."""

from .first_eigenvector import EigenResult, first_eigenvector
from .spd import SPDResult, solve_spd

__all__ = ["EigenResult", "SPDResult", "first_eigenvector", "solve_spd"]
