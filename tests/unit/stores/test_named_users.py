"""Users with a name, seen by a process that has just opened the store."""

from pathlib import Path

import hardsave


def test_a_named_user_goes_on_in_a_new_vault(tmp_path: Path) -> None:
    """The packs that wait to be merged are known before anything is required of them."""
    url = f"sqlite:///{tmp_path}/store.db"
    messages = [{"role": "user", "content": f"{n}" * 700} for n in range(12)]
    for turn in range(0, len(messages), 2):
        with hardsave.open(url, user="alice") as vault:
            vault.timeline("s").append({"messages": messages[turn : turn + 2], "turn": turn})
    with hardsave.open(url, user="alice") as vault:
        assert vault.timeline("s").load() == {"messages": messages, "turn": 10}
        assert vault.store.verify().ok
