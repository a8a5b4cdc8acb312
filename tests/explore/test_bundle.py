"""The script of the page: the order of its modules, and the syntax that cannot be joined."""

import re
from importlib.resources import files

import pytest

from polyseme.explore.bundle import bundle

MODULES = {
    "app.js": 'import { twice, unit } from "./lib/numbers.js";\nimport {\n  name,\n} from "./name.js";\n\n'
    "/** Shows it. */\nfunction show() {\n  // a comment\n  return `${name}: ${twice(unit)}`;\n}\n\nshow();\n",
    "lib/numbers.js": 'import { name } from "../name.js";\n\n/**\n * Doubles.\n *\n * @param {number} x\n */\n'
    'export function twice(x) {\n  return 2 * x; // name "import" in a comment\n}\n\n'
    "export let unit = 1;\nexport async function load() {\n  unit = name.length;\n}\n",
    "name.js": 'export const name = "export { name }";\nexport class Empty {}\n',
}


def test_modules_come_after_what_they_import():
    lines = [line for line in bundle("app.js", MODULES.__getitem__).splitlines() if line]
    assert lines == [
        "(() => {",
        '"use strict";',
        'const name = "export { name }";',
        "class Empty {}",
        "function twice(x) {",
        '  return 2 * x; // name "import" in a comment',
        "}",
        "let unit = 1;",
        "async function load() {",
        "  unit = name.length;",
        "}",
        "function show() {",
        "  return `${name}: ${twice(unit)}`;",
        "}",
        "show();",
        "})();",
    ]


REFUSED = {
    'import name from "./name.js";': "form of import or export",
    'import * as all from "./name.js";': "form of import or export",
    'import { name as other } from "./name.js";': "form of import or export",
    'import "./name.js";': "form of import or export",
    "import { name } from './name.js';": "form of import or export",
    'import { name } from "name";': "form of import or export",
    'const later = import("./name.js");': "form of import or export",
    "const here = import.meta.url;": "form of import or export",
    "export default function other() {}": "form of import or export",
    "export { show };": "form of import or export",
    'export * from "./name.js";': "form of import or export",
    "export var a = 1;": "form of import or export",
    "export function* many() {}": "form of import or export",
    "export const { a } = {};": "form of import or export",
    "const [a] = [];": "declaration without one plain name",
    "let a = 1,\n  b = 2;": "declaration without one plain name",
    "var a = 1;": "declaration without one plain name",
    "function twice() {}": "lib/numbers.js and app.js both declare twice",
    "function show() {}": "app.js and app.js both declare show",
    'import { other } from "./name.js";': "imports other from name.js, which does not export it",
    'import { show } from "./app.js";': "import each other: app.js -> app.js",
    "const text = `\nexport const a = 1;\n`;": "backticks",
    'const text = "</SCRIPT>";': "end the script element",
    'const text = "<!--";': "end the script element",
}


@pytest.mark.parametrize("line", REFUSED)
def test_other_syntax_is_refused(line):
    sources = MODULES | {"app.js": f"{MODULES['app.js']}{line}\n"}
    with pytest.raises(ValueError, match=re.escape(REFUSED[line])):
        bundle("app.js", sources.__getitem__)


def test_every_script_is_part_of_the_page():
    assets = files("polyseme.explore") / "assets"
    used = set()

    def read(path):
        used.add(path)
        return assets.joinpath(path).read_text(encoding="utf-8")

    script = bundle("app.js", read)
    assert not re.search(r"^\s*(import|export|/\*\*|//)", script, re.MULTILINE)
    folders = [assets, *(item for item in assets.iterdir() if item.is_dir())]
    present = {
        file.name if folder is assets else f"{folder.name}/{file.name}"
        for folder in folders
        for file in folder.iterdir()
        if file.name.endswith(".js")
    }
    assert used == present
