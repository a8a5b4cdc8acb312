"""Where the counts live: in memory for now."""

from polyseme.sources.memory import MemorySource, effective_threads

__all__ = ["MemorySource", "effective_threads"]
