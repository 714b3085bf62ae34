"""ETags for what never changes: the state and the files of a checkpoint. Only a purge changes them,
so its number is a part of the tag. Pure, but for reading that number."""

import hardsave
from hardsave.objects.hashing import digest
from hardsave.server.route import Answer, Call
from hardsave.vault.vault import last_purge

KEPT = "private, no-cache"  # kept by the caller, who asks each time whether it still holds


def tag_of(call: Call, *ids: str) -> str:
    """The ETag of an answer that depends on these checkpoints and on what was asked, and on nothing
    else."""
    by = hardsave.__version__  # another one may tell the same otherwise
    said = (by, last_purge(call.vault), call.vault.user, ids, sorted(call.query.items()))
    return f'"{digest(repr(said).encode("utf-8", "surrogatepass")).hex()[:32]}"'


def unchanged(call: Call, tag: str) -> Answer | None:
    """The answer to a caller that has it already; None if the caller has to be told."""
    given = call.headers.get("if-none-match", "")
    if tag in (each.strip().removeprefix("W/") for each in given.split(",")):
        return Answer(304, b"", headers=_headers(tag))
    return None


def kept(answer: Answer, tag: str) -> Answer:
    return answer._replace(headers=(*answer.headers, *_headers(tag)))


def _headers(tag: str) -> tuple[tuple[str, str], ...]:
    return ("ETag", tag), ("Cache-Control", KEPT)
