"""What the command line tells the shell."""

INTERRUPTED = 130
"""Stopped by Ctrl-C, as shells count it: 128 + SIGINT."""
