"""Encoded files in texts."""

import base64
import binascii

import numpy as np
import pytest

from polyseme.text.encoded import LEFT_OUT, without_encoded
from polyseme.text.readers.sources import open_source

DATA = np.random.default_rng(0).integers(0, 256, 900, dtype=np.uint8).tobytes()
UUENCODED = "".join(binascii.b2a_uu(DATA[start : start + 45]).decode() for start in range(0, 900, 45))
BASE64 = base64.encodebytes(DATA).decode()


@pytest.mark.parametrize(
    "encoded",
    [
        UUENCODED,
        UUENCODED.replace("\n", "\r\n"),
        "".join(f"> {line}\n" for line in UUENCODED.splitlines()),
        "".join(f"X{line}\n" for line in UUENCODED.splitlines()),
        binascii.b2a_uu(bytes(45)).decode() * 3,
        BASE64,
        base64.b64encode(DATA).decode() + "\n",
    ],
)
def test_encoded_files_are_left_out(encoded: str) -> None:
    left = without_encoded(f"Here is the picture.\n\n{encoded}end\nGreetings\n")
    assert left.startswith(f"Here is the picture.\n\n{LEFT_OUT}")
    assert left.endswith("end\nGreetings\n")
    assert len(left) < 140  # the last, shorter line may stay


@pytest.mark.parametrize(
    "text",
    [
        "MANY WORDS IN CAPITALS THAT ARE AS LONG AS A LINE OF A FILE..\nmore\n" * 3,
        "".join(f"https://www.example.org/Pictures/of/the/2nd/Day/Holiday-{n:04d}.JPEG\n" for n in range(9)),
        "".join(f"/usr/share/icons/Adwaita/scalable/devices/drive-harddisk-{n:04d}.svg\n" for n in range(9)),
        "-" * 70 + "\n" + "-" * 70 + "\n",
        "ACGT" * 20 + "\n" + "TGCA" * 20 + "\n",
        "word " * 100,
        "数学是研究数量结构变化空间以及信息等概念的一门学科" * 20,
        "",
    ],
)
def test_other_long_lines_stay(text: str) -> None:
    assert without_encoded(text) == text


def test_the_reader_says_how_much_was_left_out() -> None:
    reader = open_source([f"A picture:\n{BASE64}", "No picture.", f"Again\n{UUENCODED}"])
    texts = [document.text for document in reader]
    assert texts[0].startswith(f"A picture:\n{LEFT_OUT}")
    assert texts[1] == "No picture."
    n_documents, characters = reader.encoded
    assert n_documents == 2
    assert characters == len(BASE64) + len(UUENCODED) + len("A picture:\nAgain\n") - len(texts[0]) - len(texts[2])
