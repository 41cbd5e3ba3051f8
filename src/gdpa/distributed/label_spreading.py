"""Spread a few labels over the nodes of a weighted graph given as edges in Parquet files.

    sample edges -> plan -> split edges -> build rows -> components -> scores -> predictions

The scores solve the same system as on one machine (:mod:`gdpa.solvers.harmonic`). The tasks of each
stage read the files of earlier stages and write their own. A run that starts again skips finished
stages; see :mod:`gdpa.distributed.manifest`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..checks import check_positive
from ..errors import check_choice
from ..graph.adjacency import LAPLACIANS
from .cluster import Event, Runner, Workers
from .conjugate_gradients import Solve, batches
from .edge_rows import build_edge_rows, build_hub_rows
from .edges import SAMPLE_ENDS, EdgeColumns, sample_edges, split_edges
from .folder import Folder
from .inputs import Inputs, open_inputs
from .iteration import Convergence
from .manifest import Manifest, Output
from .node_predictions import write_nodes
from .poisson import PoissonProblem, finish_potentials, read_label_tags
from .predictions import (
    WORK,
    files_unchanged,
    finished_result,
    mark_finished,
    parameters_digest,
)
from .run import open_run
from .solve import PartSolver
from .spread_plan import LABEL_NAMES, NodeLabels, make_spread_plan, read_labels

METHODS = ("harmonic", "poisson")
# Entries of a part. Building one needs about 100 bytes of memory for each.
PART_ENTRIES = 8_000_000
# With several workers, parts may be smaller, but not smaller than this.
LEAST_PART_ENTRIES = 500_000
MOST_PARTS = 4096
# A node with more edges than this share of a part is a hub.
HUB_SHARE = 0.125
# Rows of edges that one task reads.
PIECE_ROWS = 1_000_000
# With a self-loop, scores fade with the distance from labels. Below this sum of the scores of a
# node, the error of the solve is no longer small.
FAINT = 1e-7
# Rounding errors seldom allow a smaller relative residual.
LEAST_RESIDUAL = 1e-14


@dataclass(frozen=True, kw_only=True)
class SpreadOptions:
    """Options of :func:`spread`.

    Parameters
    ----------
    source, target : str
        Columns of the edges with the identifiers of their two ends.
    weight : str, optional
        Column with the weights of the edges. By default it is called "weight"; if there is no such
        column, all weights are 1.
    node, label : str
        Columns of the labels with the identifier of a node, and its class.
    unlabeled : str, optional
        Value that marks an unknown label, in addition to an empty cell.
    method : {"harmonic", "poisson"}, default="harmonic"
        The harmonic function, or Poisson learning, which is better with a few labels per class.
    label_weight : float, default=inf
        Weight of the labels; an infinite weight keeps them exactly.
    self_loop : float, default=0
        Self-loop gamma, which pulls scores to 0 and keeps the influence of labels local.
    laplacian : {"combinatorial", "normalized"}, default="combinatorial"
        Kind of the Laplacian.
    class_probabilities : bool, default=False
        Whether to write the probability of every class.
    scores : bool, default=False
        Whether to write the score of every class.
    tol : float, default=1e-10
        Relative residual of the solve. If weights extend over more than two decades, the solve
        tries for a smaller one, because the same residual then means larger errors.
    n_parts : int, optional
        Number of parts; by default from the numbers of edges and workers. Does not change if a run
        is continued.
    part_entries : int, default=8000000
        Number of entries of a part, two per edge, from which `n_parts` is chosen. A node with more
        edges than an eighth of it is a hub, whose row is shared by all parts.
    hash_seed : int, default=0
        Seed of the hashes of identifiers that are text.
    """

    source: str = "source"
    target: str = "target"
    weight: str | None = None
    node: str = "node"
    label: str = "label"
    unlabeled: str | None = None
    method: str = "harmonic"
    label_weight: float = np.inf
    self_loop: float = 0.0
    laplacian: str = "combinatorial"
    class_probabilities: bool = False
    scores: bool = False
    tol: float = 1e-10
    n_parts: int | None = None
    part_entries: int = PART_ENTRIES
    hash_seed: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("method", self.method, METHODS)
        check_choice("laplacian", self.laplacian, LAPLACIANS)
        if not (isinstance(self.label_weight, int | float) and self.label_weight > 0):
            raise ValueError(
                f"label_weight={self.label_weight!r} must be a positive number; inf keeps labels"
            )
        if not (isinstance(self.self_loop, int | float) and 0 <= self.self_loop < np.inf):
            raise ValueError(f"self_loop={self.self_loop!r} must be a number, at least 0")
        check_positive(self.tol, "tol")
        check_positive(self.part_entries, "part_entries", 8)
        check_positive(self.hash_seed, "hash_seed", 0)
        if self.n_parts is not None:
            check_positive(self.n_parts, "n_parts", 1)
        if self.method == "poisson" and (
            self.self_loop != 0 or np.isfinite(self.label_weight) or self.laplacian != LAPLACIANS[0]
        ):
            raise ValueError(
                "method='poisson' has no label_weight, self_loop or laplacian; leave them out"
            )


@dataclass(frozen=True)
class SpreadResult:
    """Result of :func:`spread`.

    Parameters
    ----------
    nodes, edges : int
        Number of nodes, and of distinct edges with a positive weight.
    labeled : int
        Number of labelled nodes.
    classes : dict
        Number of labels of each class.
    predicted : dict
        Number of unlabelled nodes that were assigned to each class.
    unreached : int
        Number of nodes that no path connects to a label; their predictions are empty.
    loops : int
        Number of self-loops in the input, which are ignored.
    hubs : int
        Number of nodes whose row is shared by all parts.
    parts : int
        Number of parts.
    cut : float
        Share of the entries between different parts.
    steps : int
        Steps of the longest solve; each reads the graph once.
    residual : float
        Largest relative residual, computed from the final scores.
    converged : bool
        Whether all solves reached the tolerance.
    bytes_moved : int
        Bytes of values that travelled between workers in the steps.
    seconds : dict
        Time of each stage that ran; stages finished by an earlier run are not included.
    notes : tuple of str
        Remarks for the user.
    files : tuple of str
        Files with the predictions.
    """

    nodes: int
    edges: int
    labeled: int
    classes: dict[str, int]
    predicted: dict[str, int]
    unreached: int
    loops: int
    hubs: int
    parts: int
    cut: float
    steps: int
    residual: float
    converged: bool
    bytes_moved: int
    seconds: dict[str, float]
    notes: tuple[str, ...]
    files: tuple[str, ...]


def spread(
    edges: str | Sequence[str],
    labels: str | Sequence[str],
    *,
    out: str | os.PathLike[str],
    work: str | os.PathLike[str] | None = None,
    options: SpreadOptions | None = None,
    workers: Workers | None = None,
    keep: bool = False,
    callback: Callable[[Event], None] | None = None,
) -> SpreadResult:
    """Spread labels over the nodes of a graph, on a Dask cluster or on local processes.

    Each row of the edges is an undirected edge. Rows about the same two nodes, in either direction,
    are added up, so a directed graph W becomes ``W + W'``. Self-loops are ignored.

    Parameters
    ----------
    edges : str or sequence of str
        Parquet files, patterns or folders with the edges; paths, or URLs supported by fsspec. All
        files need the same columns. Identifiers are text or 64-bit integers.
    labels : str or sequence of str
        Parquet files with the labels of some nodes.
    out : path-like or URL
        Folder for the predictions, one Parquet file per part, with one row per node.
    work : path-like or URL, optional
        Folder for intermediate files that all workers can access. A second run continues where the
        first was stopped. By default it is in `out`.
    options : SpreadOptions, optional
        What to compute.
    workers : Workers, optional
        Where to compute it.
    keep : bool, default=False
        Whether to keep the intermediate files after the run. Without them, the same call returns
        the result of the first, as long as nobody changes the predictions.
    callback : callable, optional
        Called with an :class:`~gdpa.distributed.Event` whenever a task ends.

    Returns
    -------
    SpreadResult
        The result. The same input, options and number of parts give the same predictions, byte for
        byte, whatever the number of workers and even if some of them are lost.

    Raises
    ------
    ValueError
        If an option is invalid, the input is not a weighted graph with labels, the work folder
        belongs to another run, or one of its files is damaged.
    """
    options = options or SpreadOptions()
    inputs = open_inputs(edges, piece_rows=PIECE_ROWS)
    columns = EdgeColumns.of(
        inputs, options.source, options.target, options.weight, options.hash_seed
    )
    given = open_inputs(labels)
    known = read_labels(given, columns, options.node, options.label, options.unlabeled)
    folder = os.fspath(work) if work is not None else f"{os.fspath(out)}/{WORK}"
    parameters = {
        "inputs": inputs.identities,
        "labels": given.identities,
        "schema": inputs.schema,
        "out": str(out),
        **asdict(options),
    }
    place = Folder(os.fspath(out))
    digest = parameters_digest(parameters)
    ended = finished_result(place, digest)
    if ended is not None:  # by an earlier run of the same command
        if not keep:
            Manifest(Folder(folder)).remove_folder(parameters)
        return SpreadResult(**ended | {name: tuple(ended[name]) for name in ("notes", "files")})
    need = disk_bytes(inputs.n_rows, columns.weight is not None, columns.text)
    with open_run(
        folder, out, parameters, need_bytes=need, workers=workers, callback=callback
    ) as runner:
        target_type = given.column_type(options.label)
        run = _Spread(runner, inputs, columns, known, options, target_type)
        result = run.run(os.fspath(out))
        written = runner.manifest.stage("write predictions") or []
        mark_finished(place, runner.manifest.data["run"], digest, written, asdict(result))
        if not keep:
            runner.folder.remove_all()
    return result


def default_parts(n_entries: int, n_workers: int, part_entries: int) -> int:
    """Return the number of parts: small enough for memory, and several per worker."""
    parts = -(-n_entries // part_entries)
    if n_workers > 1:
        parts = max(parts, min(4 * n_workers, n_entries // LEAST_PART_ENTRIES))
    return max(1, min(MOST_PARTS, parts))


def disk_bytes(n_edges: int, weighted: bool, text: bool) -> float:
    """Return the estimated size of the work folder at its largest."""
    entry = 32.0 if weighted else 24.0
    rows = 2 * 14.0
    names = 60.0 if text else 0.0
    return n_edges * (2 * entry + rows + names)


def residual_to_aim_at(tol: float, smallest: float, largest: float) -> float:
    """Return the residual to try for, given the smallest and the largest weight.

    Let edges of weight u join a group of nodes to the labels, and edges of weight v the nodes of
    the group to each other. A constant error e of the group changes the residual, relative to the
    root of the degrees, by e sqrt(u / v) times what it would be for equal weights.
    """
    return max(LEAST_RESIDUAL, tol * min(1.0, 10.0 * float(np.sqrt(smallest / largest))))


@dataclass(frozen=True)
class _Spread:
    """The stages of one run."""

    runner: Runner
    inputs: Inputs
    columns: EdgeColumns
    labels: NodeLabels
    options: SpreadOptions
    target_type: str

    def run(self, out: str) -> SpreadResult:
        """Run the unfinished stages."""
        runner = self.runner
        plan, loops, aim = self._plan()
        n_parts = plan["n_parts"]
        n_hubs = plan["n_hubs"]
        rows, hubs = self._build(plan)
        solver = PartSolver(
            runner,
            [result["halo"] for result in rows],
            [result["nodes"] for result in rows],
            n_hubs=n_hubs,
            memory=runner.worker_memory,
        )
        solver.find_components("components")
        parts = range(n_parts + (n_hubs > 0))
        nodes = sum(result["nodes"] for result in rows) + n_hubs
        deviation = None
        filled = None
        if self.options.method == "poisson":
            degrees = [result["degree"] for result in (*rows, hubs)]
            largest = max(result["largest_degree"] for result in (*rows, hubs))
            names, ended, deviation = self._potentials(
                solver, parts, aim, sum(degrees) / nodes, largest
            )
        else:
            names, ended = self._harmonic(solver, aim)
            if self.options.self_loop > 0 and solver.fill("faint nodes", names, FAINT):
                filled = "faint nodes"
        del solver  # releases its futures, so that workers free the graph
        done = runner.manifest.stage("write predictions") or ()
        if not files_unchanged(Folder(out), done):
            runner.manifest.reopen("write predictions")
        written = runner.stage(
            "write predictions",
            write_nodes,
            [{"part": part} for part in parts],
            solves=names,
            filled=filled,
            threshold=FAINT,
            deviation=deviation,
            keep_labels=bool(np.isinf(self.options.label_weight)),
            out=out,
            text=self.columns.text,
            node_column=self.options.node,
            target_type=self.target_type,
            probabilities=self.options.class_probabilities,
            scores=self.options.scores,
        )
        predicted = np.sum([result["predicted"] for result in written], axis=0).tolist()
        entries = sum(result["nonzeros"] for result in rows)
        to_hubs = sum(result["to_hubs"] for result in rows)
        unreached = sum(result["unreached"] for result in written)
        return SpreadResult(
            nodes=nodes,
            edges=entries // 2 + to_hubs + hubs["nonzeros"] // 2,
            labeled=int(self.labels.codes.size),
            classes=plan["classes"],
            predicted=dict(zip(plan["classes"], predicted, strict=True)),
            unreached=unreached,
            loops=loops,
            hubs=n_hubs,
            parts=n_parts,
            cut=sum(result["cut"] for result in rows) / max(entries, 1),
            steps=max(result.steps for result in ended),
            residual=max(result.residual for result in ended),
            converged=all(result.converged for result in ended),
            bytes_moved=sum(result.bytes_moved for result in ended),
            seconds=dict(runner.seconds),
            notes=tuple(self._notes(loops, unreached, ended)),
            files=tuple(f"{out}/{result['file']}" for result in written),
        )

    def _plan(self) -> tuple[dict[str, Any], int, float]:
        """Sample the edges and choose parts; return the plan, self-loops, and the residual."""
        runner = self.runner
        manifest = self.runner.manifest
        n_entries = 2 * self.inputs.n_rows
        if "n_parts" not in manifest.data:  # must not change if the run continues
            default = default_parts(n_entries, runner.n_workers, self.options.part_entries)
            manifest.note("n_parts", self.options.n_parts or default)
        n_parts = manifest.data["n_parts"]
        stride = max(1, n_entries // SAMPLE_ENDS)
        sampled = runner.stage(
            "sample edges", sample_edges, self._pieces, columns=self.columns, stride=stride
        )
        plan = runner.stage(
            "plan",
            make_spread_plan,
            here=True,
            labels=self.labels,
            n_pieces=len(self.inputs.pieces),
            stride=stride,
            n_parts=n_parts,
            hub_entries=int(HUB_SHARE * self.options.part_entries),
        )[0]
        aim = residual_to_aim_at(
            self.options.tol,
            min(result["smallest"] for result in sampled),
            max(result["largest"] for result in sampled),
        )
        return plan, sum(result["loops"] for result in sampled), aim

    @property
    def _pieces(self) -> list[dict[str, object]]:
        return [{"piece": piece, "number": i} for i, piece in enumerate(self.inputs.pieces)]

    def _build(self, plan: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Sort the edges into parts, and build the rows of the parts and of the hubs."""
        runner = self.runner
        split = runner.stage("split edges", split_edges, self._pieces, columns=self.columns)
        about: dict[str, Any] = {
            "ends": [result["ends"] for result in split],
            "weighted": self.columns.weight is not None,
            "name_bases": [],
            "name_ends": [],
        }
        if self.columns.text:
            about["name_bases"] = [
                *(f"edges/{number:06d}" for number in range(len(split))),
                LABEL_NAMES,
            ]
            about["name_ends"] = [*(result["name_ends"] for result in split), plan["name_ends"]]
        each = [{"part": part} for part in range(plan["n_parts"])]
        rows = runner.stage("build rows", build_edge_rows, each, **about)
        hubs = runner.stage("build hubs", build_hub_rows, n_parts=plan["n_parts"], **about)[0]
        runner.manifest.discard("split edges")
        return rows, hubs

    def _harmonic(self, solver: PartSolver, aim: float) -> tuple[list[str], list[Convergence]]:
        """Solve for the scores of all classes; return the names of the solves and their ends."""
        options = self.options
        solves = batches(
            Solve(
                name="scores",
                self_loop=float(options.self_loop),
                columns=tuple((code, -1) for code in range(len(self.labels.classes))),
                label_weight=float(options.label_weight),
                laplacian=options.laplacian,
            )
        )
        ended = [solver.scores(solve, options.tol, tagged=True, aim=aim) for solve in solves]
        return [solve.name for solve in solves], ended

    def _potentials(
        self,
        solver: PartSolver,
        parts: range,
        aim: float,
        mean_degree: float,
        largest_degree: float,
    ) -> tuple[list[str], list[Convergence], float]:
        """Solve Poisson's equation; also return the standard deviation of the potentials."""
        labels = self.labels
        folder = self.runner.folder
        tags = read_label_tags(folder, parts, labels.codes.size)
        problem = PoissonProblem.of(labels.codes, tags, len(labels.classes))
        targets = "plan/poisson.targets.npy"

        def save_targets(output: Output) -> dict[str, Any]:
            output.array(targets, problem.centred)
            return {}

        self.runner.stage("poisson targets", save_targets, here=True)
        solve = problem.solve("scores", mean_degree, targets)
        ended = solver.scores(solve, self.options.tol, tagged=True, aim=aim)
        deviation = finish_potentials(
            self.runner, problem, solve, "potentials", parts, largest_degree
        )
        return ["potentials"], [ended], deviation

    def _notes(self, loops: int, unreached: int, ended: list[Convergence]) -> Iterator[str]:
        """Yield remarks about the result."""
        if loops:
            yield (
                f"{loops} self-loops in the input were ignored: an edge from a node to itself does "
                "not change the scores"
            )
        if unreached:
            yield (f"{unreached} nodes are not connected to any label; their prediction is empty")
        if not all(result.converged for result in ended):
            worst = max(result.residual for result in ended)
            yield (
                f"the solve did not reach its tolerance: the relative residual is {worst:.1e} "
                f"instead of {self.options.tol:.1e}; a self-loop makes the system easier to solve"
            )
