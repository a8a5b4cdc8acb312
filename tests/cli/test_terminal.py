"""Output in a terminal of 60, 80 and 120 columns: lines are broken between words."""

import json
import os
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from cli_runner import run, tree_texts

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

WIDTHS = (60, 80, 120)
WIDE = 1000
COMMANDS = (
    ("fit", "letters.jsonl", "-k", "2", "-o", "fitted", "--model", "lda", "--max-iter", "1", "--no-page"),
    ("topics", "run", "--level", "4"),
    ("topics", "run", "--level", "4", "--documents", "2"),
    ("topics", "tree"),
    ("evaluate", "run"),
    ("topics", "a-folder-that-does-not-exist-because-nobody-has-made-it"),
    ("fit", "--help"),
)
CHILD = f"""
import fcntl, struct, sys, termios
from polyseme.cli.app import app
for width in {(*WIDTHS, WIDE)}:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    print("\\x1d", end="", flush=True)
    for command in {COMMANDS}:
        try:
            app([*command, *(["--overwrite"] if "-k" in command else [])], prog_name="polyseme")
        except SystemExit:
            pass
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("terminal")
    texts = tree_texts()
    rows = [{"title": f"A letter of some length about number {i}", "text": text} for i, text in enumerate(texts)]
    (place / "letters.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for folder, model in (("run", ()), ("tree", ("--model", "hierarchical"))):
        done = run("fit", "letters.jsonl", "-k", "2", "-o", folder, "--no-page", *model, cwd=place)
        assert done.exit_code == 0, done.output
    return place


def shown_in_terminal(place):
    """Return what a terminal of each width gets."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], cwd=place, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux raises it when the process has ended
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(parts).decode())
    return dict(zip((*WIDTHS, WIDE), text.split("\x1d")[1:], strict=True))


def lines_of(text):
    """Return the lines that stay on the screen, where a bar overwrites its line, without bars and rules of tables."""
    lines = [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]
    return [line for line in lines if not re.search("[━…]|0:00| left", line)]


def test_lines_break_between_words(place):
    lines = {width: lines_of(text) for width, text in shown_in_terminal(place).items()}
    words = {width: set(re.findall("[A-Za-z]+", " ".join(shown))) for width, shown in lines.items()}
    assert {"convergence", "part", "Tree", "run"} < words[WIDE]
    for width in WIDTHS:
        assert max(map(cell_len, lines[width])) <= width
        assert words[width] <= words[WIDE]
