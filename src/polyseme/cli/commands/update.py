"""``polyseme update``: adds documents to a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.cli.console import Console, exit_if_interrupted, print_json, screen_reporter
from polyseme.cli.options import JSON, QUIET, Inputs, RunFolder, check_inputs, takes
from polyseme.options import NEW_TOPICS, READING, Option
from polyseme.progress import pluralize, print_line

if TYPE_CHECKING:
    from polyseme.cli import schemas
    from polyseme.runs.update import Updated

_UNKNOWN_SHARE = 0.1
"""A new fit is recommended if a larger share of the new documents has no known word."""


@takes(
    Option("refit", "Fit the topics again to all documents. By default the topics do not change.", None, bool, False),
    NEW_TOPICS,
    *READING,
    JSON,
    QUIET,
)
def update(
    run: RunFolder,
    inputs: Inputs,
    refit: bool,
    new_topics: str | int | None,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Add documents to a run.

    Their topic weights are computed with the topics of the run. The vocabulary does not change: words that the run does
    not contain are not counted. Documents that are already in the run (same id in the same file) are skipped. Names of
    topics and removed words stay as they are.

    With --new-topics, topics are added for what the new documents are about and the topics of the run do not explain.
    The others keep their numbers, names and words. auto finds a topic in documents without a new one with a probability
    of at most 0.001.

    Examples:

      polyseme update letters-run letters-of-1872/

      polyseme update news-run today.jsonl --new-topics auto

      polyseme update news-run today.jsonl --refit
    """
    check_inputs(inputs)

    from polyseme.runs.update import update_run
    from polyseme.text.readers.reader import read

    reader = read(inputs, **reading)
    done = update_run(
        Path(run), reader, refit=refit, new_topics=new_topics, report=screen_reporter(quiet=quiet or as_json)
    )
    if as_json:
        print_json("update", _as_dict(done))
    else:
        screen = Console()
        for line in _lines(done, tested=new_topics == "auto", quiet=quiet):
            print_line(screen, line)
    exit_if_interrupted(done.interrupted)


def _lines(done: Updated, *, tested: bool, quiet: bool) -> Iterator[str]:
    if not done.n_added:
        yield "All of these documents are already in the run: nothing has changed."
        return
    from polyseme.utils import perplexity_of

    if not quiet:
        yield f"{pluralize(done.n_added, 'document')} added; {done.n_read - done.n_added:,} already in the run."
        yield (
            f"Perplexity of the new documents: {done.perplexity:.1f}; of all documents: "
            f"{perplexity_of(done.run.model.log_likelihood_):.1f}."
        )
        if done.without_words > _UNKNOWN_SHARE * done.n_added:
            without = pluralize(done.without_words, "new document")
            yield f"{without} without any word of the run: a new polyseme fit learns their words."
    titles = done.run.topic_titles
    for topic in done.entry.new_topics:
        main = pluralize(topic.documents, "new document")
        yield f"New topic {topic.topic} {titles[topic.topic]}: {main}, such as {', '.join(topic.typical)}."
    if tested and done.entry.p_value is not None and not done.entry.new_topics:
        from polyseme.selection.new_topics import FALSE_ALARMS

        found = f"p = {done.entry.p_value:.2g}, a new topic needs at most {FALSE_ALARMS}"
        few = "the new documents have something new, but it is the main subject of too few of them"
        yield f"No new topic: {few if done.entry.p_value <= FALSE_ALARMS else found}."
    if done.entry.faded:
        yield f"Topics that fade: {', '.join(f'{topic} {titles[topic]}' for topic in done.entry.faded)}."


def _as_dict(done: Updated) -> schemas.Update:
    from polyseme.utils import perplexity_of

    titles = done.run.topic_titles
    entry = done.entry if done.n_added else None
    return {
        "read": done.n_read,
        "added": done.n_added,
        "without_words": done.without_words,
        "perplexity": done.perplexity,
        "perplexity_of_all": perplexity_of(done.run.model.log_likelihood_),
        "p_value": None if entry is None else entry.p_value,
        "new_topics": [
            {
                "topic": topic.topic, "name": titles[topic.topic], "documents": topic.documents,
                "typical": list(topic.typical),
            }
            for topic in (entry.new_topics if entry else ())
        ],
        "faded": [{"topic": topic, "name": titles[topic]} for topic in (entry.faded if entry else ())],
        "interrupted": done.interrupted,
    }  # fmt: skip
