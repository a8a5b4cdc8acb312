"""The explorer page: size, time to write it, time to the first view, and time of interactions.

    python benchmarks/explorer.py [--corpus newsgroups|synthetic] [--documents 100000] [--keep FOLDER]
    python benchmarks/explorer.py --run FOLDER

--run measures the page of a run, with its map: a hover is the handling of a pointer over a random place with the card
of the document there, a lasso the search of the documents inside a circle, and then what the panel says about them.

newsgroups: 20 Newsgroups, raw texts (18,846 documents), English words, K = 50. synthetic: documents of 100 tokens drawn
from 50 topics over 20,000 words, with one label each. The topics are fitted for --iterations only, because sizes and
times hardly depend on their quality. Times are medians of five in a headless Chromium: from the start of loading the
file, and from an action until its result is drawn. Without playwright and a Chromium (`make browser` installs one) the
benchmark is skipped.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import warnings
from pathlib import Path
from urllib.parse import quote

from common import NEWS_TEXTS, can_import, describe_machine, load_lines, report_figure, skip, time_call
from polyseme import PLSA, open_run
from polyseme.datasets import synthetic_corpus
from polyseme.explore import write_page
from polyseme.explore.page import TEXTS
from polyseme.explore.page_data import PageData, page_data, run_page_data
from polyseme.text import Vectorizer

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
K = 50
REPEATS = 5
SEARCH = "#/documents?q="
ACTIONS = {
    "newsgroups": ("#/topic/3", "#/document/NUMBER", "#/word/car", f"{SEARCH}space%20shuttle%20launch", "#/labels"),
    "run": ("#/topic/3", "#/document/NUMBER", "#/word/WORD0", f"{SEARCH}WORD10%20WORD20%20WORD30", "#/labels"),
    "synthetic": ("#/topic/3", "#/document/NUMBER", "#/word/WORD0", f"{SEARCH}WORD10%20WORD20%20WORD30", "#/labels"),
}
MORE = (
    "#/topics", "#/documents", "#/words", "#/labels/LABEL0", "#/fit", "#/documents?q=moblie", "#/map?label=EACH",
    "#/topics?label=EACH", "#/words?label=EACH", "#/documents?label=EACH", "#/topic/3?label=EACH",
)  # fmt: skip
"""EACH is another label each time, so that nothing is computed before."""

NAVIGATE = """async (fragment) => {
  const main = document.getElementById("main");
  main.dataset.view = "";
  const start = performance.now();
  location.hash = fragment;
  while (main.dataset.view === "") await new Promise((done) => setTimeout(done, 0));
  main.getBoundingClientRect();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - start;
}"""
SLIDE = """async (value) => {
  const slider = document.getElementById("relevance");
  const start = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
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
ZOOM = """async () => {
  const button = document.querySelector(".map-tools button");
  const start = performance.now();
  button.click();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  return performance.now() - start;
}"""
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


def measure(path: Path, actions: list[str], labels: list[str], browser) -> dict[str, float]:
    """Return milliseconds to the first view, until everything is loaded, and of each action."""
    marks = []
    for _ in range(REPEATS):
        page = browser.new_page()
        page.goto(path.resolve().as_uri())
        while len(found := page.evaluate(MARKS)) < 2:
            page.wait_for_timeout(100)
        marks.append(found)
        if len(marks) < REPEATS:
            page.close()
    times = dict(zip(("first view", "all loaded"), map(statistics.median, zip(*marks, strict=True)), strict=True))
    unseen = iter(labels)
    for action in actions:
        repeated = [action.replace("EACH", next(unseen)) if "EACH" in action else action for _ in range(REPEATS)]
        times[action] = statistics.median([_open_view(page, address) for address in repeated])
    page.evaluate(NAVIGATE, "#/map")
    page.wait_for_timeout(1500)
    times["map: hover"] = statistics.median([page.evaluate(HOVER) for _ in range(REPEATS)])
    for radius in (0.05, 0.33):
        found = [page.evaluate(LASSO, radius) for _ in range(REPEATS)]
        what = f"map: lasso, {found[0][2]}"
        times[f"{what}, found"] = statistics.median([searched for searched, _, _ in found])
        times[f"{what}, described"] = statistics.median([summed for _, summed, _ in found])
    times["map: zoom"] = statistics.median([page.evaluate(ZOOM) for _ in range(REPEATS)])
    page.evaluate(NAVIGATE, "#/topic/3")
    times["relevance slider"] = statistics.median([page.evaluate(SLIDE, value) for value in (0, 0.2, 0.4, 0.8, 1)])
    page.close()
    return times


def _open_view(page, action: str) -> float:
    page.evaluate(NAVIGATE, "#/paste")
    return page.evaluate(NAVIGATE, action)


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
            names = sorted({name for found in data.labels or () for name in found})
            labels = [quote(name) for name in names] * len(MORE)
            times = measure(path, view_addresses(data, chosen.corpus), labels, browser)
            for name, milliseconds in times.items():
                print(f"  {name:46} {milliseconds:9.1f} ms")
            what = f"page of {n_docs:,} documents, text={text}"
            report_figure(f"{what}: size", f"{path.stat().st_size / 1e6:.1f} MB")
            report_figure(f"{what}: first view", f"{times.pop('first view'):.0f} ms")
            del times["all loaded"]
            slowest = max(times, key=lambda name: times[name])
            report_figure(f"{what}: slowest of {len(times)} actions", f"{times[slowest]:.0f} ms ({slowest})")
        browser.close()


def view_addresses(data: PageData, corpus: str) -> list[str]:
    """Return the addresses of views, with a word, a document and a label of this corpus."""
    labels = sorted({name for names in data.labels or () for name in names})
    frequent = [data.vocabulary[word] for word in (-data.counts.sum(axis=0)).argsort()]
    actions = []
    for action in (*ACTIONS[corpus], *MORE):
        for number in (30, 20, 10, 0):
            action = action.replace(f"WORD{number}", frequent[number])
        action = action.replace("NUMBER", str(data.counts.shape[0] // 3))
        actions.append(action.replace("LABEL0", labels[0].replace(" ", "%20")))
    return actions


if __name__ == "__main__":
    main()
