"""Reading Wikipedia dumps with polyseme and with gensim's WikiCorpus: speed per core, and memory.

    python benchmarks/dumps.py [--megabytes 150] [--parser]

The pages of a real dump are repeated until reading takes at least ten seconds. Both read the same file. Speed per core
uses CPU seconds of the process and its children, because polyseme reads in one process and WikiCorpus in at least two.
Memory is the peak of the reading process above its memory after the imports.

gensim_prose is the part of WikiCorpus that does the same work as polyseme (extract_pages and filter_wiki, no tokens).
gensim_corpus is WikiCorpus in normal use, with dictionary={}, which saves a pass over the dump. --parser adds
mwparserfromhell with its compiled tokenizer, on the pages that gensim extracts.
"""

from __future__ import annotations

import argparse
import bz2
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from common import (
    DATA,
    can_import,
    describe_machine,
    format_quantity,
    peak_memory,
    report_figure,
    report_ratio,
    require_file,
    reset_peak_memory,
)

DUMP = DATA / "wiki" / "enwiki_gensim.xml.bz2"


def cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def repeat_pages(megabytes: float, path: Path) -> float:
    """Write a dump that repeats the pages of the real one as several streams; return its expanded size in MB."""
    content = bz2.decompress(require_file(DUMP).read_bytes())
    start, end = content.index(b"<page>"), content.rindex(b"</page>") + len(b"</page>")
    head, pages, tail = (bz2.compress(part) for part in (content[:start], content[start:end], content[end:]))
    times = max(1, round(megabytes * 1e6 / (end - start)))
    with path.open("wb") as file:
        file.write(head)
        for _ in range(times):
            file.write(pages)
        file.write(tail)
    return (len(content) + (times - 1) * (end - start)) / 1e6


def polyseme(path: str) -> tuple[int, int]:
    from polyseme.text import read

    documents = characters = 0
    for document in read(path):
        documents += 1
        characters += len(document.text)
    return documents, characters


def gensim_prose(path: str) -> tuple[int, int]:
    """Run the part of WikiCorpus before tokenization, which does the same work as polyseme."""
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki

    documents = characters = 0
    with bz2.BZ2File(path) as file:
        for _, text, _ in extract_pages(file, ("0",)):
            documents += 1
            characters += len(filter_wiki(text))
    return documents, characters


def gensim_corpus(path: str) -> tuple[int, int]:
    """Run WikiCorpus in normal use, with tokens, in one worker and the reading process."""
    from gensim.corpora import WikiCorpus

    documents = characters = 0
    for tokens in WikiCorpus(path, dictionary={}, processes=1).get_texts():
        documents += 1
        characters += sum(map(len, tokens))
    return documents, characters


def mwparserfromhell(path: str) -> tuple[int, int]:
    """Run a full parser of wikitext on the pages that gensim extracts."""
    import mwparserfromhell as parser
    from gensim.corpora.wikicorpus import extract_pages

    documents = characters = 0
    with bz2.BZ2File(path) as file:
        for _, text, _ in extract_pages(file, ("0",)):
            documents += 1
            characters += len(parser.parse(text).strip_code())
    return documents, characters


IMPORTS = {
    "polyseme": ["polyseme.text"],
    "gensim_prose": ["gensim.corpora.wikicorpus"],
    "gensim_corpus": ["gensim.corpora.wikicorpus"],
    "mwparserfromhell": ["gensim.corpora.wikicorpus", "mwparserfromhell"],
}
PEERS = {
    "gensim_prose": ("dump to plain text", "gensim filter_wiki"),
    "gensim_corpus": ("dump to plain text (gensim: to tokens)", "gensim WikiCorpus"),
    "mwparserfromhell": ("dump to plain text", "mwparserfromhell"),
}
PROGRAMS = {program.__name__: program for program in (polyseme, gensim_prose, gensim_corpus, mwparserfromhell)}


def measure(name: str, path: str) -> None:
    """Run one program in this process and print its figures as JSON."""
    for module in IMPORTS[name]:
        import_module(module)
    reset_peak_memory()
    idle = peak_memory()
    started, cpu = time.perf_counter(), cpu_seconds()
    documents, characters = PROGRAMS[name](path)
    print(
        json.dumps(
            {
                "documents": documents,
                "characters": characters,
                "seconds": time.perf_counter() - started,
                "cpu": cpu_seconds() - cpu,
                "memory": (peak_memory() - idle) / 1e6,
            }
        )
    )


def run(name: str, path: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", name, str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--megabytes", type=float, default=150.0)
    arguments.add_argument("--parser", action="store_true", help="measure mwparserfromhell too")
    arguments.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.measure:
        measure(*options.measure)
        return
    describe_machine("gensim", "mwparserfromhell")
    require_file(DUMP)
    plan = [("polyseme", 0.1), ("polyseme", 1.0)]
    if can_import("gensim"):
        plan += [("gensim_prose", 0.1), ("gensim_prose", 0.4), ("gensim_corpus", 0.1)]
        if options.parser and can_import("mwparserfromhell"):
            plan.append(("mwparserfromhell", 0.1))
    speeds, memory = {}, {}
    print("program              MB  seconds  CPU s  MB per CPU s  memory MB  documents")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.xml.bz2")
        for name, part in plan:
            size = repeat_pages(options.megabytes * part, path)
            found = run(name, path)
            speeds[name], memory[name] = size / found["cpu"], found["memory"]
            print(
                f"{name:18} {size:4.0f} {found['seconds']:8.1f} {found['cpu']:6.1f} {speeds[name]:13.1f} "
                f"{found['memory']:10.1f} {found['documents']:10.0f}"
            )
    for name, (what, peer) in PEERS.items():
        if name in speeds:
            report_ratio(f"{what}, MB per CPU second", peer, speeds["polyseme"], speeds[name], "MB/s")
    report_figure("memory of reading a dump", format_quantity(memory["polyseme"], "MB"))


if __name__ == "__main__":
    main()
