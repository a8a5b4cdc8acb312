"""The script of the page: ES modules, joined into one script that needs no loader.

All modules share one scope in the joined script, so imports and exports are removed and nothing takes their place. This
is only right for a part of the syntax; everything else is refused:

- `import { a, b } from "./other.js";`, without new names;
- `export` before a function, a class, a `const` or a `let`;
- names at the top level that are declared one by one and differ between all modules;
- modules that do not import each other in a circle;
- texts in backticks that end on their line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

_COMMENT = re.compile(r"^ *(?://[^\n]*|/\*\*(?:(?!\*/)[\s\S])*\*/)\n", re.MULTILINE)
_IMPORT = re.compile(r'^import \{\s*([\w$]+(?:,\s+[\w$]+)*),?\s+\} from "(\.\.?/[\w./-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const|let) ([\w$]+))", re.MULTILINE)
_DECLARATION = re.compile(r"^(?:async |function|class|const|let|var)\b.*", re.MULTILINE)
_NAME = re.compile(r"(?:async function|function|class|const|let) ([\w$]+)(?=\(| \{| extends | =|;)(?!.*,$)")
_OTHER_SYNTAX = re.compile(r"^.*(?:^\s*(?:import|export)\b|\bimport\s*[(.]).*", re.MULTILINE)


def bundle(entry: str, read: Callable[[str], str]) -> str:
    """Return the script of a module and of all that it imports; `read` returns the source of a path."""
    sources: dict[str, str] = {}
    exports: dict[str, set[str]] = {}
    home: dict[str, str] = {}

    def add(path: str, importers: tuple[str, ...]) -> None:
        if path in importers:
            raise ValueError(f"Modules import each other: {' -> '.join((*importers, path))}.")
        if path in sources:
            return
        source = _COMMENT.sub("", read(path))
        for names, target in _IMPORT.findall(source):
            other = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            add(other, (*importers, path))
            for name in re.split(r",\s+", names):
                if name not in exports[other]:
                    raise ValueError(f"{path} imports {name} from {other}, which does not export it.")
        source = _IMPORT.sub("", source)
        exports[path] = set(_EXPORT.findall(source))
        sources[path] = source = _EXPORT.sub("", source)
        for line in source.splitlines():
            if line.count("`") % 2:
                raise ValueError(f"{path} has a text in backticks that does not end on its line: {line.strip()}")
        for line in _OTHER_SYNTAX.findall(source):
            raise ValueError(f"{path} has a form of import or export that cannot be joined: {line.strip()}")
        if re.search(r"</script|<!--", source, re.IGNORECASE):
            raise ValueError(f"{path} has a text that would end the script element.")
        for line in _DECLARATION.findall(source):
            declared = _NAME.match(line)
            if declared is None:
                raise ValueError(f"{path} has a declaration without one plain name: {line}")
            if declared[1] in home:
                raise ValueError(f"{home[declared[1]]} and {path} both declare {declared[1]} at the top level.")
            home[declared[1]] = path

    add(entry, ())
    return '\n(() => {\n"use strict";\n' + "\n".join(sources.values()) + "\n})();\n"
