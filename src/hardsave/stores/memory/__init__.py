"""A store in memory: gone with its process, and the measure of what every store must do."""

from hardsave.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
