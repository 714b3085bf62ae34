"""Who is let in without a token."""

from pathlib import Path

import pytest

from hardsave.server.access import Access
from hardsave.server.door import Seen
from hardsave.server.table import find
from hardsave.server.tokens import LiveTokens, TokenFile


def name_of_caller(tmp_path: Path, peer: str, path: str, method: str = "GET") -> str | None:
    access = Access(
        LiveTokens(TokenFile(tmp_path / "tokens.json"), "s"), own="hs_own", open_loopback=True
    )
    caller = access.caller(Seen(method, path, {}, peer, "127.0.0.1"), find(method, path))
    return None if caller is None else caller.name


@pytest.mark.parametrize("peer", ["192.0.2.7", "10.0.0.1", "2001:db8::1", "0.0.0.0", "", "evil"])  # noqa: S104
def test_a_peer_of_another_machine_is_never_the_open_caller(tmp_path: Path, peer: str) -> None:
    for path in ("/checkpoints", "/nosuch"):
        assert name_of_caller(tmp_path, peer, path) is None


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.0.0.9", "::1"])
def test_a_peer_of_this_machine_is_let_in_to_documented_routes_alone(
    tmp_path: Path, peer: str
) -> None:
    assert name_of_caller(tmp_path, peer, "/checkpoints") == "loopback"
    assert name_of_caller(tmp_path, peer, "/metrics") is None
    assert name_of_caller(tmp_path, peer, "/") is None
