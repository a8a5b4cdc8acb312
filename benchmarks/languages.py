"""Accuracy of the language of documents, and of corpora in two languages.

    python benchmarks/languages.py

The documents are articles of an English, an Italian and a Latgalian Wikipedia; polyseme has no rules for Latgalian, so
its articles should be unknown. Each text is judged alone, and among the languages of the corpus, from its first words.
Mixed texts have an English and an Italian half.
"""

from __future__ import annotations

from common import DATA, describe_machine, report_figure, require_file
from polyseme.text import read
from polyseme.text.languages import detect_language, document_language

DUMPS = {"english": "enwik8_head", "italian": "itwiki_small", "other": "ltgwiki"}
LENGTHS = 5, 10, 20, 50


def texts_of(dump: str) -> list[list[str]]:
    path = require_file(DATA / "wiki" / f"{dump}.xml.bz2")
    words = (document.text.split() for document in read([str(path)], uncategorized=True))
    return [text for text in words if len(text) >= max(LENGTHS)]


def main() -> None:
    """Print the shares of articles whose language is right, unknown or wrong."""
    describe_machine()
    texts = {language: texts_of(dump) for language, dump in DUMPS.items()}
    for language, articles in texts.items():
        for length in LENGTHS:
            for among in (None, ("english", "italian")):
                found = [document_language(" ".join(words[:length]), among) for words in articles]
                unknown = sum(len(names) != 1 for names in found) / len(found)
                right = unknown if language == "other" else found.count([language]) / len(found)
                wrong = 1 - right - (0 if language == "other" else unknown)
                how = "alone" if among is None else "among English and Italian"
                report_figure(f"{language}, first {length} words, {how}: right", f"{right:.1%}")
                report_figure(f"{language}, first {length} words, {how}: wrong", f"{abs(wrong):.1%}")
    halves = [" ".join([*a[:25], *b[:25]]) for a, b in zip(texts["english"], texts["italian"], strict=False)]
    both = sum(len(document_language(text)) != 1 for text in halves) / len(halves)
    report_figure("half English, half Italian: not called by one language", f"{both:.1%}")
    for share in (5, 25, 50):
        number = min(len(articles) for articles in texts.values())
        n_italian = number * share // 100
        articles = [*texts["english"][: number - n_italian], *texts["italian"][:n_italian]]
        language, shares = detect_language([" ".join(words) for words in articles])
        shown = ", ".join(f"{part:.0%} {name}" for name, part in shares.items())
        report_figure(f"corpus with {n_italian} of {len(articles)} articles in Italian", f"{language.name}: {shown}")


if __name__ == "__main__":
    main()
