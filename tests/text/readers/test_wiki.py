"""Reader of MediaWiki dumps: artificial dumps of every kind, and real ones."""

import bz2
import re
from collections import Counter

import pytest

from document_files import PAGES, dump, page
from polyseme.errors import InputError
from polyseme.text import Limits, read
from real_data import DATA


def read_dump(tmp_path, content, name="dump.xml", **arguments):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reader = read(path, **arguments)
    return list(reader), reader


def test_articles_have_their_text_title_categories_and_time(tmp_path):
    (cat, dog), reader = read_dump(tmp_path, dump(*PAGES))
    assert cat[:5] == ("1", "Il gatto & altri.", "Gatto", ("Felini", "Animals"), "2020-01-01T00:00:00Z")
    assert (dog.id, dog.title, dog.label) == ("2", "Cane", "Canini")
    assert not reader.problems
    assert not reader.dropped
    assert reader.bytes_read == reader.total_bytes


def test_other_pages_are_dropped_and_counted(tmp_path):
    others = [
        page("Progetto:X", "x [[Categoria:Y]]", 3, ns="<ns>4</ns>"),
        page("Progetto:Old", "x [[Categoria:Y]]", 3, ns=""),
        page("Titolo: sottotitolo", "words [[Categoria:Y]]", 3, ns=""),
        page("Moved", "x [[Categoria:Y]]", 4, extra='<redirect title="Gatto" />'),
        page("Moved", "#RINVIA [[Gatto]] {{x}} [[Categoria:Y]]", 4, ns=""),
        page("Moved", "#redirect [[Gatto]]", 4),
        page("Numbered", "# uno [[Gatto]]\n# due [[Categoria:Y]]", 4),
        page("Empty", "", 5),
        page("Template", "{{only}} [[Categoria:Y]]", 5),
        page("Bare", "words", 6),
        page("Item", '{"a": "b"}', 7).replace("<text", "<model>wikibase-item</model><text"),
    ]
    documents, reader = read_dump(tmp_path, dump(*PAGES, *others))
    assert [d.title for d in documents] == ["Gatto", "Cane", "Titolo: sottotitolo", "Numbered"]
    assert reader.dropped == {
        "page of another namespace": 2,
        "redirect": 3,
        "empty page": 2,
        "page without a category": 1,
        "page that is not wikitext": 1,
    }
    documents, reader = read_dump(tmp_path, dump(*PAGES, *others), uncategorized=True)
    assert len(documents) == 5
    assert "page without a category" not in reader.dropped


@pytest.mark.parametrize("version", ["0.1", "0.3", "0.8", "0.10", "0.11"])
def test_every_schema(tmp_path, version):
    slot = "<content><role>extra</role><model>json</model><text>no</text></content>"
    pages = [text.replace("</text>", f"</text>{slot}") for text in PAGES] if version == "0.11" else PAGES
    assert len(read_dump(tmp_path, dump(*pages, version=version))[0]) == 2


def test_the_last_revision_is_read(tmp_path):
    old = "<revision><timestamp>2001</timestamp><text>old [[Categoria:Old]]</text></revision>"
    (document,), _ = read_dump(tmp_path, dump(page("A", "new [[Categoria:New]]", before=old)))
    assert (document.text, document.labels, document.time) == ("new", ("New",), "2020-01-01T00:00:00Z")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path, encoding):
    content = dump(page("Café", "naïve ☃ [[Categoria:É]]"))
    (document,), reader = read_dump(tmp_path, content.encode(encoding))
    assert document[1:4] == ("naïve ☃", "Café", ("É",))
    assert not reader.problems
    damaged = dump(PAGES[0], "<page><broken", PAGES[1]).encode(encoding)
    documents, reader = read_dump(tmp_path, damaged)
    assert [d.title for d in documents] == ["Gatto", "Cane"]
    assert reader.problems.counts == {"damaged page": 1}


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "gb18030", "utf-8"])
def test_a_declared_encoding(tmp_path, encoding):
    content = f'<?xml version="1.0" encoding="{encoding}"?>' + dump(page("Café", "x [[Categoria:É]]"), "<", PAGES[1])
    documents, reader = read_dump(tmp_path, content.encode(encoding))
    assert [d.title for d in documents] == ["Café", "Cane"]
    assert reader.problems.counts == {"damaged page": 1}
    assert [d.title for d in read_dump(tmp_path, dump(*PAGES).encode("utf-16"), encoding="utf-16")[0]] == [
        "Gatto",
        "Cane",
    ]
    with pytest.raises(InputError, match="declares an encoding that is unknown"):
        read_dump(tmp_path, content.replace(encoding, "klingon"))


def test_several_streams_and_truncation(tmp_path):
    head, first, second = dump(*PAGES).encode().partition(PAGES[0].encode())
    (tmp_path / "x").mkdir()
    multistream = b"".join(map(bz2.compress, (head, first, second)))
    documents, reader = read_dump(tmp_path, multistream, "dump.xml.bz2")
    assert len(documents) == 2
    assert not reader.problems
    documents, reader = read_dump(tmp_path, multistream[: len(multistream) - 60], "dump.xml.bz2")
    assert [d.title for d in documents] == ["Gatto"]
    assert reader.problems.counts == {"damaged file": 2}
    documents, reader = read_dump(tmp_path, dump(*PAGES)[:-100])
    assert [d.title for d in documents] == ["Gatto"]
    assert reader.problems.counts == {"damaged file": 1}
    assert "it ends early" in str(reader.problems)


def test_entities_are_never_expanded(tmp_path):
    entities = (
        '<!DOCTYPE mediawiki [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
    )
    with pytest.raises(InputError, match="declares a document type or entities"):
        read_dump(tmp_path, entities + dump(*PAGES).replace("Il cane", "&b;&c;"))
    documents, reader = read_dump(tmp_path, dump(*PAGES).replace("Il cane", "&nbsp;"))
    assert [d.title for d in documents] == ["Gatto"]
    assert reader.problems.counts == {"damaged page": 1}


def test_other_xml_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a MediaWiki dump: its root is <rss>"):
        read_dump(tmp_path, "<rss><item/></rss>")


def test_large_pages_are_refused(tmp_path):
    large = page("Large", "word " * 1000 + "[[Categoria:X]]", 3)
    documents, reader = read_dump(tmp_path, dump(large, *PAGES), limits=Limits(document=2000))
    assert [d.title for d in documents] == ["Gatto", "Cane"]
    assert "'Large' is larger than a document may be" in str(reader.problems)


def test_reading_stops_after_many_damaged_pages(tmp_path):
    documents, reader = read_dump(tmp_path, dump(PAGES[0]) + "<page><" * 50_000)
    assert [d.title for d in documents] == ["Gatto"]
    assert reader.problems.counts == {"damaged page": 1000, "damaged file": 1}


REAL = {
    # name: pages, articles (the first namespace, no redirects), those with words and a category
    "enwiki_gensim": (206, 106, 99),
    "enwik8_head": (491, 248, 232),
    "itwiki_small": (747, 608, 562),
    "ltgwiki": (2004, 903, 691),
    "bgwiki_gensim": (3, 1, 1),
}


@pytest.mark.parametrize("name", REAL)
def test_real_dumps(name):
    path = DATA / "wiki" / f"{name}.xml.bz2"
    if not path.is_file():
        pytest.skip(f"no {path} (set POLYSEME_DATA to the data folder)")
    pages, articles, n_documents = REAL[name]
    reader = read(path)
    documents = list(reader)
    assert len(documents) == n_documents
    assert len(documents) + reader.dropped["page without a category"] + reader.dropped["empty page"] == articles
    assert len(documents) + reader.dropped.total() == pages
    assert reader.problems.counts == ({"damaged file": 1} if name == "enwik8_head" else {})
    assert all(d.title and d.labels and d.id.isdecimal() and d.time for d in documents)
    assert not [d.title for d in documents if "[[" in d.text or "{{" in d.text or "&nbsp;" in d.text]
    words = Counter(word for d in documents for word in re.findall(r"\w\w+", d.text.lower()))
    frequent = {word for word, _ in words.most_common(2000)}
    assert not frequent & {
        "ref",
        "nbsp",
        "colspan",
        "bgcolor",
        "wikitable",
        "thumb",
        "http",
        "https",
        "px",
        "br",
        "cite",
    }
    if name == "ltgwiki":
        assert list(reader) == documents
