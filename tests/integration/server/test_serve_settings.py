"""Settings of `hardsave serve` by flag, variable and file, seen by what the server does."""

import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from tests.integration.server.conftest import Server, Start, environment
from tests.integration.server.test_serve import hardsave


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def queued(server: Server, agent: str, workspace: Path) -> int:
    body = {"task": "fix", "agent": agent, "workspace": str(workspace)}
    return server.call("POST", "/webhook", json=body).status_code


def write(tmp_path: Path, *lines: str) -> None:
    folder = Path(environment(tmp_path)["XDG_CONFIG_HOME"], "hardsave")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text("\n".join(["server:", *(f"  {each}" for each in lines)]))


def test_the_file_is_overridden_by_a_variable_and_that_by_a_flag(
    start: Start, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in ("one", "two", "three")]
    for each in places:
        each.mkdir()
    one, two, three = places
    url = "https://file.example.com/hardsave"
    write(tmp_path, "allow_agent: [of_file]", f"allow_workspace: [{one}]", f"public_url: {url}")
    by_file = start()
    assert by_file.link.startswith(f"{url}/login?key=")
    assert [queued(by_file, name, one) for name in ("of_file", "other")] == [202, 403]
    by_variable = start(
        HARDSAVE_SERVE_ALLOW_AGENT="first, second",
        HARDSAVE_SERVE_ALLOW_WORKSPACE=f"{two}:{three}",
        HARDSAVE_SERVE_PUBLIC_URL="http://variable.example.com",
    )
    assert by_variable.link.startswith("http://variable.example.com/login?key=")
    assert [queued(by_variable, name, two) for name in ("first", "second")] == [202, 202]
    assert [queued(by_variable, "first", each) for each in (three, one)] == [202, 403]
    assert queued(by_variable, "of_file", two) == 403
    by_flag = start("--allow-agent", "flag", HARDSAVE_SERVE_ALLOW_AGENT="first")
    assert [queued(by_flag, name, one) for name in ("flag", "first", "of_file")] == [202, 403, 403]


def test_the_port_and_who_is_let_in_are_said_by_variables(start: Start, tmp_path: Path) -> None:
    port = free_port()
    write(tmp_path, "open_loopback: true", "port: 1")
    server = start(HARDSAVE_SERVE_PORT="1")  # --port 0 of every server of these tests counts
    assert urlsplit(server.url).port not in (None, 1)
    assert httpx2.get(f"{server.url}/checkpoints").status_code == 200
    closed = start("--no-open-loopback", "--port", port)
    assert urlsplit(closed.url).port == int(port)
    assert httpx2.get(f"{closed.url}/checkpoints").status_code == 401


def test_a_variable_that_cannot_be_is_named(start: Start, tmp_path: Path) -> None:
    start().stop()
    wrong = hardsave(tmp_path, "serve", HARDSAVE_SERVE_PORT="many")
    assert wrong.returncode == 2
    assert "HARDSAVE_SERVE_PORT" in wrong.stderr
    for given, said in (
        ({"HARDSAVE_SERVE_PUBLIC_URL": "tools.example.com"}, "a public URL is like"),
        ({"HARDSAVE_SERVE_PUBLIC_URL": "https://box/checkpoints"}, "path of the server itself"),
        ({"HARDSAVE_SERVE_ALLOW_WORKSPACE": "nosuch"}, "nosuch"),
    ):
        refused = hardsave(tmp_path, "serve", "--port", "0", **given)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    write(tmp_path, "allow_workspace: [/no/such/directory]")
    refused = hardsave(tmp_path, "serve", "--port", "0")
    assert (refused.returncode, "/no/such/directory" in refused.stderr) == (2, True)
    write(tmp_path, "open_loopback: true", "public_url: https://box")
    refused = hardsave(tmp_path, "serve", "--port", "0")
    assert (refused.returncode, "--open-loopback" in refused.stderr) == (2, True)


def test_a_store_that_was_typed_is_served_where_all_projects_usually_are(
    start: Start, tmp_path: Path
) -> None:
    write(tmp_path, "all_projects: true")
    server = start(HARDSAVE_SERVE_ALL_PROJECTS="yes")  # with --store, like every server here
    assert server.call("GET", "/checkpoints").status_code == 200
    both = hardsave(tmp_path, "serve", "--all-projects", "--store", server.store)
    assert (both.returncode, "leave one out" in both.stderr) == (2, True)
