"""Linear algebra for the solvers: matrix products, SPD systems, the first eigenvector."""

from .first_eigenvector import EigenResult, first_eigenvector
from .operator import Matrix
from .spd import SPDResult, solve_spd

__all__ = ["EigenResult", "Matrix", "SPDResult", "first_eigenvector", "solve_spd"]
