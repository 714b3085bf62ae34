"""What may stand in the way of a restore, and is no reason to end it."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.errors import Unavailable

# What somebody else did to a path in the meantime, or does not let us do to it; or what this
# file system cannot hold: such a name, so long a file, a symlink, so many links.
IN_THE_WAY = {
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EXDEV, errno.EEXIST),
    *(errno.ENOTEMPTY, errno.EACCES, errno.EPERM, errno.EBUSY, errno.ETXTBSY, errno.ENAMETOOLONG),
    *(errno.EILSEQ, errno.EINVAL, errno.EFBIG, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK),
}


@contextmanager
def unless_in_the_way(path: bytes) -> Iterator[None]:
    """Cleans up as far as others let us."""
    try:
        yield
    except OSError as error:
        if error.errno not in IN_THE_WAY:
            raise Unavailable(
                f"{os.fsdecode(path)!r} cannot be cleaned up: {error.strerror}"
            ) from error
