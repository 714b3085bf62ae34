"""`hardsave serve` and `hardsave token` from outside: processes and HTTP."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from hardsave.defaults import MAX_REQUEST_BYTES
from tests.docs.pages import DOCS, blocks
from tests.integration.server.conftest import HARDSAVE, LIMIT, Server, Start, environment


def hardsave(tmp_path: Path, *typed: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*HARDSAVE, *typed],
        cwd=tmp_path / "project",
        env=environment(tmp_path) | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def raw(server: Server, sent: bytes) -> bytes:
    """Bytes that no client would send, and the first line of the answer."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=LIMIT) as connection:
        connection.sendall(sent)
        return connection.recv(65_536).partition(b"\r\n")[0]


def test_a_token_is_listed_used_and_revoked_while_the_server_runs(
    server: Server, tmp_path: Path
) -> None:
    store = ["--store", server.store]
    made = json.loads(hardsave(tmp_path, "token", "add", "ci", "--json", *store).stdout)
    bearer = {"Authorization": f"Bearer {made['token']}"}

    def status(method: str = "GET", path: str = "/checkpoints") -> int:
        return server.call(method, path, headers=bearer).status_code

    assert status() == 200
    assert status("DELETE", "/checkpoints/x") == 403  # its scope is to read
    listed = hardsave(tmp_path, "token", "list", *store)
    assert "ci" in listed.stdout
    assert made["token"] not in listed.stdout
    assert hardsave(tmp_path, "token", "add", "ci", *store).returncode == 4
    assert hardsave(tmp_path, "token", "revoke", "ci", *store).returncode == 0
    assert status() == 401
    assert hardsave(tmp_path, "token", "revoke", "ci", *store).returncode == 3


def test_the_link_lets_one_browser_in_once_and_the_log_tells_no_secret(server: Server) -> None:
    with httpx2.Client(base_url=server.url, timeout=LIMIT) as browser:
        assert browser.get("/").status_code == 401
        preview = browser.get(server.link)  # as a chat fetches it: uses nothing up
        key = re.findall(r'name="?key"?\s+value="([^"]+)"', preview.text)
        assert key == [urlsplit(server.link).query.removeprefix("key=")]
        own = {"Origin": server.url}
        entered = browser.post("/login", data={"key": key[0]}, headers=own)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert browser.get("/").status_code == 200
        assert browser.get("/checkpoints").status_code == 401  # for programs, by tokens alone
        for headers in ({}, own):  # without the token of the session
            answer = browser.post("/api/v1/jobs/resume", json={"id": "x"}, headers=headers)
            assert answer.status_code == 403
    again = httpx2.post(f"{server.url}/login", data={"key": key[0]}, headers=own)
    assert again.status_code == 401
    log = server.log()
    assert "POST /login 303" in log
    for secret in (key[0], server.token, cookie.partition("=")[2].partition(";")[0]):
        assert secret not in log


def test_a_token_lets_a_browser_in_until_it_is_revoked(server: Server, tmp_path: Path) -> None:
    store = ["--store", server.store]
    token = hardsave(tmp_path, "token", "add", "me", *store).stdout.strip()
    with httpx2.Client(base_url=server.url, timeout=LIMIT) as browser:
        browser.post("/login", data={"token": token}, headers={"Origin": server.url})
        assert browser.get("/").status_code == 200
        hardsave(tmp_path, "token", "revoke", "me", *store)
        assert browser.get("/").status_code == 401


def test_the_commands_of_the_page_are_answered_as_it_says(server: Server, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed: the commands of the page were NOT run")
    typed = ("token", "add", "act", "--scope", "act", "--store", server.store)
    token = hardsave(tmp_path, *typed).stdout.strip()
    (block,) = blocks(DOCS / "howto" / "server.md", "bash")
    steps = re.findall(r"^# (\d+): .*\n(curl .*)$", block, re.MULTILINE)
    assert len(steps) == block.count("curl")
    for status, command in steps:
        own = command.replace("http://localhost:8765", server.url)
        ran = subprocess.run(
            ["sh", "-c", own.replace("curl ", "curl -s -o /dev/null -w '%{http_code}' ")],
            env={**environment(tmp_path), "TOKEN": token},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        )
        assert ran.stdout == status, command


def test_wrong_tokens_are_limited_and_right_ones_are_not(server: Server) -> None:
    wrong = {"Authorization": "Bearer hs_wrong"}
    seen = [server.call("GET", "/checkpoints", headers=wrong).status_code for _ in range(25)]
    assert (seen[0], seen[-1]) == (401, 429)
    assert server.call("GET", "/checkpoints").status_code == 200


def test_a_body_is_bounded_however_it_is_sent(server: Server) -> None:
    large = b"x" * (MAX_REQUEST_BYTES + 1)
    headers = {**server.bearer, "Content-Type": "application/json"}
    assert server.call("POST", "/webhook", headers=headers, content=large).status_code == 413
    pieces = (large[:500_000] for _ in range(4))
    assert server.call("POST", "/webhook", headers=headers, content=pieces).status_code == 413


@pytest.mark.parametrize(
    "head",
    [
        b"GET /checkpoints HTTP/1.1\r\nHost: localhost\r\nHost: evil.example",
        b"GET /checkpoints HTTP/1.1\r\nX: y",
        b"GET http://evil.example/checkpoints HTTP/1.1\r\nHost: evil.example",
        b"POST /webhook HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6",
        b"GET /checkpoints HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nOrigin: null",
        b"GET /\xff HTTP/1.1\r\nHost: localhost",
        b"GET /checkpoints HTTP/1.0",
        b"nonsense",
    ],
)
def test_strange_requests_are_refused(server: Server, head: bytes) -> None:
    answer = raw(server, head + b"\r\nConnection: close\r\n\r\n")
    assert re.match(rb"HTTP/1.1 4\d\d ", answer), answer


def test_a_server_with_a_request_that_never_ends_says_so_and_stops(server: Server) -> None:
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port), timeout=LIMIT) as connection:
        head = f"POST /webhook HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}"
        more = "Content-Type: application/json\r\nContent-Length: 100"
        connection.sendall(f"{head}\r\n{more}\r\n\r\n{{".encode())
        time.sleep(0.2)
        assert server.stop() == 0
        assert connection.recv(65_536).startswith(b"HTTP/1.1 503 ")
    assert "Traceback" not in server.log()


def test_past_this_machine_only_with_tokens(start: Start, tmp_path: Path) -> None:
    server = start()
    server.stop()
    typed = ["serve", "--port", "0", "--store", server.store, "--host", "0.0.0.0"]  # noqa: S104
    refused = hardsave(tmp_path, *typed)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "hardsave" in refused.stderr
    assert "token add" in refused.stderr
    opened = hardsave(tmp_path, *typed, "--open-loopback")
    assert opened.returncode == 2
    assert "--open-loopback" in opened.stderr
    hardsave(tmp_path, "token", "add", "old", "--expires", "1s", "--store", server.store)
    hardsave(tmp_path, "token", "add", "else")  # for another store
    time.sleep(1)
    assert hardsave(tmp_path, *typed).returncode == 2
    hardsave(tmp_path, "token", "add", "ci", "--store", server.store)
    reached = start("--host", "0.0.0.0")  # noqa: S104
    assert reached.call("GET", "/checkpoints").status_code == 200
    assert reached.call("GET", "/checkpoints", headers={}).status_code == 401


def test_a_server_that_is_refused_leaves_no_store_behind(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert hardsave(tmp_path, "serve", "--port", "0", "--host", "0.0.0.0").returncode == 2  # noqa: S104
    assert sorted(tmp_path.rglob("*")) == before


def test_a_wrong_path_is_told_as_such_to_a_browser_and_to_an_open_caller(start: Start) -> None:
    server = start("--open-loopback")
    browser = {"Accept": "text/html,*/*;q=0.8"}
    unknown = server.call("GET", "/nosuch", headers=browser)
    assert (unknown.status_code, unknown.headers["content-type"]) == (
        404,
        "text/html; charset=utf-8",
    )
    assert server.call("GET", "/checkpoints/", headers={}).status_code == 404
    assert server.call("PUT", "/checkpoints", headers={}).status_code == 405
    assert server.call("GET", "/metrics", headers={}).status_code == 401
    missing = server.call("GET", "/checkpoints/nosuch", headers={})
    assert "hardsave jobs list" in missing.json()["message"]
    assert "jobs.find()" not in missing.text


def test_a_tokens_file_that_cannot_be_read_is_told_to_strangers_without_its_path(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "data" / "hardsave").mkdir(parents=True, exist_ok=True)
    (tmp_path / "data" / "hardsave" / "tokens.json").write_text("{")
    wrong = server.call("GET", "/metrics", headers={"Authorization": "Bearer hs_wrong"})
    assert wrong.status_code == 503
    assert "tokens.json" not in wrong.text
    assert "tokens.json" in server.log()


def test_a_port_in_use_is_one_sentence(server: Server, tmp_path: Path) -> None:
    port = str(urlsplit(server.url).port)
    refused = hardsave(tmp_path, "serve", "--port", port, "--store", server.store)
    assert refused.returncode == 6
    assert f"127.0.0.1:{port} cannot be listened on" in refused.stderr
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    refused = hardsave(tmp_path, "serve", "--port", "0", "--store", "nosuch.db")
    assert refused.returncode == 3
    assert not (tmp_path / "project" / "nosuch.db").exists()


def test_without_the_extra_the_next_step_is_named(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    without = "import sys; sys.modules['uvicorn'] = None; from hardsave.cli.main import main; "
    done = subprocess.run(
        [sys.executable, "-c", f"{without} sys.exit(main(['serve', '--port', '0']))"],
        cwd=tmp_path / "project",
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 2
    assert "pip install 'hardsave[server]'" in done.stderr
