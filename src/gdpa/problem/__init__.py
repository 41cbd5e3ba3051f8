"""Problem classes: a graph with labels, several classes on a graph, or a binary quadratic form.

:class:`GraphProblem` is the paper's problem. :class:`ClassProblem` has several classes on one
graph. :class:`BinaryQuadratic` is ``max x' P x`` over ``{-1, +1}^n``, signed or not. Objectives are
always minimised, so that every bound is a lower bound. For :class:`BinaryQuadratic` the objective
is ``-x' P x``.
"""

from .binary_quadratic import BinaryQuadratic
from .class_problem import ClassProblem
from .graph_problem import GraphProblem, ReducedForm

__all__ = ["BinaryQuadratic", "ClassProblem", "GraphProblem", "Problem", "ReducedForm"]

Problem = GraphProblem | BinaryQuadratic
