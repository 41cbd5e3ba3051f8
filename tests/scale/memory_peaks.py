"""One piece of work in a process with a limited address space: ``memory_peaks.py WORK N``.

The work is done twice: with half of the memory that the package estimates, which it must refuse,
and with 1.5 times that. Prints the estimate, the measured peak and the words of the refusal.
"""

from __future__ import annotations

import json
import resource
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np

import gdpa
from gdpa import BinaryQuadratic, GDPAClassifier, GraphClassifier, GraphProblem, solve
from gdpa.graph import full_graph
from gdpa.solvers import sdr_form, signed_search


def classes(n):
    """Two classes of samples, one label in ten."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 5)) + 1.5 * z[:, None]
    return X, np.where(rng.random(n) < 0.1, z, -1)


def all_pairs(n):
    """A problem on the graph of all pairs."""
    X, y = classes(n)
    return GraphProblem(full_graph(X), np.where(y < 0, 0, 2 * y - 1), laplacian="normalized")


def signs(n):
    """A maximum cut with random signs."""
    rng = np.random.default_rng(0)
    A = np.triu(rng.integers(-1, 2, (n, n)).astype(float), 1)
    return BinaryQuadratic.max_cut(A + A.T)


WORK = {
    "full graph": (lambda n: classes(n)[0], full_graph),
    "gdpa": (all_pairs, lambda p: solve(p, method="gdpa")),
    "gdpa-published": (all_pairs, lambda p: solve(p, method="gdpa-published")),
    "interior point": (signs, lambda p: solve(p, method="sdr-interior-point")),
    "triangles": (
        signs,
        lambda p: solve(p, method="search", bound="triangle", effort=0.01, time_limit=1e6),
    ),
    "fit": (classes, lambda c: GraphClassifier(graph="full").fit(*c)),
    "fit of the paper": (classes, lambda c: GDPAClassifier(graph="full").fit(*c)),
    "published fit": (
        classes,
        lambda c: GDPAClassifier(graph="full", variant="published").fit(*c),
    ),
}


class Refused(Exception):
    """The package has named its estimate and refused."""


def first_estimate(work, given):
    """The estimate that decides first, from the refusal of a machine without memory."""
    found = []

    def refuse(n_bytes, *words):
        found.append(n_bytes)
        raise Refused

    def refuse_dense(method, problem, n, n_bytes, advice):
        refuse(n_bytes)

    kept = {
        module: module.check_memory
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("gdpa") and hasattr(module, "check_memory")
    }
    dense = sdr_form.check_dense_size
    try:
        for module in kept:
            module.check_memory = refuse
        sdr_form.check_dense_size = refuse_dense
        work(given)
    except Refused:
        pass
    finally:
        for module, check in kept.items():
            module.check_memory = check
        sdr_form.check_dense_size = dense
    return found[0]


def status(field):
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def limited(work, given, n_bytes):
    """Do the work with so much more address space than the process has now; return an error."""
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + int(n_bytes), most))
    try:
        work(given)
    except (MemoryError, gdpa.errors.UnsupportedProblemError) as error:
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return ""


def main(name, n):
    """Do the work and print what was measured."""
    warnings.simplefilter("ignore")
    # Rounds are alike; a few are enough for the peak.
    signed_search.triangle_bound = partial(signed_search.triangle_bound, max_rounds=8)
    make, work = WORK[name]
    work(make(40))  # imports, and buffers of the libraries
    given = make(n)
    estimate = first_estimate(work, given)
    refusal = limited(work, given, estimate / 2)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = status("VmRSS")
    failure = limited(work, given, 1.5 * estimate)
    peak = status("VmHWM") - before
    found = {"estimate": estimate, "peak": peak, "refusal": refusal, "failure": failure}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
