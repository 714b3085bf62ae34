"""What is taken out of values, what stays, and what it costs to look."""

import dataclasses
import datetime
import enum
import re
import time
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.errors import Misuse
from hardsave.objects.codec import Codec
from hardsave.objects.redaction import Redaction, Rule
from hardsave.objects.secrets import RULES, built_in
from hardsave.objects.types import Types
from tests.unit.objects.planted import secrets, settings
from tests.unit.objects.strategies import ZONES, storable

REDACTION = built_in()
CODEC = Codec(Types(), redaction=REDACTION)
PLAIN = Codec(Types())
TOKEN = secrets()["github-token"]
STANDS = "[redacted:github-token]"


def test_every_rule_is_planted_and_every_name_is_its_own() -> None:
    names = [rule.name for rule in RULES]
    assert sorted(names) == sorted(secrets().keys() | settings().keys())
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rule", secrets())
@pytest.mark.parametrize("around", ["{}", "my key is {}, keep it", '{{"key": "{}"}}', "é\n{}\né"])
def test_a_secret_is_replaced_by_the_name_of_its_rule(rule: str, around: str) -> None:
    secret = secrets()[rule]
    assert REDACTION.text(around.format(secret)) == around.format(f"[redacted:{rule}]")


@pytest.mark.parametrize("rule", settings())
def test_a_secret_in_its_setting_is_replaced_and_the_setting_stays(rule: str) -> None:
    secret, text = settings()[rule]
    clean = REDACTION.text(f"before {text} after")
    assert secret not in clean
    assert f"[redacted:{rule}]" in clean
    assert clean.startswith("before ")
    assert clean.endswith(" after")


@pytest.mark.parametrize("rule", [*secrets(), *settings()])
def test_what_was_redacted_stays_as_it_is(rule: str) -> None:
    text = {**secrets(), **{name: text for name, (_, text) in settings().items()}}[rule]
    once = REDACTION.text(text)
    assert REDACTION.text(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "def login(password: str, token: str | None = None) -> Session:",
        "max_tokens=1000, token_count: 12345678901234567890",
        "password = get_password_from_environment(name)",
        "token = os.environ['GITHUB_TOKEN']",
        "see https://example.com:8080/a@b and mailto:kim@example.com",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "sk-learn and scikit-learn, task-list-with-many-words, risk-assessment-of-2024",
        "the secret of success is patience; the token: a small thing",
        "Authorization: see the manual",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert REDACTION.text(text) is text


def test_a_long_run_that_begins_like_a_token_everywhere_is_no_burden() -> None:
    text = "eyJ" * 80_000
    began = time.process_time()
    assert built_in().text(text) == text
    assert time.process_time() - began < 8  # twenty and more, if it grew with the square


def test_a_private_key_that_was_cut_off_is_taken_out_to_the_end() -> None:
    _, text = settings()["private-key"]
    assert REDACTION.text("key: " + text[:200]) == "key: [redacted:private-key]"


@dataclasses.dataclass(frozen=True)
class Plain:
    key: str


class Model(pydantic.BaseModel):
    key: str


class Struct(msgspec.Struct):
    key: str


class Text(str):
    __slots__ = ()


class Mood(enum.Enum):
    KEY = TOKEN


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        (TOKEN, STANDS),
        (Text(TOKEN), STANDS),
        (TOKEN.encode(), STANDS.encode()),
        (bytearray(TOKEN.encode()), STANDS.encode()),
        ([1, {"a": (TOKEN, None)}], [1, {"a": (STANDS, None)}]),
        ({TOKEN: 1}, {STANDS: 1}),
        ({(1, TOKEN): 1}, {(1, STANDS): 1}),
        ({TOKEN.encode(): 1}, {STANDS.encode(): 1}),
        ({TOKEN, "a"}, {STANDS, "a"}),
        (Plain(TOKEN), {"key": STANDS}),
        (Model(key=TOKEN), {"key": STANDS}),
        (Struct(key=TOKEN), {"key": STANDS}),
        (Mood.KEY, STANDS),
        (f"lone \ud800 {TOKEN}", f"lone \ud800 {STANDS}"),
        ([float("nan"), TOKEN][1:], [STANDS]),
        (b"\xff" + TOKEN.encode(), b"\xff" + TOKEN.encode()),  # not a text
    ],
    ids=map(str, range(16)),
)
def test_secrets_are_found_in_values_of_every_type(value: Any, clean: Any) -> None:
    assert CODEC.decode(CODEC.encode(value)) == clean
    assert TOKEN.encode() in PLAIN.encode(value)


def test_secrets_are_found_however_deep_they_lie() -> None:
    value: Any = TOKEN
    for _ in range(3_000):
        value = [value]
    assert TOKEN.encode() not in CODEC.encode(value)


def test_keys_that_would_become_equal_stay_distinct() -> None:
    tokens = [secrets(seed)["github-token"] for seed in range(4)]
    state: dict[Any, Any] = {token: n for n, token in enumerate(tokens)}
    state[STANDS] = "it was there"
    assert CODEC.decode(CODEC.encode(state)) == {
        "[redacted:github-token:2]": 0,
        "[redacted:github-token:3]": 1,
        "[redacted:github-token:4]": 2,
        "[redacted:github-token:5]": 3,
        STANDS: "it was there",
    }


def test_members_that_become_equal_become_one() -> None:
    tokens = {secrets(seed)["github-token"] for seed in range(4)}
    assert CODEC.decode(CODEC.encode(tokens)) == {STANDS}


@given(storable)
def test_a_value_without_secrets_has_the_same_encoding(value: object) -> None:
    everywhere = Codec(Types(), redaction=Redaction([r"never\dmatches\d\d"]))
    assert CODEC.encode(value) == PLAIN.encode(value) == everywhere.encode(value)


@given(st.text(max_size=50), st.sampled_from(sorted(secrets().values())), st.text(max_size=50))
def test_no_secret_passes_the_quick_look(before: str, secret: str, after: str) -> None:
    text = f"{before} {secret} {after}"
    assert REDACTION.suspects(PLAIN.encode([text]))
    assert secret.encode() not in CODEC.encode([text])


@pytest.mark.parametrize(
    ("pattern", "text", "clean"),
    [
        (r"key=(?P<secret>\w+)|AKIA\w+", "my AKIA123 and key=abc", "my {} and key={}"),
        (r"token=(?=(?P<secret>\w+))", "a token=abc b", "a token={} b"),
        (r"(?=(?P<secret>k\d+k\d+))", "k1k2k3.", "{}{}."),
        (r"(?<=(?P<secret>id))\d+", "id12", "{}12"),
        (r"\b", "as it is", "as it is"),
    ],
)
def test_what_a_pattern_calls_secret_goes_wherever_it_stands(
    pattern: str, text: str, clean: str
) -> None:
    stands = "[redacted:custom]"
    assert Redaction([pattern]).text(text) == clean.replace("{}", stands)


@pytest.mark.parametrize("secret", ["ключ-12", "КЛЮЧ-12"])
def test_keywords_in_any_script_are_found_in_upper_case_too(secret: str) -> None:
    rule = Rule("key", re.compile(r"ключ-\d+", re.IGNORECASE), ("ключ-",))
    codec = Codec(Types(), redaction=Redaction([rule]))
    assert PLAIN.decode(codec.encode({"a": [secret]})) == {"a": ["[redacted:key]"]}


def test_patterns_of_ones_own_may_be_texts_compiled_ones_or_rules() -> None:
    compiled = re.compile("(?P<secret>x+)y")
    redaction = Redaction(["employee \\d+", compiled, Rule("mine", re.compile("m1ne"))])
    assert redaction.text("employee 12, xxy, m1ne") == (
        "[redacted:custom], [redacted:custom]y, [redacted:mine]"
    )
    assert built_in("employee \\d+").text(f"{TOKEN} employee 7") == f"{STANDS} [redacted:custom]"


@pytest.mark.parametrize(
    "patterns",
    [
        (),
        ("(",),
        (7,),
        (re.compile(b"bytes"),),
        ("",),
        ("x*",),
        (Rule("No Name", re.compile("x")),),
        (Rule("fine", re.compile("x"), ("",)),),
    ],
    ids=map(str, range(8)),
)
def test_odd_patterns_are_misuse(patterns: Any) -> None:
    with pytest.raises(Misuse):
        Redaction(patterns)


class Sort(enum.Enum):
    AA_1111 = "AA-1111"


@dataclasses.dataclass
class AA1111:
    text: str


def test_what_is_not_the_callers_text_is_never_replaced() -> None:
    """The text of a moment, and the names of classes and members: without them nothing could be
    read any more."""
    types = Types()
    types.register(Sort)
    types.register(AA1111)
    codec = Codec(
        types, redaction=Redaction([r"AA.?1111", r"\d{4}-\d\d-\d\d", r"\d\d:\d\d", "Berlin"])
    )
    values = [
        datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
        *(datetime.datetime(2024, 2, 29, 12, tzinfo=zone) for zone in ZONES),
        datetime.time(12, 30),
        datetime.date(2024, 2, 29),
        Sort.AA_1111,
        AA1111("plain"),
    ]
    assert codec.decode(codec.encode([*values, "on 2024-02-29"])) == [
        *values,
        "on [redacted:custom]",
    ]
    assert codec.decode(codec.encode(AA1111("AA-1111"))) == AA1111("[redacted:custom]")


def test_a_word_full_of_beginnings_of_tokens_costs_no_more_than_any_other() -> None:
    started = time.process_time()
    REDACTION.text("eyJ" * 70_000)
    assert time.process_time() - started < 5  # from each of them to the end: half a minute


@pytest.mark.parametrize("before", ["jwt_", "eyJ", "\\n", "Bearer "])
def test_a_token_is_found_at_the_end_of_a_word(before: str) -> None:
    clean = REDACTION.text(before + secrets()["jwt"])
    assert clean.endswith("[redacted:jwt]")
