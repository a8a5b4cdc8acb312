"""From files to counts."""

from polyseme.text.readers import Document, Limits, Problem, Problems, Reader, read

__all__ = ["Document", "Limits", "Problem", "Problems", "Reader", "read"]
