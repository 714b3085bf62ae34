"""The page about many machines: what it shows can be read, exists, and does what it says."""

import configparser
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from click.testing import CliRunner

import hardsave
from hardsave.cli.hints import Invocation
from hardsave.cli.main import cli
from hardsave.cli.tree import COMMANDS, Branch
from hardsave.defaults import LEASE_SECONDS, SERVER_CONNECTIONS, SERVER_SECONDS
from tests import postgres_server
from tests.docs.pages import DOCS, blocks

PAGE = DOCS / "howto" / "many-machines.md"
BASE = "postgresql://hardsave@db.example/"


def units() -> list[str]:
    return [each for each in blocks(PAGE, "ini") if each.startswith("[Unit]")]


def typed() -> list[list[str]]:
    """Every command of ours that the page shows whole, as words."""
    found = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    found += [
        line.partition("=")[2].replace("/srv/agents/.venv/bin/", "")
        for unit in units()
        for line in unit.splitlines()
        if line.startswith("ExecStart=")
    ]
    services = yaml.safe_load(blocks(PAGE, "yaml")[0])["services"].values()
    found += [shlex.join(each["command"]) for each in services]
    return [words for line in found if (words := shlex.split(line))[0] == "hardsave"]


def test_every_command_of_the_page_exists_with_its_options() -> None:
    assert len(typed()) >= 7
    for words in typed():
        options = [word for word in words[1:] if word.startswith("--")]
        names = [next(word for word in words[1:] if word in COMMANDS)]
        found = COMMANDS[names[0]]
        if isinstance(found, Branch):
            names.append(next(word for word in words[1:] if word in found.commands))
        shown = CliRunner().invoke(cli, [*names, "--help"], obj=Invocation(COMMANDS))
        assert shown.exit_code == 0, (words, shown.output)
        for option in options:
            assert option in shown.output, (words, option)


@pytest.mark.parametrize("unit", range(2))
def test_the_units_are_units(unit: int, tmp_path: Path) -> None:
    text = units()[unit]
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign] # as its documentation says
    found.read_string(text)
    assert found.sections() == ["Unit", "Service", "Install"]
    if shutil.which("systemd-analyze") is None:
        pytest.skip("NO SYSTEMD: its own check of the units is not run")
    program = "/srv/agents/.venv/bin/hardsave"
    plain = text.replace(program, "/bin/true").replace("User=agents", "User=root")
    path = tmp_path / "hardsave-unit@.service"
    path.write_text(plain.replace("WorkingDirectory=/srv/agents", "WorkingDirectory=/"))
    done = subprocess.run(
        ["systemd-analyze", "verify", f"{tmp_path}/hardsave-unit@1.service"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"SYSTEMD_UNIT_PATH": f"{tmp_path}:", "PATH": "/usr/bin:/bin"},
    )
    about_ours = [line for line in done.stderr.splitlines() if "hardsave-unit" in line]
    assert about_ours == [], done.stderr


def test_the_compose_file_names_what_it_has() -> None:
    found: dict[str, Any] = yaml.safe_load(blocks(PAGE, "yaml")[0])
    assert found.keys() == {"services", "volumes", "secrets"}
    for service in found["services"].values():
        assert set(service.get("secrets", ())) <= found["secrets"].keys()
        assert set(service.get("depends_on", ())) <= found["services"].keys()
        named = [each.partition(":")[0] for each in service.get("volumes", ())]
        assert set(named) <= found["volumes"].keys()
    stores = [each["environment"].get("HARDSAVE_STORE") for each in found["services"].values()]
    assert stores == [None, "postgresql://hardsave@db/agents", "postgresql://hardsave@db/agents"]


def test_pgbouncer_is_in_session_mode() -> None:
    (text,) = (each for each in blocks(PAGE, "ini") if "[pgbouncer]" in each)
    found = configparser.ConfigParser()
    found.read_string(text)
    assert found["pgbouncer"]["pool_mode"] == "session"


def test_the_figures_are_those_of_the_code() -> None:
    text = " ".join(PAGE.read_text().split())
    assert f"up to {SERVER_CONNECTIONS} for each process" in text
    assert f"repeated for up to {SERVER_SECONDS:.0f} s" in text
    help_text = CliRunner().invoke(cli, ["worker", "--help"], obj=Invocation(COMMANDS)).output
    (default,) = re.findall(r"--lease-seconds.*?default: ([\d.]+)", help_text, re.DOTALL)
    assert f"counts as alive: {float(default):.0f} by default" in text
    assert float(default) <= LEASE_SECONDS


@pytest.fixture
def role() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection that may make roles; what the page makes goes in the end."""
    with psycopg.connect(
        host=postgres_server.server(), user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        gone = ("DROP DATABASE IF EXISTS agents", "DROP DATABASE IF EXISTS restored")
        try:
            yield connection
        finally:
            for each in (*gone, "DROP ROLE IF EXISTS hardsave"):
                connection.execute(each)


def test_a_backup_as_the_page_makes_it_comes_back_whole(
    role: psycopg.Connection[tuple[Any, ...]], tmp_path: Path
) -> None:
    for statement in blocks(PAGE, "sql")[0].strip().splitlines():
        role.execute(statement.encode())
    here = f"?host={postgres_server.server()}&user=hardsave"

    def placed(text: str) -> str:
        for name in ("agents", "restored"):
            text = text.replace(f"{BASE}{name}", f"postgresql:///{name}{here}")
        return text.replace("--host=db.example", f"--host={postgres_server.server()}")

    role.execute("ALTER ROLE hardsave CREATEDB")  # or its owner makes the second database
    with hardsave.open(placed(f"{BASE}agents")) as vault:
        vault.timeline("main").save({"n": 1})
        vault.tasks.add("t1", "work")
    (script,) = (each for each in blocks(PAGE, "sh") if "pg_dump" in each)
    for line in script.splitlines():
        words = shlex.split(placed(line))
        if words[0] != "hardsave":
            program = postgres_server.tool(words[0])
            subprocess.run([program, *words[1:]], check=True, cwd=tmp_path, timeout=60)
    with hardsave.open(placed(f"{BASE}restored")) as vault:
        assert vault.store.verify().ok
        assert vault.timeline("main").load("@") == {"n": 1}
        assert vault.tasks.get("t1").text == "work"
