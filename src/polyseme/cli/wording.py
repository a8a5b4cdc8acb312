"""Messages of the library in the words of the command line: options instead of Python arguments."""

from __future__ import annotations

import re

_OTHER_NAMES = {"categories": "--category", "n_components": "-k", "random_state": "--seed"}
_ARGUMENTS = (
    "categories", "encoding", "format", "id", "label", "language", "max_df", "max_iter", "min_df", "n_components",
    "noise", "random_state", "sample", "text", "time", "title",
)  # fmt: skip
_ARGUMENT = re.compile(rf"(?<![\w-])({'|'.join(_ARGUMENTS)})=(?!=)")


def in_options(message: str) -> str:
    """The message with `encoding=` as `--encoding`, and so on for all arguments that are options too."""
    return _ARGUMENT.sub(lambda found: _OTHER_NAMES.get(found[1], f"--{found[1].replace('_', '-')}"), message)
