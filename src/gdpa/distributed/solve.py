"""The stages of a run that work on the graph: components, scores, and nodes far from labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..arrays import FloatArray
from . import components
from .cluster import Runner
from .components import NO_LABEL, Tags
from .conjugate_gradients import NOTHING, Solve
from .folder import Folder
from .groups import Groups
from .iteration import Convergence, Iteration
from .manifest import Output
from .rows import GroupRows

# Rounds in which nodes learn whether they are connected to a label, or get the mean of neighbours.
MAX_SWEEPS = 10_000
# Seconds between two stored states of a solve.
CHECKPOINT_SECONDS = 60.0


def score_file(name: str, part: int) -> str:
    """Return the file name of the scores of a part."""
    return f"scores/{name.replace(' ', '-')}.{part:05d}.npy"


def save_scores(rows: GroupRows, x: FloatArray, name: str) -> list[str]:
    """Write the scores of each part; return the file names."""
    output = Output(Folder(rows.url))
    for part, span in zip(rows.parts, rows.spans, strict=True):
        output.array(score_file(name, part), x[:, span].T)
    return output.files


def save_tags(rows: GroupRows, tags: Tags) -> list[str]:
    """Write the tags of the nodes of each part; return the file names."""
    output = Output(Folder(rows.url))
    for part, span in zip(rows.parts, rows.spans, strict=True):
        output.array(f"tags/{part:05d}.npy", tags[span])
    return output.files


def label_scores(rows: GroupRows, x: FloatArray) -> tuple[Any, FloatArray]:
    """Return the label numbers of a group, and their scores."""
    return rows.label, x[:, rows.labeled].T


def read_shares(rows: GroupRows, names: Sequence[str], threshold: float) -> FloatArray:
    """Return class shares from the stored scores; 0 where scores are below the threshold."""
    folder = Folder(rows.url)
    F = np.vstack(
        [np.hstack([folder.read_array(score_file(n, part)) for n in names]) for part in rows.parts]
    )
    F = np.maximum(F, 0.0)
    total = F.sum(axis=1, keepdims=True)
    return np.where(total < threshold, 0.0, F / np.maximum(total, 1e-300)).T


def shares_to_send(rows: GroupRows, x: FloatArray, other: int) -> FloatArray:
    """Return the shares of the nodes that another group needs."""
    return np.asarray(x[:, rows.send[other]])


def fill(rows: GroupRows, hub_shares: FloatArray, x: FloatArray, *halo: FloatArray) -> FloatArray:
    """Give nodes without shares the weighted mean of their neighbours' shares."""
    z = rows.columns_of(x, halo)
    x = x.copy()
    for block, hubs in zip(rows.blocks, rows.hubs, strict=True):
        empty = np.flatnonzero(x[:, block.span].max(axis=0, initial=0.0) <= 0)
        means = block.rows(z, empty)
        if hub_shares.size:
            means = means + hubs[empty] @ hub_shares.T
        total = means.sum(axis=1)
        reached = total > 0
        x[:, block.span.start + empty[reached]] = (means[reached] / total[reached, None]).T
    return x


def count_empty(x: FloatArray) -> int:
    """Return the number of nodes without shares."""
    return int(np.count_nonzero(~x.any(axis=0)))


def tag_summary(tags: Tags) -> int:
    """Return a number that changes if any tag gets smaller."""
    found = tags[tags != NO_LABEL]
    return int(found.sum()) - int(found.size) * 2**40


class PartSolver:
    """Solves labelled systems on the rows of a work folder.

    Parameters
    ----------
    runner : Runner
        Runs the calls.
    halo : list of list of int
        For each part, the number of nodes of each other part that its rows are linked to.
    nodes : list of int
        Number of nodes of each part.
    n_hubs : int, default=0
        Number of hubs; they are the part after the last.
    memory : float, default=inf
        Bytes of memory of a worker; see :class:`~gdpa.distributed.groups.Groups`.
    interval : float, default=60
        Seconds between two stored states of a solve.
    """

    def __init__(
        self,
        runner: Runner,
        halo: list[list[int]],
        nodes: list[int],
        *,
        n_hubs: int = 0,
        memory: float = np.inf,
        interval: float = CHECKPOINT_SECONDS,
    ) -> None:
        self.runner = runner
        self.halo = halo
        self.nodes = nodes
        self.n_hubs = n_hubs
        self.memory = memory
        self.interval = interval
        self._groups: Groups | None = None
        self._n_workers = 0

    def groups(self) -> Groups:
        """Return the groups; they are formed again if the number of workers has changed."""
        if self._groups is None or self._n_workers != self.runner.n_workers:
            self._n_workers = self.runner.n_workers
            self._groups = Groups(self.runner, self.halo, self.n_hubs, self.memory)
        return self._groups

    def find_components(self, name: str) -> int:
        """Write the tag of every node; return the number of rounds.

        The tag is the smallest number of a label that the node is connected to; see
        :mod:`gdpa.distributed.components`.
        """

        def run(output: Output) -> dict[str, Any]:
            groups = self.groups()
            parts = groups.each(components.load_components, groups.rows)
            tags = groups.each(components.first_tags, groups.rows, parts)
            hub_tags = np.full(self.n_hubs, NO_LABEL)
            hub_tags[groups.hubs.labeled] = groups.hubs.label
            before: list[int] = []
            for sweep in range(1, MAX_SWEEPS + 1):
                hub_tags = _lower_hub_tags(groups, hub_tags, parts, tags)
                halo = groups.halo(components.tags_to_send, groups.rows, parts, tags)
                tags = groups.exchange(
                    components.lower_tags, halo, groups.rows, parts, tags, hub_tags
                )
                now = [*groups.gather(tag_summary, tags), tag_summary(hub_tags)]
                self.runner.progress(sweep, sweep + 1)
                if now == before:
                    break
                before = now
            else:
                raise RuntimeError(
                    f"after {MAX_SWEEPS} rounds some nodes still do not know whether they are "
                    "connected to a label; use fewer parts"
                )
            by_node = groups.each(components.node_tags, parts, tags)
            for files in groups.gather(save_tags, groups.rows, by_node):
                output.files += files
            output.files += save_tags(groups.hubs, hub_tags)
            return {"rounds": sweep}

        return int(self.runner.stage(name, run, here=True)[0]["rounds"])

    def _iteration(
        self, solve: Solve, tol: float, tagged: bool, aim: float | None = None
    ) -> Iteration:
        return Iteration(
            self.groups(),
            solve,
            tol,
            aim=tol if aim is None else aim,
            tagged=tagged,
            nodes=self.nodes,
            interval=self.interval,
        )

    def label_scores(self, solve: Solve, tol: float, *, tagged: bool = False) -> FloatArray:
        """Return the scores of all labelled nodes, one column per right-hand side."""

        def run(output: Output) -> dict[str, Any]:
            iteration = self._iteration(solve, tol, tagged)
            x, hub_x, result = iteration.run()
            groups = iteration.groups
            by_group = groups.gather(label_scores, groups.rows, x)
            by_group.append(label_scores(groups.hubs, hub_x))
            label, scores = map(np.concatenate, zip(*by_group, strict=True))
            output.array(score_file(solve.name, 0), scores[np.argsort(label)])
            return asdict(result)

        self.runner.stage(solve.name, run, here=True)
        return self.runner.folder.read_array(score_file(solve.name, 0))

    def scores(
        self, solve: Solve, tol: float, *, tagged: bool = False, aim: float | None = None
    ) -> Convergence:
        """Solve and write the scores of all nodes.

        Parameters
        ----------
        solve : Solve
            The system.
        tol : float
            Relative residual to reach.
        tagged : bool, default=False
            Whether only nodes that are connected to a label are solved for.
        aim : float, optional
            Smaller residual to try for.
        """

        def run(output: Output) -> dict[str, Any]:
            iteration = self._iteration(solve, tol, tagged, aim)
            x, hub_x, result = iteration.run()
            _save(iteration.groups, output, solve.name, x, hub_x)
            return asdict(result)

        return Convergence(**self.runner.stage(solve.name, run, here=True)[0])

    def fill(self, name: str, solves: Sequence[str], threshold: float) -> bool:
        """Write shares for nodes too far from any label to have a score; return if there are any.

        Such nodes take the mean shares of their neighbours, ring by ring.
        """

        def run(output: Output) -> dict[str, Any]:
            groups = self.groups()
            x = groups.each(read_shares, groups.rows, tuple(solves), threshold)
            hubs = read_shares(groups.hubs, solves, threshold) if self.n_hubs else NOTHING
            far = left = sum(groups.gather(count_empty, x))
            for _ in range(MAX_SWEEPS if far else 0):
                halo = groups.halo(shares_to_send, groups.rows, x)
                x = groups.exchange(fill, halo, groups.rows, hubs, x)
                before = left
                left = sum(groups.gather(count_empty, x))
                self.runner.progress(far - left, far)
                if left == before:
                    break
            if far:
                _save(groups, output, name, x, hubs)
            return {"far": far}

        return bool(self.runner.stage(name, run, here=True)[0]["far"])


def _lower_hub_tags(groups: Groups, hub_tags: Tags, parts: list[Any], tags: list[Any]) -> Tags:
    """Compare the tags of the hubs with those of the parts and of other hubs."""
    if not groups.n_hubs:
        return hub_tags
    found = groups.gather(components.tags_for_hubs, groups.rows, parts, tags, groups.n_hubs)
    lowered = np.minimum.reduce([hub_tags, *found])
    between = sp.coo_array(groups.hubs.blocks[0].read())
    np.minimum.at(lowered, between.coords[0], lowered[between.coords[1]])
    return np.asarray(lowered)


def _save(groups: Groups, output: Output, name: str, x: list[Any], hub_x: FloatArray) -> None:
    """Write the scores of all nodes."""
    for files in groups.gather(save_scores, groups.rows, x, name):
        output.files += files
    output.files += save_scores(groups.hubs, hub_x, name)
