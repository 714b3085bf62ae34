"""The address that browsers know where a proxy is in front of the server: its name, its scheme, and
the prefix of its paths. Pure.

What a proxy says of itself in headers (`X-Forwarded-…`) is never asked for: any caller can write
them. The user says it once, with `--public-url`.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]+\]")
_PREFIX = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")  # no proxy spells these otherwise


class Public(NamedTuple):
    """A public address; without a proxy all of it is empty."""

    origin: str = ""  # `https://tools.example.com`, as browsers spell it
    host: str = ""  # its name, without the port
    prefix: str = ""  # of every path: `/hardsave`

    @property
    def url(self) -> str:
        return self.origin + self.prefix

    @property
    def is_secure(self) -> bool:
        return self.origin.startswith("https:")

    def inner(self, raw_path: str) -> str:
        """A path without the prefix: some proxies take it away, and others leave it."""
        has_prefix = self.prefix and f"{raw_path}/".startswith(f"{self.prefix}/")
        return (raw_path[len(self.prefix) :] or "/") if has_prefix else raw_path


def public_of(url: str) -> Public:
    """The parts of a public URL; `Misuse` if browsers could not call it like that."""
    wanted = f"a public URL is like https://tools.example.com/hardsave, not {url!r}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Misuse(wanted) from error
    host = parts.netloc.lower().removesuffix(f":{port}")
    prefix = parts.path.rstrip("/")
    if parts.scheme not in _PORTS or not _HOST.fullmatch(host) or parts.query or parts.fragment:
        raise Misuse(wanted)
    if not _PREFIX.fullmatch(prefix):
        raise Misuse(f"{wanted}: its path is made of letters, digits and ._~-")
    shown = "" if port is None or port == _PORTS[parts.scheme] else f":{port}"
    return Public(f"{parts.scheme}://{host}{shown}", host, prefix)


def check_prefix(public: Public, paths: Iterable[str]) -> None:
    """A prefix that a path of the server begins with, too, could not be told from it."""
    if public.prefix and any(_begins(path, public.prefix) for path in paths):
        raise Misuse(f"{public.prefix!r} is a path of the server itself; choose another prefix")


def _begins(path: str, prefix: str) -> bool:
    wanted, given = prefix.split("/"), path.split("/")
    same = zip(wanted, given, strict=False)
    return len(wanted) <= len(given) and all(
        one == other or other.startswith("{") for one, other in same
    )
