"""Maximum cuts and QUBOs: values, proved bounds and time, beside samplers that are installed.

    python -m benchmarks.hard                     # what is missing in benchmarks/hard.json
    python -m benchmarks.hard --parts gset biqmac # only these
    python -m benchmarks.hard --only G1 bqp50-1   # only these instances
    python -m benchmarks.hard --again gset        # measure a part again
    python -m benchmarks.hard --write             # only print the results
    python -m benchmarks.hard --parts proved      # also writes docs/proofs

Parts:

- *gset*: graphs of 800 to 20,000 nodes; value and certified bound by default arguments;
- *biqmac*: instances up to 300 variables with known optimum; value by ``search``;
- *exact*: those of them up to 60 variables, by branch and bound;
- *proved*: sparse graphs of both collections by branch and cut, with proof files in ``docs/proofs``
  that the standalone checker has accepted;
- *triangle*: ``g05_*`` and ``pm1s_*``: how much of the relaxation's gap triangles close;
- *gershgorin*: the bound by diagonal dominance in changing bases, and what it costs;
- *random*: random signed problems up to 14 variables against brute force, in lots of 500;
- *sparse*: random sparse problems up to 16 variables: bounds, steps and proofs of branch and cut
  against brute force, in lots of 500;
- *million*: 1,000,000 variables with 5,000,000 couplings;
- *peers*: dwave-samplers (32 reads) and simulated-bifurcation (64 agents, 2,000 steps, up to 2,000
  nodes, because its matrix is dense) on the Gset graphs, where they are installed.

Instances are read from ``$GDPA_PROBLEMS``, by default ``../shared/problems`` beside the repository.
Seconds are CPU time with one thread.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import gdpa
from gdpa import verify_proof
from gdpa.graph_files import read_couplings
from gdpa.problem.cut_form import CutForm, exact_cut_form

from .machine import describe

HERE = Path(__file__).parent
STORE = HERE / "hard.json"
FOLDER = Path(os.environ.get("GDPA_PROBLEMS", HERE.parent.parent / "shared" / "problems"))
PROOFS = HERE.parent / "docs" / "proofs"
RANDOM_LOTS, LOT = 100, 500
SPARSE_LOTS = 40
# Best cuts published in 2025, after the list of the collection.
RECORDS = {"G63": 27047.0, "G72": 7008.0, "G77": 9940.0, "G81": 14060.0}
# Graphs of Gset that are small and sparse enough for a proof by odd cycles, wherever the file is.
PROVABLE = [f"G{k}" for k in (11, 12, 13, 32, 33, 34, 48, 49, 50)]


def gset() -> Iterator[tuple[str, Path, float | None]]:
    """Name, file and best known cut of every graph in the folder."""
    with (FOLDER / "gset" / "best-known.csv").open() as file:
        known = {row["name"]: float(row["best_known_cut"]) for row in csv.DictReader(file)}
    paths = (FOLDER / "gset").glob("G*.txt.gz")
    for path in sorted(paths, key=lambda path: int(path.name[1:].split(".")[0])):
        name = path.name.split(".")[0]
        yield name, path, RECORDS.get(name, known.get(name))


def biqmac() -> Iterator[tuple[str, Path, str, int, float]]:
    """Name, file, kind, variables and optimum."""
    with (FOLDER / "biqmac" / "optimal.csv").open() as file:
        for row in csv.DictReader(file):
            path = FOLDER / "biqmac" / row["folder"] / f"{row['name']}.txt.gz"
            yield row["name"], path, row["kind"], int(row["n"]), float(row["optimum"])


def problem_of(path: Path, kind: str) -> gdpa.BinaryQuadratic:
    """Read an instance."""
    if kind == "cut":
        return gdpa.BinaryQuadratic.max_cut(read_couplings(path, "max-cut").matrix)
    return gdpa.BinaryQuadratic.qubo(read_couplings(path, "qubo").matrix)


def timed(problem: gdpa.BinaryQuadratic, method: str = "auto", **options: Any) -> dict[str, Any]:
    """Solve and report."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = gdpa.solve(problem, method, **options)
    return {
        "value": solution.value,
        "bound": solution.bound,
        "status": solution.bound_status,
        "kind": solution.bound_kind,
        "method": solution.method,
        "seconds": time.process_time() - start,
        "sdr": solution.info.get("sdr_value"),
    }


def tasks(parts: list[str]) -> Iterator[tuple[str, str, Callable[[], dict[str, Any]]]]:
    """Part, name and measurement."""
    if "gset" in parts:
        for name, path, best in gset():
            yield "gset", name, lambda p=path, b=best: timed(problem_of(p, "cut")) | {"best": b}
    if "proved" in parts:
        for name, path, best in gset():
            if name in PROVABLE:
                yield "proved", name, lambda n=name, p=path, b=best: proved(n, p) | {"best": b}
        for name, path, _, _, optimum in biqmac():
            if path.parent.name == "ising":
                yield "proved", name, lambda n=name, p=path, b=optimum: proved(n, p) | {"best": b}
    for name, path, kind, n, optimum in biqmac() if FOLDER.is_dir() else ():
        known = {"best": optimum, "n": n}
        if "biqmac" in parts:
            yield (
                "biqmac",
                name,
                lambda p=path, k=kind, o=known: timed(problem_of(p, k), "search") | o,
            )
        if "exact" in parts and n <= 60:
            yield (
                "exact",
                name,
                lambda p=path, k=kind, o=known: timed(problem_of(p, k), "branch-and-bound") | o,
            )
        if "triangle" in parts and name.startswith(("g05_", "pm1s_")):
            yield (
                "triangle",
                name,
                lambda p=path, k=kind, o=known: two_bounds(problem_of(p, k), "triangle") | o,
            )
        if "gershgorin" in parts and n <= 60:
            yield (
                "gershgorin",
                name,
                lambda p=path, k=kind, o=known: two_bounds(problem_of(p, k), "gershgorin") | o,
            )
    if "random" in parts:
        for lot in range(RANDOM_LOTS):
            yield "random", str(lot), lambda seed=lot: against_brute_force(seed)
    if "sparse" in parts:
        for lot in range(SPARSE_LOTS):
            yield "sparse", str(lot), lambda seed=lot: sparse_lot(seed)
    if "million" in parts:
        yield "million", "1,000,000", million
    if "peers" in parts:
        for name, path, best in gset():
            nodes = problem_of(path, "cut").n_nodes
            for peer, (run, largest) in PEERS.items():
                if nodes <= largest and importlib.util.find_spec(peer.split(".")[0]) is not None:
                    yield (
                        "peers",
                        f"{peer} {name}",
                        lambda r=run, p=path, b=best: r(problem_of(p, "cut")) | {"best": b},
                    )


def proved(name: str, path: Path) -> dict[str, Any]:
    """Solve by branch and cut, write the proof, and check it by the standalone checker."""
    couplings = read_couplings(path, "max-cut")
    form = exact_cut_form("max-cut", couplings.matrix)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = gdpa.BinaryQuadratic.max_cut(couplings.matrix)
        solution = gdpa.solve(problem, "branch-and-cut", n_jobs=1)
        proof = gdpa.prove(form, solution, kind="max-cut")
    seconds = time.process_time() - start
    PROOFS.mkdir(exist_ok=True)
    file = PROOFS / f"{name}.json.gz"
    proof.save(file)
    checker = [sys.executable, "-I", "-S", verify_proof.__file__, str(path), str(file)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    ended = subprocess.run(checker, capture_output=True, text=True, check=False)
    return {
        "value": float(proof.value),
        "bound": float(proof.bound),
        "nodes": solution.info["nodes"],
        "couplings": problem.n_edges,
        "reduced_couplings": solution.info["reduced_couplings"],
        "seconds": seconds,
        "verdict": ended.stdout.strip(),
        "checker_seconds": resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before,
        "kilobytes": file.stat().st_size / 1000,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }


def two_bounds(problem: gdpa.BinaryQuadratic, bound: str) -> dict[str, Any]:
    """Bound by the sum of all couplings, by the relaxation, and another, with their times."""
    couplings = float(np.abs(problem.reduced().P.data).sum())
    sdr = timed(problem, "search", effort=1e-3)
    other = timed(problem, "search", effort=1e-3, bound=bound)
    return {
        "sum": problem.constant + (couplings if problem.sense == "maximise" else -couplings),
        "sdr": sdr["bound"],
        "bound": other["bound"],
        "sdr_seconds": sdr["seconds"],
        "seconds": other["seconds"],
    }


def against_brute_force(seed: int) -> dict[str, Any]:
    """Count wrong bounds and wrong claims of optimality in one lot of random problems."""
    rng = np.random.default_rng([22, seed])
    counts = {"problems": LOT, "wrong_bounds": 0, "wrong_optima": 0, "optimal": 0}
    start = time.process_time()
    for k in range(LOT):
        n = int(rng.integers(2, 15))
        A = rng.integers(-3, 4, (n, n)).astype(float)
        if rng.random() < 0.5:
            A = rng.normal(size=(n, n)) * 10.0 ** rng.integers(-6, 7)
        A *= rng.random((n, n)) < rng.choice([0.3, 0.6, 1.0])
        S = np.triu(A, 1) + np.triu(A, 1).T
        problem = [
            lambda A=A, S=S: gdpa.BinaryQuadratic.max_cut(S),
            lambda A=A, S=S: gdpa.BinaryQuadratic.qubo(A, constant=1.0),
            lambda A=A, S=S: gdpa.BinaryQuadratic.ising(A[0], S),
        ][k % 3]()
        u = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        signs = 2.0 * u - 1.0
        if problem.hidden:
            signs = np.column_stack((signs, np.ones(len(u))))
        forms = float(np.einsum("ij,ij->i", signs @ problem.P.toarray(), signs).max())
        sign = 1.0 if problem.sense == "minimise" else -1.0
        best = problem.constant - sign * forms
        rounding = 1e-12 * (abs(best) + float(np.abs(problem.P.data).sum()))
        options = [
            ("auto", {}),
            ("branch-and-bound", {"effort": 0.02}),
            ("search", {"effort": 0.01, "bound": ("sdr", "triangle", "gershgorin")[k // 9 % 3]}),
        ][k // 3 % 3]
        found = timed(problem, options[0], **options[1])
        counts["wrong_bounds"] += bool(sign * found["bound"] > sign * best + rounding)
        claimed = found["kind"] == "optimum"
        off = abs(found["value"] - best) > 1e-9 * (abs(best) + float(np.abs(problem.P.data).sum()))
        counts["wrong_optima"] += bool(claimed and off)
        counts["optimal"] += not off
    return counts | {"seconds": time.process_time() - start}


def sparse_problem(rng: np.random.Generator) -> tuple[gdpa.BinaryQuadratic, CutForm]:
    """A random sparse problem of 2 to 16 variables, and its exact form."""
    n = int(rng.integers(2, 17))
    A = np.zeros((n, n))
    pairs = rng.integers(0, n, (int(rng.integers(1, 3 * n + 1)), 2))
    sizes = [(1, 1), (-3, 3), (-(2**20), 2**20)][int(rng.integers(3))]
    A[pairs[:, 0], pairs[:, 1]] = rng.integers(*sizes, len(pairs), endpoint=True)
    A *= 2.0 ** -int(rng.choice([0, 0, 10]))
    S = np.triu(A, 1) + np.triu(A, 1).T
    kind = str(rng.choice(["max-cut", "qubo", "ising"]))
    if kind == "max-cut":
        return gdpa.BinaryQuadratic.max_cut(S), exact_cut_form(kind, sp.csr_array(S))
    if kind == "qubo":
        return gdpa.BinaryQuadratic.qubo(A), exact_cut_form(kind, sp.csr_array(A))
    return gdpa.BinaryQuadratic.ising(A[0], S), exact_cut_form(kind, sp.csr_array(S), A[0])


def every_cut(form: CutForm) -> NDArray[np.int64]:
    """The weights of all cuts, in units."""
    codes = np.arange(2 ** (form.n - 1))
    cuts = np.zeros(codes.size, dtype=np.int64)
    for (i, j), weight in zip(form.pairs, form.weights, strict=True):
        cuts += weight * ((codes >> i ^ codes >> j) & 1)  # the last node is always at 0
    return cuts


def sparse_lot(seed: int) -> dict[str, Any]:
    """Count wrong bounds, steps and proofs of branch and cut in one lot of sparse problems."""
    rng = np.random.default_rng([37, seed])
    wrong = ("wrong_bounds", "wrong_steps", "refused_proofs", "accepted_cheats")
    counts = {"problems": LOT, "optimal": 0, **dict.fromkeys(wrong, 0)}
    start = time.process_time()
    for _ in range(LOT):
        problem, form = sparse_problem(rng)
        cuts = every_cut(form)
        best = form.value(int(cuts.max()))
        sign = 1 if form.sense == "maximise" else -1
        counts["wrong_steps"] += form.step != int(np.gcd.reduce(cuts))
        counts["wrong_steps"] += Fraction(problem.step) != form.step * form.unit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = gdpa.solve(problem, "branch-and-cut", effort=0.01)
        counts["wrong_bounds"] += sign * Fraction(solution.bound) < sign * best
        proof = gdpa.prove(form, solution)
        counts["wrong_bounds"] += sign * proof.bound < sign * best
        verdict = gdpa.verify(form, proof)
        counts["refused_proofs"] += verdict.startswith("wrong")
        counts["optimal"] += verdict == "optimal" and proof.value == best
        step = form.step * form.unit or 1
        for claim in (
            {"bound": str(proof.bound - sign * step)},
            {"value": str(proof.value + sign * step), "bound": str(proof.bound + sign * step)},
        ):
            cheat = signed_claim({**proof.document, **claim})
            counts["accepted_cheats"] += not gdpa.verify(form, cheat).startswith("wrong")
    return counts | {"seconds": time.process_time() - start}


def signed_claim(document: dict[str, Any]) -> gdpa.Proof:
    """A claim with a matching checksum."""
    text = json.dumps({**document, "checksum": ""}, sort_keys=True)
    return gdpa.Proof({**document, "checksum": hashlib.sha256(text.encode()).hexdigest()})


def million() -> dict[str, Any]:
    """A random graph with weights of both signs."""
    rng = np.random.default_rng(0)
    n, m = 1_000_000, 5_000_000
    i, j = rng.integers(0, n, m), rng.integers(0, n, m)
    keep = i != j
    W = sp.coo_array((rng.choice([-1.0, 1.0], m)[keep], (i[keep], j[keep])), shape=(n, n)).tocsr()
    found = timed(gdpa.BinaryQuadratic.max_cut(W + W.T))
    return found | {"gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def _dwave(problem: gdpa.BinaryQuadratic) -> dict[str, Any]:
    from dwave.samplers import SimulatedAnnealingSampler

    model = problem.to_dimod()
    start = time.process_time()
    best = SimulatedAnnealingSampler().sample(model, num_reads=32, seed=0).first.energy
    return {"value": -best, "seconds": time.process_time() - start}


def _bifurcation(problem: gdpa.BinaryQuadratic) -> dict[str, Any]:
    import simulated_bifurcation
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    matrix = torch.tensor(problem.P.toarray(), dtype=torch.float32)
    start = time.process_time()
    signs, _ = simulated_bifurcation.maximize(
        matrix, domain="spin", agents=64, max_steps=2000, verbose=False
    )
    seconds = time.process_time() - start
    return {"value": problem.value(signs.numpy().astype(float)), "seconds": seconds}


# With the largest number of nodes.
PEERS = {
    "dwave.samplers": (_dwave, np.inf),
    "simulated_bifurcation": (_bifurcation, 2000),
}
PARTS = (
    *("gset", "proved", "biqmac", "exact", "triangle", "gershgorin", "random", "sparse"),
    *("million", "peers"),
)


def proved_table(cells: dict[str, Any], peers: dict[str, Any]) -> list[str]:
    """What is proved, with the files and what a sampler finds."""
    accepted = sum(c["verdict"] == "optimal" for c in cells.values())
    lines = [
        "",
        f"## Proved by odd cycles: {len(cells)} instances",
        "",
        f'The standalone checker says "optimal" for {accepted}. Seconds include search, proof and '
        "exact arithmetic; the files are in `docs/proofs`. The last column is the cut of "
        "dwave-samplers with 32 reads.",
        "",
        "| instance | couplings | reduced | value | bound | gap % | nodes | s | check s | kB "
        "| verdict | sampler |",
        "|---" * 12 + "|",
    ]
    for name, c in cells.items():
        gap = 100 * abs(c["bound"] - c["value"]) / max(abs(c["bound"]), 1e-300)
        sampler = peers.get(f"dwave.samplers {name}")
        lines.append(
            f"| {name} | {c['couplings']} | {c['reduced_couplings']} | {c['value']:.10g} | "
            f"{c['bound']:.10g} | {gap:.3g} | {c['nodes']} | {c['seconds']:.1f} | "
            f"{c['checker_seconds']:.1f} | {c['kilobytes']:.0f} | {c['verdict']} | "
            f"{format(sampler['value'], 'g') if sampler else '-'} |"
        )
    return lines


def page(results: dict[str, dict[str, Any]]) -> str:
    """Write what was measured and what it means for the bars."""
    commits = {
        part: sorted({c["commit"] for c in cells.values()}) for part, cells in results.items()
    }
    lines = [
        "# Max-cut, QUBO and Ising",
        "",
        "Printed by `python -m benchmarks.hard`, with CPU seconds of one thread. Commits: "
        + "; ".join(f"{', '.join(found)} ({part})" for part, found in commits.items())
        + ".",
        "",
    ]
    if cells := results.get("gset"):
        cells = dict(sorted(cells.items(), key=lambda cell: int(cell[0][1:])))
        best = {name: RECORDS.get(name, c["best"]) for name, c in cells.items()}
        below = {n: 100 * (1 - c["value"] / best[n]) for n, c in cells.items() if best[n]}
        gaps = list(below.values())
        loose = [
            100 * (c["bound"] / -c["sdr"] - 1)
            for c in cells.values()
            if c["sdr"] and c["kind"] != "optimum"
        ]
        optimal = sum(c["kind"] == "optimum" for c in cells.values())
        lines += [
            f"## Gset: {len(cells)} graphs",
            "",
            f"{sum(g <= 0.1 for g in gaps)} cuts within 0.1 % of the best known, the worst "
            f"{max(gaps):.3f} % below; {sum(c['status'] == 'certified' for c in cells.values())} "
            f"bounds certified, at most {max(loose, default=0):.3f} % above the relaxation; "
            f"cuts proved to be optimal: {optimal}; "
            f"{sum(c['seconds'] for c in cells.values()) / 60:.1f} minutes of CPU.",
            "",
            "| graph | cut | best known | % below | bound | status | s |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, c in cells.items():
            known = f"{best[name]:g} | {below[name]:.3f}" if best[name] else "- | -"
            status = "optimal" if c["kind"] == "optimum" else c["status"]
            lines.append(
                f"| {name} | {c['value']:g} | {known} | {c['bound']:.2f} | {status} | "
                f"{c['seconds']:.1f} |"
            )
    if cells := results.get("proved"):
        lines += proved_table(cells, results.get("peers", {}))
    for part, title in (("biqmac", "Biq Mac, search"), ("exact", "Biq Mac, branch and bound")):
        if cells := results.get(part):
            hit = [abs(c["value"] - c["best"]) <= 1e-6 * abs(c["best"]) for c in cells.values()]
            proved = sum(c["kind"] == "optimum" for c in cells.values())
            slowest = max(c["seconds"] for c in cells.values())
            lines += [
                "",
                f"## {title}: {len(cells)} instances",
                "",
                f"Optimum found in {sum(hit)}, proved in {proved}; slowest {slowest:.1f} s.",
            ]
    if cells := results.get("triangle"):
        lines += ["", "## Triangle bounds", ""]
        lines += ["| instance | optimum | relaxation | bound | gap closed % | s |"]
        lines += ["|---|---|---|---|---|---|"]
        for name, c in cells.items():
            closed = 100 * (1 - (c["bound"] - c["best"]) / (c["sdr"] - c["best"]))
            lines.append(
                f"| {name} | {c['best']:g} | {c['sdr']:.2f} | {c['bound']:.2f} | {closed:.0f} "
                f"| {c['seconds']:.1f} |"
            )
    if cells := results.get("gershgorin"):
        lines += [
            "",
            "## Gershgorin bounds",
            "",
            "Diagonal dominance in the given basis, with any scaling, proves the sum of all "
            "couplings and no more. Up to four changes of basis improve it, each by a linear "
            "program. The semidefinite relaxation is better and faster.",
            "",
            "| instance | optimum | given basis | changed bases | s | relaxation | s |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, c in cells.items():
            lines.append(
                f"| {name} | {c['best']:g} | {c['sum']:.2f} | {c['bound']:.2f} | "
                f"{c['seconds']:.2f} | {c['sdr']:.2f} | {c['sdr_seconds']:.2f} |"
            )
    if cells := results.get("random"):
        counted = ("problems", "wrong_bounds", "wrong_optima", "optimal")
        total = {k: sum(c[k] for c in cells.values()) for k in counted}
        lines += [
            "",
            "## Random problems against brute force",
            "",
            f"{total['problems']:,} problems: {total['wrong_bounds']} bounds beyond the optimum, "
            f"{total['wrong_optima']} wrong claims of optimality, {total['optimal']:,} optima.",
        ]
    if cells := results.get("sparse"):
        counted = ("problems", "optimal", "wrong_bounds", "wrong_steps", "refused_proofs")
        total = {k: sum(c[k] for c in cells.values()) for k in (*counted, "accepted_cheats")}
        lines += [
            "",
            "## Sparse problems and proofs against brute force",
            "",
            f"{total['problems']:,} problems with up to 16 variables by branch and cut: "
            f"{total['wrong_bounds']} bounds beyond the optimum, {total['wrong_steps']} wrong "
            f"steps, {total['refused_proofs']} proofs refused, {total['accepted_cheats']} of "
            f"{2 * total['problems']:,} wrong claims accepted; {total['optimal']:,} optima proved.",
        ]
    for name, c in results.get("million", {}).items():
        lines += [
            "",
            f"## {name} variables",
            "",
            f"Cut {c['value']:,.0f}, bound {c['bound']:,.0f} ({c['status']}), {c['seconds']:.0f} s "
            f"of CPU, {c['gigabytes']:.1f} GB.",
        ]
    if cells := results.get("peers"):
        lines += ["", "## Peers", "", "Cuts, with CPU seconds. No peer proves a bound.", ""]
        lines += [f"| graph | best known | gdpa | {' | '.join(PEERS)} |", "|---" * 5 + "|"]
        for name, c in sorted(results.get("gset", {}).items(), key=lambda cell: int(cell[0][1:])):
            row = [c, *(cells.get(f"{peer} {name}") for peer in PEERS)]
            shown = (f"{x['value']:g} ({x['seconds']:.1f} s)" if x else "-" for x in row)
            lines.append(f"| {name} | {c['best']:g} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def stored() -> dict[str, dict[str, Any]]:
    """Read what was measured."""
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def main() -> None:
    """Measure what is missing and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", nargs="+", help="names of instances")
    parser.add_argument("--again", nargs="+", choices=PARTS, default=[])
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    commit, again = describe()["commit"], set(asked.again)
    for part, name, measure in () if asked.write else tasks(asked.parts):
        if asked.only and name not in asked.only:
            continue
        if part not in again and name in stored().get(part, {}):
            continue
        found = measure() | {"commit": commit}
        results = stored()  # read again, because another process may measure another part
        results.setdefault(part, {})[name] = found
        fresh = STORE.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(results, indent=1) + "\n")
        fresh.replace(STORE)
        print(part, name, found, flush=True)
    print(page(stored()))


if __name__ == "__main__":
    main()
