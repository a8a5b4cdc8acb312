"""Small corpora for the tests of the explorer page."""

import numpy as np

from polyseme import PLSA
from polyseme.explore.page_data import page_data
from polyseme.text import Vectorizer

THEMES = {
    "kitchen": "bread flour oven baking baked butter dough doughs salt recipe kneading kneaded crust yeast bank",
    "harbour": "ship ships harbour sailors wind sails anchor river waves captain tides boats banks",
    "money": "loan loans interest bank credit market prices trading stocks money rate rates broker debt",
    "music": "violin violins orchestra concert melody strings composer rhythm singers piano harmony waves",
}
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "</script><script>window.hacked=1</script>",
    "<!--<script>",
    "javascript:window.hacked=1",
    "<svg/onload=window.hacked=1>",
    "'-alert(1)-'",
    "]]>&lt;b&gt;&amp;%%data%%",
    "=HYPERLINK(1)",
    "a/b?c=d&e#f%zz",
)


def themed_texts(n=80, seed=0):
    """Return texts of one or two subjects, with titles, labels and dates."""
    random = np.random.default_rng(seed)
    names = list(THEMES)
    texts, titles, labels, times = [], [], [], []
    for number in range(n):
        main, other = random.choice(names, 2, replace=False)
        share = 1.0 if number % 3 else 0.6
        words = [str(random.choice(THEMES[main if random.random() < share else other].split())) for _ in range(30)]
        words[::7] = [word.capitalize() + "," for word in words[::7]]
        texts.append("The " + " of the ".join([" ".join(words[:15]), " ".join(words[15:])]) + ".")
        titles.append(f"{main} {number}")
        labels.append([main, other] if share < 1 else [main])
        times.append(f"{2000 + number % 20}-{1 + number % 12:02d}-11")
    return texts, titles, labels, times


def themed_page_data(model=None, vectorizer=None, **more):
    texts, titles, labels, times = themed_texts()
    vectorizer = vectorizer or Vectorizer(language="english")
    counts = vectorizer.fit_transform(texts)
    model = (model or PLSA(4, random_state=0, tol=1e-4)).fit(counts)
    return page_data(
        model,
        counts,
        vectorizer=vectorizer,
        titles=titles,
        labels=labels,
        times=times,
        texts=texts,
        title="Themes",
        **more,
    )


def hostile_page_data():
    """Return a corpus whose titles, words, labels, texts and topic names contain markup and code."""
    vectorizer = Vectorizer(tokenizer=str.split, token_pattern=None, lowercase=False)
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(HOSTILE, 12)) for _ in range(20)]
    counts = vectorizer.fit_transform(texts)
    model = PLSA(3, random_state=0).fit(counts)
    cycle = [HOSTILE[i % len(HOSTILE)] for i in range(20)]
    return model, page_data(
        model, counts, vectorizer=vectorizer, titles=cycle, ids=cycle[::-1], labels=[[name] for name in cycle],
        texts=texts, times=[f"200{i % 9}" for i in range(20)], title=HOSTILE[2],
        topic_names={0: HOSTILE[0], 1: HOSTILE[1]},
    )  # fmt: skip
