"""The explorer: one HTML page that shows a model with its words and documents."""

from polyseme.explore.exports import pyldavis_arguments, topicwizard_data
from polyseme.explore.page import write_page

__all__ = ["pyldavis_arguments", "topicwizard_data", "write_page"]
