"""Texts of the explorer page never become markup or code.

tests/browser/test_browser_safety.py opens such a page in a browser.
"""

import base64
import re

import numpy as np
import pytest

from explorer_corpora import HOSTILE
from polyseme import PLSA
from polyseme.explore import write_page

NAMES = (
    *HOSTILE,
    "\u2028\u2029</script>",
    "<!-- <script> -->",
    "--!><script>window.hacked=1</script>",
    "<![CDATA[<script>]]>",
    "javascript:alert(1)//",
    "data:text/html,<script>window.hacked=1</script>",
    "\0<script>",
    "${window.hacked=1}",
    "{{window.hacked}}",
    "</title><script>window.hacked=1</script>",
    "</style><script>window.hacked=1</script>",
)
BLOCK = re.compile(r'<script type="application/octet-stream" id="\w+">([^<]*)</script>')


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a page whose words, titles, ids, labels, times and texts are hostile."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    counts = np.random.default_rng(0).poisson(2.0, (len(NAMES), len(NAMES))) + np.eye(len(NAMES), dtype=int)
    model = PLSA(2, random_state=0, max_iter=500).fit(counts)
    names = list(NAMES)
    write_page(
        model, path, "full", counts=counts, vocabulary=names, titles=names, ids=names, labels=names, times=names,
        texts=names, title=NAMES[0] + NAMES[-2],
    )  # fmt: skip
    return path.read_text(encoding="utf-8")


def test_texts_are_only_in_encoded_blocks(text):
    blocks = BLOCK.findall(text)
    assert blocks
    for block in blocks:
        base64.b64decode(block.strip(), validate=True)
    outside = BLOCK.sub("", text)
    title = re.search(r"<title>([^<]*)</title>", outside)[1]  # the only text outside of blocks, escaped
    assert "&lt;script&gt;" in title
    assert "window.hacked" not in outside.replace(title, "")
    assert "javascript:alert" not in outside
    assert not re.search("[\u2028\u2029\0]", outside)


def test_the_page_has_one_script_and_no_other_markup_from_texts(text):
    assert text.count("<script") == len(BLOCK.findall(text)) + 1
    assert len(re.findall(r"</?(?:title|style)[ >]", text)) == 4
    assert not re.search(r"<(?:img|svg/|iframe|object|embed|base|meta http-equiv=.refresh)", BLOCK.sub("", text))


def test_the_policy_forbids_the_network_and_other_scripts(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
