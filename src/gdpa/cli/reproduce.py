"""``gdpa reproduce``: the paper's tables and figures with one command."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import require

if TYPE_CHECKING:
    from ..experiments import ProgressEvent

require("typer", "cli")
require("rich", "cli")
import typer  # noqa: E402 - after the check that says which extra has it

from .options import Json, Quiet  # noqa: E402
from .output import Output  # noqa: E402

__all__ = ["main", "register", "reproduce"]


def _names(values: list[str] | None) -> tuple[str, ...] | None:
    """Names given one by one or separated by commas."""
    if not values:
        return None
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class _Bar:
    """A progress bar with the time left and what is being computed."""

    def __init__(self, output: Output) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self.progress = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]} left"),
            TextColumn("{task.description}"),
            console=output.console,
            disable=output.quiet,
        )
        self.task = self.progress.add_task("starting", total=None, left="-:--")

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *details: Any) -> None:
        if not self.progress.disable:  # rich 13 ends a bar that was never shown with a line
            self.progress.stop()

    def __call__(self, event: ProgressEvent) -> None:
        self.progress.update(
            self.task,
            total=event.total,
            completed=event.done,
            left=_time(event.remaining),
            description="  ".join(event.current) or "report",
        )


def reproduce(
    experiments: Annotated[
        list[str],
        typer.Argument(
            help="example, table1, table2, runtime, cod-rna, lemma1, bound, warm-start or all"
        ),
    ],
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="all ten splits per fold, or one (minutes)"),
    ] = False,
    methods: Annotated[
        list[str] | None, typer.Option(help="only these methods; may be repeated, or a,b,c")
    ] = None,
    datasets: Annotated[
        list[str] | None, typer.Option(help="only these data sets; may be repeated, or a,b,c")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="worker processes")] = 1,
    out: Annotated[Path, typer.Option(help="folder of results and report")] = Path("results"),
    time_limit: Annotated[
        float | None,
        typer.Option(help="seconds per method and problem (20, or 60 with --full)"),
    ] = None,
    max_size: Annotated[
        int | None, typer.Option(help="largest problem of the cod-rna experiment")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="folder that also gets REPRODUCTION.md and its figures")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="compute rows that failed before again")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's tables and figures, beside the published numbers.

    A run that was stopped goes on where it stopped when the same command is given again.
    """
    with Output("reproduce", json=json, quiet=quiet) as output:
        from ..experiments import Config
        from ..experiments import reproduce as run

        config = Config(
            full=full, methods=_names(methods), datasets=_names(datasets), max_size=max_size
        )
        try:
            with _Bar(output) as bar, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the report says which rows did not converge
                done = run(
                    experiments,
                    out=out,
                    config=config,
                    jobs=jobs,
                    time_limit=time_limit,
                    retry_failed=retry_failed,
                    progress=bar,
                    docs=docs,
                )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "finished rows are kept: the same command goes on from there"
            ) from None
        except RuntimeError as error:
            raise ValueError(str(error)) from error
        output.result = {
            "experiments": list(experiments),
            "rows": len(done.rows),
            "without_result": len(done.lost),
            "report": str(done.report),
        }
        if not json:
            output.write(
                f"{len(done.rows)} rows, {len(done.lost)} without a result (the report says why)\n"
                f"report: {done.report}\n"
            )


def register(app: typer.Typer) -> None:
    """Add the command to the program.

    Parameters
    ----------
    app : typer.Typer
        The program.
    """
    app.command("reproduce")(reproduce)


def main() -> None:
    """Run the command by itself: ``python -m gdpa.cli.reproduce``."""
    typer.run(reproduce)


if __name__ == "__main__":
    main()
