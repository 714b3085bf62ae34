"""Answers on their way out: as bytes, compressed where the caller takes that, with the headers that
every answer has."""

import zlib
from typing import TYPE_CHECKING

from hardsave.server.route import Answer
from hardsave.values.text import dumps

if TYPE_CHECKING:
    from starlette.types import Send

NO_STORE = "no-store"
_WORTH_IT = 1_024  # bytes: what is shorter fits into one packet as it is
_LEVEL = 3  # of zlib: half of the time of 4 and more, for at most a tenth more bytes
_GZIP = 16 + zlib.MAX_WBITS
_COMPRESSED = ("application/json", "application/problem+json", "text/")
_HEADERS = (
    (
        "Content-Security-Policy",
        (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'"
        ),
    ),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    # With `no-referrer` a browser sends `Origin: null` with the forms of our own pages, too.
    ("Referrer-Policy", "same-origin"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in _HEADERS]
_WITHOUT_BODY = (204, 304)


def in_bytes(answer: Answer, accepted: str | None = None) -> Answer:
    """The answer with its body as bytes. `accepted` is the header Accept-Encoding."""
    if answer.live is not None:
        return answer._replace(body=b"")
    body = answer.body
    if isinstance(body, str):
        body = body.encode("utf-8", "backslashreplace")
    elif not isinstance(body, bytes):
        body = dumps(body).encode()
    if not answer.media_type.startswith(_COMPRESSED):
        return answer._replace(body=body)
    headers = (*answer.headers, ("Vary", "Accept-Encoding"))
    if (answer.packed or len(body) >= _WORTH_IT) and takes_gzip(accepted):
        body = answer.packed or gzipped(body)
        headers += (("Content-Encoding", "gzip"),)
    return answer._replace(body=body, headers=headers)


def takes_gzip(accepted: str | None) -> bool:
    """Whether a caller reads gzip, as its Accept-Encoding says. Pure."""
    for each in (accepted or "").split(","):
        name, _, weight = each.partition(";")
        if name.strip().lower() == "gzip":
            return weight.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def gzipped(body: bytes, level: int = _LEVEL) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, _GZIP)
    return packer.compress(body) + packer.flush()


async def send_answer(answer: Answer, request_id: str, send: "Send") -> None:
    """Send what `in_bytes` gave; of what is live the head alone."""
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": _headers(answer, request_id),
        }
    )
    if answer.live is None:
        body = b"" if answer.status in _WITHOUT_BODY else answer.body
        await send({"type": "http.response.body", "body": body})


def _headers(answer: Answer, request_id: str) -> list[tuple[bytes, bytes]]:
    own = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
    if answer.live is None and answer.status not in _WITHOUT_BODY:
        own.append((b"content-length", b"%d" % len(answer.body)))
    if answer.status not in _WITHOUT_BODY:
        own.append((b"content-type", answer.media_type.encode("latin-1")))
    if all(name != b"cache-control" for name, _ in own):
        own.append((b"cache-control", NO_STORE.encode()))
    return [*_ENCODED, (b"x-request-id", request_id.encode()), *own]
