"""The conformance suite of MCP against `/mcp`: what it finds is what a file of ours says, exactly.

It is written for a server made for it, with tools, resources and prompts of fixed names. So the
file says of each check that cannot pass why, and a check that changes sides fails the test.
"""

import json
import os
import re
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.integration.server.conftest import LIMIT, Server

SUITE = os.environ.get("HARDSAVE_TEST_MCP_CONFORMANCE")
# A revision with sessions, which most clients speak, and the one without them.
REVISIONS = (("--spec-version", "2025-11-25", "--suite", "all"), ("--requirements", "2026-07-28"))
PASSED, FAILED = {"SUCCESS"}, {"FAILURE", "WARNING"}  # the others could not be tried
_AT = re.compile(r"-\d{4}(-\d\d){2}T[\d-]+Z$")  # behind a scenario in the name of its folder
_OF_ONE_CONNECTION = {"connection", "content-length", "transfer-encoding"}


@contextmanager
def with_token(server: Server) -> Iterator[str]:
    """An address that is the server's `/mcp` with its token, which the suite cannot send."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            there = urlsplit(server.url).netloc
            with closing(HTTPConnection(there, timeout=LIMIT)) as connection:
                connection.putrequest(
                    self.command, self.path, skip_host=True, skip_accept_encoding=True
                )
                for name, value in self.headers.items():
                    if name.lower() not in _OF_ONE_CONNECTION:
                        connection.putheader(name, value.replace(here, there))
                connection.putheader("Authorization", server.bearer["Authorization"])
                connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                answer = connection.getresponse()
                told = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _OF_ONE_CONNECTION:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        do_GET = do_POST = do_DELETE = forward

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        here = f"127.0.0.1:{proxy.server_port}"
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://{here}/mcp"
        finally:
            proxy.shutdown()


def suite(folder: Path, url: str, *options: str) -> "subprocess.Popen[str]":
    assert SUITE is not None
    beside = Path(SUITE).parent  # the Node of the machine may be too old for it
    return subprocess.Popen(
        [SUITE, "server", "--url", url, "--output-dir", str(folder), *options],
        env={**os.environ, "PATH": f"{beside}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def found(folder: Path, statuses: set[str]) -> set[str]:
    """Checks of such a status, each as `scenario: check`."""
    return {
        f"{_AT.sub('', file.parent.name).removeprefix('server-')}: {check['id']}"
        for file in folder.rglob("checks.json")
        for check in json.loads(file.read_text())
        if check["status"] in statuses
    }


@pytest.mark.skipif(SUITE is None, reason="HARDSAVE_TEST_MCP_CONFORMANCE names no MCP conformance")
def test_what_the_suite_finds_is_what_the_file_says(server: Server, tmp_path: Path) -> None:
    with with_token(server) as url:
        at_work = [suite(tmp_path / options[1], url, *options) for options in REVISIONS]
        told = [each.communicate(timeout=4 * LIMIT)[0] for each in at_work]
    said = tomllib.loads(Path(__file__).with_name("mcp_conformance.toml").read_text())
    fails = [check for group in said["fails"] for check in group["checks"]]
    assert sorted(found(tmp_path, FAILED)) == sorted(fails), "\n".join(told)
    passed = {each for each in found(tmp_path, PASSED) if not each.endswith(": wire-schema-valid")}
    assert sorted(passed - {*fails}) == sorted(said["passes"]), "\n".join(told)
