r"""What a hook and the daemon say to each other, and where a hook finds the daemon's socket.

A hook's process lives for some milliseconds, most of which Python takes to start. So this imports
nothing that Python has not loaded already, but `_socket` where a socket is used: `socket`, `json`
and `typing` take longer to load than the save takes.

Contract. The daemon owns the socket: it makes it, beside its store, in a directory that is the
user's alone (0700; the socket is 0600), and removes it when it ends. Each daemon has a socket of
its own. `HARDSAVE_SOCKET` tells the agent of a `hardsave run`, and so its hooks, where it is. Other
hooks look at the `rendezvous`: a link that leads to the socket, if a daemon was left behind by an
earlier hook. Both sides talk only to processes of the same user.

    hook    hardsave 2 LENGTH\n   then LENGTH bytes: fields, an empty one, the hook's own input
    daemon  no WHY\n              it refuses: another protocol, another store, an unreadable request
            taken\n               it has the whole request, and completes it even if the hook dies
            saved\n               the checkpoint is there
            noted SAYS\n          it could not be saved, and a note in the spool says why; SAYS is
                                  what the hook prints, mostly nothing

Each request brings the id of the checkpoint that is to be made. A hook that gets no `taken` in
half a second (no daemon, a stale socket, a stopped process), or whose daemon is gone before it has
answered, does the work itself, under the same id. If both do it, the store recognises the id: one
checkpoint, never two. What was taken is done even if the hook is gone. A hook that has waited for
its whole budget returns: then a note in the spool names the process that works at it.
"""

import os

TAKEN_SECONDS = 0.5  # that a hook waits for the daemon's first answer

SOCKET_VARIABLE = "HARDSAVE_SOCKET"
SWITCH, OFF = "HARDSAVE_DAEMON", "off"  # then hooks leave no daemon behind, and look for none
RENDEZVOUS = "daemons"  # the folder of the links, among the user's data
SOCKET_INFIX = "-run-"  # what a socket's name has after its store's
PROTOCOL = 2  # raised with every change of what is said; a daemon refuses others
GREETING = b"hardsave"
TAKEN, SAVED, NOTED, NO = b"taken", b"saved", b"noted", b"no"
LARGEST_INPUT = 64 * 1024 * 1024
_LONGEST_PATH = 100  # of a socket's path, in bytes: 104 on some systems, 108 on Linux
_OURS, _HOMES = "HARDSAVE_", ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME")
_PROJECT = "_PROJECT_DIR"  # as `agents.spec.PROJECT_SUFFIX`, which takes too long to load

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to load than all of this
    import _socket
    from collections.abc import Mapping


def new_id() -> str:
    """Of a checkpoint that is to be made."""
    return f"chk_{os.urandom(12).hex()}"


def working_directory() -> str:
    """Where this process is, or was before the directory was removed."""
    try:
        return os.getcwd()
    except OSError:
        return os.environ.get("PWD") or "/nowhere"


def request(id: str, at: int, words: "list[str]", data: bytes) -> bytes:
    """One call of a hook, with what it depends on: directory, installation and environment.

    `at` is when it was called, in nanoseconds since 1970; `words` are the hook's arguments.
    """
    fields = [b"id=" + id.encode(), b"at=%d" % at, b"cwd=" + os.fsencode(working_directory())]
    fields.append(b"code=" + os.fsencode(__file__))
    fields += [b"word=" + os.fsencode(word) for word in words]
    for key, value in os.environ.items():
        if key in _HOMES or key.startswith(_OURS) or key.endswith(_PROJECT):
            fields.append(b"env=" + os.fsencode(f"{key}={value}"))
    body = b"\0".join([*fields, b"", data])
    return b"%s %d %d\n%s" % (GREETING, PROTOCOL, len(body), body)


def rendezvous(environment: "Mapping[str, str]", directory: str) -> str | None:
    """The link by which hooks that are called in a directory find a daemon; None if they look for
    none.

    The daemon that is found there refuses what is not its own: so the number only has to be the
    same for all hooks of one place, and nothing has to be loaded to compute it.
    """
    if environment.get(SWITCH) == OFF:
        return None
    data, home = environment.get("XDG_DATA_HOME", ""), environment.get("HOME", "")
    if data[:1] != "/":
        if home[:1] != "/":
            return None
        data = f"{home}/.local/share"
    projects = sorted(name for name in environment if name.endswith(_PROJECT))
    named = directory, *(environment.get(name, "") for name in ("HARDSAVE_STORE", *projects))
    number = 0xCBF29CE484222325  # FNV-1a
    for byte in os.fsencode("\0".join(named)):
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{data}/hardsave/{RENDEZVOUS}/{number:016x}"


def short_path(path: bytes) -> tuple[bytes, int | None]:
    """A path of a socket that is short enough; and a descriptor to close when it was used."""
    if len(path) <= _LONGEST_PATH:
        return path, None
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return b"/proc/self/fd/%d/%s" % (descriptor, name), descriptor


def is_same_user(talk: "_socket.socket") -> bool:
    """Whether the other side belongs to the same user. Not every system can tell; there, the
    modes of directory and socket have to do."""
    found = _peer(talk)
    return found is None or found[1] == os.geteuid()


def peer_pid(talk: "_socket.socket") -> int:
    """The process on the other side; 0 if the system does not tell, or it is in a container."""
    found = _peer(talk)
    return 0 if found is None else found[0]


def _peer(talk: "_socket.socket") -> "list[int] | None":
    import _socket

    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return None
    return memoryview(talk.getsockopt(_socket.SOL_SOCKET, option, 12)).cast("i").tolist()
