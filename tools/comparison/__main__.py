"""Run cases with the polyseme that this interpreter imports, and write their results.

Usage: python -m comparison OUTPUT PACKAGES CASE ...; polyseme must come from the folder PACKAGES.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

from comparison.compare import Outcome
from comparison.registry import Run, Skip, all_cases
from comparison.values import outcome_of, write_outcomes


def run_case(run: Run) -> Outcome:
    """Run one case in an empty folder."""
    start = Path.cwd()
    # Files that a fit still maps must not fail a case.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)  # so that no path of this machine is part of a result
        try:
            return outcome_of(run(Path()))
        except Skip as reason:
            return Outcome(skipped=str(reason))
        except Exception as error:
            return outcome_of_error(error)
        finally:
            os.chdir(start)


def outcome_of_error(error: Exception) -> Outcome:
    """Return a refusal by polyseme, whose type is compared; a missing package; or the failure of the case."""
    # scikit-learn turns the reason why a method is not available into an AttributeError.
    for refusal in (error, error.__cause__):
        if type(refusal).__name__ == "MissingExtraError":
            return Outcome(skipped=str(refusal))
        if type(refusal).__module__.split(".")[0] == "polyseme":
            return Outcome(messages={"error": str(refusal)}, error=type(refusal).__name__)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return Outcome(failure=f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})")


def main(output: str, packages: str, *names: str) -> None:
    import polyseme

    if Path(packages).resolve() not in Path(polyseme.__file__).resolve().parents:
        raise SystemExit(f"polyseme was imported from {polyseme.__file__}, not from {packages}.")
    faulthandler.enable()
    cases = all_cases()
    outcomes = {}
    for name in names:
        print(name, file=sys.stderr, flush=True)  # the last line names the case that ended the process
        outcomes[name] = run_case(cases[name])
    write_outcomes(outcomes, Path(output))


if __name__ == "__main__":
    main(*sys.argv[1:])
