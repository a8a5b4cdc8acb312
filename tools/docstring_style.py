"""Docstrings as Markdown for the reference pages (a Griffe extension, mkdocs.yml).

The package's docstrings are plain text: sections with a line of dashes under their names, parameters as
`name : meaning` with indented further lines, examples with `>>>`. Markdown would join their lines.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

NAMED = re.compile(r"^([*\w.]+(?:, [*\w.]+)*) : (.*)$")
RULE = re.compile(r"^-{3,}$")


def as_markdown(text: str) -> str:
    """The docstring `text` with its sections, entries and examples in Markdown.

    >>> print(as_markdown("Sums.\\n\\nParameters\\n----------\\nx : counts,\\n    dense"))
    Sums.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `x`: counts,
        dense
    """
    lines: list[str] = []
    in_list = in_example = False
    source = text.splitlines()
    for number, line in enumerate(source):
        following = source[number + 1] if number + 1 < len(source) else ""
        if in_example and not line.strip():
            lines += ["```", ""]
            in_example = False
        elif in_example:
            lines.append(line)
        elif line.startswith(">>> "):
            lines += ["", "```pycon", line]
            in_example, in_list = True, False
        elif RULE.match(following) and line.strip():
            lines += ["", f"**{line.strip()}**", ""]
            in_list = False
        elif RULE.match(line):
            continue
        elif entry := NAMED.match(line):
            lines += [] if in_list else [""]
            lines.append(f"- `{entry[1]}`: {entry[2]}")
            in_list = True
        else:
            if in_list and line.strip() and not line.startswith(" "):
                lines.append("")
                in_list = False
            lines.append(line)
    if in_example:
        lines.append("```")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


class MarkdownDocstrings(griffe.Extension):
    """Rewrites every docstring of the package when it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
