"""Run folders: what `polyseme fit` writes, and what every other command reads."""

from polyseme.runs.folder import whole_folder
from polyseme.runs.run import Run, open_run
from polyseme.runs.write import write_run

__all__ = ["Run", "open_run", "whole_folder", "write_run"]
