"""The page of a long run: ``python -m benchmarks.campaign.page RUN.json... > PAGE.md``.

A whole run: ``python -m benchmarks.campaign --cases 100000 --out RUN.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from reproduction.environment import stamp

from .__main__ import table

HEAD = """# Reliability

What happens to inputs that nobody would give on purpose, and to files that somebody damaged on
purpose. `python -m benchmarks.campaign --cases 100000` attacks the package:

- **fits**: features that are huge, tiny, constant, repeated, sparse or over many decades; labels
  of all kinds; all options; new rows as far as a number can be. Right means: labels within the
  classes, given labels kept, probabilities finite and adding up to 1, the same for a copy of the
  input, for a pickle and for a saved model; classes renamed, rows in another order (of single
  graphs: a committee's trees are drawn at random) and features times a power of two give the same
  labels wherever the first class is clearly ahead.
- **links**: features and a graph together, weights of all sizes, stars, hubs, parts, loops,
  one-sided or negative ones; new rows with features, with links, with both, with links to nobody.
- **tables**: data frames with missing, infinite, mixed and nested cells, dates of the year 1, text
  that looks like numbers; new rows with words and gaps that were never seen.
- **labels**: classes that look alike as numbers (`007` and `7`, `1.10` and `1.1`): every label is
  kept byte for byte.
- **sessions**: labelling by several annotators with undo, skips and new classes; the log is cut at
  any byte, and the session goes on with every answer that was whole.
- **serving**: the label server with half-sent requests, labels that cannot be fitted and a log that
  is deleted: the page stays open, and status 200 means that the answer is saved.
- **full_disk**: room for a part of a line, syncs and truncations that fail, kills: what was
  acknowledged is in the log, what was refused never appears.
- **solves**: every method on small problems, weights over up to 300 decades, against all
  labellings one by one: no certified bound above the optimum, nothing called optimal that is not.
- **signed**: maximum cuts, QUBOs and Ising models with numbers of any sign and size, against all
  assignments one by one.
- **files**: models, tables and graphs cut, flipped, tampered with (checksum made to fit) and
  bombs: a clear refusal before memory is taken, or content that works.
- **resume**: a run of an experiment killed (SIGKILL) at a random moment and started again until
  it is complete: no row lost, none doubled.
- **flips**: one bit of the work folder of a distributed run, before a resumed fit or a prediction:
  the same result or a clear error.
- **commands**: `gdpa fit` interrupted by SIGINT, SIGTERM or SIGKILL: outputs are old or whole,
  nothing half written is left after the next run.
- **interrupts**: Ctrl-C at a random moment of a threaded fit: an exception, and the same results
  afterwards.
- **together**: fits in threads, saves of several processes to one path.

A case is *right*, a *clear error* (a `ValueError` or `MemoryError` in the package's words, or in
those of scikit-learn's checks of X and y: from a `raise` there, not from a library or compiled code
because of what the package handed it) or *wrong*: a NaN, an undocumented exception, a crash, a hang
(more than 10 s of processor time), a false certificate, a changed file. Every case has a seed;
`python -m benchmarks.campaign --only fits --seed 7` runs one again. The tests run a share with
fixed seeds.

## A long run
"""

TAIL = """
## Crashes and fuzzing

`python tests/proof/crashes.py model FOLDER` (or `labels`, `new-labels`, `work-folder`, `cache`)
ends a process at every single write, sync, rename and removal of saving a model, of the journal of
labels, of a distributed run and of the cache of data sets, in the middle of each write: what is
left is the old state or the new one, and every acknowledged label. The tests run all of them.

`python -m benchmarks.fuzz --executions 1000000` mutates model files, archives, CSV tables, edge
lists, QUBO files and journals; inputs that reach new lines of the package are kept in
`benchmarks/fuzz/corpus` and are where the next run begins. A finding is an exception that is not a
refusal in the package's words, or an execution of more than ten seconds.

`python -m pytest --cov --cov-report=term` measures branch coverage of `src` (at least 92 % are
asked for), `python -m mutmut run` changes `system`, `linalg`, the certificate, the codec and the
journal, and counts the changes that no test notices.
"""

PEERS = """## Other packages on the same inputs

The first {n:,} of the inputs of the fits above that all packages take (two classes or more,
twelve samples or more, features as an ordinary array): how many end in an exception or in scores
with a NaN. Defaults, except for the neighbours of graphlearning (10, or all others).

| package | inputs | exception | NaN | more than 10 s |
|---|---|---|---|---|
"""


def page(runs: list[dict[str, Any]]) -> str:
    """The page in Markdown."""
    counts: dict[str, dict[str, Any]] = {}
    compared: dict[str, dict[str, int]] = {}
    for run in runs:
        for kind, row in run["counts"].items():
            whole = counts.setdefault(kind, {"failures": []})
            for name, value in row.items():
                whole[name] = whole[name] + value if name in whole else value
        compared |= run.get("compared", {})
    lines = [HEAD]
    for run in runs:
        facts = run["environment"]
        machine = (
            f"{facts['Python']}, {facts['system']}, {facts['processor']}, {facts['cores']} cores"
        )
        lines.append(f"`{run['command']}`\n\n{stamp(facts)}; {machine} (shared with other work)\n")
    lines.append(table(counts) + "\n")
    failures = [(kind, f) for kind, row in counts.items() for f in row["failures"]]
    lines += [f"- `--only {kind} --seed {f['seed']}`: {f['detail']}" for kind, f in failures]
    if compared:
        lines += [""] if failures else []
        lines.append(PEERS.format(n=max(row["tried"] for row in compared.values())).rstrip("\n"))
        lines += [
            f"| {name} | {row['tried']} | {row['exception']} | {row['nan']} | {row['too long']} |"
            for name, row in compared.items()
        ]
    return "\n".join(lines) + "\n" + TAIL


if __name__ == "__main__":
    loaded = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    print(page(loaded), end="")
