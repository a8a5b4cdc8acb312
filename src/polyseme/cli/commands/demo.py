"""``polyseme demo``: fits topics to docstrings, which every installation has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.commands.explore import PAGE_FILE, write_explorer
from polyseme.cli.console import Console, print_topics, progress_bar, topic_rows, version_info
from polyseme.runs.folder import check_target

if TYPE_CHECKING:
    from polyseme.datasets import TextCorpus
    from polyseme.text import Vectorizer


MAX_DF = 0.3
TITLE = "Docstrings of Python, numpy, scipy and scikit-learn"


def demo(
    k: Annotated[int, typer.Option("-k", min=1, help="Number of topics.")] = 20,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the random numbers.")] = 0,
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of iterations.", show_default="the estimator's")
    ] = None,
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="RUN", help="Folder to write; a run there is replaced.")
    ] = Path("polyseme-demo"),
) -> None:
    """Fit topics to the docstrings of Python, numpy, scipy and scikit-learn and show them."""
    from polyseme.cli.fitting import check_n_topics, exit_if_interrupted, fit_summary, fit_with_bar, not_converged
    from polyseme.estimators import PLSA
    from polyseme.runs import Counted, atomic_folder, open_run
    from polyseme.runs.topic_documents import Labels
    from polyseme.runs.write import write_files

    check_target(folder, overwrite=True)
    output, notes = Console(), Console(stderr=True)
    limit = {} if max_iter is None else {"max_iter": max_iter}
    model = PLSA(n_components=k, random_state=seed, **limit)
    corpus = _read(notes)
    check_n_topics(k, len(corpus.texts))
    vectorizer = _vectorizer()
    counts = vectorizer.fit_transform(corpus.texts)
    interrupted, seconds = fit_with_bar(model, counts, notes)
    about = {
        **version_info(),
        "title": TITLE,
        "page_text": "full",
        "model": {"class": "PLSA", "n_components": k, "seed": seed},
        "interrupted": interrupted,
    }
    with atomic_folder(folder, overwrite=True) as work:
        write_files(work, model, Counted(counts, _columns(corpus), vectorizer), about, corpus.texts)
        write_explorer(open_run(work), work / PAGE_FILE, "full", notes)
    rows = topic_rows(model, [counts], vectorizer.get_feature_names_out(), corpus.titles, Labels.of(corpus.labels))
    if not (model.converged_ or interrupted):
        notes.print(not_converged(model.n_iter_))
    print_topics(rows, output, folder)
    output.print(fit_summary(model, counts, seconds))
    exit_if_interrupted(interrupted, notes)
    output.print("\nTry next", style="bold")
    for command in next_steps(folder):
        output.print(command)
    output.print(f"\nPage to explore: {folder / PAGE_FILE}", soft_wrap=True)


def _read(notes: Console) -> TextCorpus:
    from polyseme.datasets import docstrings

    with progress_bar(notes, "Reading docstrings") as update:
        corpus = docstrings(progress=lambda done, total: update(done, total, f"{done} of {total} files"))
    if corpus.skipped:
        notes.print(f"Files that could not be parsed and were left out: {corpus.skipped}.")
    return corpus


def _columns(corpus: TextCorpus) -> dict[str, list[str | None]]:
    from polyseme.runs.documents import excerpt

    n_documents = len(corpus.texts)
    return {
        "id": list(corpus.titles),
        "title": [None] * n_documents,
        "label": list(corpus.labels),
        "time": [None] * n_documents,
        "source": list(corpus.labels),
        "excerpt": [excerpt(text) for text in corpus.texts],
    }


def _vectorizer() -> Vectorizer:
    """Return a vectorizer of English words that are neither rare nor in too many documents."""
    from polyseme.text import Vectorizer

    return Vectorizer(language="english", min_df=5, max_df=MAX_DF)


def next_steps(folder: Path) -> tuple[str, ...]:
    """Return commands to try after the demo."""
    return (
        f"polyseme topics {folder}",
        f"polyseme search {folder} solve a linear system",
        "polyseme fit --help",
    )
