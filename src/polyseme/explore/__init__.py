"""The explorer: one HTML page that shows a model with its words and documents."""

from polyseme.explore.page import show_page, write_page
from polyseme.explore.page_data import from_gensim, from_sklearn, pyldavis_arguments, topicwizard_data

__all__ = ["from_gensim", "from_sklearn", "pyldavis_arguments", "show_page", "topicwizard_data", "write_page"]
