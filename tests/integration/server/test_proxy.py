"""The server behind a real nginx with TLS and a prefix, and through a real `ssh -L`."""

import getpass
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.docs.pages import DOCS, blocks
from tests.integration.server.conftest import LIMIT, Server, Start

NAME = "tools.example.com"
(ON_THE_PAGE,) = blocks(DOCS / "howto" / "server.md", "nginx")
PASS = "proxy_pass http://127.0.0.1:8765;"  # noqa: S105 # no password
HOST = "proxy_set_header Host $host;"
CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    server_name {name};
    ssl_certificate {folder}/certificate.pem;
    ssl_certificate_key {folder}/key.pem;
    {location}
  }}
}}
"""


def program(name: str) -> str:
    """The path of a program; a test without it is skipped, and says what was not tried."""
    found = shutil.which(name, path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed: the server was NOT tried with it")
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@contextmanager
def running(command: list[str], port: int, folder: Path) -> Iterator[None]:
    """A program that listens on a port until the end of the block."""
    log = folder / f"{Path(command[0]).name}.log"
    with open(log, "wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as made:
        try:
            wait_for(port, made, log)
            yield
        finally:
            made.terminate()


def wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    ends = time.monotonic() + LIMIT
    while time.monotonic() < ends:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(log.read_text())


# nginx


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for the name and the address, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", f"/CN={NAME}", "-addext",
         f"subjectAltName=DNS:{NAME},IP:127.0.0.1", "-keyout", "key.pem", "-out",
         "certificate.pem"],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=LIMIT,
    )  # fmt: skip
    return folder


class Proxied:
    """A browser, or a program, that knows the proxy alone."""

    def __init__(self, port: int, certificate: Path) -> None:
        self.origin = f"https://{NAME}:{port}"
        trusted = ssl.create_default_context(cafile=str(certificate / "certificate.pem"))
        self.client = httpx2.Client(
            base_url=f"https://127.0.0.1:{port}",
            headers={"Host": f"{NAME}:{port}"},
            verify=trusted,
            timeout=LIMIT,
        )

    def post(self, path: str, origin: str, **form: str) -> httpx2.Response:
        headers = {"Origin": origin}
        return self.client.post(path, data=form, headers=headers, follow_redirects=False)


@pytest.mark.parametrize(
    "location",
    [
        ON_THE_PAGE,
        ON_THE_PAGE.replace(PASS, PASS.replace(";", "/;")),
        ON_THE_PAGE.replace(HOST, ""),
    ],
    ids=["as on the page", "prefix taken away", "with the proxy's own Host"],
)
def test_behind_nginx_with_tls_and_a_prefix(
    start: Start, certificate: Path, location: str, tmp_path: Path
) -> None:
    nginx, port = program("nginx"), free_port()
    server = start("--public-url", f"https://{NAME}:{port}/hardsave")
    assert PASS[:-1] in location
    settings = CONFIGURATION.format(
        folder=certificate,
        port=port,
        name=NAME,
        location=location.replace("http://127.0.0.1:8765", server.url),
    )
    (tmp_path / "nginx.conf").write_text(settings)
    command = [nginx, "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
    with running(command, port, tmp_path):
        proxied = Proxied(port, certificate)
        with proxied.client:
            _use_through_proxy(server, proxied)
    assert server.stop() == 0


def _use_through_proxy(server: Server, proxied: Proxied) -> None:
    browser, link = proxied.client, urlsplit(server.link)
    assert server.link.startswith(f"{proxied.origin}/hardsave/login?key=")
    page = browser.get(f"{link.path}?{link.query}")
    assert 'action="/hardsave/login"' in page.text
    key = link.query.removeprefix("key=")
    assert proxied.post(link.path, "https://evil.example", key=key).status_code == 403
    assert proxied.post(link.path, f"http://{NAME}", key=key).status_code == 403
    entered = proxied.post(link.path, proxied.origin, key=key)
    assert (entered.status_code, entered.headers["location"]) == (303, "/hardsave/")
    about = entered.headers["set-cookie"].split("; ")[1:]
    assert {"Path=/hardsave", "Secure", "HttpOnly", "SameSite=Strict"} <= set(about)
    page = browser.get("/hardsave/")
    assert (page.status_code, '<base href="/hardsave/">' in page.text) == (200, True)
    style = browser.get("/hardsave/assets/style.css")
    assert style.headers["content-type"].startswith("text/css")
    assert browser.get("/hardsave/checkpoints", headers=server.bearer).status_code == 200
    forged = {**server.bearer, "X-Forwarded-Host": "evil.example", "Origin": "https://evil.example"}
    assert browser.get("/hardsave/checkpoints", headers=forged).status_code == 403
    assert browser.get("/hardsave/nosuch", headers=server.bearer).status_code == 404


def test_beside_its_proxy_the_server_is_called_on_this_machine_as_ever(start: Start) -> None:
    server = start("--public-url", f"https://{NAME}/hardsave")
    assert server.call("GET", "/checkpoints").status_code == 200
    assert server.call("GET", "/hardsave/checkpoints").status_code == 200
    page = server.call("GET", "/login", headers={"Accept": "text/html"})
    assert 'action="/hardsave/login"' in page.text
    named = {**server.bearer, "Host": NAME, "Origin": f"https://{NAME}"}
    assert server.call("GET", "/hardsave/checkpoints", headers=named).status_code == 200
    for wrong in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        answer = server.call("GET", "/hardsave/checkpoints", headers={**named, **wrong})
        assert answer.status_code == 403


# ssh


def test_another_port_of_this_machine_is_as_good_as_its_own(server: Server) -> None:
    """As it is through `ssh -L 9000:localhost:8765`."""
    near = {**server.bearer, "Host": "localhost:9000", "Origin": "http://localhost:9000"}
    assert server.call("GET", "/checkpoints", headers=near).status_code == 200
    for origin in ("http://localhost:9001", "http://127.0.0.1:9000", "https://localhost:9000"):
        far = {**near, "Origin": origin}
        assert server.call("GET", "/checkpoints", headers=far).status_code == 403


@contextmanager
def forwarded(there: int, folder: Path) -> Iterator[int]:
    """A port of this machine that `ssh -L` leads to another one, through a real sshd."""
    sshd, ssh, keygen = program("sshd"), program("ssh"), program("ssh-keygen")
    if os.geteuid() == 0:  # there, sshd wants the folder that its service makes
        os.makedirs("/run/sshd", 0o755, exist_ok=True)
    for name in ("host", "own"):
        key = [keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True, timeout=LIMIT)
    port, here = free_port(), free_port()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/own.pub\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    )
    listening = [sshd, "-D", "-e", "-f", str(folder / "sshd_config")]
    leading = [ssh, "-F", "none", "-N", "-L", f"{here}:localhost:{there}", "-p", str(port),
               "-i", str(folder / "own"), "-o", "StrictHostKeyChecking=no",
               "-o", "UserKnownHostsFile=/dev/null", "-o", "ExitOnForwardFailure=yes",
               "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
               f"{getpass.getuser()}@127.0.0.1"]  # fmt: skip
    with running(listening, port, folder), running(leading, here, folder):
        yield here


def test_through_ssh(server: Server, tmp_path: Path) -> None:
    own = urlsplit(server.url).port
    assert own is not None
    with forwarded(own, tmp_path) as port, httpx2.Client(timeout=LIMIT) as browser:
        url = f"http://localhost:{port}"
        link = server.link.replace(server.url, url)
        assert 'action="/login"' in browser.get(link).text
        key, origin = urlsplit(link).query.removeprefix("key="), {"Origin": url}
        entered = browser.post(f"{url}/login", data={"key": key}, headers=origin)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        assert "Secure" not in entered.headers["set-cookie"]
        assert browser.get(f"{url}/").status_code == 200
        with_token = httpx2.get(f"{url}/checkpoints", headers=server.bearer, timeout=LIMIT)
        assert with_token.status_code == 200
