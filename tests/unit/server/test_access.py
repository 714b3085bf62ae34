"""Who is let in, and what a token shows."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from hardsave.server.access import Access
from hardsave.server.door import Seen
from hardsave.server.projects import Catalogue
from hardsave.server.table import find
from hardsave.server.tokens import EVERY_STORE, LiveTokens, TokenFile, canonical


def name_of_caller(tmp_path: Path, peer: str, path: str, method: str = "GET") -> str | None:
    tokens = LiveTokens(TokenFile(tmp_path / "tokens.json"))
    access = Access(tokens, Catalogue(), own="hs_own", open_loopback=True)
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


def test_a_token_shows_the_project_of_its_store_or_all(tmp_path: Path) -> None:
    file, now = TokenFile(tmp_path / "tokens.json"), datetime(2026, 1, 31, tzinfo=UTC)
    served, other = (f"sqlite:///{tmp_path}/{name}.db" for name in ("served", "other"))
    catalogue = Catalogue.one(served, tmp_path)
    access = Access(LiveTokens(file), catalogue, own="hs_own", open_loopback=False)

    def projects(store: str) -> frozenset[str] | str | None:
        named = store.rpartition("/")[2]
        _, secret = file.add(named, store=store, user="ada", scope="act", now=now, expires_at=None)
        caller = access._of_token(secret)
        return "refused" if caller is None else caller.projects

    (project,) = catalogue.projects()
    assert projects(canonical(served)) == frozenset({project.id})
    assert projects(EVERY_STORE) is None
    assert projects(canonical(other)) == "refused"
