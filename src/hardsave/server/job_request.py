"""What callers ask for in the body of a request about jobs, checked. Pure.

Names that are not known are refused: a caller that sends `max_turns` must not believe that it
counts.
"""

from collections.abc import Collection, Mapping
from typing import Any

from hardsave.errors import Misuse
from hardsave.server.errors import Refused
from hardsave.server.route import Allowed
from hardsave.tuples import NamedTuple
from hardsave.vault.jobs.spec import check_url

_CALLBACK = '{"callback": {"url": "https://…"}}'


class Submission(NamedTuple):
    """A job that a caller wants to have queued."""

    task: str
    agent: str
    workspace: str
    callback: str | None


def resume_callback(body: Mapping[str, Any] | None) -> str | None:
    """The address that is told instead of the job's own; None: it stays as it is."""
    if not body:
        return None
    _check_names(body, {"callback"})
    return _callback(body)


def submission(body: Mapping[str, Any] | None) -> Submission:
    if not body:
        raise Misuse("send a JSON object with task, agent and workspace")
    _check_names(body, {"task", "agent", "workspace", "callback"})
    return Submission(
        task=_text(body, "task"),
        agent=_text(body, "agent"),
        workspace=_text(body, "workspace"),
        callback=_callback(body),
    )


def _check_names(body: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(body.keys() - known)
    if unknown:
        raise Misuse(f"{unknown[0]!r} is not known here; known: {', '.join(sorted(known))}")


def _text(body: Mapping[str, Any], name: str) -> str:
    text = body.get(name)
    if not isinstance(text, str) or not text.strip():
        raise Misuse(f"{name} is a text that is not empty")
    return text


def _callback(body: Mapping[str, Any]) -> str | None:
    if "callback" not in body:
        return None
    asked = body["callback"]
    if (
        not isinstance(asked, Mapping)
        or asked.keys() != {"url"}
        or not isinstance(asked["url"], str)
    ):
        raise Misuse(f"a callback is written as {_CALLBACK}")
    check_url(asked["url"])
    return asked["url"]


def permitted(asked: Submission, place: str | None, known: Allowed, *, tell: bool) -> Submission:
    """The same in the server's own spelling; refused if it is not on the server's list. `place` is
    where the workspace leads, through `..` and links. `tell`: the refusal names the list."""
    if asked.agent not in known.agents:
        raise _forbidden("agent", known.agents, tell=tell)
    own = [str(each) for each in known.workspaces]
    if place not in own:
        raise _forbidden("workspace", own, tell=tell)
    return asked._replace(workspace=place)


def _forbidden(what: str, known: Collection[str], *, tell: bool) -> Refused:
    listed = ", ".join(sorted(known)) or f"none, see 'hardsave serve --allow-{what}'"
    names = f": {listed}" if tell else ""
    return Refused(403, "not_allowed", f"this {what} is not one that this server allows{names}")
