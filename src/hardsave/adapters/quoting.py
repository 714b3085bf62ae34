"""What a framework calls its sessions, as parts of the names of timelines. Pure."""

from hashlib import blake2b
from urllib.parse import quote


def quoted(text: str, longest: int) -> str:
    """A part of a name, without a slash. A long one is shortened to one with a tilde, which stays
    unique."""
    name = quote(text, safe="").replace("~", "%7E")
    if len(name) <= longest:
        return name
    return f"{name[: longest // 2]}~{blake2b(name.encode(), digest_size=12).hexdigest()}"
