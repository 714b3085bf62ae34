"""What a caller expects before an act: `If-Match`, and the key of a request that may come twice."""

from collections.abc import Iterator
from contextlib import contextmanager

from hardsave import ANY_HEAD, checkpoint_id
from hardsave.errors import Conflict, Misuse
from hardsave.server.errors import Refused
from hardsave.server.route import Answer, Call
from hardsave.stores.requests import OtherRequest
from hardsave.vault import request_key
from hardsave.vault.save.request import AnyHead

_LONGEST_KEY = 200
REPLAYED = ("Idempotent-Replayed", "true")


def key_of(call: Call) -> str | None:
    """The key of this request; None if it has none."""
    key = call.headers.get("idempotency-key")
    if key is None:
        return None
    if not (0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()):
        raise Misuse(
            f"Idempotency-Key is 1 to {_LONGEST_KEY} printable ASCII characters that name this "
            "request; a random UUID is one"
        )
    return key


def key_of_act(call: Call) -> str | None:
    """The key of any act but a save, which the library knows by its key. A save is known by the id
    of its checkpoint: `OtherRequest` if the key was that of one."""
    key = key_of(call)
    if key is not None and call.vault.knows(saved_as(key)):
        raise OtherRequest(
            f"this key is that of another request, the save of {saved_as(key)}; give each request "
            "its own"
        )
    return key


def saved_as(key: str) -> str:
    """The id of the checkpoint that is saved under a key."""
    return checkpoint_id("request", key)


def expected(call: Call) -> str | None:
    """What `If-Match` names: a checkpoint or a plan; None where anything will do, or none came."""
    given = call.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = given.strip()
    if not (len(found) > 2 and found[0] == found[-1] == '"' and '"' not in found[1:-1]):
        raise Misuse('If-Match is a head in quotation marks, "chk_…", the plan of a preview, or *')
    return found[1:-1]


def expected_head(call: Call) -> str | AnyHead:
    return expected(call) or ANY_HEAD


def check_given(call: Call, next_step: str) -> None:
    """An act that replaces what the caller has not seen says what it builds on."""
    if "if-match" not in call.headers:
        raise Refused(428, "precondition_required", f"send If-Match: {next_step}")


@contextmanager
def precondition(call: Call) -> Iterator[None]:
    """A `Conflict` with what If-Match names is a precondition that has failed; one of the key of
    the request has nothing to do with that."""
    try:
        yield
    except OtherRequest:
        raise
    except Conflict as error:
        if expected(call) is None:
            raise
        raise Refused(412, "precondition", str(error)) from error


class Repeats:
    """Whether the requests of a block were answered from what was done before."""

    def __init__(self) -> None:
        self._seen: list[bytes] = []

    def answered(self, answer: Answer) -> Answer:
        return answer._replace(headers=(*answer.headers, REPLAYED)) if self._seen else answer


@contextmanager
def noting_repeats() -> Iterator[Repeats]:
    noted = Repeats()
    token = request_key.repeats.set(noted._seen)
    try:
        yield noted
    finally:
        request_key.repeats.reset(token)
