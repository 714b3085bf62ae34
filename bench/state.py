"""The benchmark: its sections, in the order in which they are shown."""

from collections.abc import Callable

from bench import (
    agent,
    backups,
    crowd,
    frameworks,
    hooks,
    million,
    on_postgres,
    on_redis,
    page,
    reading,
    server,
    start,
    tasks,
    workspace,
    writing,
)
from bench.report import Row
from bench.setting import Setting

Section = Callable[[Setting], list[Row]]

SECTIONS: dict[str, Section] = {
    "floors": writing.floors,
    "disk": writing.disk,
    "save": writing.save,
    "append": writing.append,
    "load": reading.load,
    "list": reading.listing,
    "compact": reading.compacted,
    "pages": reading.pages,
    "threads": crowd.threads,
    "processes": crowd.processes,
    "backup": backups.cost,
    "start": start.start,
    "steps": tasks.steps,
    "restart": tasks.restart,
    "claims": tasks.claims,
    "agent": agent.turns,
    "files": workspace.small,
    "many-files": workspace.large,
    "hook": hooks.hook,
    "postgres": on_postgres.on_postgres,
    "redis": on_redis.on_redis,
    "server": server.server,
    "page": page.page,
    "frameworks": frameworks.langgraph,
    "million": million.million,
}

ASKED_FOR = {"million"}
"""Sections that run only if `--only` names them: they take half an hour."""
