"""The list of cases in the order in which they run: short ones first."""

from __future__ import annotations

from . import (
    case_cod_rna,
    case_distributed,
    case_growth,
    case_hundred_thousand,
    case_import_time,
    case_memory,
    case_million,
    case_relaxation,
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
        *case_relaxation.CASES,
        *case_growth.CASES,
        *case_hundred_thousand.CASES,
        case_cod_rna.CASE,
        case_million.CASE,
        case_million.TEN,
        *case_distributed.CASES,
        _single("solve-cpu", "The solve in CPU time", "case_solve", (), sizes=[10_000]),
        _single("lp", "One LP of the loop: closed form and HiGHS", "case_lp", (), sizes=[3_000]),
        _single("eigenvector", "First eigenvector, N = 20,000", "case_eigenvector", ()),
        _single("sdr", "The relaxation by low-rank factors", "case_sdr", (), sizes=[5_000]),
        _single(
            "search", "Neighbours by cells and by faiss", "case_search", (), sizes=[[5_000, 8]]
        ),
        _single(
            "scan-limit",
            "Recall in many dimensions, and what it is worth",
            "case_search:run_limits",
            (),
            n=3_000,
            kinds=["clusters 20"],
            seeds=1,
        ),
        _single(
            "image-search", "Neighbours of images", "case_search:run_images", (), n=2_000, seeds=1
        ),
        _single("min-cut", "The exact cut", "case_min_cut", (), sizes=[10_000]),
    )
}
