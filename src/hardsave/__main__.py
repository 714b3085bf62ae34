"""`python -m hardsave`: the command line."""

import sys

from hardsave.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
