"""Real corpora: a Wikipedia dump on the disk, and 20 Newsgroups from the network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from polyseme.datasets.corpus import Corpus
from polyseme.errors import InputError
from polyseme.text.readers import Reader, read
from polyseme.text.readers.files import Paths


def wikipedia(
    path: Paths,
    *,
    sample: int | None = None,
    categories: Sequence[str] | None = None,
    noise: int = 0,
    seed: int = 0,
    uncategorized: bool = False,
) -> Reader:
    """The articles of one or more MediaWiki dumps: ``read`` with the format "wiki".

    Redirects, pages of other namespaces, empty pages and, unless ``uncategorized``, articles without a category are
    left out and counted. ``wikipedia(dump, categories=["mathematics"], sample=200, noise=300)`` draws 200 articles of
    categories with this word in their name and 300 others.
    """
    return read(
        path,
        format="wiki",
        sample=sample,
        categories=categories,
        noise=noise,
        seed=seed,
        uncategorized=uncategorized,
    )


def newsgroups(subset: str = "all", *, remove: Sequence[str] = ()) -> Corpus:
    """20 Newsgroups, by scikit-learn, which fetches it from the network once and keeps it.

    Parameters
    ----------
    subset : "train", "test" (by date) or "all".
    remove : any of "headers", "footers", "quotes".
    """
    from sklearn.datasets import fetch_20newsgroups

    try:
        bunch = fetch_20newsgroups(subset=subset, remove=tuple(remove), shuffle=False)
    except OSError as error:
        raise InputError(f"20 Newsgroups could not be fetched ({error}): connect to the network, once.") from error
    return Corpus(
        texts=list(bunch.data),
        titles=["/".join(PurePath(name).parts[-2:]) for name in bunch.filenames],
        labels=[bunch.target_names[target] for target in bunch.target],
    )
