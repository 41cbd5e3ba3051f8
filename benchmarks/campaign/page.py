"""Write the page of a long run: ``python -m benchmarks.campaign.page RUN.json... > PAGE.md``.

With ``--earlier PAGE.md``, the run on that page is kept as an earlier one.

A whole run: ``python -m benchmarks.campaign --cases 100000 --out RUN.json``. ``python -m
benchmarks.campaign.page --fuzz`` changes the line on fuzzing in ``docs/reliability.md`` only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from reproduction.environment import stamp

from .__main__ import table

ROOT = Path(__file__).resolve().parents[2]
RELIABILITY = ROOT / "docs" / "reliability.md"
TOTALS = ROOT / "benchmarks" / "fuzz" / "totals.json"
BEGIN = "<!-- fuzzing: begin (python -m benchmarks.campaign.page --fuzz) -->"
END = "<!-- fuzzing: end -->"

HEAD = """# Reliability

This page shows how the package handles hostile input and damaged files. `python -m
benchmarks.campaign --cases 100000` runs these attacks:

- **fits**: features that are huge, tiny, constant, repeated, sparse or spread over many
  decades; labels of all kinds; all options; new rows up to the largest double. A fit is right
  if predictions are known classes, given labels are kept, probabilities are finite and sum to
  1, and a copy of the input, a pickle and a saved model give the same results. Renaming
  classes, permuting rows (not for the ensemble, whose trees are random) and multiplying
  features by a power of two must not change any clear prediction.
- **links**: features and a graph together, with weights of all sizes, hubs, disconnected parts,
  self-loops, asymmetric or negative links; new rows with features, links, both or neither.
- **tables**: data frames with missing, infinite, mixed and nested cells, dates in the year 1
  and text that looks like numbers; new rows with unseen words and missing values.
- **labels**: classes that are equal as numbers (`007` and `7`, `1.10` and `1.1`) must be kept
  byte for byte.
- **sessions**: several annotators with undo, skips and new classes. The journal is truncated at
  any byte, and the session must continue with every complete answer.
- **serving**: the label server with incomplete requests, labels that cannot be fitted and a
  deleted journal. The page must stay open, and status 200 must mean that the answer is saved.
- **full_disk**: partial writes, failing syncs and truncations, kills. Every acknowledged label
  must be in the journal, and no rejected one.
- **solves**: every method on small problems with weights over up to 300 decades, compared with
  all labellings. No certified bound may exceed the optimum, and nothing suboptimal may be
  called optimal.
- **signed**: max-cut, QUBO and Ising problems with numbers of any sign and size, compared with
  all assignments.
- **files**: models, tables and graphs that are truncated, have flipped bits, were tampered with
  (with a matching checksum) or are decompression bombs. They must be rejected before memory is
  allocated, or work.
- **resume**: an experiment that is killed (SIGKILL) at random moments and restarted until it is
  complete. No row may be lost or duplicated.
- **flips**: one flipped bit in the work folder of a distributed run, before a resumed fit or a
  prediction. The result must be the same, or a clear error.
- **commands**: `gdpa fit` interrupted by SIGINT, SIGTERM or SIGKILL. Outputs must be the old or
  the complete new ones, and the next run must remove temporary files.
- **interrupts**: Ctrl-C at a random moment of a threaded fit must raise an exception, and must
  not change later results.
- **together**: fits in several threads, and several processes that save to the same path.
- **containers**: the same labels, features and weights as lists, arrays with masks, pandas, polars
  and Arrow columns, sparse matrices with repeated entries of small integers, and lists of edges.
  All must give the same model, and a change of the container after the fit must not change it.
- **nodes**: NetworkX graphs whose nodes have names of all types, built in random order. Rows must
  be those of the stated order, and a graph without an order must be rejected.
- **written**: tables with hostile cells and column names, in several encodings and formats. The
  output must have the same cells, and reading it back must recognise the same columns.
- **batches**: the same new rows at once, one by one, permuted and repeated. All probabilities must
  be equal, bit for bit.
- **journals**: journals of answers with up to three damages. Every undamaged answer must be used,
  none invented, and every damage reported.
- **exports**: sessions with hostile class names and cells. Every format must have the label of
  every row, and the unpacked folders must have the pictures of their class.

A case is *right*, a *clear error* or *wrong*. A clear error is a `ValueError` or `MemoryError`
raised by the package itself, or by scikit-learn's checks of X and y. Wrong is a NaN, an
undocumented exception, a crash, a hang (more than 10 s of processor time), a false certificate
or a changed file. Every case has a seed: `python -m benchmarks.campaign --only fits --seed 7`
repeats one. The tests run some cases with fixed seeds.

## The last run
"""

TAIL = """
## Crashes and fuzzing

`python tests/proof/crashes.py model FOLDER` (or `labels`, `new-labels`, `work-folder`, `cache`)
simulates a crash at every write, sync, rename and removal, and in the middle of every write,
while a model, the label journal, a distributed run or the data-set cache is saved. The old or
the new state must survive, and every acknowledged label. The tests run all of them.

`python -m benchmarks.fuzz --executions 1000000` mutates model files, archives, CSV tables, edge
lists, QUBO files and journals. Inputs that reach new lines of the package are kept in
`benchmarks/fuzz/corpus`, from which the next run starts. A finding is an undocumented
exception, or an execution of more than ten seconds.

{fuzzing}

`python -m pytest -n 2 --cov --cov-report=term` measures the branch coverage of `src`: 94 % at
commit 85cb4d5, and at least 92 % are required. `python -m benchmarks.mutation --out run.json`
mutates `system`, `linalg`, the certificate, the codec and the journal, and counts the mutants
that no test detects; [the evidence](evidence.md#mutation) has the results.
"""

PEERS = """## Other packages on the same inputs

These are the first {n:,} inputs of the fits above that all packages accept: at least two
classes, at least twelve samples, and features in an ordinary array. The table counts exceptions
and scores with a NaN. All packages use their defaults, except that graphlearning uses 10
neighbours (or all, if there are fewer).

| package | inputs | exception | NaN | more than 10 s |
|---|---|---|---|---|
"""


def fuzzing() -> str:
    """Return the totals of the stored fuzzing run as a marked block; empty without one."""
    if not TOTALS.exists():
        return f"{BEGIN}\n{END}"
    stored = json.loads(TOTALS.read_text())
    targets = stored["targets"]
    total, findings = (sum(row[k] for row in targets.values()) for k in ("executions", "findings"))
    each = ", ".join(f"{name} {row['executions']:,}" for name, row in targets.items())
    return (
        f"{BEGIN}\nThe last run had {total:,} executions ({each}) and "
        f"{findings} finding{'' if findings == 1 else 's'}, at commit {stored['commit']} on "
        f"{stored['date']}.\n{END}"
    )


def update_fuzzing() -> None:
    """Replace the marked block in the page."""
    text = RELIABILITY.read_text()
    head, rest = text.split(BEGIN, 1)
    RELIABILITY.write_text(head + fuzzing() + rest.split(END, 1)[1])


def page(runs: list[dict[str, Any]], before: str = "") -> str:
    """Return the page in Markdown, with the section of an earlier run."""
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
    if before:
        lines.append(("" if not failures or compared else "\n") + before.rstrip("\n"))
    return "\n".join(lines) + "\n" + TAIL.format(fuzzing=fuzzing())


def earlier_run(text: str) -> str:
    """Return the run on an older page, as a section of its own."""
    run = text.split("## The last run\n", 1)[1].split("\n## ", 1)[0]
    return f"## An earlier run\n{run.rstrip()}\n"


if __name__ == "__main__":
    names = sys.argv[1:]
    if names == ["--fuzz"]:
        update_fuzzing()
        sys.exit()
    before = ""
    if names[:1] == ["--earlier"]:
        before = earlier_run(Path(names[1]).read_text())
        names = names[2:]
    print(page([json.loads(Path(name).read_text()) for name in names], before), end="")
