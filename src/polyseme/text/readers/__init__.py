"""Readers of documents: text files, tables, wiki dumps, PDF, Word and HTML files."""

from polyseme.text.readers.documents import Document
from polyseme.text.readers.limits import Limits
from polyseme.text.readers.problems import Problem, Problems
from polyseme.text.readers.reader import FORMATS, Reader, read

__all__ = ["FORMATS", "Document", "Limits", "Problem", "Problems", "Reader", "read"]
