"""Whether a hook that was alone leaves a resident behind: `daemon.hook_main`, if it does.

The process that has done a hook's work has everything loaded that the next ones need, and is
nobody's child: so it simply stays. If anything speaks against it, it ends as ever.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from hardsave import config
from hardsave.daemon import handover, meetings
from hardsave.daemon.listening import listen, new_path
from hardsave.daemon.meetings import Post
from hardsave.errors import Misuse, NotFound
from hardsave.stores import processes
from hardsave.stores.processes import Process
from hardsave.stores.registry import sqlite_path
from hardsave.stores.sqlite import seats
from hardsave.stores.sqlite.seats import Seat
from hardsave.vault import projects

MOST_UNBURIED = 32  # a process 1 that is slow to wait for the dead has fewer of them
_SYSTEM: str = sys.platform  # a plain string: what is for other systems is checked, too


def leave(
    session: str,
    directory: Path,
    project: Path,
    agent: Process | None,
    let_go: Callable[[], None],
) -> None:
    """Stay as the resident of a workspace, if nobody is and nothing speaks against it.

    A hook of a session was called in `directory` by an agent, and its work is done. Nobody waits
    any more once `let_go` was called; before that, there is next to nothing to wait for.
    """
    post = post_for(os.environ, directory, project)
    if post is None or agent is None or nobody_buries():
        return
    with suppress(OSError):  # a disk or a sandbox that does not want us: then it is as it was
        seat = Seat.take(post.seat, post.socket, is_guest=True)
        if seat is None:
            if (found := seats.sitter(post.seat)) is not None:
                meetings.arrange(post.link, found.socket)
            return
        try:
            socket = listen(post.socket)
            let_go()
            from hardsave.daemon import (
                hook_main as standby,  # which takes a while, and nobody waits any more
            )

            standby.reside(post, seat, socket, agent, session)
        finally:
            post.vanish()
            seat.close()


def nobody_buries() -> bool:
    """Whether the residents before this one lie unburied: process 1 of a container may wait for
    nobody, and there shall be an end to them."""
    return len(processes.unburied(meetings.NAME)) >= MOST_UNBURIED


def post_for(environment: Mapping[str, str], directory: Path, project: Path) -> Post | None:
    """Where hooks like this one would be answered; None if they shall not be.

    The hooks of a `hardsave run` have a resident of their own, and a store that is named by a
    relative path is another one in every directory.
    """
    link = handover.meeting(environment, os.fspath(directory))
    if _SYSTEM != "linux" or link is None or environment.get(handover.VARIABLE):
        return None
    try:
        if not config.leaves_resident(environment, project):
            return None
        url = projects.store_url(environment, project)
        path = sqlite_path(url)
    except (Misuse, NotFound):
        return None
    named = environment.get(config.STORE_VARIABLE) or "/"
    if not os.path.isabs(path) or not ("://" in named or os.path.isabs(named)):
        return None
    store, workspace = os.path.realpath(path), os.path.realpath(project)
    seat = meetings.seat_of(store, workspace)
    socket = new_path(f"{store}{handover.BESIDE}")
    return Post(url, store, workspace, seat, socket, link)
