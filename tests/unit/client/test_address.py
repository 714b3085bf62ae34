import pytest

from hardsave.client.address import Address, parse
from hardsave.errors import Misuse


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("http://localhost:8765", Address(False, "localhost", 8765, "")),
        ("http://localhost:8765/", Address(False, "localhost", 8765, "")),
        ("https://example.org", Address(True, "example.org", 443, "")),
        ("https://example.org/a/b/", Address(True, "example.org", 443, "/a/b")),
        ("http://[::1]:8765", Address(False, "::1", 8765, "")),
    ],
)
def test_a_url_names_a_host_a_port_and_what_a_proxy_puts_before_paths(
    url: str, means: Address
) -> None:
    assert parse(url) == means
    assert parse(means.url) == means


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8765",
        "ftp://localhost",
        "http://",
        "http://localhost:99999",
        "http://localhost?token=x",
        "http://localhost#x",
        "http://localhost/a b",
        "http://localhost/\r\nX: y",
        "",
        None,
    ],
)
def test_what_is_no_url_of_a_server_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(Misuse, match="http://HOST:PORT"):
        parse(url)


def test_a_token_in_a_url_is_refused_without_repeating_it() -> None:
    with pytest.raises(Misuse, match="HARDSAVE_TOKEN") as refused:
        parse("http://user:secret@localhost")
    assert "secret" not in str(refused.value)
