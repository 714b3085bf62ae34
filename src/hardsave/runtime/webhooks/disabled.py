"""Receivers that want no more callbacks: they have answered 410 Gone. The ledger of the store keeps
them, so that every worker knows, on any host, also after a restart.

One is known by the id of its address, and shown by its host: the rest of an address often works as
a key.
"""

import shlex
from datetime import datetime
from typing import Any

from hardsave.errors import NotFound
from hardsave.objects.hashing import digest
from hardsave.runtime.webhooks.secret_file import receiver_of
from hardsave.tasks.ledger import Tasks, change_value, value_of
from hardsave.tuples import NamedTuple

_KIND = "callbacks_disabled"
_MOST = 500  # the oldest are forgotten then, and answer 410 once more


class Disabled(NamedTuple):
    """An address that no callback is sent to."""

    id: str
    receiver: str
    since: datetime


def how_to_enable(id: str, user: str | None) -> str:
    """What to type, for messages. The ledger is that of one user."""
    whose = "" if user is None else f" --user {shlex.quote(user)}"
    return f"to enable it again, type: hardsave webhook enable {id}{whose}"


def address_id(url: str) -> str:
    """Long enough that no other address can be found that has the same."""
    return digest(url.encode("utf-8", "surrogatepass"))[:8].hex()


def listed(tasks: Tasks) -> list[Disabled]:
    """All of them, in the order in which they were disabled."""
    return [_disabled(id, about) for id, about in _known(_value(tasks)).items()]


def found(tasks: Tasks, url: str) -> Disabled | None:
    """The address, if it is disabled."""
    id = address_id(url)
    about = _known(_value(tasks)).get(id)
    return None if about is None else _disabled(id, about)


def disable(tasks: Tasks, url: str, now: datetime) -> Disabled:
    """Send nothing more there; one that is disabled already stays so since then."""
    id = address_id(url)
    new = {id: {"receiver": receiver_of(url), "since": now.isoformat()}}

    def with_it(value: Any) -> Any:
        known = _known(value)
        more = {} if id in known else new
        return {"by": dict(list({**known, **more}.items())[-_MOST:])}

    return _disabled(id, _known(change_value(tasks, _KIND, with_it))[id])


def enable(tasks: Tasks, id_or_url: str) -> Disabled:
    """Send callbacks there again."""
    known = _known(_value(tasks))
    id = id_or_url if id_or_url in known else address_id(id_or_url)
    if id not in known:
        raise NotFound(
            "no callback to this address is disabled; 'hardsave webhook list' lists those that are"
        )
    change_value(
        tasks,
        _KIND,
        lambda value: {"by": {each: at for each, at in _known(value).items() if each != id}},
    )
    return _disabled(id, known[id])


def _value(tasks: Tasks) -> Any:
    return value_of(tasks, _KIND)


def _known(value: Any) -> dict[str, Any]:
    return {} if value is None else dict(value["by"])


def _disabled(id: str, about: Any) -> Disabled:
    return Disabled(id, about["receiver"], datetime.fromisoformat(about["since"]))
