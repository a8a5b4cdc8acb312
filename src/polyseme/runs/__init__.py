"""Run folders: what `polyseme fit` writes, and what every other command reads."""

from polyseme.runs.counted import Counted
from polyseme.runs.folder import whole_folder
from polyseme.runs.opening import open_run
from polyseme.runs.run import Run
from polyseme.runs.write import write_fitted, write_run

__all__ = ["Counted", "Run", "open_run", "whole_folder", "write_fitted", "write_run"]
