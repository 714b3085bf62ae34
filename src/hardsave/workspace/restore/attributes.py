"""What a snapshot does not hold and a file keeps when its content is replaced: owner, group,
extended attributes, and with them its access control list.

As far as we may: whoever is not allowed to give a file away replaces it with one of their own, as
every editor does.
"""

import os
import sys
from contextlib import suppress

# Rights that were given to a program, not to whatever stands in its place.
_OF_THE_CONTENT = frozenset(["security.capability", "security.ima", "security.evm"])


def hand_on(old: int, new: int) -> None:
    """From one open file to another. The mode has to be set after it: this may change it."""
    before, after = os.fstat(old), os.fstat(new)
    for owner, group in ((before.st_uid, before.st_gid), (-1, before.st_gid)):
        if (before.st_uid, before.st_gid) == (after.st_uid, after.st_gid):
            break
        with suppress(OSError):
            os.fchown(new, owner, group)
            break
    if sys.platform == "linux":
        with suppress(OSError):  # a file system without any
            for name in os.listxattr(old):
                if name not in _OF_THE_CONTENT:
                    with suppress(OSError):
                        os.setxattr(new, name, os.getxattr(old, name))
