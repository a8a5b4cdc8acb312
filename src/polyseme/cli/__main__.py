"""Makes ``python -m polyseme.cli`` equivalent to ``polyseme``."""

from polyseme.cli.app import main

main()
