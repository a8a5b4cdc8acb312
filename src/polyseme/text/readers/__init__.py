"""Readers of documents: text files, tables, MediaWiki dumps, PDF, Word and HTML files."""

from polyseme.text.readers.inputs import Document, Limits, Problem, Problems
from polyseme.text.readers.reader import FORMATS, Reader, read

__all__ = ["FORMATS", "Document", "Limits", "Problem", "Problems", "Reader", "read"]
