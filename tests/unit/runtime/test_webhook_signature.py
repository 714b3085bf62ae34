"""The signature of a callback: as the specification has it, and what a receiver refuses."""

import base64
import json
import time
from email.message import Message
from typing import Any

import pytest

from hardsave.errors import Misuse
from hardsave.runtime import verify_webhook
from hardsave.runtime.webhooks.signature import (
    header_text,
    key_of,
    new_secret,
    signed,
    verified,
)

# The known answer of the specification's own libraries.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 # published
ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
AT = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {"webhook-id": ID, "webhook-timestamp": str(AT), "webhook-signature": SIGNATURE}


def verify(
    secrets: Any = SECRET,
    headers: Any = HEADERS,
    body: Any = BODY,
    *,
    now: float = AT,
    tolerance: float = 300,
) -> dict[str, Any]:
    return verified(secrets, headers, body, now, tolerance)


def test_a_callback_is_signed_as_the_specification_has_it() -> None:
    assert signed(ID, AT, BODY, [key_of(SECRET)]) == HEADERS


def test_what_the_specification_has_signed_is_verified() -> None:
    assert verify() == {"test": 2432232314}


def test_a_callback_has_a_signature_for_each_secret_and_one_is_enough() -> None:
    old, new, other = new_secret(), new_secret(), new_secret()
    headers = signed(ID, AT, BODY, [key_of(old), key_of(new)])
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secrets in (old, new, [other, new], (old, new), iter([old])):
        assert verify(secrets, headers) == {"test": 2432232314}
    with pytest.raises(Misuse, match="no signature"):
        verify(other, headers)


def test_a_callback_is_verified_at_the_time_of_this_machine() -> None:
    headers = signed(ID, int(time.time()), BODY, [key_of(SECRET)])
    assert verify_webhook(SECRET, headers, BODY) == {"test": 2432232314}
    with pytest.raises(Misuse, match="too old"):
        verify_webhook(SECRET, HEADERS, BODY)


def test_names_of_headers_are_known_in_any_case_and_of_any_framework() -> None:
    message = Message()
    for name, value in HEADERS.items():
        message[name.title()] = value
    assert verify(headers=message) == {"test": 2432232314}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("value", [None, ""])
def test_a_request_without_one_of_the_headers_is_refused(name: str, value: str | None) -> None:
    headers = {key: text for key, text in HEADERS.items() if key != name}
    if value is not None:
        headers[name] = value
    with pytest.raises(Misuse, match=f"no header {name}"):
        verify(headers=headers)


@pytest.mark.parametrize(
    ("seconds", "why"), [(301, "too old: .* 301 s apart"), (-301, "too far in the future")]
)
def test_a_request_that_is_too_old_or_of_the_future_is_refused(seconds: int, why: str) -> None:
    with pytest.raises(Misuse, match=why):
        verify(now=AT + seconds)
    assert verify(now=AT + seconds * 300 // 301)
    assert verify(now=AT + seconds, tolerance=400)


@pytest.mark.parametrize("text", ["soon", "1.6e9", "-5", "+5", " 5", "\u0665", "9" * 400])
def test_a_timestamp_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="no number of seconds"):
        verify(headers={**HEADERS, "webhook-timestamp": text})


@pytest.mark.parametrize("tolerance", [-1, float("nan"), float("inf")])
def test_a_tolerance_that_is_none_is_refused(tolerance: float) -> None:
    with pytest.raises(Misuse, match="tolerance_seconds"):
        verify(tolerance=tolerance)


@pytest.mark.parametrize(
    "signature",
    [
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=",
        SIGNATURE.removeprefix("v1,"),
        SIGNATURE.replace("v1,", "v2,"),
        "v1a,abc v1,",
        "v1",
        "é\ud800",
        "v1,é",
    ],
)
def test_a_wrong_signature_is_refused(signature: str) -> None:
    with pytest.raises(Misuse, match="no signature"):
        verify(headers={**HEADERS, "webhook-signature": signature})


def test_signatures_of_other_kinds_stand_beside_ours() -> None:
    both = f"v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZ v9 {SIGNATURE}"
    assert verify(headers={**HEADERS, "webhook-signature": both})


@pytest.mark.parametrize(
    "changed",
    [
        {"body": BODY + b" "},
        {"headers": {**HEADERS, "webhook-id": ID + "x"}},
        {"headers": {**HEADERS, "webhook-id": "\ud800"}},
        {"headers": {**HEADERS, "webhook-timestamp": str(AT + 1)}},
    ],
)
def test_what_was_changed_on_the_way_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match="no signature"):
        verify(**changed)


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused_although_it_is_signed(body: bytes) -> None:
    headers = signed(ID, AT, body, [key_of(SECRET)])
    with pytest.raises(Misuse, match="the body is signed, but is no JSON"):
        verify(headers=headers, body=body)


def test_a_body_that_was_parsed_already_is_refused() -> None:
    with pytest.raises(Misuse, match="the bytes that were received"):
        verify(body=json.loads(BODY))


def test_to_verify_takes_a_secret() -> None:
    with pytest.raises(Misuse, match="at least one secret"):
        verify([])


# Secrets


def test_a_new_secret_is_another_each_time_and_long_enough() -> None:
    made = {new_secret() for _ in range(9)}
    assert len(made) == 9
    assert {len(key_of(each)) for each in made} == {32}


@pytest.mark.parametrize("size", [24, 25, 26, 64])
def test_a_secret_has_24_to_64_bytes_padded_or_not(size: int) -> None:
    text = "whsec_" + base64.b64encode(bytes(range(size))).decode()
    assert key_of(text) == key_of(text.rstrip("=")) == bytes(range(size))


@pytest.mark.parametrize(
    ("secret", "why"),
    [
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "does not begin so"),
        ("", "does not begin so"),
        (5, "does not begin so"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", "no base64"),
        ("whsec_é", "no base64"),
        ("whsec_MfKQ9", "no base64"),
        ("whsec_", "has 0"),
        ("whsec_" + base64.b64encode(bytes(23)).decode(), "has 23"),
        ("whsec_" + base64.b64encode(bytes(65)).decode(), "has 65"),
    ],
)
def test_what_is_no_secret_is_refused_and_not_shown(secret: Any, why: str) -> None:
    with pytest.raises(Misuse, match=why) as told:
        key_of(secret)
    assert "MfKQ9" not in str(told.value)


# Ids


@pytest.mark.parametrize(
    ("id", "text"),
    [
        ("fix/notice-1a2b3c4d", "fix/notice-1a2b3c4d"),
        ("fix~2:(a)_b@c", "fix~2:(a)_b@c"),
        ("v1.2/notice", "v1%2E2/notice"),
        (" a b", "%20a%20b"),
        ("100%", "100%25"),
        ("é\r\n\ud800", "%C3%A9%0D%0A%ED%A0%80"),
    ],
)
def test_an_id_is_sent_as_a_header_can_carry_it(id: str, text: str) -> None:
    assert header_text(id) == text
    headers = signed(text, AT, BODY, [key_of(SECRET)])
    assert verify(headers=headers)
