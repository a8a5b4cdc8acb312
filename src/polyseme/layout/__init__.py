"""Map of documents: their places in the plane, the places of the names of topics, and colors of topics."""

from polyseme.layout.colors import DARK, LIGHT, assign_colors
from polyseme.layout.names import TopicPlaces, topic_places
from polyseme.layout.places import document_layout, extend_layout

__all__ = ["DARK", "LIGHT", "TopicPlaces", "assign_colors", "document_layout", "extend_layout", "topic_places"]
