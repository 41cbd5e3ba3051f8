"""What is to be solved: a graph with labels, classes on a graph, or a binary quadratic form.

:class:`GraphProblem` is the paper's problem, :class:`ClassProblem` several of them on one graph,
:class:`BinaryQuadratic` ``max x' P x`` over ``{-1, +1}^n``, signed or not. To make every bound a
lower bound, objectives are always stated as minimisation; for :class:`BinaryQuadratic` the
objective is ``-x' P x``.
"""

from .binary_quadratic import BinaryQuadratic
from .class_problem import ClassProblem
from .graph_problem import GraphProblem, ReducedForm

__all__ = ["BinaryQuadratic", "ClassProblem", "GraphProblem", "Problem", "ReducedForm"]

Problem = GraphProblem | BinaryQuadratic
