"""Reading Wikipedia dumps: this package and gensim's WikiCorpus, per core, and the memory of both.

    python benchmarks/dumps.py [--megabytes 150] [--parser]

The pages of a real dump are repeated until there are at least ten seconds of work. Both read the same file. Per core
means CPU seconds, of the process and its children, so that no number of processes is an advantage: ours reads in one,
WikiCorpus in two at least. Memory is what the reading process took at most, beyond what it had after its imports.

gensim_prose is the part of WikiCorpus that does the same work as ours (extract_pages and filter_wiki, no tokens);
gensim_corpus is WikiCorpus as it is used, with dictionary={}, which spares it a pass over the dump. --parser adds
mwparserfromhell with its compiled tokenizer, on the pages as gensim finds them.
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
    compared,
    describe_machine,
    figure,
    needed,
    peak_memory,
    quantity,
    reset_peak_memory,
)

DUMP = DATA / "wiki" / "enwiki_gensim.xml.bz2"


def cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def repeat_pages(megabytes: float, path: Path) -> float:
    """A dump with the pages of the real one over and over, as several streams; gives its expanded size in MB."""
    content = bz2.decompress(needed(DUMP).read_bytes())
    start, end = content.index(b"<page>"), content.rindex(b"</page>") + len(b"</page>")
    head, pages, tail = (bz2.compress(part) for part in (content[:start], content[start:end], content[end:]))
    times = max(1, round(megabytes * 1e6 / (end - start)))
    with path.open("wb") as file:
        file.write(head)
        for _ in range(times):
            file.write(pages)
        file.write(tail)
    return (len(content) + (times - 1) * (end - start)) / 1e6


def ours(path: str) -> tuple[int, int]:
    from polyseme.text import read

    documents = characters = 0
    for document in read(path):
        documents += 1
        characters += len(document.text)
    return documents, characters


def gensim_prose(path: str) -> tuple[int, int]:
    """What WikiCorpus does before it cuts the text into tokens: the same work as ours."""
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki

    documents = characters = 0
    with bz2.BZ2File(path) as file:
        for _, text, _ in extract_pages(file, ("0",)):
            documents += 1
            characters += len(filter_wiki(text))
    return documents, characters


def gensim_corpus(path: str) -> tuple[int, int]:
    """WikiCorpus as it is used, with tokens, in one worker beside the reading process."""
    from gensim.corpora import WikiCorpus

    documents = characters = 0
    for tokens in WikiCorpus(path, dictionary={}, processes=1).get_texts():
        documents += 1
        characters += sum(map(len, tokens))
    return documents, characters


def mwparserfromhell(path: str) -> tuple[int, int]:
    """A full parser of wikitext, for comparison, on the pages as gensim finds them."""
    import mwparserfromhell as parser
    from gensim.corpora.wikicorpus import extract_pages

    documents = characters = 0
    with bz2.BZ2File(path) as file:
        for _, text, _ in extract_pages(file, ("0",)):
            documents += 1
            characters += len(parser.parse(text).strip_code())
    return documents, characters


IMPORTS = {
    "ours": ["polyseme.text"],
    "gensim_prose": ["gensim.corpora.wikicorpus"],
    "gensim_corpus": ["gensim.corpora.wikicorpus"],
    "mwparserfromhell": ["gensim.corpora.wikicorpus", "mwparserfromhell"],
}
PEERS = {
    "gensim_prose": ("dump to plain text", "gensim filter_wiki"),
    "gensim_corpus": ("dump to plain text (gensim: to tokens)", "gensim WikiCorpus"),
    "mwparserfromhell": ("dump to plain text", "mwparserfromhell"),
}
WORK = {work.__name__: work for work in (ours, gensim_prose, gensim_corpus, mwparserfromhell)}


def measure(name: str, path: str) -> None:
    """One program in a process of its own; prints its figures as JSON."""
    for module in IMPORTS[name]:
        import_module(module)
    reset_peak_memory()
    idle = peak_memory()
    started, cpu = time.perf_counter(), cpu_seconds()
    documents, characters = WORK[name](path)
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
    needed(DUMP)
    plan = [("ours", 0.1), ("ours", 1.0)]
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
            compared(f"{what}, MB a CPU second", peer, speeds["ours"], speeds[name], "MB/s")
    figure("memory of reading a dump", quantity(memory["ours"], "MB"))


if __name__ == "__main__":
    main()
