"""The explorer: one HTML page that shows a model, its words and its documents."""

from polyseme.explore.page import render_page, show_page, write_page
from polyseme.explore.page_data import (
    Inference,
    PageData,
    from_gensim,
    from_sklearn,
    page_data,
    pyldavis_arguments,
    run_page_data,
)

__all__ = [
    "Inference",
    "PageData",
    "from_gensim",
    "from_sklearn",
    "page_data",
    "pyldavis_arguments",
    "render_page",
    "run_page_data",
    "show_page",
    "write_page",
]
