"""`hardsave`, and `python -m hardsave`: the command line."""

import os
import sys

INTERRUPTED = 130  # as shells have it


def main() -> int:
    """Run one command; its exit code. Ctrl-C while modules are loaded shows no traceback."""
    _trust_ours_first()
    try:
        from hardsave.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


def _trust_ours_first() -> None:
    """What `PYTHONPATH` names comes last: it is mostly the project's own, and what an agent has
    written there, under the name of a module that we need, must not keep a user from going back.
    """
    if told := os.environ.get("PYTHONPATH"):
        named = {os.path.abspath(each) for each in told.split(os.pathsep)}
        sys.path.sort(key=lambda each: os.path.abspath(each) in named)  # which changes nothing else


if __name__ == "__main__":
    sys.exit(main())
