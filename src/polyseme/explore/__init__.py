"""From a model to what people look at: tables, plots, one HTML page."""

from polyseme.explore.figures import plot_convergence, plot_map, plot_topics
from polyseme.explore.foreign import from_gensim, from_sklearn, pyldavis_arguments
from polyseme.explore.page import page, show, write_page
from polyseme.explore.parts import Inference, Parts, of_model, of_run
from polyseme.explore.simplex_plots import plot_simplex
from polyseme.explore.topic_graphs import plot_topic_graph
from polyseme.explore.tree_plots import plot_tree
from polyseme.selection.picture import plot_selection

__all__ = [
    "Inference",
    "Parts",
    "from_gensim",
    "from_sklearn",
    "of_model",
    "of_run",
    "page",
    "plot_convergence",
    "plot_map",
    "plot_selection",
    "plot_simplex",
    "plot_topic_graph",
    "plot_topics",
    "plot_tree",
    "pyldavis_arguments",
    "show",
    "write_page",
]
