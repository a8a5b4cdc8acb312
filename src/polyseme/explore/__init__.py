"""The explorer: one HTML page that shows a model with its words and documents."""

from polyseme.explore.page import render_page, show_page, write_page
from polyseme.explore.page_data import (
    PageData,
    from_gensim,
    from_sklearn,
    page_data,
    pyldavis_arguments,
)

__all__ = [
    "PageData",
    "from_gensim",
    "from_sklearn",
    "page_data",
    "pyldavis_arguments",
    "render_page",
    "show_page",
    "write_page",
]
