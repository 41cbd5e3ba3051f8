"""``gdpa verify-session``: check the certificate of a labelling session."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Quiet, option
from .output import Output


@dataclass(frozen=True, kw_only=True)
class VerifySessionOptions:
    """Options of ``gdpa verify-session``."""

    certificate: Annotated[
        str, typer.Argument(metavar="CERTIFICATE", help="The file session-certificate.json.")
    ]
    log: str | None = option("Log of the session, to compare every answer with.")
    quiet: Quiet = False


def verify_session(options: VerifySessionOptions) -> None:
    """Check the CERTIFICATE of a session of gdpa label, and print what it proves.

    Every random check is drawn again from the seed, and every proved share is computed again. The
    data are not needed. With --log, all answers are compared with those of the log.
    """
    with Output("verify-session", quiet=options.quiet) as output:
        from ..labeling.records import read_log
        from ..labeling.session_certificate import verify_certificate

        path = Path(options.certificate)
        try:
            content: Any = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not JSON ({error})") from error
        if not isinstance(content, dict):
            raise ValueError(f"{path} is not a session certificate")
        events = None
        if options.log is not None:
            about = content.get("about")
            if not isinstance(about, dict):
                raise ValueError(f"{path} does not say which data it is about")
            events = read_log(Path(options.log).read_bytes(), about).events
        try:
            statement = verify_certificate(content, events)
        except ValueError as error:
            raise ValueError(f"{path} is not valid: {error}") from error
        output.write(f"{statement.text}\n")
        output.note(
            f"{statement.checks} random checks, {statement.wrong} of them predicted wrongly; "
            f"{statement.rows} rows are covered"
        )
        if events is None:
            output.note("compare the answers with the log by --log")
