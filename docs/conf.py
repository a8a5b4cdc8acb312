"""Settings of Sphinx. `make docs` calls it with the pages that tools/build_site.py collects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polyseme

project = "polyseme"
version = release = polyseme.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton", "sphinx_gallery.gen_gallery"]
default_role = "py:obj"  # a name in backticks is a link if the reference has it, and code otherwise
myst_heading_anchors = 4
smartquotes = False  # names of options stay as they are typed
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = f"polyseme {release}"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
html_theme_options = {
    "show_prev_next": False,
    "show_toc_level": 2,
    "collapse_navigation": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

sphinx_gallery_conf = {
    "examples_dirs": str(Path(__file__).parents[1] / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "reference_url": {"polyseme": None},
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,  # the page would load scripts from the network
    "min_reported_time": 1e9,
}

SECTION = re.compile(r":[A-Z]\w+:|\.\. (?:rubric|seealso|note|warning|only)::")


def examples_first(app: Any, what: str, name: str, value: object, options: Any, lines: list[str]) -> None:
    """Move the examples, the last section that numpydoc writes, before the other sections."""
    if ".. rubric:: Examples" in lines:
        first = next(at for at, line in enumerate(lines) if SECTION.match(line))
        begin = lines.index(".. rubric:: Examples")
        lines[first:] = [*lines[begin:], "", *lines[first:begin]]


def skip_foreign(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other packages."""
    value = getattr(value, "fget", None) or getattr(value, "func", None) or value
    return True if callable(value) and not str(getattr(value, "__module__", "")).startswith("polyseme") else None


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", examples_first, priority=900)
    app.connect("autodoc-skip-member", skip_foreign)
