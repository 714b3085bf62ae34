"""What a writer knows of its file without asking."""

from typing import Any

import apsw


class Standing:
    """What the file holds, for as long as no other connection writes to it.

    SQLite counts the changes that a connection meets, its own included. While that count is
    what it was after our last commit, what we know need not be asked again.
    """

    def __init__(self) -> None:
        self.version = -1  # the count after our last commit; in the middle of a transaction none
        self.users: set[int] = set()  # whose packs the index knows
        self.forget()

    def forget(self) -> None:
        """Something was taken back: what was given out for it is free again."""
        self.number: int | None = None  # the last one given out
        self.packs: dict[int, int] = {}  # the newest of each user


class WriterCache:
    """What stays for good once it is committed, and what the file holds now."""

    def __init__(self) -> None:
        self.has_indexes = False  # for more than saves
        self.users: dict[str | None, int] = {None: 0}
        self.timelines: dict[tuple[int, str], int] = {}
        self.standing = Standing()

    def user(self, connection: apsw.Connection, name: str | None) -> int:
        """A user's number, from a row that is made if there is none. Not kept in mind."""
        known = self.users.get(name)
        if known is not None:
            return known
        connection.execute("INSERT OR IGNORE INTO users (name) VALUES (?)", (name,))
        found: Any = connection.execute("SELECT id FROM users WHERE name = ?", (name,)).get
        return int(found)
