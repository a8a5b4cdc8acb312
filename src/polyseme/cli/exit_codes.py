"""What the command line tells the shell."""

FAILED = 1
"""The input, a file or the machine did not allow it; the message says what to do. (2 is for wrong arguments.)"""

INTERRUPTED = 130
"""Stopped by Ctrl-C, as shells count it: 128 + SIGINT."""
