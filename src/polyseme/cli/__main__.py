"""Makes ``python -m polyseme.cli`` equal to ``polyseme``."""

from polyseme.cli import main

main()
