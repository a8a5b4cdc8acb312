"""A notebook as users write it: every figure and table is shown once, and the progress leaves one line."""

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel (dependency group test)")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat (dependency group test)")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel (dependency group test)")
pytest.importorskip("matplotlib", reason="needs polyseme[plots]")
pytest.importorskip("polars", reason="needs polyseme[text]")

SETUP = """
import warnings
warnings.simplefilter("ignore")
from polyseme import PLSA, CorrelatedTopicModel, HierarchicalPLSA, fit, plots
from polyseme.datasets import synthetic_corpus
from polyseme.metrics import evaluate
from polyseme.retrieval import SearchIndex
from polyseme.selection import select_n_topics
X = synthetic_corpus(150, n_words=60, n_topics=3, random_state=0).counts()
words = [f"word{w}" for w in range(60)]
model = PLSA(3, random_state=0).fit(X, feature_names=words)
"""
FIGURES = (
    "plots.plot_topics(model)",
    "plots.plot_map(model)",
    "plots.plot_convergence(model)",
    "plots.plot_selection(found)",
    "plots.plot_tree(HierarchicalPLSA(depth=2, branching=2, random_state=0).fit(X, feature_names=words))",
    "plots.plot_topic_graph(CorrelatedTopicModel(3, random_state=0, max_iter=5).fit(X, feature_names=words))",
)
TABLES = {
    "found": "to predict",
    "evaluate(model, X)": "perplexity, completion",
    "SearchIndex(X, words).search('word1', 3)": "rank",
    "model.topics()": "weight",
    "model": "PLSA",
}


@pytest.fixture(scope="module")
def outputs():
    """Execute a notebook and return the outputs of each cell by its source."""
    selection = "found = select_n_topics(X, [2, 3], folds_run=1, reading=False, random_state=0)"
    progress = "_ = PLSA(3, random_state=0, verbose=1).fit(X)"
    run = "_ = fit(['sea ship harbor'] * 5 + ['farm field corn'] * 5, 2, min_df=1, verbose=1)"
    sources = [SETUP, selection, progress, run, *FIGURES, *TABLES]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return {cell.source: cell.outputs for cell in notebook.cells}


def kinds(outputs):
    return [sorted(output.get("data", {"stream": output.get("name")})) for output in outputs]


@pytest.mark.parametrize("source", FIGURES)
def test_a_figure_is_shown_once(outputs, source):
    assert sum("image/png" in output.get("data", {}) for output in outputs[source]) == 1


@pytest.mark.parametrize("source", TABLES)
def test_a_result_is_a_table(outputs, source):
    (output,) = outputs[source]
    assert TABLES[source] in output.data["text/html"]
    assert TABLES[source] in output.data["text/plain"] or source == "model"
    assert max(map(len, output.data["text/plain"].split("\n"))) <= 120


def test_calls_without_a_result_show_nothing(outputs):
    assert outputs[SETUP] == []


def test_the_progress_of_a_fit_is_one_line(outputs):
    (cell,) = (outputs[source] for source in outputs if "verbose=1).fit" in source)
    assert {output.output_type for output in cell} == {"stream"}
    last = "".join(output.text for output in cell).strip("\n").split("\r")[-1]
    assert "log-likelihood" in last
    assert "\n" not in last


def test_the_progress_of_a_run_is_text(outputs):
    (cell,) = (outputs[source] for source in outputs if source.startswith("_ = fit("))
    assert {output.output_type for output in cell} <= {"stream"}
    assert "Output()" not in "".join(output.text for output in cell)
