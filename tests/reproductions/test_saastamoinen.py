"""The experiment of the thesis on a small synthetic dump, and the verdicts of the README."""

import os
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

from verdicts import verdicts

HERE = Path(__file__).parents[2] / "reproductions"
EXPECTED = {
    "Words of one article": "of the same size",
    "Perplexity as stopping rule": "no stopping rule: folded in on all words, articles show no overfitting",
    "Random articles (table 6.1)": "true at an early stop; all topics fit if EM continues",
    "The best topics can be read": "on some dumps",
    "Chosen categories (table 6.2)": "fewer fit",
    "Categories are found": "true for most",
    "Clearer data fits better": "not always",
}


def written_dump(path: Path) -> Path:
    """Write sixty articles of three categories, one without a category, and a redirect."""
    rng = np.random.default_rng(0)
    subjects = {name: [f"{name}{letter * 3}" for letter in "bdfgklmnprst"] for name in ("river", "metal", "singer")}
    pages = []
    for number in range(60):
        name = list(subjects)[number % 3]
        words = [*rng.choice(subjects[name], 60), *rng.choice(subjects["river"], 10), f"only{number}"]
        category = f"[[Category:{name.title()} things]]" if number else ""
        pages.append((f"Article {number}", f"The '''{' '.join(words)}''' is here. {category}"))
    pages.append(("Moved", "#REDIRECT [[Article 1]]"))
    body = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><id>9</id>"
        f"<timestamp>2020-01-01T00:00:00Z</timestamp><text>{escape(text)}</text></revision></page>"
        for number, (title, text) in enumerate(pages, start=1)
    )
    space = "http://www.mediawiki.org/xml/export-0.10/"
    path.write_text(f'<mediawiki xmlns="{space}" version="0.10">{body}</mediawiki>', encoding="utf-8")
    return path


def printed(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-W", "error::RuntimeWarning", str(HERE / "saastamoinen_2016.py"), "--quick", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_any_dump(tmp_path):
    pytest.importorskip("matplotlib")
    dump = written_dump(tmp_path / "small.xml")
    output = printed(str(dump), "--categories", "river", "metal", "--pictures", str(tmp_path))
    assert "# small (english): 59 articles" in output
    assert "Table 6.1: the most fitting topics. Data: 59 random articles" in output
    assert "Table 6.2: the most fitting topics. Data: 59 articles, 20 of other categories" in output
    best = output.split("Table 6.1")[1].split("| --- | --- | --- |\n")[1].splitlines()[:10]
    columns = zip(*(line.strip("| ").split(" | ") for line in best), strict=True)
    for column in columns:
        assert len({word[:5] for word in column} - {"river"}) <= 1  # one subject, and words of all articles
    assert set(verdicts(output.split("## Verdicts\n")[1])) == set(EXPECTED)
    assert 1_000 < (tmp_path / "saastamoinen_2016.png").stat().st_size < 150_000


def test_without_dumps_they_are_skipped_by_name(tmp_path):
    assert "skipped: itwiki_small" in printed(POLYSEME_DATA=str(tmp_path))


def test_readme_has_the_verdicts():
    readme = (HERE / "README.md").read_text()
    block = readme.split("<!-- saastamoinen_2016 -->\n")[1].split("<!-- end of saastamoinen_2016 -->")[0]
    assert verdicts(block) == EXPECTED
    assert (HERE / "pictures" / "saastamoinen_2016.png").stat().st_size < 150_000
