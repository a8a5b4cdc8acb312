"""Makes ``python -m polyseme.cli`` equal to ``polyseme``."""

from polyseme.cli.app import main

main()
