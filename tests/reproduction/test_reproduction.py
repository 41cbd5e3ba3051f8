"""Runs: killed and resumed, limited, refused; numbers near the paper's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gdpa.problem import GraphProblem
from reproduction import run as run_module
from reproduction import runner
from reproduction.config import Config
from reproduction.datasets import DataFileError, DownloadError, fetch
from reproduction.experiments import EXPERIMENTS, check_experiments
from reproduction.experiments.base import growth
from reproduction.methods import METHODS
from reproduction.published import TABLE1, TABLE1_CELLS, TABLE2_MEANS
from reproduction.run import reproduce
from reproduction.runner import run_tasks
from reproduction.store import ResultsFolderError, ResultsStore, Row, Task

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

SMALL = Config(methods=("vote", "harmonic", "gdpa-published"), datasets=("liver-disorders",))


# The same as the command of the first test, dead once ten rows are written, however fast or
# busy the machine is: progress is told ten times a second at most, rows are written at once.
KILLED = """
import os, signal, sys
from reproduction.config import Config
from reproduction.run import reproduce
from reproduction.store import ResultsStore
append = ResultsStore.append

def dead_after_ten(store, row):
    append(store, row)
    if len(store.rows) == 10:
        os.kill(os.getpid(), signal.SIGKILL)

ResultsStore.append = dead_after_ten
methods = ("vote", "harmonic", "gdpa-published", "sdr-interior-point")
config = Config(methods=methods, datasets=("liver-disorders",))
reproduce(["table2"], out=sys.argv[1], config=config)
"""


def results(folder) -> list[str]:
    return (folder / "results.jsonl").read_text().splitlines()


def comparable(folder) -> dict[str, dict]:
    """What does not depend on the clock."""
    rows = {}
    for line in results(folder):
        row = json.loads(line)
        row["values"].pop("seconds", None)
        rows[json.dumps([row["experiment"], row["params"]], sort_keys=True)] = row
    return rows


def test_kill_and_rerun_computes_nothing_twice_and_ends_in_the_same_table(tmp_path, data_home):
    command = [
        sys.executable, "-m", "reproduction", "table2", "--datasets", "liver-disorders",
        "--methods", "vote,harmonic,gdpa-published,sdr-interior-point",
        "--out", str(tmp_path / "killed"),
    ]  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "killed")], cwd=ROOT, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    path = tmp_path / "killed" / "results.jsonl"
    content = path.read_bytes()
    finished = content[: content.rfind(b"\n") + 1]
    assert finished.count(b"\n") == 10  # in the middle

    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    after = path.read_bytes()
    assert after.startswith(finished)  # byte for byte: no row was written again
    assert after.count(b"\n") == 40  # 2 re-scalings x 5 folds x 4 methods, each once
    assert len(comparable(tmp_path / "killed")) == 40

    config = Config(
        methods=("vote", "harmonic", "gdpa-published", "sdr-interior-point"),
        datasets=("liver-disorders",),
    )
    reproduce(["table2"], out=tmp_path / "whole", config=config, jobs=2)
    assert comparable(tmp_path / "killed") == comparable(tmp_path / "whole")
    for name in ("table2-means.csv", "table2-min-max-gdpa.csv", "table2-standardization-gdpa.csv"):
        tables = [(tmp_path / f / "tables" / name).read_text() for f in ("killed", "whole")]
        assert tables[0] == tables[1]


def test_a_finished_run_computes_nothing(tmp_path, data_home):
    reproduce(["bound"], out=tmp_path, config=SMALL)
    before = results(tmp_path)
    events = []
    reproduce(["bound"], out=tmp_path, config=SMALL, progress=events.append)
    assert results(tmp_path) == before
    assert [(e.done, e.total, e.computed) for e in events] == [(3, 3, 0)]


def test_progress_reaches_the_end_and_names_what_runs(tmp_path, data_home):
    events = []
    reproduce(["table2"], out=tmp_path, config=SMALL, progress=events.append)
    done = [e.done for e in events]
    assert done == sorted(done)
    assert (events[-1].done, events[-1].remaining) == (30, 0.0)
    assert any("liver-disorders" in label for e in events for label in e.current)


def test_a_method_over_the_time_limit_leaves_a_row_and_the_rest_goes_on(tmp_path, data_home):
    config = Config(methods=("vote", "modified-dual-admm"), datasets=("german",))
    tasks = [t for t in EXPERIMENTS["table2"].tasks(config) if t.params["fold"] == 0]
    with ResultsStore(tmp_path) as store:
        run_tasks(tasks, store, time_limit=0.05)
        rows = store.select(tasks)
    slow = [r for r in rows if r.params["method"] == "modified-dual-admm"]
    quick = [r for r in rows if r.params["method"] == "vote"]
    assert [r.status for r in slow] == ["time-limit"] * 2
    assert all("0.05 s" in r.message for r in slow)
    assert [r.status for r in quick] == ["ok"] * 2


def test_a_series_stops_after_a_failure_and_says_so_also_when_resumed(tmp_path):
    # n = 1 cannot be restored: the first row fails, the others of its series are skipped
    series = [
        Task("table1", {"n": n, "hops": 1, "sigma": 1.0, "draw": 0, "method": "gdpa"},
             serial=True, chain=("series",))
        for n in (1, 20, 30)
    ]  # fmt: skip
    with ResultsStore(tmp_path) as store:
        run_tasks(series[:2], store)
        assert [r.status for r in store.rows] == ["failed", "skipped"]
        assert "n=1" in store.rows[0].message
    with ResultsStore(tmp_path) as store:
        run_tasks(series, store)
        assert [r.status for r in store.rows] == ["failed", "skipped", "skipped"]


def test_a_worker_that_dies_costs_one_row(tmp_path, monkeypatch):
    # the process is killed from outside as soon as it is at work
    tasks = [
        Task("table1", {"n": 3000, "hops": 2, "sigma": 2.0, "draw": 0, "method": "sdr-admm"}),
        Task("table1", {"n": 20, "hops": 1, "sigma": 1.0, "draw": 0, "method": "gdpa"}),
    ]
    started = []
    original = runner._Worker.send

    def send(worker, task):
        original(worker, task)
        if not started:
            os.kill(worker.process.pid, signal.SIGKILL)
        started.append(task)

    monkeypatch.setattr(runner._Worker, "send", send)
    with ResultsStore(tmp_path) as store:
        run_tasks(tasks, store)
        rows = store.select(tasks)
        assert [r.status for r in rows] == ["failed", "ok"], [r.message for r in rows]
        assert "ended with code" in store.rows[0].message


def test_unknown_names_and_the_nearest():
    with pytest.raises(ValueError, match=r"'sonnar'; did you mean 'sonar'\?"):
        Config(datasets=("sonnar",))
    with pytest.raises(ValueError, match=r"'harmonics'; did you mean 'harmonic'\?"):
        Config(methods=("harmonics",))
    with pytest.raises(ValueError, match=r"'table3' is not known; did you mean 'table2'|'table1'"):
        check_experiments(["table3"])


def test_a_method_that_the_experiment_does_not_have(tmp_path):
    with pytest.raises(ValueError, match="'random-forest'"):
        reproduce(["table1"], out=tmp_path, config=Config(methods=("random-forest",)))
    assert not list(tmp_path.iterdir())  # said before anything is written


def test_nothing_to_do_is_said(tmp_path):
    with pytest.raises(ValueError, match="nothing to do"):
        reproduce(["cod-rna"], out=tmp_path, config=Config(datasets=("sonar",)))


@pytest.mark.parametrize("jobs", [0, -1, 1.5])
def test_bad_number_of_jobs(tmp_path, jobs):
    with ResultsStore(tmp_path) as store, pytest.raises(ValueError, match="jobs"):
        run_tasks([], store, jobs=jobs)


def test_bad_time_limit(tmp_path):
    with ResultsStore(tmp_path) as store, pytest.raises(ValueError, match="time_limit"):
        run_tasks([], store, time_limit=0.0)


def test_an_unreachable_source_stops_the_run_with_what_to_do(tmp_path, data_home, monkeypatch):
    def unreachable(name: str) -> None:
        raise DownloadError(f"no public source of {name} could be used: download it by hand")

    monkeypatch.setattr(run_module, "fetch", unreachable)
    with pytest.raises(DownloadError, match=r"diabetes.*by hand"):
        reproduce(["bound"], out=tmp_path, config=Config(datasets=("diabetes",)))
    assert not results(tmp_path)


def test_a_cut_off_data_file_stops_the_run_before_the_first_row(tmp_path, data_home):
    path = fetch("liver-disorders", data_home=data_home)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataFileError, match="liver-disorders"):
        reproduce(["bound"], out=tmp_path / "out", config=SMALL)
    assert not results(tmp_path / "out")


def test_the_command_says_what_is_wrong_and_ends_with_2(tmp_path):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reproduction", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    wrong = run("table2", "--datasets", "sonnar", "--out", str(tmp_path))
    assert (wrong.returncode, "did you mean 'sonar'" in wrong.stderr) == (2, True)
    (tmp_path / "results.jsonl").write_text("{}\n")
    other = run("table1", "--out", str(tmp_path))
    assert (other.returncode, "not a result row" in other.stderr) == (2, True)


def test_results_of_another_version(tmp_path, data_home):
    row = json.loads(Row("bound", {"random": 1}, "ok").to_json()) | {"version": "0.0.1"}
    (tmp_path / "results.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(ResultsFolderError, match=r"0\.0\.1"):
        reproduce(["bound"], out=tmp_path, config=SMALL)


def test_every_row_of_the_paper_has_a_method():
    columns = {spec.paper for spec in METHODS.values()} - {None}
    assert columns == set(TABLE2_MEANS)
    assert all(len(values) == len(TABLE1_CELLS) == 12 for values in TABLE1.values())


@pytest.mark.slow
def test_restoration_errors_are_near_the_papers(tmp_path):
    # 60 draws of two cells: the standard error of a cell is below half a point, the paper's too
    cells = [(100, 1, 1.0), (100, 2, 1.5)]
    tasks = [
        task
        for task in EXPERIMENTS["table1"].tasks(Config(full=True))
        if (task.params["n"], task.params["hops"], task.params["sigma"]) in cells
        and task.params["draw"] < 60
        and task.params["method"] != "sns"
    ]
    with ResultsStore(tmp_path) as store:
        run_tasks(tasks, store, jobs=2)
        (table,) = EXPERIMENTS["table1"].tables(store.rows)
    compared = [row for row in table.rows if row[5] is not None]
    assert len(compared) == 2 * 4
    assert all(abs(row[7]) <= 2.0 for row in compared)


def test_the_exact_cut_is_the_lowest_objective_of_the_table(tmp_path):
    tasks = [
        task
        for task in EXPERIMENTS["table1"].tasks(Config())
        if task.params["n"] == 100 and task.params["draw"] < 2
    ]
    with ResultsStore(tmp_path) as store:
        run_tasks(tasks, store)
        objectives: dict[str, dict[str, float]] = {}
        for row in store.rows:
            cell = str([row.params[k] for k in ("n", "hops", "sigma", "draw")])
            objectives.setdefault(cell, {})[row.params["method"]] = row.values["objective"]
    assert len(objectives) == 12
    for found in objectives.values():
        assert len(found) == 5
        assert found["min-cut"] <= min(found.values()) + 1e-9 * abs(found["min-cut"])


def test_error_bound_and_lemma_hold_on_real_data(tmp_path, data_home):
    config = Config(datasets=("liver-disorders", "sonar"))
    done = reproduce(["lemma1", "bound"], out=tmp_path, config=config)
    assert not done.lost
    gaps = [row.values["gap"] for row in done.rows if "gap" in row.values and "fold" in row.params]
    assert len(gaps) == 40 + 4
    (random,) = [row.values for row in done.rows if row.params.get("method") == "random"]
    assert random["psd_broken"] == random["survivor_broken"] == 0
    assert random["broken"] > 0
    (bounds,) = [row.values for row in done.rows if "random" in row.params]
    assert bounds["safe_broken"] == 0
    assert bounds["papers_broken"] > 100
    lemma = [row.values["gap"] for row in done.rows if row.experiment == "lemma1"
             and "gap" in row.values]  # fmt: skip
    assert min(lemma) > -1e-9  # rounding of eigenvalues of size one
    for row in done.rows:
        if row.experiment == "bound" and "random" not in row.params:
            v = row.values
            assert -1e-6 <= v["gap"] <= v["bound"] + 1e-6
            assert v["gap"] == pytest.approx(v["F_bar"] - v["F"])
            assert v["bound"] == pytest.approx(v["F_bar"] - v["F_tilde"])


def test_growth_exponent_is_that_of_a_power_law():
    sizes = np.array([100.0, 1000.0, 5000.0])
    assert growth(sizes, 3e-4 * sizes**1.7) == pytest.approx(1.7)
    assert growth([100.0], [1.0]) is None


def test_the_examples_have_the_papers_numbers():
    example = EXPERIMENTS["example"]
    rows = [
        Row(task.experiment, task.params, "ok", example.compute(task.params, lambda: None))
        for task in example.tasks(Config())
    ]
    first, second = example.tables(rows)
    assert len(first.rows) == 10
    for name, paper, _, difference in first.rows:
        digits = 2 if "entry" in name else 4  # as printed
        assert abs(difference) <= 0.5 * 10.0**-digits + 1e-12, (name, paper)
    assert [row[2] for row in second.rows[:3]] == ["4, and 5", "both", "yes"]


def test_the_command_prints_json_and_can_be_quiet(tmp_path, data_home):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reproduction", *arguments, "--json", "--quiet"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    ended = run("example", "--out", str(tmp_path / "r"))
    assert (ended.returncode, ended.stderr) == (0, "")
    document = json.loads(ended.stdout)
    assert (document["status"], document["experiments"]) == ("done", ["example"])
    assert document["rows"] == 2
    assert Path(document["report"]).is_file()
    wrong = run("table9", "--out", str(tmp_path / "w"))
    assert (wrong.returncode, json.loads(wrong.stdout)["status"]) == (2, "error")
    card = json.loads(run("datasets", "sonar", "--fetch").stdout)["datasets"][0]
    assert (card["n_samples"], card["cached"]) == (208, str(data_home / "sonar.csv"))
    assert len(json.loads(run("datasets").stdout)["datasets"]) == 18


def test_a_name_stands_for_one_program():
    """No two methods run the same solver with the same options, and "gdpa" runs GDPA."""
    programs = {}
    for name, spec in METHODS.items():
        if spec.solver and not spec.sign_oracle:
            solver = name if spec.solver is True else spec.solver
            programs.setdefault((solver, repr(sorted(spec.options.items()))), []).append(name)
    assert [names for names in programs.values() if len(names) > 1] == []
    for name, spec in METHODS.items():
        if name.startswith("gdpa") and name != "gdpa-published":
            assert spec.solver in (True, "gdpa")
            assert (name if spec.solver is True else spec.solver) == "gdpa"
    assert len({spec.label for spec in METHODS.values()}) == len(METHODS)
    written = METHODS["gdpa-as-written"].options
    assert written == {"lp": "highs", "sign": "first"}


def test_products_run_the_program_of_their_name():
    """Methods that work by products with the full graph give the labels of the solver."""
    from reproduction.experiments.cod_rna import _DENSE_METHODS
    from reproduction.experiments.dense_graph import DenseGraph
    from reproduction.methods import solve_with
    from reproduction.protocol import full_graph

    rng = np.random.default_rng(0)
    y = np.where(rng.random(90) < 0.5, 1, -1).astype(np.int8)
    X = rng.normal(size=(90, 3)) + y[:, None]
    labels = np.where(np.arange(90) % 2, y, 0).astype(np.int8)
    problem = GraphProblem(full_graph(X), labels, laplacian="normalized")
    for name in _DENSE_METHODS:
        if METHODS[name].sign_oracle:
            continue
        scores, _ = DenseGraph.of(X).scores(name, labels)
        found = solve_with(METHODS[name], problem)
        if found.solution.erased:
            # Both have a = 0. Then the last node of H is isolated, and its unit vector is a first
            # eigenvector too: which class all nodes get is arbitrary.
            assert np.unique(scores >= 0).size == np.unique(found.labels[labels == 0]).size == 1
        else:
            assert np.array_equal(np.where(scores >= 0, 1, -1), found.labels[labels == 0]), name


@pytest.mark.parametrize("name", ["table1", "table2", "eigenvector", "runtime", "lemma1"])
def test_rows_carry_the_program_that_ran(name):
    config = Config(datasets=("haberman",))
    tasks = EXPERIMENTS[name].tasks(config)
    wanted = {"gdpa", "gdpa-published", "closed-form"}
    task = next(t for t in tasks if {t.params.get("method"), t.params.get("lp")} & wanted)
    program = EXPERIMENTS[name].compute(task.params, lambda: None)["program"]
    assert program.startswith("gdpa")
    assert program.endswith(")")
    if "lp" in task.params:
        assert f"lp={task.params['lp']!r}" in program


def test_headings_count_the_sets_that_ran():
    config = Config(methods=("vote",), datasets=("sonar", "haberman"))
    rows = []
    for task in EXPERIMENTS["table2"].tasks(config):
        values = EXPERIMENTS["table2"].compute(task.params, lambda: None)
        assert values["program"] == "vote()"
        rows.append(Row("table2", task.params, "ok", values))
    titles = [table.title for table in EXPERIMENTS["table2"].tables(rows)]
    assert any("data sets: 2" in title for title in titles)
    assert not any("17" in title for title in titles)
