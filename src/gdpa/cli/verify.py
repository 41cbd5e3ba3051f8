"""``gdpa verify``: check a proof of a maximum cut, QUBO or Ising model."""

from __future__ import annotations

from dataclasses import dataclass

from .options import RunOptions, argument, option
from .output import Output, Stages


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(RunOptions):
    """Options of ``gdpa verify``."""

    problem_file: str = argument("Gset, Biq Mac, .qubo, Matrix Market or edge-list file.")
    proof_file: str = argument("Proof, as written by gdpa solve --proof.")
    format: str | None = option("rudy, qubo, mtx or edges; from the file if unset.")


def verify(options: VerifyOptions) -> None:
    """Check a PROOF that an assignment of a problem is optimal, or how far from optimal it can be.

    All numbers are exact. Prints "optimal", "within 0.3 %" (with the gap), or "wrong, because" and
    the reason; then the exit code is 1. The file verify_proof.py of the package does the same for
    Gset and Biq Mac files, and needs nothing but Python.
    """
    with Output("verify", json=options.json, quiet=options.quiet) as output:
        from ..graph_files.couplings import PROBLEMS, read_couplings
        from ..problem.cut_form import exact_cut_form
        from ..proof import Proof
        from ..proof import verify as check

        with Stages(output) as stages:
            stages.start("reading", options.problem_file)
            proof = Proof.load(options.proof_file)
            kind = proof.document.get("problem")
            if kind not in PROBLEMS:
                raise ValueError(
                    f"{options.proof_file} is a proof of a problem of kind {kind!r}; accepted: "
                    f"{', '.join(PROBLEMS)}"
                )
            couplings = read_couplings(options.problem_file, kind, format=options.format)
            form = exact_cut_form(kind, couplings.matrix, couplings.fields.tolist())
            stages.start("checking", options.proof_file)
            verdict = check(form, proof)
        right = not verdict.startswith("wrong")
        output.converged = right
        output.result = {"verdict": verdict, "problem": kind}
        if right:
            output.result |= {"value": str(proof.value), "bound": str(proof.bound)}
        if not output.json:
            output.write(f"{verdict}\n")
