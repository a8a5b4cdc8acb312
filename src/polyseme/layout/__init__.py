"""Map of documents: their places in the plane, the places of the names of topics, and colors of topics."""

from polyseme.layout.places import document_layout

__all__ = ["document_layout"]
