"""The claims of the page "Evidence", each computed from stored results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from statistics import mean, median
from typing import Any

from ..few_labels import OURS as FEW_OURS
from ..few_labels import TOLD
from ..labeling import SETS as LABELING_SETS
from ..metric import rows as metric_rows
from ..tables import summary
from . import charts
from .claim import Claim, commits_of, stored
from .paper import paper_map, paper_times

Cells = dict[str, dict[str, list[Any]]]
COMMITTEE = "CommitteeClassifier"


def tables() -> Claim:
    """Real tables with 5 and 20 labels per class."""
    results: Cells = stored("tables")
    few, many = summary(results, 5), summary(results, 20)
    shown = {"gdpa": COMMITTEE, 'gdpa, graph="knn"': "GraphClassifier"}
    order = sorted(few, key=lambda row: few[row]["error"])
    ours, peer = few["gdpa"], few["extra trees, 300"]
    error = f"{ours['error']:.1f} / {many['gdpa']['error']:.1f} %"
    best = all(
        found["gdpa"][measure] == min(row[measure] for row in found.values())
        for found in (few, many)
        for measure in ("error", "rank")
    )
    place = "the lowest mean and the best mean rank of" if best else "among"
    peers = f"{peer['error']:.1f} / {many['extra trees, 300']['error']:.1f} %"
    return Claim(
        name="tables",
        title="Tables with few labels",
        says=f"On 16 real tables with 5 / 20 labels per class, the default classifier has "
        f"{error} error, {place} {len(few)} classifiers; a "
        f"forest of 300 extremely randomised trees has {peers}.",
        commands=["python -m benchmarks.tables"],
        commits=commits_of(results["gdpa"]),
        header=["classifier", "error %, 5 labels", "20 labels", "rank, 5 labels", "20 labels"],
        rows=[
            [
                shown.get(row, row),
                f"{few[row]['error']:.1f}",
                f"{many[row]['error']:.1f}",
                f"{few[row]['rank']:.1f}",
                f"{many[row]['rank']:.1f}",
            ]
            for row in order
        ],
        chart=charts.pairs(
            {
                shown.get(row, row): {
                    "5 labels per class": few[row]["error"],
                    "20 labels per class": many[row]["error"],
                }
                for row in order
            },
            "mean error, %",
        ),
        alt="Mean error of each classifier on 16 tables with 5 and with 20 labels per class.",
        height=4.2,
        notes=["Some defaults were chosen on these tables; expect a little less elsewhere."],
    )


def corpus() -> Claim:
    """Tables that had no part in older defaults."""
    results = stored("choose")
    names = {
        "committee": COMMITTEE,
        "catboost": "CatBoost",
        "random forest": "random forest",
        "extra trees": "extra trees",
        "logistic regression": "logistic regression",
    }
    measures = ("error", "balanced error", "AUC")
    table = results["kinds"]["table"]
    found = {
        shown: {
            (count, measure): mean(cell[measure] for cell in table[name][count].values())
            for count in ("5", "20")
            for measure in measures
        }
        for name, shown in names.items()
    }
    n_sets = len(table["committee"]["20"])

    def both(name: str) -> str:
        return f"{found[name]['5', 'error']:.1f} / {found[name]['20', 'error']:.1f} %"

    return Claim(
        name="corpus",
        title="Sixty-two more tables",
        says=f"On {n_sets} public tables with 5 / 20 labels per class, the default classifier has "
        f"{both(COMMITTEE)} error, CatBoost {both('CatBoost')} and a random forest "
        f"{both('random forest')}.",
        commands=["python -m benchmarks.choose"],
        commits=results["provenance"]["commit"],
        header=[
            "classifier",
            *(f"{measure} %, {count} labels" for count in ("5", "20") for measure in measures),
        ],
        rows=[
            [name, *(f"{value:.1f}" for value in values.values())] for name, values in found.items()
        ],
        chart=charts.pairs(
            {
                name: {
                    "5 labels per class": values["5", "error"],
                    "20 labels per class": values["20", "error"],
                }
                for name, values in found.items()
            },
            "mean error, %",
        ),
        alt=f"Mean error of five classifiers on {n_sets} tables.",
        height=2.8,
        notes=[
            "One draw of labels per table, at most 1,500 rows. The rule for class shares was "
            "chosen on these tables, among others; `benchmarks/DECISIONS.md` lists what was tried."
        ],
        readme=f"{n_sets} public tables, 5 / 20 labels per class | {both(COMMITTEE)} error | "
        f"CatBoost {both('CatBoost')}",
    )


def few_labels() -> Claim:
    """One, two and five labels per class."""
    results: Cells = stored("few_labels")
    shown = {
        FEW_OURS: COMMITTEE,
        TOLD: f"{COMMITTEE}, told the class shares",
        "graphlearning Poisson MBO, true shares": "Poisson MBO, told the class shares",
        "graphlearning Poisson MBO, equal shares": "Poisson MBO, equal shares",
    }
    errors: dict[str, dict[float, float]] = {}
    for count in (1, 2, 5):
        kept = {}
        for row, cells in results.items():
            found = {
                k: v
                for k, v in cells.items()
                if not k.startswith("mnist/") and k.split("/")[1] == str(count)
            }
            if found:
                kept[row] = found
        kept = {row: cells for row, cells in kept.items() if row in shown or count < 5}
        shared = set.intersection(*map(set, kept.values()))
        common = {row: {k: cells[k] for k in shared} for row, cells in kept.items()}
        for row, found in summary(common, count).items():
            errors.setdefault(shown.get(row, row), {})[count] = found["error"]
    errors = {name: points for name, points in errors.items() if {1, 2} <= set(points)}
    order = sorted(errors, key=lambda name: (name != COMMITTEE, errors[name][1]))
    return Claim(
        name="few-labels",
        title="One or two labels per class",
        says=f"On 17 data sets with 2 / 1 labels per class, the default classifier has "
        f"{errors[COMMITTEE][2]:.1f} / {errors[COMMITTEE][1]:.1f} % error. If the class shares "
        f"are known, it has {errors[shown[TOLD]][2]:.1f} / {errors[shown[TOLD]][1]:.1f} %.",
        commands=["python -m benchmarks.few_labels"],
        commits=commits_of(
            {
                k: v
                for k, v in results[FEW_OURS].items()
                if "mnist" not in k and k.split("/")[1] in ("1", "2")
            }
        ),
        header=["classifier", "error %, 1 label", "2 labels"],
        rows=[[name, f"{errors[name][1]:.1f}", f"{errors[name][2]:.1f}"] for name in order],
        chart=charts.bars(
            {name: points[1] for name, points in errors.items()},
            "mean error with one label per class, %",
            ours=[name for name in errors if name.startswith(COMMITTEE)],
        ),
        alt="Mean error of each classifier on 17 data sets with one label per class.",
        height=3.6,
    )


def mnist() -> Claim:
    """MNIST with one and five labels per class."""
    results: Cells = stored("few_labels")
    shown = {
        FEW_OURS: COMMITTEE,
        "graphlearning Laplace": "graphlearning Laplace",
        "graphlearning Poisson": "graphlearning Poisson",
        "graphlearning Poisson MBO, true shares": "Poisson MBO, told the class shares",
    }
    draws = range(5)
    errors: dict[str, dict[int, float]] = {}
    seconds: dict[str, float] = {}
    for row, name in shown.items():
        cells = results[row]
        errors[name] = {
            count: mean(cells[f"mnist/{count}/{draw}"][0] for draw in draws)
            for count in (1, 5)
            if all(f"mnist/{count}/{draw}" in cells for draw in draws)
        }
        seconds[name] = mean(cells[f"mnist/1/{draw}"][2] for draw in draws)
    ours = errors[COMMITTEE]
    peer = "Poisson MBO, told the class shares"
    poisson = errors["graphlearning Poisson"]
    return Claim(
        name="mnist",
        title="MNIST",
        says=f"70,000 images with 1 / 5 labels per class: {ours[1]:.1f} / {ours[5]:.1f} % error "
        f"in {seconds[COMMITTEE]:.0f} s of CPU. {peer}, has {errors[peer][1]:.1f} / "
        f"{errors[peer][5]:.1f} % in {seconds[peer]:.0f} s.",
        commands=["python -m benchmarks.few_labels --sets mnist"],
        commits=commits_of(
            {f"{n}/{d}": results[FEW_OURS][f"mnist/{n}/{d}"] for n in (1, 5) for d in draws}
        ),
        header=["classifier", "error %, 1 label", "5 labels", "CPU s, 1 label"],
        rows=[
            [name, f"{found[1]:.1f}", f"{found[5]:.1f}" if 5 in found else "-", f"{s:.0f}"]
            for (name, found), s in zip(errors.items(), seconds.values(), strict=True)
        ],
        chart=charts.bars(
            {name: found[1] for name, found in errors.items()},
            "error with one label per class, %",
            ours=[COMMITTEE],
        ),
        alt="Error on MNIST with one label per class.",
        height=2.2,
        notes=["Mean of draws 0 to 4 of the labels."],
        readme=f"MNIST, 1 / 5 labels per class | {ours[1]:.1f} / {ours[5]:.1f} % error | "
        f"Poisson learning {poisson[1]:.1f} / {poisson[5]:.1f} %",
    )


def modalities() -> Claim:
    """Text, pictures and networks."""
    methods = {
        "gdpa": COMMITTEE,
        "logistic regression": "logistic regression",
        "smoothed twice, logistic regression": "the same, smoothed features",
        "extra trees": "extra trees",
    }
    found: dict[str, dict[str, float]] = {}
    commits = set()
    for part in stored("modalities").values():
        cells = defaultdict(list)
        for key, cell in part.items():
            cells[key.rsplit("/", 1)[0]].append(cell)
            commits.add(cell["commit"])
        for name, draws in cells.items():
            title = name.replace("minilm", "MiniLM").replace(" a class", " per class")
            found[title] = {
                shown: mean(cell[method] for cell in draws) for method, shown in methods.items()
            }
    ahead = sum(row[COMMITTEE] >= row["logistic regression"] for row in found.values())
    return Claim(
        name="modalities",
        title="Text, pictures and networks",
        says=f"On {ahead} of {len(found)} problems with texts, pictures and networks, the default "
        "classifier is at least as accurate as logistic regression on the same features.",
        commands=["python -m benchmarks.modalities"],
        commits=", ".join(sorted(commits)),
        header=["problem", *next(iter(found.values()))],
        rows=[[name, *(f"{value:.1f}" for value in row.values())] for name, row in found.items()],
        chart=charts.pairs(found, "accuracy, %"),
        alt="Accuracy of four classifiers on each problem.",
        height=5.6,
    )


def seconds_text(seconds: float) -> str:
    """Return seconds in two or three digits."""
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def size() -> Claim:
    """Time by the number of points."""
    cases = stored("speed")["cases"]
    sizes = {"two-thousand": 2_000, "hundred-thousand": 100_000, "million": 1_000_000}
    seconds: dict[str, dict[float, float]] = {}
    errors: dict[str, dict[float, float]] = {}
    for case, n in sizes.items():
        for row in cases[case]["rows"]:
            name = row["label"].removeprefix("gdpa ").split(" (")[0]
            seconds.setdefault(name, {})[n] = row["seconds"]
            errors.setdefault(name, {})[n] = row["error %"]
    last = 1_000_000
    spreading = "scikit-learn LabelSpreading"
    return Claim(
        name="size",
        title="Time by size",
        says=f"A million points with 8 features and 1 % labels are classified in "
        f"{seconds[COMMITTEE][last]:.0f} s on two cores, with {errors[COMMITTEE][last]:.1f} % "
        f"error; LabelSpreading takes {seconds[spreading][last]:.0f} s and has "
        f"{errors[spreading][last]:.1f} %.",
        commands=[f"python -m benchmarks --case {case}" for case in sizes],
        commits=", ".join(sorted({cases[case]["commit"] for case in sizes})),
        header=["classifier", *(f"{n:,} points: s, error %" for n in sizes.values())],
        rows=[
            [
                name,
                *(
                    f"{seconds_text(points[n])}, {errors[name][n]:.1f}" if n in points else "-"
                    for n in sizes.values()
                ),
            ]
            for name, points in seconds.items()
        ],
        chart=charts.lines(seconds, "points", "seconds", log="xy"),
        alt="Seconds of a fit by the number of points, on logarithmic axes.",
        height=4.0,
        notes=[
            f"Machine: {stored('speed')['machine']}. Generated data, 8 features; 5 % labels "
            "with 2,000 points, otherwise 1 %."
        ],
        readme=f"a million points, two cores | {seconds[COMMITTEE][last]:.0f} s, "
        f"{errors[COMMITTEE][last]:.1f} % error | LabelSpreading {seconds[spreading][last]:.0f} s, "
        f"{errors[spreading][last]:.1f} %",
    )


def growth() -> Claim:
    """Growth of graph, solve and memory."""
    case = stored("speed")["cases"]["growth"]
    rows = {int(row["label"].removeprefix("n = ").replace(",", "")): row for row in case["rows"]}
    columns = {"graph s": "graph", "solve s": "solve", "product s": "one product"}
    series = {
        name: {float(n): row[column] for n, row in rows.items()} for column, name in columns.items()
    }
    most = max(rows)
    return Claim(
        name="growth",
        title="Growth with the number of points",
        says=f"Building the graph of {most:,} points takes {rows[most]['graph s']:.0f} s and the "
        f"solve {rows[most]['solve s']:.1f} s; time and memory grow nearly in proportion to the "
        "number of points.",
        commands=["python -m benchmarks --case growth"],
        commits=case["commit"],
        header=["points", "edges", "graph s", "solve s", "iterations", "graph MB", "peak MB"],
        rows=[
            [
                f"{n:,}",
                f"{row['edges']:,.0f}",
                f"{row['graph s']:.3g}",
                f"{row['solve s']:.3g}",
                f"{row['iterations']:.0f}",
                f"{row['graph MB']:.3g}",
                f"{row['building it, peak MB']:.3g}",
            ]
            for n, row in rows.items()
        ],
        chart=charts.lines(series, "points", "seconds", log="xy"),
        alt="Seconds of graph, solve and one product by the number of points.",
    )


def labelling() -> Claim:
    """Accuracy after 20 and 50 answers."""
    results = stored("labeling")
    names = {
        "ours": "gdpa label",
        "at random": "random rows",
        "k-means medoids": "k-means medoids",
        "modAL, margin": "modAL, margin",
    }
    found: dict[str, dict[str, float]] = {}
    for row, name in names.items():
        cells = {k: v for k, v in results[row].items() if k.rsplit("/", 1)[0] in LABELING_SETS}
        per_set = defaultdict(list)
        for key, values in cells.items():
            per_set[key.rsplit("/", 1)[0]].append(values)
        found[name] = {
            "20 answers": mean(mean(v[0] for v in draws) for draws in per_set.values()),
            "50 answers": mean(mean(v[1] for v in draws) for draws in per_set.values()),
        }
    ours, random = found["gdpa label"], found["random rows"]
    kept = results["annotators"]
    return Claim(
        name="labelling",
        title="Labelling in the browser",
        says=f"Starting without labels, 20 / 50 answers give {ours['20 answers']:.1f} / "
        f"{ours['50 answers']:.1f} % accuracy on eight data sets; random rows give "
        f"{random['20 answers']:.1f} / {random['50 answers']:.1f} %. With {kept['annotators']} "
        f"annotators for {kept['minutes']:g} minutes and {kept['kills']} kills of the server, "
        f"{kept['lost']} of {kept['acknowledged']:,} answers were lost and {kept['invented']} "
        "invented.",
        commands=["python -m benchmarks.labeling", "python -m benchmarks.annotators"],
        commits=f"{results['commits']['ours']}; annotators {kept['commit']}",
        header=["questions", "accuracy %, 20 answers", "50 answers"],
        rows=[[name, *(f"{v:.1f}" for v in row.values())] for name, row in found.items()],
        chart=charts.pairs(found, "mean accuracy on eight data sets, %"),
        alt="Mean accuracy after 20 and after 50 answers.",
        height=2.6,
        notes=["The constants of the strategy were chosen on these data sets."],
    )


def guarantee() -> Claim:
    """Statements of labelling sessions that are proved."""
    results = stored("guarantee")
    coverage = results["coverage"]
    effort = results["effort"]
    sessions = sum(cell["sessions"] for cell in coverage["sets"].values())
    rules = ("fixed", "crossing", "adversary")
    false = {rule: sum(cell[rule] for cell in coverage["sets"].values()) for rule in rules}
    worst = max(
        100 * cell[rule] / cell["sessions"] for cell in coverage["sets"].values() for rule in rules
    )
    ratios = {name: cell["ours"] / cell["even"] for name, cell in effort["sets"].items()}
    checks = {
        name: {"checks of gdpa": cell["ours"], "checks drawn evenly": cell["even"]}
        for name, cell in effort["sets"].items()
    }
    return Claim(
        name="guarantee",
        title="Guaranteed accuracy",
        says=f"In {sessions:,} replayed labelling sessions on {len(coverage['sets'])} data sets, "
        f"at most {max(false.values())} had a false statement at the time of stopping, and at most "
        f"{worst:.0f} % on any data set; 5 % are allowed. To prove 90 % where 95 % are right takes "
        f"{median(ratios.values()):.2f} times as many checks as drawing them evenly (median).",
        commands=["python -m benchmarks.guarantee"],
        commits=f"{coverage['commit']} (statements), {effort['commit']} (checks)",
        header=["data set", "checks of gdpa", "drawn evenly", "ratio"],
        rows=[
            [name, f"{cell['ours']:.0f}", f"{cell['even']:.0f}", f"{ratios[name]:.2f}"]
            for name, cell in effort["sets"].items()
        ],
        chart=charts.pairs(checks, "checks to prove 90 % where 95 % are right"),
        alt="Number of checks that prove 90 % where 95 % are right, for each data set.",
        height=4.4,
        notes=[
            "Stopping times: after a fixed number of answers, when the bound first crosses the "
            "goal, and the worst time in hindsight. Evenly drawn checks use the mean confidence of "
            "the model as their guess of the error; if they knew the true share of errors, the "
            "advantage would be smaller."
        ],
    )


def maximum_cuts() -> Claim:
    """Maximum cuts of Gset."""
    results = stored("hard")
    cells = results["gset"]
    below = {name: 100 * (1 - cell["value"] / cell["best"]) for name, cell in cells.items()}
    near = sum(gap <= 0.1 for gap in below.values())
    certified = sum(cell["status"] == "certified" for cell in cells.values())
    minutes = sum(cell["seconds"] for cell in cells.values()) / 60
    shown = sorted(cells, key=lambda name: int(name[1:]))
    return Claim(
        name="max-cut",
        title="Maximum cuts",
        says=f"On {len(cells)} graphs of Gset, {near} cuts are within 0.1 % of the best known and "
        f"the others within {max(below.values()):.2f} %; {certified} bounds are certified; all "
        f"take {minutes:.1f} minutes of CPU.",
        commands=["python -m benchmarks.hard"],
        commits=", ".join(sorted({cell["commit"] for cell in cells.values()})),
        header=["graph", "cut", "best known", "% below", "certified bound"],
        rows=[
            [
                name,
                f"{cells[name]['value']:,.0f}",
                f"{cells[name]['best']:,.0f}",
                f"{below[name]:.3f}",
                f"{cells[name]['bound']:,.1f}",
            ]
            for name in shown
        ],
        chart=charts.bars(
            {name: gap for name, gap in below.items() if gap > 0},
            "cut below the best known, %",
            digits=3,
        ),
        alt="How far each cut is below the best known one, for the graphs where it is not equal.",
        height=4.6,
        notes=["Graphs that are not in the chart have the best known cut."],
    )


def proofs() -> Claim:
    """Maximum cuts that are proved to be optimal."""
    results = stored("hard")
    cells = results["proved"]
    optimal = {name: cell for name, cell in cells.items() if cell["verdict"] == "optimal"}
    slowest = max(cell["seconds"] for cell in optimal.values())
    largest = max(cell["kilobytes"] for cell in optimal.values())
    sdp = results["gset"]
    loose = [
        100 * (sdp[name]["bound"] / cell["value"] - 1)
        for name, cell in optimal.items()
        if name in sdp and sdp[name]["kind"] == "relaxation"
    ]
    random = results["sparse"].values()
    total = {
        key: sum(cell[key] for cell in random) for key in next(iter(random)) if key != "commit"
    }
    return Claim(
        name="proofs",
        title="Proofs of maximum cuts",
        says=f"{len(optimal)} sparse graphs of Gset and Biq Mac are proved optimal in at most "
        f"{slowest:.1f} s of CPU each; the proof files have at most {largest:.0f} kB and are "
        "accepted by a checker of 150 lines of plain Python. The semidefinite bound of those of "
        f"Gset is up to {max(loose):.0f} % above the cut.",
        commands=["python -m benchmarks.hard --parts proved sparse"],
        commits=", ".join(
            sorted({cell["commit"] for cell in [*cells.values(), *random]}),
        ),
        header=["instance", "cut", "bound", "CPU s", "nodes of the tree", "proof, kB"],
        rows=[
            [
                name,
                f"{cell['value']:,.0f}",
                f"{cell['bound']:,.0f}",
                f"{cell['seconds']:.1f}",
                f"{cell['nodes']}",
                f"{cell['kilobytes']:.1f}",
            ]
            for name, cell in cells.items()
        ],
        notes=[
            f"Of {total['problems']:,} random sparse problems against brute force, "
            f"{total['wrong_bounds']} bounds and {total['wrong_steps']} steps were "
            f"wrong, {total['refused_proofs']} right proofs were refused and "
            f"{total['accepted_cheats']} wrong ones accepted."
        ],
        readme=f"maximum cuts, {len(optimal)} sparse graphs | proved optimal, {slowest:.0f} s at "
        f"most | semidefinite bound up to {max(loose):.0f} % above",
    )


def spread() -> Claim:
    """Labels on edges in parts."""
    results = stored("spread")
    large = results["hundred million"]
    kills = results["spread-kills"]["random kills"]
    shown = {
        name: cell
        for name, cell in results["spread"].items()
        if cell["status"] == "ok" and "worker" in name
    }
    commits = sorted({cell["commit"] for cell in (*shown.values(), kills)})
    return Claim(
        name="spread",
        title="Labels on a graph in parts",
        says=f"Labels spread over {large['edges']:,} edges in {large['seconds'] / 60:.0f} minutes "
        f"with {large['workers']} workers of {large['worker_peak_gb']} GB, in {large['passes']} "
        f"passes over the edges. In {kills['runs']} runs, workers and clients were killed "
        f"{kills['kills']} times: {kills['same']} runs left the predictions of an undisturbed run, "
        f"and in {kills['failed']} of them the last command reported an error.",
        commands=["python -m benchmarks --case spread spread-kills"],
        commits=f"{', '.join(commits)}; the largest graph {large['commit']}",
        header=["graph and workers", "seconds", "CPU s", "passes", "GB moved", "GB per worker"],
        rows=[
            [
                name,
                f"{cell['seconds']:.0f}",
                f"{cell['cpu_s']:.1f}",
                f"{cell['passes']}",
                f"{cell['moved_gb']:.2f}",
                f"{cell['worker_peak_gb']:.2f}",
            ]
            for name, cell in shown.items()
        ],
        notes=["Two busy cores: compare the CPU seconds, not the seconds.", kills["note"]],
    )


def paper_sets() -> Claim:
    """The paper's data sets with default arguments."""
    found: dict[str, dict[str, list[float]]] = {"min-max": {}, "standardization": {}}
    for key, runs in stored("paper_sets").items():
        rescaling, name, _ = key.split("/")
        found[rescaling].setdefault(name, []).extend(runs.values())
    means = {
        kind: {name: mean(runs) for name, runs in sets.items()} for kind, sets in found.items()
    }
    both = {kind: mean(sets.values()) for kind, sets in means.items()}
    return Claim(
        name="paper-sets",
        title="The paper's data sets",
        says=f"On the paper's 17 data sets, half labelled, the default classifier has "
        f"{both['min-max']:.1f} % error with min-max features and {both['standardization']:.1f} % "
        "with standardised ones. The paper reports 28.2 and 26.9 % for its GDPA.",
        commands=["python -m benchmarks.paper_sets"],
        commits="not recorded",
        header=["data set", "min-max, error %", "standardised, error %"],
        rows=[
            [name, f"{means['min-max'][name]:.1f}", f"{means['standardization'][name]:.1f}"]
            for name in means["min-max"]
        ],
        notes=["The page on the reproduction has every method of the paper on the same splits."],
    )


def metrics() -> Claim:
    """Metric learning by aligned discs."""
    speed = [(parts, r) for parts, r in metric_rows(stored("metric"), "speed") if parts[0] == "glr"]
    series: dict[str, dict[float, float]] = {"aligned discs": {}, "projection onto the cone": {}}
    for (_, features, samples), row in speed:
        if samples == speed[-1][0][2]:
            series["aligned discs"][float(features)] = row["ours"]
            series["projection onto the cone"][float(features)] = row["cone"]
    most = max(series["aligned discs"])
    ratio = series["projection onto the cone"][most] / series["aligned discs"][most]
    return Claim(
        name="metrics",
        title="Metric learning",
        says=f"With {most:.0f} features, learning a metric by aligned discs is {ratio:.1f} times "
        "as fast as projecting onto the cone of positive semidefinite matrices; with few "
        "features it is slower, and the cone reaches a lower objective.",
        commands=["python -m benchmarks.metric"],
        commits="b675e5b",
        header=["features", *series],
        rows=[
            [f"{d:.0f}", *(f"{points[d]:.2f} s" for points in series.values())]
            for d in series["aligned discs"]
        ],
        chart=charts.lines(series, "features", "seconds", log="xy"),
        alt="Seconds of metric learning by the number of features.",
    )


def hostile_input() -> Claim:
    """Fuzzing."""
    totals = stored("fuzz/totals")
    targets: Mapping[str, Mapping[str, Any]] = totals["targets"]
    count = sum(target["executions"] for target in targets.values())
    findings = len(totals["findings"])
    return Claim(
        name="fuzzing",
        title="Hostile input",
        says=f"{count:,} executions of a coverage-guided fuzzer on the readers of models, "
        f"archives, tables, graphs, QUBO files and journals had {findings} findings.",
        commands=["python -m benchmarks.fuzz --executions 1000000"],
        commits=totals["commit"],
        header=["reader", "executions", "accepted", "clear error", "findings"],
        rows=[
            [
                name,
                f"{t['executions']:,}",
                f"{t['right']:,}",
                f"{t['clear error']:,}",
                f"{t['findings']}",
            ]
            for name, t in targets.items()
        ],
        notes=["The page on reliability has the campaign of random attacks."],
    )


def mutation() -> Claim:
    """Mutation testing."""
    results = stored("mutation")
    return Claim(
        name="mutation",
        title="Tests that notice changes",
        says=f"Tests found {results['first']} % of the sampled mutants of the numerical core, and "
        f"{results['end']} % after tests for the survivors were added.",
        commands=["python -m benchmarks.mutation"],
        commits=results["commit"],
        header=["package", "mutants", "first: killed of drawn", "in the end"],
        rows=[
            [name, f"{all_:,}", f"{k1} of {d1}", f"{k2} of {d2}"]
            for name, (all_, d1, k1, d2, k2) in results["rows"].items()
        ],
        notes=["Tests were written from survivors, so only the first share is an estimate."],
    )


CLAIMS: tuple[Callable[[], Claim], ...] = (
    tables,
    corpus,
    few_labels,
    mnist,
    modalities,
    size,
    growth,
    labelling,
    guarantee,
    maximum_cuts,
    proofs,
    spread,
    paper_sets,
    paper_map,
    paper_times,
    metrics,
    hostile_input,
    mutation,
)
