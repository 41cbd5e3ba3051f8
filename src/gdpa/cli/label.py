"""``gdpa label``: label the rows of a table in the browser."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..files import write_text, written_whole
from ..threads import one_thread
from .models import load_model
from .options import ColumnOptions, EmbedOptions, Quiet, TableOptions, option
from .output import Output

if TYPE_CHECKING:
    from ..labeling import Goal, LabelingSession


@dataclass(frozen=True, kw_only=True)
class LabelOptions(EmbedOptions, ColumnOptions, TableOptions):
    """Options of ``gdpa label``."""

    target: str = option(
        "Column to fill; added if it does not exist.", "--target", "-t", default="label"
    )
    text: str | None = option("Column of text to show in large type.")
    image: str | None = option("Column of image file names, relative to the folder of DATA.")
    shape: str | None = option("HEIGHTxWIDTH: show rows of pixels as images.")
    class_name: list[str] | None = option(  # noqa: RUF009
        "Class to offer from the start; may be repeated.", "--class"
    )
    guess: list[str] | None = option(  # noqa: RUF009
        "Column of guesses of the label, or GUESS:CONFIDENCE for two columns; used as far as it "
        "helps on held-out labels. May be repeated.",
        "--guess",
    )
    model: str | None = option("Start with the labels and encoding of this model file.")
    out: str | None = option(
        "File to write at the end: .csv, .parquet, .jsonl, .json (Label Studio), or .zip with "
        "pictures in a folder per class and a list of them; DATA-labelled.csv if unset.",
        "--out",
        "-o",
    )
    escape: bool = option(
        "Put an apostrophe before answers, names and predictions in a CSV file that a spreadsheet "
        "would execute. Cells of the input are never changed.",
        "--escape-formulas",
        default=False,
    )
    who: bool = option("Write who answered and when.", "--who", default=False)
    overlap: float = option(
        "Fraction of rows to show to a second annotator.", min=0, max=1, default=0.0
    )
    goal: float | None = option(
        "Share of right predictions to prove, such as 0.9; questions are chosen accordingly."
    )
    goal_about: str = option(
        "What the goal is about: accuracy, precision:CLASS, recall:CLASS, or confident:0.8 for "
        "rows with at least this confidence.",
        default="accuracy",
    )
    risk: float = option("Accepted probability that a proof is wrong.", default=0.05)
    log: str | None = option("File to append each answer to; OUT.log if unset.")
    repair: bool = option(
        "List damaged lines of the log, write the others to a new one, and stop.",
        "--repair",
        default=False,
    )
    host: str = option(
        "Address to listen on; addresses other than localhost need --token.", default="127.0.0.1"
    )
    token: str | None = option(
        "Secret part of the address; random if unset.", envvar="GDPA_LABEL_TOKEN"
    )
    public_url: str | None = option("Address of the page behind a reverse proxy.")
    port: int = option("Port of the server; 0 picks a free port.", min=0, max=65535, default=0)
    browser: bool = option("Open the page in the browser.", "--browser/--no-browser", default=True)
    seed: int = option("Random seed.", min=0, default=0)
    quiet: Quiet = False
    context: typer.Context

    def image_shape(self) -> tuple[int, int] | None:
        """Return height and width, or None."""
        if self.shape is None:
            return None
        sides = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", self.shape.lower())
        if sides is None:
            raise ValueError(f"--shape {self.shape!r} must be HEIGHTxWIDTH, such as 8x8")
        return int(sides[1]), int(sides[2])

    def proof_goal(self) -> Goal | None:
        """Return what is to be proved; None without --goal."""
        from ..labeling.goal import Goal

        if self.goal is None:
            return None
        kind, _, rest = self.goal_about.partition(":")
        if kind == "confident":
            try:
                return Goal(self.goal, kind, confidence=float(rest), risk=self.risk)
            except ValueError as error:
                raise ValueError(f"--goal-about {self.goal_about!r}: {error}") from error
        return Goal(self.goal, kind, value=rest or None, risk=self.risk)

    def guess_columns(self) -> dict[str, str | None]:
        """Return the columns of guesses, with the column of their confidence or None."""
        pairs = [text.rpartition(":") for text in self.guess or ()]
        return {(name if colon else rest): (rest if colon else None) for name, colon, rest in pairs}

    def output_files(self) -> tuple[Path, Path]:
        """Return the paths of the table and the log to write."""
        data = Path("table.csv" if self.data == "-" else self.data).absolute()
        out = data.with_name(f"{data.name.partition('.')[0]}-labelled.csv")
        if self.out is not None:
            out = Path(self.out)
        if out.is_dir() or (self.data != "-" and out.resolve() == data.resolve()):
            raise ValueError(f"--out {out} is a folder or the input; choose another name")
        return out, out.with_name(out.name + ".log") if self.log is None else Path(self.log)


def label(options: LabelOptions) -> None:
    """Label rows of DATA in the browser; the classifier predicts the other rows.

    Starts a server that accepts connections from this machine only, unless --host is set; Ctrl-C
    stops it. Each answer is saved at once. To resume, repeat the command. A row has one label;
    several labels per row are not supported.
    """
    with Output("label", quiet=options.quiet) as output, one_thread():
        from ..labeling.goal import effort
        from ..labeling.server import LabelServer
        from ..labeling.tables import TableSource, open_table

        source = TableSource(
            data=options.data,
            target=options.target,
            text=options.text,
            image=options.image,
            shape=options.image_shape(),
            id_column=options.id_column,
            drop=tuple(options.drop or ()),
            columns=options.kinds(),
            classes=tuple(options.class_name or ()),
            guesses=options.guess_columns(),
            unlabeled=options.unlabeled,
            escape=options.escape,
            embedding=options.embedding(output.note) if options.embed else {},
            reading=options.reading,
        )
        out, log = options.output_files()
        start: dict[str, Any] = {}
        if options.model is not None:
            fitted = load_model(options.model)
            if fitted.encoder is not None and options.embed:
                fitted.encoder.set_params(**options.embedding(output.note))
            known = fitted.model.ensemble_.labels
            names = [None if code < 0 else str(known.classes[code]) for code in known.codes]
            start = {"encoder": fitted.encoder, "labels": names}
        controller, exporter, notes = open_table(
            source,
            log=log,
            seed=options.seed,
            command=options.context.obj,
            repair=options.repair,
            goal=options.proof_goal(),
            **start,
        )
        output.note(*notes)
        session = controller.session
        if options.repair:
            kept = session.repair_log()
            session.close()
            output.note(
                f"nothing in {log} is damaged"
                if kept is None
                else f"{log} now has the undamaged lines only; the old log is {kept}"
            )
            return
        session.overlap = options.overlap
        kind = exporter.kind_of(out)
        server = LabelServer(
            controller,
            exporter,
            host=options.host,
            port=options.port,
            token=options.token,
            public_url=options.public_url,
        )
        if session.labels:
            output.note(f"{len(session.labels)} rows have a label")
        if effort(session.goal):
            output.note(effort(session.goal))
        output.write(f"{server.url}\n")
        sys.stdout.flush()
        output.note(f"answers are saved in {log}; Ctrl-C stops and writes {out}")
        if options.browser:
            import webbrowser

            webbrowser.open(server.url)
        server.run()
        if session.labels:
            try:
                if session.latest is None:
                    session.refresh()
            finally:
                with written_whole(out) as staged:
                    staged.write_bytes(exporter.make(kind, who=options.who)[0])
                latest = session.latest
                based = "no predictions"
                if latest is not None:
                    based = f"predictions based on {len(latest.trained)} of them"
                output.note(f"{len(session.labels)} labels, {based}: {out}")
                _write_certificate(session, out, output)


def _write_certificate(session: LabelingSession, out: Path, output: Output) -> None:
    """Write the certificate beside the table, and print what is proved."""
    statement = session.statement(refresh=False)
    if not statement.checks:
        return
    path = out.with_name(f"{out.stem}-session-certificate.json")
    write_text(path, json.dumps(session.certificate(refresh=False)))
    output.note(statement.text, f"certificate: {path}; check it with gdpa verify-session")
