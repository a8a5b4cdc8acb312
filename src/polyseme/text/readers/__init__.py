"""Readers of documents: text files, tables, MediaWiki dumps, PDF, Word and HTML files, and data in memory."""

from polyseme.text.readers.inputs import Document, Limits, Problem, Problems
from polyseme.text.readers.memory import open_source
from polyseme.text.readers.reader import FORMATS, Reader, read

__all__ = ["FORMATS", "Document", "Limits", "Problem", "Problems", "Reader", "open_source", "read"]
