import asyncio
import gzip
import json
from typing import Any

import pytest

from hardsave.server.live.asked import Asked
from hardsave.server.route import Answer
from hardsave.server.sending import in_bytes, send_answer, takes_gzip

LONG = {"text": "abc" * 1_000}


def sent(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """What a client gets of an answer: its status, its headers, its body."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    asyncio.run(send_answer(answer, "id-1", send))
    start, *rest = messages
    assert start["type"] == "http.response.start"
    assert [each.get("more_body", False) for each in rest] in ([], [False])
    names = [name for name, _ in start["headers"]]
    assert len(set(names)) == len(names)
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, b"".join(each["body"] for each in rest)


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("GZip", True),
        ("deflate, gzip;q=0.5", True),
        ("br,gzip", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("identity", False),
        ("xgzip", False),
    ],
)
def test_gzip_is_for_callers_that_take_it(accepted: str | None, takes: bool) -> None:
    assert takes_gzip(accepted) is takes
    found = in_bytes(Answer(body=LONG), accepted)
    assert (("Content-Encoding", "gzip") in found.headers) is takes
    body = gzip.decompress(found.body) if takes else found.body
    assert json.loads(body) == LONG


def test_what_is_short_or_no_text_is_not_compressed() -> None:
    assert in_bytes(Answer(body={"a": 1}), "gzip").body == b'{"a": 1}'
    raw = Answer(body=b"a" * 10_000, media_type="application/octet-stream")
    assert in_bytes(raw, "gzip") == raw


def test_caches_are_told_that_the_coding_depends_on_the_caller() -> None:
    for accepted in (None, "gzip"):
        headers = sent(in_bytes(Answer(body=LONG), accepted))[1]
        assert headers["vary"] == "Accept-Encoding"


def test_every_answer_says_how_long_it_is_and_which_request_it_is_of() -> None:
    status, headers, body = sent(in_bytes(Answer(201, LONG), "gzip"))
    assert status == 201
    assert headers["content-length"] == str(len(body))
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == "id-1"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_an_answer_may_be_kept_where_it_says_so() -> None:
    kept = Answer(body={}, headers=(("Cache-Control", "private, no-cache"), ("ETag", '"x"')))
    headers = sent(in_bytes(kept))[1]
    assert (headers["cache-control"], headers["etag"]) == ("private, no-cache", '"x"')


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_has_neither_length_nor_type(status: int) -> None:
    found = sent(in_bytes(Answer(status, b"", headers=(("ETag", '"x"'),))))
    assert (found[0], found[2]) == (status, b"")
    assert not {"content-length", "content-type"} & found[1].keys()


def test_of_what_is_live_the_head_alone_is_sent_and_it_has_no_length() -> None:
    live = Asked("project", None, "token")
    answer = in_bytes(Answer(media_type="text/event-stream", live=live), "gzip")
    _, headers, body = sent(answer)
    assert body == b""
    assert not {"content-length", "content-encoding"} & headers.keys()
    assert headers["content-type"] == "text/event-stream"


def test_a_text_with_half_of_a_character_is_sent_all_the_same() -> None:
    found = in_bytes(Answer(body="a\udce9b", media_type="text/plain; charset=utf-8"))
    assert found.body == b"a\\udce9b"
    assert json.loads(in_bytes(Answer(body={"path": "caf\udce9"})).body) == {
        "path": {"$text": "caf\\udce9"}
    }
