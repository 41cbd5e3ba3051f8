"""Poisson learning on parts, for very few labels; see :mod:`gdpa.solvers.poisson`.

The potential solves the labelled system with centred targets and a small label weight, on the
combinatorial Laplacian. Then the mean of each component of the graph is removed, weighted by
degree, and replaced by a constant that its labels determine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, NDArray
from ..solvers.poisson import LABEL_WEIGHT, SELF_LOOP, component_means
from .cluster import Runner
from .components import NO_LABEL, Tags
from .conjugate_gradients import Solve
from .folder import Folder
from .manifest import Output
from .solve import score_file


@dataclass(frozen=True)
class PoissonProblem:
    """The right-hand sides of Poisson's equation, and the components of the labels.

    Parameters
    ----------
    tags : ndarray of int
        The distinct tags (:mod:`gdpa.distributed.components`), ascending.
    means : ndarray of shape (n_tags, n_classes)
        Mean target of the labels of each component.
    mean : ndarray of shape (n_classes,)
        Mean target of all labels.
    centred : ndarray of shape (n_labels, n_classes)
        Targets minus the mean of their component, so that the sources of each component balance.
    """

    tags: Tags
    means: FloatArray
    mean: FloatArray
    centred: FloatArray

    @classmethod
    def of(cls, codes: Any, label_tags: Tags, n_classes: int) -> PoissonProblem:
        """Return the problem for given labels."""
        targets = np.eye(n_classes)[codes]
        tags, component = np.unique(label_tags, return_inverse=True)
        means = component_means(
            targets, component.astype(np.int32), np.ones(component.size), tags.size
        )
        return cls(tags, means, targets.mean(axis=0), targets - means[component])

    def solve(self, name: str, mean_degree: float, targets: str) -> Solve:
        """Return the system; `targets` is the file with the centred targets."""
        weight = LABEL_WEIGHT * mean_degree
        columns = tuple((code, -1) for code in range(self.means.shape[1]))
        return Solve(
            name=name,
            self_loop=SELF_LOOP * weight,
            columns=columns,
            label_weight=weight,
            laplacian="combinatorial",
            targets=targets,
        )


def read_label_tags(folder: Folder, parts: range, n_labels: int) -> Tags:
    """Return the tag of each label."""
    tags = np.full(n_labels, NO_LABEL)
    for part in parts:
        labeled, label = folder.load(f"parts/{part:05d}", "labeled", "label")
        tags[label] = folder.read_array(f"tags/{part:05d}.npy")[labeled]
    return tags


def finish_potentials(
    runner: Runner,
    problem: PoissonProblem,
    solve: Solve,
    name: str,
    parts: range,
    largest_degree: float,
) -> float:
    """Write the potentials of all parts as scores `name`; return their standard deviation.

    As on one machine, they are those of weights divided by the power of two next to the largest
    degree.
    """
    unit = np.ldexp(1.0, int(np.frexp(largest_degree)[1]))
    each = [{"part": part} for part in parts]
    tags = problem.tags.tolist()
    sums = runner.stage("sum potentials", sum_part, each, solved=solve.name, tags=tags)
    degree = np.sum([result["degree"] for result in sums], axis=0)
    totals = np.sum([result["sums"] for result in sums], axis=0)
    centres = totals / np.maximum(degree, 1e-300)[:, None]
    about = {
        "solved": solve.name,
        "weight": solve.label_weight / unit,
        "tags": tags,
        "centres": centres.tolist(),
    }
    found = runner.stage("largest potentials", peak_part, each, **about)
    peak = max(1.0, *(result["peak"] for result in found))
    offsets = peak * (problem.means - problem.mean)
    moments = runner.stage(
        "potentials", write_part, each, written=name, offsets=offsets.tolist(), **about
    )
    count, total, square = np.sum([result["moments"] for result in moments], axis=0)
    return float(np.sqrt(max(square / count - (total / count) ** 2, 0.0)))


def centred_potentials(
    folder: Folder,
    part: int,
    solved: str,
    weight: float,
    tags: list[int],
    centres: list[list[float]],
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.intp]]:
    """Return potentials without the mean of their component, which nodes have one, and which."""
    x = folder.read_array(score_file(solved, part))
    own = folder.read_array(f"tags/{part:05d}.npy")
    reached = own != NO_LABEL
    place = np.searchsorted(tags, own[reached])
    u = np.zeros_like(x)
    u[reached] = (x[reached] - np.array(centres)[place]) / weight
    return u, reached, place


def sum_part(output: Output, *, part: int, solved: str, tags: list[int]) -> dict[str, Any]:
    """Return the degrees of each component in a part, and its scores weighted by them."""
    folder = output.folder
    x = folder.read_array(score_file(solved, part))
    own = folder.read_array(f"tags/{part:05d}.npy")
    (degree,) = folder.load(f"rows/{part:05d}", "degree")
    reached = own != NO_LABEL
    place = np.searchsorted(tags, own[reached])
    d = degree[reached]
    sums = [np.bincount(place, weights=d * column, minlength=len(tags)) for column in x[reached].T]
    return {
        "degree": np.bincount(place, weights=d, minlength=len(tags)).tolist(),
        "sums": np.column_stack(sums).tolist(),
    }


def peak_part(output: Output, *, part: int, **about: Any) -> dict[str, Any]:
    """Return the largest absolute potential of a part."""
    u, _, _ = centred_potentials(output.folder, part, **about)
    return {"peak": float(np.abs(u).max(initial=0.0))}


def write_part(
    output: Output, *, part: int, written: str, offsets: list[list[float]], **about: Any
) -> dict[str, Any]:
    """Write the potentials of a part; return the sums of their powers 0, 1 and 2."""
    u, reached, place = centred_potentials(output.folder, part, **about)
    u[reached] += np.array(offsets)[place]
    output.array(score_file(written, part), u)
    return {"moments": [u.size, float(u.sum()), float((u * u).sum())]}
