"""https: a server whose certificate is trusted is spoken to, and no other."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hardsave.client import connect
from hardsave.errors import Unavailable
from tests.unit.client.scripted import TOKEN, Scripted, scripted

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None,
    reason="NOT TRIED: https. It takes openssl to make certificates",
)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for this machine that signs itself, with its key."""
    path = tmp_path / "both.pem"
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    out = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "certificate.pem")]
    subprocess.run(["openssl", *made, *named, *out], check=True, capture_output=True, timeout=60)
    path.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "certificate.pem").read_text())
    return path


@pytest.fixture
def server(certificate: Path) -> Iterator[Scripted]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with scripted(context) as script:
        yield script


def test_a_certificate_that_the_caller_trusts_is_enough(
    server: Scripted, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("certificate.pem")))
    server.says("/happened", {"items": [], "next": "0"})
    with connect(server.url, token=TOKEN) as vault:
        assert vault.url == server.url
        assert vault.follow().read() == []
    assert len({each.connection for each in server.seen}) == 1


def test_a_certificate_that_nothing_vouches_for_is_refused_before_the_token_is_sent(
    server: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(Unavailable, match="SSL_CERT_FILE"):
        connect(server.url, token=TOKEN)
    assert server.seen == []
