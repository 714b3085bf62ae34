"""Where a server is, out of the URL that a caller gives. Pure."""

from typing import Any
from urllib.parse import SplitResult, urlsplit

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """The place of a server. `prefix` is the path that a reverse proxy has put before its own."""

    is_encrypted: bool
    host: str
    port: int
    prefix: str

    @property
    def url(self) -> str:
        """As people write it."""
        scheme = "https" if self.is_encrypted else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _PORTS[scheme] else f":{self.port}"
        return f"{scheme}://{host}{port}{self.prefix}"


def parse(url: Any) -> Address:
    """`Misuse` if it is no address of a server. A token has no place in it: URLs are logged."""
    if not isinstance(url, str) or not (url.isascii() and url.isprintable()) or " " in url:
        raise _wrong(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _wrong(url) from error
    if not _is_plain(parts):
        raise _wrong(url)
    if parts.username is not None or parts.password is not None:
        raise Misuse("a URL has no room for a token; give it as token=, or set HARDSAVE_TOKEN")
    assert parts.hostname is not None
    is_encrypted = parts.scheme == "https"
    found = _PORTS[parts.scheme] if port is None else port
    return Address(is_encrypted, parts.hostname, found, parts.path.rstrip("/"))


def _is_plain(parts: SplitResult) -> bool:
    is_one = parts.scheme in _PORTS and bool(parts.hostname)
    return is_one and not parts.query and not parts.fragment


def _wrong(url: object) -> Misuse:
    return Misuse(f"a server is named as http://HOST:PORT or https://HOST/PATH, not {url!r}")
