import json
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from hardsave.cli.render import json_data


@pytest.mark.parametrize(
    ("value", "ready"),
    [
        (None, None),
        (True, True),
        (10**40, 10**40),
        (float("inf"), "inf"),
        (b"\x00\xff", "AP8="),
        ((1, [2]), [1, [2]]),
        ({"b", "a"}, ["a", "b"]),
        ({1: "x", (1, 2): "y", b"z": "w"}, {"1": "x", "[1, 2]": "y", "eg==": "w"}),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (Decimal("1.50"), "1.50"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ("\udc80", "\udc80"),
    ],
)
def test_any_state_can_be_json(value: Any, ready: Any) -> None:
    assert json_data.json_ready({"at": [value]}) == {"at": [ready]}
    json.dumps(json_data.json_ready(value), allow_nan=False).encode()


def test_ids_in_the_log_are_as_people_type_them() -> None:
    said = json_data.logged({"to": bytes(12), "checkpoints": 3, "files": [b"/home"]})
    assert said == {"to": "chk_" + "0" * 24, "checkpoints": 3, "files": ["L2hvbWU="]}
