"""What is wrong with what a server keeps of a user: keys that are gone without the others."""

from hardsave.stores.redis.server import Server


def faults(server: Server, keys: tuple[str, ...]) -> list[str]:
    """The keys of a user come and go together; one that went alone was evicted, or removed."""
    log, meta, objects, _ = keys
    found = server.ask_all([("PTTL", key) for key in (log, meta, objects)])
    there = {key: left for key, left in zip((log, meta, objects), found, strict=True) if left != -2}
    if not there:
        return []  # expired as a whole
    lost = [] if meta in there else [f"{meta} is gone, and other keys of its user are there"]
    return lost + [f"{key} never expires" for key, left in there.items() if left == -1]
