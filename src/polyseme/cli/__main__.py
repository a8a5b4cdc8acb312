"""``python -m polyseme.cli`` does what ``polyseme`` does."""

from polyseme.cli import main

main()
