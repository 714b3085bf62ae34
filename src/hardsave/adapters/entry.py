"""`hardsave-hook`: what an agent's hooks call. Hands its work to a resident, or else does it.

The agent must not notice us: this exits 0 whatever happens (2 would forbid the agent its tool), it
prints nothing (what a hook prints may go to the model), and it returns within its budget. What
does the work is loaded only if nobody else does it.
"""

import os
import sys
import time

from hardsave.runtime import handover


def main() -> int:
    """Take one call of a hook, of the agent that the first argument names. Always 0."""
    try:
        data = sys.stdin.buffer.read(handover.LARGEST_INPUT)
        id, at, end = handover.new_id(), time.time_ns(), time.monotonic() + handover.BUDGET_SECONDS
        if not _handed_over(id, at, data):
            from hardsave.adapters import hook

            hook.alone(data, sys.argv[1:], id, at, seconds=end - time.monotonic())
    except Exception:  # noqa: BLE001, S110 # no process to be had, half an installation: there is
        pass  # nobody to tell, and the agent must go on
    return 0


def _handed_over(id: str, at: int, data: bytes) -> bool:
    path = os.environ.get(handover.VARIABLE)
    if not path:
        return False
    return handover.hand_over(path, handover.request(id, at, sys.argv[1:], data))


if __name__ == "__main__":
    sys.exit(main())
