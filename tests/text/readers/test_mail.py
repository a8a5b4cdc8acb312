"""Messages and mailboxes."""

import gzip
from email.message import EmailMessage

import pytest

from polyseme.text import Limits, read
from polyseme.text.readers.mail import without_quotes


def message(text, subject="Grüße from the sea", sender="Ada Lovelace <ada@example.org>", **headers):
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["Date"] = subject, sender, "Thu, 26 Feb 1987 23:01:01 -0800"
    for name, value in headers.items():
        mail[name] = value
    mail.set_content(text)
    return mail


def write_mbox(path, *messages):
    path.write_bytes(b"".join(b"From ada Thu Feb 26 23:01:01 1987\n" + bytes(mail) + b"\n" for mail in messages))
    return path


def test_a_message(tmp_path):
    (tmp_path / "a.eml").write_bytes(bytes(message("Waves and wind.\n\nOn Monday Bob wrote:\n> Sun.\n\n-- \nAda\n")))
    (document,) = read(tmp_path / "a.eml")
    assert document.text == "Waves and wind."
    assert (document.title, document.label, document.time) == ("Grüße from the sea", "Ada Lovelace", "1987-02-26")


@pytest.mark.parametrize("pack", [None, gzip.compress])
def test_a_mailbox_has_one_document_for_each_message(tmp_path, pack):
    mails = [message(f"First line {n}.\n\nFrom the start of a line\nto 10:30.\n") for n in range(30)]
    path = write_mbox(tmp_path / "list.mbox", *mails)
    if pack:
        path = tmp_path / "list.mbox.gz"
        path.write_bytes(pack((tmp_path / "list.mbox").read_bytes()))
    documents = list(read(path))
    assert [document.id for document in documents] == [str(n) for n in range(1, 31)]
    assert all("From the start of a line" in document.text for document in documents)


def test_an_html_message_and_bad_dates(tmp_path):
    mail = message("", sender="ada@example.org")
    mail.set_content("<p>Waves <b>and</b> wind</p>", subtype="html")
    path = write_mbox(tmp_path / "a.mbox", mail)
    path.write_bytes(path.read_bytes().replace(b"Thu, 26 Feb 1987 23:01:01 -0800", b"yesterday"))
    reader = read(path)
    (document,) = reader
    assert (document.text, document.label) == ("Waves and wind", "ada@example.org")
    assert reader.problems.counts == {"unknown form of date": 1}


def test_attachments_by_type(tmp_path):
    mail, inner = message("See below."), message("An inner text.", subject="Inner")
    mail.add_attachment(b"Notes of the day", maintype="text", subtype="plain", filename="notes.txt")
    mail.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="../../evil.png")
    mail.add_attachment(inner)
    reader = read(write_mbox(tmp_path / "a.mbox", mail))
    found = [(document.id, document.title, document.text) for document in reader]
    assert found == [
        ("1", "Grüße from the sea", "See below."),
        ("1/1", "Grüße from the sea: notes.txt", "Notes of the day"),
        ("1/3", "Inner", "An inner text."),
    ]
    assert reader.dropped == {"attachment of another type": 1}


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Yes.\n\nOn 5 May 2020, Bob <b@c.d>\nwrote:\n> No?\n> Why?\n\nBecause.", "Yes.\n\nBecause."),
        ("Ja.\n\nAm 5.5.2020 schrieb Bob <b@c.d>:\n> Nein?\n", "Ja."),
        ("Fine.\n\n-----Original Message-----\nFrom: Bob\nOld text", "Fine."),
        ("Fine.\n\nFrom: Bob\nSent: Monday\nTo: Ada\nSubject: x\n\nOld text", "Fine."),
        ("-----Original Message-----\nForwarded text", "-----Original Message-----\nForwarded text"),
        ("Text\n--\nAda\nLondon", "Text"),
        ("a\n--\n" + "b\n" * 20, "a\n--\n" + "b\n" * 19 + "b"),
        ("> all quoted", ""),
    ],
)
def test_quotes_and_signatures_are_left_out(text, own):
    assert without_quotes(text) == own


def test_damaged_and_hostile_mail(tmp_path):
    nested = message("core")
    for _ in range(12):
        outer = message("shell")
        outer.add_attachment(nested)
        nested = outer
    (tmp_path / "nested.eml").write_bytes(bytes(nested))
    parts = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(3000))
    (tmp_path / "deep.eml").write_bytes(b"From: a\nMIME-Version: 1.0\n" + parts + b"\nend")
    (tmp_path / "header.eml").write_bytes(b"From: " + b"=?x?q?" * 2000 + b"\nDate: \xff\nSubject: =?u?b?//?=\n\nwords")
    (tmp_path / "charset.eml").write_bytes(b"Subject: s\nContent-Type: text/plain; charset=../../x\n\nwords \xff")
    (tmp_path / "long.mbox").write_bytes(b"From a Thu Feb 26 23:01:01 1987\n\n" + b"a" * 300_000)
    (tmp_path / "novel.mbox").write_bytes(b"It was a dark and stormy night.\n")
    reader = read(tmp_path, limits=Limits(document=200_000, seconds=20))
    documents = {document.source: document for document in reader}
    assert {"header.eml", "charset.eml", "nested.eml"} <= set(documents)
    assert len([document for document in reader if document.source == "nested.eml"]) == 6
    assert {problem.where for problem in reader.problems} >= {"long.mbox", "novel.mbox"}
