"""The list of cases in the order in which they run: short ones first."""

from __future__ import annotations

from . import (
    case_distributed,
    case_fits,
    case_growth,
    case_import_time,
    case_memory,
    case_spread,
    case_spread_kills,
)
from .runner import Case, Measurement


def _single(name: str, title: str, module: str, columns: tuple[str, ...], **quick: object) -> Case:
    """Build a case of one process that makes its own rows; run on request only."""
    function = f"benchmarks.{module if ':' in module else module + ':run'}"

    def plan(short: bool) -> list[Measurement]:
        arguments = dict(quick) if short else {}
        return [Measurement(name, function, arguments, repeats=1, limit=600.0)]

    return Case(name, title, plan, columns=columns, default=False)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        case_import_time.CASE,
        case_memory.CASE,
        *case_growth.CASES,
        *case_fits.CASES,
        case_fits.TEN_MILLION,
        *case_distributed.CASES,
        *case_spread.CASES,
        case_spread_kills.CASE,
        _single(
            "large-solves",
            "The exact cut and the semidefinite relaxation on large graphs",
            "case_large_solves",
            (),
            sizes=[10_000],
        ),
        _single(
            "search",
            "Neighbours by cells and by faiss, at the same recall",
            "case_search",
            ("points", "features", "cells_recall", "cells_s", "faiss_recall", "faiss_s"),
            sizes=[[5_000, 8]],
        ),
        _single(
            "scan-limit",
            "Recall in many dimensions, and the error of the classifier",
            "case_search:run_limits",
            (),
            n=3_000,
            kinds=["clusters 20"],
            seeds=1,
        ),
        _single(
            "image-search", "Neighbours of images", "case_search:run_images", (), n=2_000, seeds=1
        ),
    )
}
