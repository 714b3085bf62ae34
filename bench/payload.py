"""What is saved: a conversation of two messages a turn, the same in every run."""

import random
import string
from typing import Any

from hardsave.objects.codec import Codec

CHARACTERS = 1024
ALPHABET = string.ascii_letters + string.digits + " "

Message = dict[str, str]


class Conversation:
    """Messages as an agent's state holds them."""

    def __init__(self, turns: int, *, number: int = 0) -> None:
        source = random.Random(number)
        self.turns = turns
        self.messages: list[Message] = [
            {"role": role, "content": "".join(source.choices(ALPHABET, k=CHARACTERS))}
            for _ in range(turns)
            for role in ("user", "assistant")
        ]

    def state(self, turns: int) -> dict[str, Any]:
        """The state after so many turns."""
        return {"messages": self.messages[: 2 * turns], "turn": turns}

    def delta(self, turn: int) -> dict[str, Any]:
        """What turn number `turn`, counted from 1, adds."""
        return {"messages": self.messages[2 * turn - 2 : 2 * turn], "turn": turn}

    @property
    def size(self) -> int:
        """The encoded payload: all messages in canonical form."""
        return len(Codec().encode(self.messages))
