"""`hardsave mcp`: checkpoints as tools of an MCP server, for agents."""

import importlib.util
import sys

import click

from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.errors import Misuse


@command(
    "mcp",
    examples="""
        hardsave mcp
        hardsave mcp --allow-rewind
        claude mcp add hardsave -- hardsave mcp
        codex mcp add hardsave -- hardsave mcp
    """,
    takes=("--store", "--timeline", "-C"),
    timeline_help="The timeline; may be new. Else the agent's session, or what last saved here.",
)
@click.option("--allow-rewind", is_flag=True, help="Let agents rewind files, and undo that.")
def mcp(session: Session, allow_rewind: bool) -> None:
    """Serve save, log, show, diff, search and rewind to agents, over MCP.

    Speaks on stdin and stdout, is started by the agent itself, and is about the directory that it
    is started in. A rewind is a preview unless it is allowed; it brings back files, and only those
    that the session has changed: the conversation goes on.
    """
    if importlib.util.find_spec("mcp") is None:
        raise Misuse("'hardsave mcp' needs one more package: pip install 'hardsave[mcp]'")
    if sys.stdin.isatty():
        session.out.say("this speaks MCP with an agent, which starts it; to install it, type:")
        session.out.say("  claude mcp add hardsave -- hardsave mcp")
        session.out.say("  codex mcp add hardsave -- hardsave mcp")
    from hardsave.cli.mcp_server import server
    from hardsave.cli.mcp_server.tools import Common

    server.run(Common(session.settings.store, session.settings.timeline, allow_rewind))


COMMANDS = {"mcp": mcp}
