"""``polyseme update``: more documents for a run."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli import options
from polyseme.cli.console import Console, in_words
from polyseme.cli.versions import now

if TYPE_CHECKING:
    from polyseme.runs import Counted
    from polyseme.runs.sharded import ShardedRun
    from polyseme.text import Reader

MANY_UNKNOWN = 0.1
"""of the new documents; from there on a new fit is worth while"""


NOTHING_NEW = "All of these documents are in the run already: nothing is changed."


def update(
    run: options.RunFolder,
    inputs: options.Inputs,
    refine: Annotated[
        bool, typer.Option("--refine", help="Fit on with all documents; else the topics stay as they are.")
    ] = False,
    format: options.Format = None,
    text: options.Text = None,
    id: options.Id = None,
    title: options.Title = None,
    label: options.Label = None,
    time: options.Time = None,
    encoding: options.Encoding = None,
    uncategorized: options.Uncategorized = False,
    quiet: options.Quiet = False,
    trust_pattern: options.TrustPattern = False,
) -> None:
    """Add documents to a run: their topics are found, and the run's own topics stay, or are refined.

    The words stay those of the run: words that it does not have are not counted, and a document that is in the run
    already (the same id from the same file) is left out.

    Examples:

      polyseme update letters-run letters-of-1872/

      polyseme update news-run today.jsonl --refine
    """
    options.check_inputs(inputs)

    from sklearn.base import clone

    from polyseme.cli.fitting import end_if, fit_with_bar
    from polyseme.cli.reading import count_as_before
    from polyseme.cli.rewriting import rewrite
    from polyseme.runs import open_run
    from polyseme.runs.sharded import ShardedRun
    from polyseme.runs.texts import TextWriter, read_texts
    from polyseme.text import read

    screen, notes = Console(), Console(stderr=True)
    opened = open_run(run, trust_pattern=trust_pattern)
    reader = read(
        inputs, format=format, text=text, id=id, title=title, label=label, time=time, encoding=encoding,
        uncategorized=uncategorized,
    )  # fmt: skip
    entry = {"when": now(), "inputs": inputs, "refine": refine}
    if isinstance(opened, ShardedRun):
        _update_shards(opened, reader, entry, screen, notes, quiet=quiet)
        return
    old_texts = opened.texts
    with TemporaryDirectory() as place:
        writer = None if old_texts is None else TextWriter(Path(place))
        added = count_as_before(reader, opened.vectorizer, notes, texts=writer, quiet=quiet)
        texts = read_texts(Path(place))
    new = _new_rows(opened.counted, added)
    if not len(new):
        screen.print(NOTHING_NEW)
        return
    counted = _together(opened.counted, added, new)
    interrupted = False
    model = opened.model.with_topics(opened.model.components_, counted.counts)
    if refine:
        model = clone(model).set_params(init=(model.doc_topic_, model.components_))
        interrupted, _ = fit_with_bar(model, counted.counts, notes, quiet=quiet)
    about = {**opened.about, "updates": [*opened.about.get("updates", []), {**entry, "documents": len(new)}]}
    all_texts = None if old_texts is None or texts is None else [*old_texts, *(texts[row] for row in new)]
    rewrite(opened, model, counted, about, all_texts, notes, quiet=quiet)
    if not quiet:
        _tell(opened.model, added, new, screen)
    end_if(interrupted, notes)


def _update_shards(
    run: ShardedRun, reader: Reader, entry: dict[str, Any], screen: Console, notes: Console, *, quiet: bool
) -> None:
    from polyseme.cli.fitting import end_if
    from polyseme.cli.update_shards import NothingNew, update_shards

    try:
        done = update_shards(run, reader, entry, notes, quiet=quiet)
    except NothingNew:
        screen.print(NOTHING_NEW)
        return
    if not quiet:
        screen.print(f"{in_words(done.added, 'document')} added; {done.read - done.added:,} already in the run.")
    end_if(done.interrupted, notes)


def _new_rows(old: Counted, added: Counted) -> Any:
    """The rows of `added` whose document `old` does not have."""
    import numpy as np

    known = set(zip(old.columns["source"], old.columns["id"], strict=True))
    names = zip(added.columns["source"], added.columns["id"], strict=True)
    return np.array([row for row, name in enumerate(names) if name not in known], dtype=np.int64)


def _together(old: Counted, added: Counted, new: Any) -> Counted:
    import scipy.sparse as sp

    from polyseme.runs import Counted

    columns = {name: [*values, *(added.columns[name][row] for row in new)] for name, values in old.columns.items()}
    counts = sp.csr_array(sp.vstack([old.counts, sp.csr_array(added.counts)[new]]))
    return Counted(counts, columns, old.vectorizer)


def _tell(model: Any, added: Counted, new: Any, screen: Console) -> None:
    import numpy as np
    import scipy.sparse as sp

    counts = sp.csr_array(added.counts)[new]
    wordless = int((np.diff(counts.indptr) == 0).sum())
    report = model.perplexity_report(counts)
    screen.print(f"{in_words(len(new), 'document')} added; {len(added.names) - len(new):,} already in the run.")
    screen.print(
        f"Perplexity of the new documents under the topics as they were: {report.perplexity:.1f}; "
        f"of the run's own: {model.training_perplexity_:.1f}.",
    )
    if wordless > MANY_UNKNOWN * len(new):
        screen.print(f"{wordless:,} of them have no word that the run knows: a new polyseme fit would learn theirs.")
