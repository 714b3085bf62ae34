"""`hardsave`, and `python -m hardsave`: the command line."""

import sys

INTERRUPTED = 130  # as shells have it


def main() -> int:
    """Run one command; its exit code. Whoever changes his mind while it is loaded sees no fault."""
    try:
        from hardsave.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
