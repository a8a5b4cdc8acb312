"""Where the counts live: in memory, on disk, or at the workers of a cluster."""

from polyseme.sources.base import Source
from polyseme.sources.memory import MemorySource, effective_threads

__all__ = ["MemorySource", "Source", "effective_threads"]
