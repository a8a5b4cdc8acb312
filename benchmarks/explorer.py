"""The explorer page: size, time to write it, time to the first view, and time of interactions.

    python benchmarks/explorer.py [--corpus newsgroups|synthetic] [--documents 100000] [--keep FOLDER]
    python benchmarks/explorer.py --run FOLDER

--run measures the page of a run, with its map: a hover is the handling of a pointer over a random place with the card
of the document there, a lasso the search of the documents inside a circle, and then what the panel says about them.

newsgroups: 20 Newsgroups, raw texts (18,846 documents), English words, K = 50. synthetic: documents of 100 tokens drawn
from 50 topics over 20,000 words, with one label each. The topics are fitted for --iterations only, because sizes and
times hardly depend on their quality. Every view is opened, also with each filter, and every interaction is made, in a
headless Chromium: times are from the start of loading the file, and from an action until its result is drawn. What
waits for a pause in typing or moving is measured with the pause. On a busy machine, the CPU time of the page's thread
says more. Without playwright and a Chromium (`make browser` installs one) the benchmark is skipped.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import tempfile
import warnings
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from urllib.parse import quote

from common import NEWS_TEXTS, can_import, describe_machine, load_lines, report_figure, skip, time_call
from polyseme import PLSA, open_run
from polyseme.datasets import synthetic_corpus
from polyseme.explore import write_page
from polyseme.explore.page import TEXTS
from polyseme.explore.page_data import PageData, page_data, run_page_data
from polyseme.runs.periods import periods
from polyseme.text import Vectorizer

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
K = 50
REPEATS = 5
VIEWS = (
    "#/map", "#/map?color=label", "#/map?color=time", "#/map?level=LEVEL", "#/topics", "#/topics?level=LEVEL",
    "#/topics?sort=coherence", "#/topic/3", "#/finer/LEVEL.3", "#/documents", "#/documents?q=WORD10%20WORD20%20WORD30",
    "#/documents?q=moblie", "#/document/NUMBER", "#/words", "#/words?sort=word", "#/word/WORD0", "#/paste", "#/labels",
    "#/labels?level=LEVEL", "#/labels?show=ratio&figures=on", "#/labels/LABEL", "#/time", "#/time?level=LEVEL",
    "#/time?period=PERIOD", "#/tree", "#/fit", "#/help", "#/edits",
)  # fmt: skip
"""Addresses of all views. One with something that the corpus does not have (LEVEL, LABEL, PERIOD) is left out."""
FILTERED = ("#/map", "#/topics", "#/topic/3", "#/documents", "#/words", "#/labels", "#/time")
FILTERS = ("label=EACHLABEL", "topic=EACHTOPIC", "topic=LEVEL.EACHTOPIC", "from=PERIOD&to=PERIOD", "q=EACHWORD")
"""EACH is another value each time, so that nothing is computed before."""

CLICK = "document.querySelector('%s').click()"
TYPE = "{{ const field = document.querySelector('{}'); field.value = '{}'; field.dispatchEvent(new Event('input')) }}"
INTERACTIONS = (
    ("map: colors by label", "#/map", CLICK % ".map-panel .ways button:nth-child(2)", ""),
    ("map: zoom", "#/map", CLICK % ".map-tools button", ""),
    ("map: pan by a key", "#/map", "press('.document-map', 'ArrowLeft')", ""),
    ("topics: filter the table", "#/topics", TYPE.format("#filter", "WORD10"), "tbody tr"),
    ("words: filter the table", "#/words", TYPE.format("#filter", "ma"), "tbody tr"),
    ("words: show more", "#/words", CLICK % "button.more", "tbody tr"),
    ("documents: filter the list", "#/documents", TYPE.format("#filter", "ma"), ".documents li"),
    ("documents: sort by title", "#/documents", "choose('#sort', 1)", ".documents li"),
    ("topic: relevance", "#/topic/3", TYPE.format("#relevance", "0.2"), ""),
    ("document: choose a topic", "#/document/NUMBER", CLICK % ".pick", ""),
    ("paste: a text", "#/paste", TYPE.format("#pasted", "WORD10 WORD20 WORD30 " * 30), "main svg"),
    ("labels: more or less", "#/labels", CLICK % ".ways button:nth-child(2)", ""),
    ("labels: figures", "#/labels", CLICK % ".ways button:nth-child(3)", ""),
    ("labels: a cell by a key", "#/labels", "press('.scroll svg', 'ArrowRight')", ""),
    ("labels, LEVEL topics: more or less", "#/labels?level=LEVEL", CLICK % ".ways button:nth-child(2)", ""),
    ("labels, LEVEL topics: a cell by a key", "#/labels?level=LEVEL", "press('.scroll svg', 'ArrowRight')", ""),
    ("time: another line", "#/time", CLICK % ".small-chart[aria-pressed=false]", ""),
    ("time, LEVEL topics: another line", "#/time?level=LEVEL", CLICK % ".small-chart[aria-pressed=false]", ""),
    ("filters: open the form", "#/topics", CLICK % ".filter-details summary", ""),
    ("edits: rename a topic", "#/topic/3", "submit('edit-name', 'New name')", "h1"),
    ("edits: ban a word", "#/topic/3", CLICK % ".bans button", "h1"),
    ("edits: merge topics", "#/topic/3", "submit('edit-merge')", "h1"),
    ("edits: hide a topic", "#/topic/4", CLICK % ".editor div.field button", "h1"),
)
"""What is done, on which view, by which script, and an element that the result replaces, adds or removes."""
NEEDS = {"labels": ["LABEL"], "time": ["PERIOD"], "edits": ["EDITS"], "document": ["TEXT"]}
"""What the corpus must have for interactions, by the first word of their names."""

ACT = """async (changed) => {
  const press = (selector, key) =>
    document.querySelector(selector).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const choose = (selector, i) => {
    const list = document.querySelector(selector);
    list.selectedIndex = i;
    list.dispatchEvent(new Event("change"));
  };
  const submit = (id, text) => {
    const field = document.getElementById(id);
    if (text) field.value = text;
    field.form.requestSubmit();
  };
  const now = () => changed && document.querySelector(changed);
  const before = now();
  const start = performance.now();
  SCRIPT;
  while (changed && now() === before) {
    if (performance.now() > start + 5000) throw new Error(`nothing has changed ${changed}`);
    await new Promise((done) => setTimeout(done, 0));
  }
  document.getElementById("main").getBoundingClientRect();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - start;
}"""
NAVIGATE = """async (fragment) => {
  if (location.hash === fragment) return 0;
  const main = document.getElementById("main");
  main.dataset.view = "";
  const start = performance.now();
  location.hash = fragment;
  while (main.dataset.view === "") await new Promise((done) => setTimeout(done, 0));
  main.getBoundingClientRect();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - start;
}"""
HOVER = """() => {
  const chart = document.querySelector(".document-map");
  const box = chart.getBoundingClientRect();
  let seed = 1;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const times = [];
  for (let i = 0; i < 400; i++) {
    const at = { clientX: box.left + random() * box.width, clientY: box.top + random() * box.height, pointerId: 1 };
    const start = performance.now();
    chart.dispatchEvent(new PointerEvent("pointermove", { ...at, bubbles: true }));
    times.push(performance.now() - start);
  }
  chart.dispatchEvent(new PointerEvent("pointerleave", { pointerId: 1 }));
  return times.reduce((sum, time) => sum + time, 0) / times.length;
}"""
LASSO = """async (radius) => {
  const chart = document.querySelector(".document-map");
  const box = chart.getBoundingClientRect();
  const [x, y, r] = [box.left + box.width / 2.6, box.top + box.height / 2, radius * box.height];
  const send = (kind, angle) =>
    chart.dispatchEvent(new PointerEvent(kind, {
      clientX: x + r * Math.cos(angle), clientY: y + r * Math.sin(angle), pointerId: 1, bubbles: true, shiftKey: true,
    }));
  chart.setPointerCapture = chart.hasPointerCapture = () => true;  // these pointers are no real ones
  send("pointerdown", 0);
  for (let i = 1; i < 60; i++) send("pointermove", (2 * Math.PI * i) / 60);
  const start = performance.now();
  send("pointerup", 6.28);
  const searched = performance.now() - start;
  const title = () => document.querySelector(".map-panel h3");
  while (!title()) await new Promise((done) => setTimeout(done, 1));
  const summed = performance.now() - start;
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  const heading = document.querySelector(".map-panel h2").textContent;
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  return [searched, summed, heading];
}"""
PLACES = r"EACH(?:WORD|LABEL|TOPIC)|WORD\d+|LABEL|LEVEL|NUMBER|PERIOD"
MARKS = "performance.getEntriesByType('mark').map((mark) => mark.startTime)"


def newsgroups(iterations: int) -> PageData:
    rows = load_lines(NEWS_TEXTS)
    texts = [row["text"] for row in rows]
    vectorizer = Vectorizer(language="english", min_df=2, max_df=0.5)
    counts = vectorizer.fit_transform(texts)
    model = PLSA(K, random_state=0, max_iter=iterations).fit(counts)
    ids, labels = [row["id"] for row in rows], [row["label"] for row in rows]
    return page_data(
        model, counts, vectorizer=vectorizer, ids=ids, titles=ids, labels=labels, texts=texts, title="20 Newsgroups"
    )


def synthetic(n_documents: int, iterations: int) -> PageData:
    corpus = synthetic_corpus(n_documents, n_topics=K, n_words=20_000, length=100, random_state=0)
    texts, labels = [], []
    for document in corpus:
        texts.append(document.text)
        labels.append(document.labels[0])
    vectorizer = Vectorizer()
    counts = vectorizer.fit_transform(texts)
    model = PLSA(K, random_state=0, max_iter=iterations).fit(counts)
    return page_data(model, counts, vectorizer=vectorizer, labels=labels, texts=texts, title="Synthetic")


class Timed:
    """A page whose calls are timed: milliseconds until the result is drawn, and those that its thread computed."""

    def __init__(self, page):
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy(self) -> float:
        """Return the CPU time of the page's thread so far, in milliseconds."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return 1e3 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    def call(self, script: str, argument: str) -> tuple[float, float]:
        before = self.busy()
        passed = self.page.evaluate(script, argument)
        return passed, self.busy() - before

    def open_view(self, address: str) -> tuple[float, float]:
        self.page.evaluate(NAVIGATE, "#/help" if address != "#/help" else "#/paste")
        return self.call(NAVIGATE, address)


def measure(path: Path, values: dict[str, list[str]], browser) -> dict[str, list[tuple[float, float]]]:
    """Return the times to the first view, until everything is loaded, of each view and of each interaction."""
    marks = []
    for _ in range(REPEATS):
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(path.resolve().as_uri())
        while len(found := page.evaluate(MARKS)) < 2:
            page.wait_for_timeout(100)
        marks.append(found)
        if len(marks) < REPEATS:
            page.close()
    nothing = float("nan")
    times: dict[str, list[tuple[float, float]]] = {
        name: [(mark[i], nothing) for mark in marks] for i, name in enumerate(("first view", "all loaded"))
    }
    timed = Timed(page)
    each = {name: cycle(found) for name, found in values.items()}
    for view in (*VIEWS, *(f"{view}?{filters}" for view in FILTERED for filters in FILTERS)):
        if all(values.get(name) for name in re.findall(PLACES, view)):
            times[view] = [timed.open_view(_filled(view, each)) for _ in range(REPEATS)]
    for name, view, script, changed in INTERACTIONS:
        needs = NEEDS.get(re.match(r"\w+", name).group(), []) + re.findall(PLACES, name + view + script)
        if all(values.get(place) for place in needs):
            for _ in range(REPEATS):
                timed.open_view(_filled(view, each))
                page.wait_for_timeout(250)  # what the view does when it rests, as the map
                acted = timed.call(ACT.replace("SCRIPT", _filled(script, each)), changed)
                times.setdefault(_filled(name, each), []).append(acted)
                if name.startswith("edits"):
                    undone = timed.call(ACT.replace("SCRIPT", CLICK % "#edit-undo"), "h1")
                    times.setdefault(f"{name}, undo", []).append(undone)
    page.evaluate(NAVIGATE, "#/map")
    page.wait_for_timeout(1500)
    times["map: hover"] = [(page.evaluate(HOVER), nothing) for _ in range(REPEATS)]
    for radius in (0.05, 0.33):
        found = [page.evaluate(LASSO, radius) for _ in range(REPEATS)]
        what = f"map: lasso, {found[0][2]}"
        times[f"{what}, found"] = [(searched, nothing) for searched, _, _ in found]
        times[f"{what}, described"] = [(summed, nothing) for _, summed, _ in found]
    page.close()
    return times


def _filled(text: str, each: dict[str, Iterator[str]]) -> str:
    """Return an address or a script with values of this corpus."""
    return re.sub(PLACES, lambda place: next(each[place.group()]), text)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--corpus", choices=("newsgroups", "synthetic"), default="newsgroups")
    options.add_argument("--documents", type=int, default=100_000, help="documents of the synthetic corpus")
    options.add_argument("--iterations", type=int, default=20)
    options.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS))
    options.add_argument("--run", type=Path, help="measure the page of this run")
    options.add_argument("--keep", type=Path, help="folder for the pages")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    describe_machine("playwright")
    if not can_import("playwright"):
        skip("playwright is not installed.")
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        skip("Chromium is not installed (make browser installs it).")
    if chosen.run is not None:
        chosen.corpus, data = "run", run_page_data(open_run(chosen.run))
        chosen.texts = ["excerpt"]
    elif chosen.corpus == "newsgroups":
        data = newsgroups(chosen.iterations)
    else:
        data = synthetic(chosen.documents, chosen.iterations)
    n_docs, n_words = data.counts.shape
    print(
        f"{n_docs:,} documents, {n_words:,} words, {data.counts.nnz:,} non-zeros, {data.tokens.sum():,.0f} tokens, "
        f"K = {data.fitted.n_topics}"
    )
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as running:
        folder = chosen.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        browser = running.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for text in chosen.texts:
            path = folder / f"{chosen.corpus}-{text}.html"
            seconds = time_call(lambda path=path, text=text: write_page(data, path, text=text))
            print(f"\ntext={text}: {path.stat().st_size / 1e6:.1f} MB, written in {seconds:.1f} s")
            times = measure(path, values_of(data, text), browser)
            print(f"median and slowest of {REPEATS}, and median and slowest of what the page's thread computed, in ms")
            for name, found in times.items():
                figures = [
                    figure for part in zip(*found, strict=True) for figure in (statistics.median(part), max(part))
                ]
                print(f"  {name:54}" + "".join(f"{figure:9.1f}" for figure in figures))
            what = f"page of {n_docs:,} documents, text={text}"
            report_figure(f"{what}: size", f"{path.stat().st_size / 1e6:.1f} MB")
            medians = {name: statistics.median(passed for passed, _ in found) for name, found in times.items()}
            report_figure(f"{what}: first view", f"{medians.pop('first view'):.0f} ms")
            del medians["all loaded"]
            slowest = max(medians, key=lambda name: medians[name])
            report_figure(f"{what}: slowest of {len(medians)}", f"{medians[slowest]:.0f} ms ({slowest})")
            slow = [name for name, found in medians.items() if found > 100]
            report_figure(f"{what}: above 100 ms", f"{len(slow)} ({', '.join(slow)})" if slow else "0")
        browser.close()


def values_of(data: PageData, text: str) -> dict[str, list[str]]:
    """Return what the addresses of views contain: words, a document, labels, periods, topics and the finest level."""
    frequent = [quote(data.vocabulary[word]) for word in (-data.counts.sum(axis=0)).argsort()[:200]]
    labels = [quote(name) for name in sorted({name for names in data.labels or () for name in names})]
    by_time = None if data.times is None else periods(data.times)
    every_topic = [str(topic) for topic in range(data.fitted.n_topics)]
    return {
        **{f"WORD{number}": [frequent[number]] for number in (0, 10, 20, 30)},
        "EACHWORD": frequent[40:],
        "EACHLABEL": labels,
        "EACHTOPIC": every_topic,
        "LABEL": labels[:1],
        "LEVEL": [str(weights.shape[1]) for weights in data.level_weights[-1:]],
        "NUMBER": [str(data.counts.shape[0] // 3)],
        "TEXT": [] if text == "none" else ["yes"],
        "EDITS": [] if data.editing is None else ["yes"],
        "PERIOD": [] if by_time is None else by_time.names[len(by_time.names) // 2 :][:1],
    }


if __name__ == "__main__":
    main()
