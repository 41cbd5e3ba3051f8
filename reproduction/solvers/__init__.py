"""Solver variants that only the paper's tables need, beside those of the package's registry."""

from .modified_dual_published import ModifiedDualPublished
from .sdr_printed import SDRPrinted

SOLVERS = {solver.name: solver for solver in (ModifiedDualPublished, SDRPrinted)}
