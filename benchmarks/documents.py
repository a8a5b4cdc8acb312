"""Words of PDF files and of the main text of HTML pages, read by polyseme and by other libraries.

pdf     Wikipedia articles as PDF files of groff, Ghostscript, LaTeX, Chromium and LibreOffice, in one and two columns,
        justified and hyphenated; programs that are not installed are left out. Recall and precision of words and recall
        of pairs of neighboring words against the source. The words of the other libraries are joined at all hyphens at
        the ends of lines. Header lines, the author and the date are in the files but not in the source
html    the pages of tests/helpers/web_pages.py: recall and precision of the words of the main text
        --real TESTS: the pages of trafilatura's own evaluation, in the folder `tests` of a checkout of its repository;
        the share of passages found that belong to the text (recall) and that do not (junk), and precision. Each
        second page, by a digest of its address, is in the first half, on which the rules of polyseme were chosen

    python benchmarks/documents.py [--parts pdf html] [--articles 5] [--real TESTS]
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import logging
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import DATA, ROOT, can_import, describe_machine, report_figure, report_left_out, require_file
from polyseme.text import read

DUMP = DATA / "wiki" / "enwiki_gensim.xml.bz2"
CHARACTERS = 14_000
"""Length of an article."""
GROFF = {"\\": r"\e", "“": r"\(lq", "”": r"\(rq", "‘": r"\(oq", "’": r"\(cq", "–": r"\(en", "—": r"\(em"}
LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''", "“": "``", "”": "''", "‘": "`", "’": "'", "–": "--",
    "—": "---",
}  # fmt: skip
HYPHEN = re.compile(r"(\w)(?:[-\xad\u2010]\s*\n\s*|\ufffe)(\w)")

Extract = Callable[[Path], str]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())


def found(expected: list[Any], seen: list[Any]) -> int:
    return (Counter(expected) & Counter(seen)).total()


def read_file(path: Path) -> str:
    return "\n".join(document.text for document in read(path))


# PDF


def articles(number: int) -> Iterator[tuple[str, list[str]]]:
    """Yield titles and paragraphs of long articles, in Latin-1 with typographic quotes and dashes."""
    for document in read(require_file(DUMP)):
        paragraphs, size = [], 0
        for line in document.text.split("\n"):
            text = " ".join(re.sub(r"[^\x20-\x7e\xc0-\xff–—“”‘’]", " ", line).split())
            if len(text) > 200 and size <= CHARACTERS:
                paragraphs.append(text)
                size += len(text)
        if size > 6000:
            yield document.title or "", paragraphs
            number -= 1
            if not number:
                return


def run(folder: Path, *command: str, content: str | bytes = b"") -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return subprocess.run(command, input=data, cwd=folder, capture_output=True, timeout=120, check=False).stdout


def groff_source(title: str, paragraphs: list[str], columns: int) -> str:
    texts = [text.translate(str.maketrans(GROFF)) for text in (title, *paragraphs)]
    body = "".join(f".PP\n\\&{text}\n" for text in texts[1:])
    return f".TL\n{texts[0]}\n.AU\nA. Writer\n" + ".2C\n" * (columns == 2) + body


def latex_source(title: str, paragraphs: list[str], columns: int) -> str:
    texts = [text.translate(str.maketrans(LATEX)) for text in (title, *paragraphs)]
    side = "twocolumn" if columns == 2 else "oneside"
    return (
        rf"\documentclass[{side}]{{article}}\usepackage[T1]{{fontenc}}\usepackage[utf8]{{inputenc}}\usepackage{{lmodern}}"
        r"\usepackage{fancyhdr}\pagestyle{fancy}\lhead{Annals of Testing, vol. 12}\rhead{A. Writer}\begin{document}"
        rf"\title{{{texts[0]}}}\author{{A. Writer}}\maketitle " + "\n\n".join(texts[1:]) + r"\end{document}"
    )


def html_source(title: str, paragraphs: list[str], columns: int) -> str:
    style = f"body {{font: 11pt serif; text-align: justify; hyphens: auto; columns: {columns}}}"
    body = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{style}</style><h1>{html.escape(title)}</h1>{body}"
    )


def write_pdfs(folder: Path, title: str, paragraphs: list[str]) -> Iterator[tuple[str, Path]]:
    """Write an article with all programs, and yield the name of the program and columns and the file."""
    for columns in (1, 2):
        article = (title, paragraphs, columns)
        (folder / "a.html").write_text(html_source(*article), encoding="utf-8")
        (folder / "a.tex").write_text(latex_source(*article), encoding="utf-8")
        postscript = run(folder, "groff", "-k", "-ms", "-Tps", content=groff_source(*article)) if has("groff") else b""
        print_page = ("--headless", "--no-sandbox", "--disable-gpu", "--print-to-pdf=a.pdf", "a.html")
        for program, command, content in (
            ("groff", ("groff", "-k", "-ms", "-Tpdf"), groff_source(*article)),
            ("Ghostscript", ("gs", "-q", "-sDEVICE=pdfwrite", "-o", "a.pdf", "-"), postscript),
            ("LaTeX", ("pdflatex", "-interaction=nonstopmode", "a.tex"), ""),
            ("Chromium", ("chromium", *print_page), ""),
            ("LibreOffice", ("soffice", "--headless", "--convert-to", "pdf:writer_web_pdf_Export", "a.html"), ""),
        ):
            if not has("gropdf" if program == "groff" else command[0]) or (program == "LibreOffice" and columns == 2):
                continue
            output = run(folder, *command, content=content)
            file = folder / "a.pdf"
            if program == "groff":
                file.write_bytes(output)
            if file.is_file():
                yield f"{program}, {columns}", file.replace(folder / "made.pdf")


def has(program: str) -> bool:
    return shutil.which(program) is not None


def pdf_readers() -> dict[str, Extract]:
    """Return the readers that are installed."""
    readers: dict[str, Extract] = {"polyseme": read_file}

    def joined(extract: Extract) -> Extract:
        return lambda path: HYPHEN.sub(r"\1\2", extract(path).replace("\r\n", "\n"))

    if can_import("pypdfium2"):
        pdfium = import_module("pypdfium2")
        readers["pypdfium2"] = joined(
            lambda path: "\n".join(page.get_textpage().get_text_range() for page in pdfium.PdfDocument(path))
        )
    if can_import("pypdf"):
        pypdf = import_module("pypdf")
        readers["pypdf"] = joined(lambda path: "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages))
    if can_import("pdfminer.high_level", "pdfminer.six"):
        miner = import_module("pdfminer.high_level")
        readers["pdfminer.six"] = joined(lambda path: miner.extract_text(str(path)))
    if has("pdftotext"):
        readers["pdftotext"] = joined(lambda path: run(path.parent, "pdftotext", path.name, "-").decode())
    else:
        report_left_out("pdftotext", "it is not installed")
    return readers


def measure_pdf(number: int) -> None:
    readers = pdf_readers()
    totals: dict[tuple[str, str], Counter[str]] = {}
    for program in ("groff", "gropdf", "gs", "pdflatex", "chromium", "soffice"):
        if not has(program):
            report_left_out(program, "it is not installed")
    with tempfile.TemporaryDirectory() as folder:
        for title, paragraphs in articles(number):
            expected = words(" ".join((title, *paragraphs)))
            for kind, file in write_pdfs(Path(folder), title, paragraphs):
                for name, extract in readers.items():
                    seen = words(extract(file))
                    totals.setdefault((kind, name), Counter()).update(
                        expected=len(expected),
                        seen=len(seen),
                        found=found(expected, seen),
                        pairs=found(list(pairwise(expected)), list(pairwise(seen))),
                    )
    for (kind, name), total in sorted(totals.items()):
        recall, pairs = total["found"] / total["expected"], total["pairs"] / total["expected"]
        precision = total["found"] / max(1, total["seen"])
        report_figure(f"pdf of {kind}, {name}", f"recall {recall:.4f}, precision {precision:.4f}, pairs {pairs:.4f}")


# HTML


def html_readers() -> dict[str, Extract]:
    """Return the readers that are installed."""
    readers: dict[str, Extract] = {"polyseme": read_file}
    if can_import("trafilatura"):
        trafilatura = import_module("trafilatura")
        readers["trafilatura"] = lambda path: trafilatura.extract(path.read_bytes()) or ""
    if can_import("resiliparse.extract.html2text", "resiliparse"):
        extract = import_module("resiliparse.extract.html2text").extract_plain_text
        parse = import_module("resiliparse.parse.html").HTMLTree.parse_from_bytes
        encoding = import_module("resiliparse.parse.encoding").detect_encoding

        def resiliparse(path: Path) -> str:
            content = path.read_bytes()
            return extract(parse(content, encoding(content)), main_content=True, links=False)

        readers["resiliparse"] = resiliparse
    return readers


def measure_html() -> None:
    sys.path.append(str(ROOT / "tests" / "helpers"))
    pages = import_module("web_pages").PAGES
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        for kind, page in pages.items():
            markup, text = page()
            file.write_text(markup, encoding="utf-8")
            for name, extract in html_readers().items():
                seen, expected = words(extract(file)), words(text)
                both = found(expected, seen)
                figures = f"recall {both / len(expected):.3f}, precision {both / max(1, len(seen)):.3f}"
                report_figure(f"html {kind}, {name}", figures)


def measure_real_pages(tests: Path) -> None:
    pages = json.loads(require_file(tests / "evaldata.json").read_text(encoding="utf-8"))
    for name, extract in html_readers().items():
        totals = (Counter[str](), Counter[str]())
        for address, page in pages.items():
            file = next((each for each in tests.glob("*/") if (each / page["file"]).is_file()), None)
            if file is None:
                continue
            try:
                text = " ".join(extract(file / page["file"]).split())
            except ValueError:  # no text
                text = ""
            half = int(hashlib.md5(address.encode(), usedforsecurity=False).hexdigest(), 16) % 2
            for key in ("with", "without"):
                passages = [" ".join(passage.split()) for passage in page[key]]
                totals[half].update({key: len(passages), f"found {key}": sum(each in text for each in passages)})
        for half, total in zip(("first", "second"), totals, strict=True):
            good, junk = total["found with"], total["found without"]
            figures = (
                f"recall {good / total['with']:.3f}, junk {junk / total['without']:.3f}, "
                f"precision {good / (good + junk):.3f}"
            )
            report_figure(f"real pages, {half} half, {name}", figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=("pdf", "html"), default=["pdf", "html"])
    parser.add_argument("--articles", type=int, default=5)
    parser.add_argument("--real", type=Path)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    describe_machine("pypdfium2", "pypdf", "pdfminer.six", "lxml", "trafilatura", "resiliparse")
    if "pdf" in options.parts:
        measure_pdf(options.articles)
    if "html" in options.parts:
        measure_html()
        if options.real is not None:
            measure_real_pages(options.real)


if __name__ == "__main__":
    main()
