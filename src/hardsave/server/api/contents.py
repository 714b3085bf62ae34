"""What a checkpoint holds: messages, state, files. All of it never changes, and has an ETag."""

import re
from typing import Any

from hardsave import Checkpoint, StateList
from hardsave.defaults import MAX_ANSWER_BYTES
from hardsave.errors import Misuse, NotFound
from hardsave.objects.view import plain
from hardsave.page import cursor_of, place_of
from hardsave.server.api import data, refs
from hardsave.server.api.caching import kept, tag_of, unchanged
from hardsave.server.api.shapes import (
    ANY,
    MESSAGE,
    TEXT,
    WHOLE,
    also,
    named,
    or_null,
    page_of,
    shape,
)
from hardsave.server.errors import Refused
from hardsave.server.fields import CURSOR, LIMIT, PAGED, Field, flag, number, path
from hardsave.server.route import Answer, Call, Route, Spec
from hardsave.values import messages
from hardsave.values.spelling import from_json, to_json
from hardsave.vault.checkpoint import reached

BYTES = "application/octet-stream"
_FAR = 1 << 53  # further than any list is long
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


def show_messages(call: Call) -> Answer:
    one = refs.checkpoint(call)
    tag = tag_of(call, one.id)
    if same := unchanged(call, tag):
        return same
    found = messages.of(one.state)
    key, items = (None, ()) if found is None else found
    first = _first(call, f"messages {one.id}", len(items))
    end = min(first + call.asked["limit"], len(items))
    shown = [_message(call, at, item) for at, item in enumerate(items[first:end], first)]
    following = cursor_of(f"messages {one.id}", end) if end < len(items) else None
    body = {"items": shown, "next": following, "total": len(items), "key": key}
    return kept(Answer(body=body), tag)


def _first(call: Call, listing: str, total: int) -> int:
    """Where a page of a list begins: at a cursor, or at a number, which may count from the end."""
    start: int = call.asked["start"]
    if call.asked.get("cursor") is None:
        return max(0, total + start) if start < 0 else min(start, total)
    place = place_of(listing, call.asked["cursor"])
    if place is None or not place.isdecimal() or start:
        raise Misuse("cursor is the `next` of the page before, with the same ref and no start")
    return min(int(place), total)


def _message(call: Call, at: int, item: Any) -> dict[str, Any]:
    full = call.asked["full"]
    told = data.message(at, messages.read(item), most=None if full else call.asked["most"])
    return {**told, "value": to_json(plain(item))} if full else told


def show_state(call: Call) -> Answer:
    one = refs.checkpoint(call)
    tag = tag_of(call, one.id)
    if same := unchanged(call, tag):
        return same
    path = [from_json(step) for step in call.asked["path"] or ()]
    value = reached(one, path)
    is_list = isinstance(value, list | StateList)
    total = len(value) if is_list else None
    if is_list:
        first = _first(call, "", len(value))
        limit = call.asked["limit"]
        value = value[first : len(value) if limit is None else first + limit]
    elif call.asked["start"] or call.asked["limit"] is not None:
        raise Misuse("start and limit are about a list, and there is none at this path")
    told = to_json(plain(value))
    told = data.with_short_texts(told) if call.asked["brief"] else told
    body = {"path": to_json(path), "total": total, "value": told}
    return kept(Answer(body=body), tag)


def list_files(call: Call) -> Answer:
    one = refs.with_files(refs.checkpoint(call))
    tag = tag_of(call, one.id)
    if same := unchanged(call, tag):
        return same
    files = one.files
    assert files is not None
    found = files.directory(
        call.asked["path"] or "", limit=call.asked["limit"], after=call.asked["cursor"]
    )
    return kept(Answer(body=data.page(found, data.file, files_id=files.id)), tag)


def read_file(call: Call) -> Answer:
    one = refs.with_files(refs.checkpoint(call))
    tag = tag_of(call, one.id)
    if same := unchanged(call, tag):
        return same
    size = _size(one, call.asked["path"])
    wanted = call.headers.get("range")
    first, end = (0, size) if wanted is None else _range(wanted, size)
    if end - first > MAX_ANSWER_BYTES:
        raise Refused(
            413,
            "too_large",
            f"the file has {size:,} bytes: ask for {MAX_ANSWER_BYTES:,} at most at a time, with "
            "'Range: bytes=FIRST-LAST'",
        )
    assert one.files is not None
    content = one.files.read(call.asked["path"], start=first, length=end - first)
    headers = (("Content-Disposition", "attachment"), ("Accept-Ranges", "bytes"))
    if wanted is None:
        return kept(Answer(200, content, BYTES, headers), tag)
    part = ("Content-Range", f"bytes {first}-{end - 1}/{size}")
    return kept(Answer(206, content, BYTES, (*headers, part)), tag)


def _size(one: Checkpoint, path: str) -> int:
    assert one.files is not None
    found = next(iter(one.files.list(path)), None) if path in one.files else None
    if found is None:
        raise NotFound(
            f"{one.timeline}:{one.seq} has no file {path!r}; GET /api/v1/files lists what it has"
        )
    if found.kind != "file" or found.path != path.strip("/"):
        raise Misuse(f"{path!r} is a {found.kind}, not a file")
    return found.size


def _range(header: str, size: int) -> tuple[int, int]:
    """From which byte on, and up to which, that one not included."""
    found = _RANGE.fullmatch(header.replace(" ", ""))
    low, high = found.groups() if found else ("", "")
    if not (low or high):
        raise Misuse(f"a range is written as 'Range: bytes=0-499', not {header[:60]!r}")
    if not low:  # the last so many
        first, end = max(0, size - int(high)), size
    else:
        first, end = int(low), min(size, int(high) + 1 if high else size)
    if first >= end:
        headers = (("Content-Range", f"bytes */{size}"),)
        raise Refused(416, "range", f"the file has {size:,} bytes", headers=headers)
    return first, end


_START = number("start", "The first; below 0: counted from the end.", -_FAR, _FAR, default=0)
_MOST = number(
    "most", "How many characters of each text, unless full.", 1, 1_000_000, default=data.CUT
)
_STATE_PATH = Field(
    "path",
    {"type": "array", "maxItems": 1_000},
    'A JSON list of keys and indexes, such as ["messages",-1]; none is the whole state.',
)
_STATE_LIMIT = number("limit", "How many items of a list at most.", 1, _FAR)
_FILE_PATH = path("path", "A path inside of the workspace.")
_MESSAGE = also(MESSAGE, value=ANY)
_MESSAGE = {**_MESSAGE, "required": MESSAGE["required"]}

ROUTES = (
    Route(
        "GET",
        "/api/v1/messages",
        show_messages,
        "read",
        spec=Spec(
            "Messages of a checkpoint's conversation, by their numbers from 0",
            page_of(_MESSAGE, total=WHOLE, key=or_null(TEXT)),
            (
                *refs.AT,
                _START,
                *PAGED,
                _MOST,
                flag("full", "Whole texts, and the messages as saved."),
            ),
            headers=("If-None-Match",),
        ),
    ),
    Route(
        "GET",
        "/api/v1/state",
        show_state,
        "read",
        lane="slow",
        spec=Spec(
            "The state of a checkpoint, or what lies at a path of it",
            shape(path=ANY, total=or_null(WHOLE), value=ANY),
            (*refs.AT, _STATE_PATH, _START, _STATE_LIMIT, flag("brief", "Cut long texts.")),
            headers=("If-None-Match",),
        ),
    ),
    Route(
        "GET",
        "/api/v1/files",
        list_files,
        "read",
        spec=Spec(
            "What lies in one directory of a checkpoint's files",
            page_of(named("File"), files_id=TEXT),
            (*refs.AT, _FILE_PATH, LIMIT, CURSOR),
            headers=("If-None-Match",),
        ),
    ),
    Route(
        "GET",
        "/api/v1/file",
        read_file,
        "read",
        spec=Spec(
            "The bytes of a file",
            {"type": "string", "format": "binary"},
            (*refs.AT, _FILE_PATH._replace(needed=True)),
            media_type=BYTES,
            headers=("If-None-Match", "Range"),
        ),
    ),
)
