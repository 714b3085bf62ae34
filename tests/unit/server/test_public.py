"""The address of a proxy, and what it lets in."""

import pytest

from hardsave.errors import Misuse
from hardsave.server import door
from hardsave.server.door import Seen, headers_of
from hardsave.server.errors import Refused
from hardsave.server.public import Public, check_prefix, public_of
from hardsave.server.table import ROUTES, find

PROXY = public_of("https://tools.example.com/hardsave")


def seen(public: Public = PROXY, **headers: str) -> Seen:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Seen("GET", "/checkpoints", headers_of(pairs), "127.0.0.1", "127.0.0.1", public)


@pytest.mark.parametrize(
    ("url", "origin", "host", "prefix"),
    [
        (
            "https://tools.example.com/hardsave",
            "https://tools.example.com",
            "tools.example.com",
            "/hardsave",
        ),
        ("https://Tools.Example.com:443/", "https://tools.example.com", "tools.example.com", ""),
        ("http://box:8080/a/b/", "http://box:8080", "box", "/a/b"),
        ("http://box:80", "http://box", "box", ""),
        ("https://box:80", "https://box:80", "box", ""),
        ("https://[2001:DB8::1]:8443/x", "https://[2001:db8::1]:8443", "[2001:db8::1]", "/x"),
    ],
)
def test_a_public_url_has_an_origin_as_browsers_spell_it(
    url: str, origin: str, host: str, prefix: str
) -> None:
    assert public_of(url) == Public(origin, host, prefix)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "tools.example.com",
        "ftp://box",
        "https://",
        "https:///x",
        "https://me:secret@box",
        "https://box:99999",
        "https://box:",
        "https://box/x?y",
        "https://box/x#y",
        "https://box/a b",
        "https://box//a",
        "https://box/..",
        "https://box/%61",
        "https://b\u00fccher.example",
        "https://box\r\nX: y",
        'https://box/a";b',
    ],
)
def test_what_browsers_could_not_call_is_refused(url: str) -> None:
    with pytest.raises(Misuse, match="a public URL is like"):
        public_of(url)


def test_a_path_is_found_with_the_prefix_and_without() -> None:
    for path, inner in (
        ("/hardsave/jobs", "/jobs"),
        ("/hardsave/", "/"),
        ("/hardsave", "/"),
        ("/jobs", "/jobs"),
        ("/", "/"),
        ("/hardsaved/jobs", "/hardsaved/jobs"),
        ("/hardsave/hardsave/jobs", "/hardsave/jobs"),
        ("/%68ardsave/jobs", "/%68ardsave/jobs"),
        ("/hardsave//jobs", "//jobs"),
    ):
        assert PROXY.inner(path) == inner
    assert Public().inner("/hardsave/jobs") == "/hardsave/jobs"


def test_a_prefix_that_could_be_taken_for_a_path_of_the_server_is_refused() -> None:
    paths = [row.path for row in ROUTES]
    for prefix in ("/assets", "/login", "/checkpoints", "/checkpoints/any", "/assets/x"):
        with pytest.raises(Misuse, match="path of the server itself"):
            check_prefix(public_of(f"https://box{prefix}"), paths)
    for prefix in ("", "/hardsave", "/tools/jobs", "/jobs-of-ours", "/login/deep"):
        check_prefix(public_of(f"https://box{prefix}"), paths)


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("tools.example.com", "https://tools.example.com"),
        ("127.0.0.1:8765", "https://tools.example.com"),  # a proxy that sends its own Host
        ("localhost:9000", "http://localhost:9000"),  # through ssh -L, beside the proxy
    ],
)
def test_the_pages_of_the_proxy_and_of_this_machine_are_own_ones(host: str, origin: str) -> None:
    request = seen(host=host, origin=origin)
    door.check_address(request, door.LOOPBACK_NAMES | {PROXY.host})
    door.check_site(request, find("GET", "/checkpoints"))


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("tools.example.com", "http://tools.example.com"),  # any machine between could have made it
        ("tools.example.com", "https://tools.example.com:8443"),
        ("tools.example.com", "https://evil.example"),
        ("tools.example.com", "http://localhost:8765"),
        ("127.0.0.1:8765", "http://tools.example.com"),
        ("127.0.0.1:8765", "https://tools.example.com.evil.example"),
        ("tools.example.com", "null"),
        ("tools.example.com", ""),
    ],
)
def test_pages_of_other_sites_are_refused_behind_a_proxy_too(host: str, origin: str) -> None:
    with pytest.raises(Refused) as caught:
        door.check_site(seen(host=host, origin=origin), find("GET", "/checkpoints"))
    assert caught.value.status == 403


def test_what_a_caller_says_of_a_proxy_counts_for_nothing() -> None:
    forged = {
        "x_forwarded_host": "tools.example.com",
        "x_forwarded_proto": "https",
        "x_forwarded_prefix": "/hardsave",
        "forwarded": "host=tools.example.com;proto=https",
    }
    request = seen(Public(), host="localhost:1", origin="https://tools.example.com", **forged)
    with pytest.raises(Refused):
        door.check_site(request, find("GET", "/checkpoints"))
    with pytest.raises(Refused):
        door.check_address(seen(Public(), host="evil.example", **forged), door.LOOPBACK_NAMES)
