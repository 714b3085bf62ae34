"""A folder of this user on this host for what can be made anew."""

import os
import sys


def cache_folder() -> str | None:
    """Made if it is missing, for this user alone; None if there is no home to make it in."""
    home = os.path.expanduser("~")
    given = os.environ.get("XDG_CACHE_HOME", "")
    if sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = given if os.path.isabs(given) else os.path.join(home, ".cache")
    folder = os.path.join(base, "hardsave")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:  # a user without a home, or one that cannot be written
        return None
    return folder
