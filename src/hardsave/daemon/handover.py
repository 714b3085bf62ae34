r"""How a hook hands its work to the resident: the client's half, and what both say.

A hook's process lives for some milliseconds, most of which Python takes to start. So this imports
nothing that Python has not loaded already, but `_socket` if there is somebody to talk to: `socket`,
`json` and `typing` take longer than the save.

Contract. The resident owns the socket: it makes it, beside its store, in a directory that is the
user's alone (0700; the socket is 0600), and removes it when it ends. There is one for each
resident, so two never meet. `HARDSAVE_SOCKET` tells the agent of a `hardsave run`, and so its
hooks, where it is. Other hooks look at a `meeting`: a link that leads to it, if one of them has
left a resident behind. Both sides talk only to processes of the same user.

    hook      hardsave 2 LENGTH\n   then LENGTH bytes: fields, an empty one, the hook's own input
    resident  no WHY\n              it will not: another protocol, another store, no sense at all
              taken\n               it has the whole request, and will see to it whoever dies next
              saved\n               the checkpoint is there
              noted SAYS\n          it could not be saved, and a note in the spool says why; SAYS is
                                    what the hook shall print, mostly nothing

Each request brings the id of the checkpoint that is to be made. A hook that gets no `taken` in
half a second (nobody there, a stale socket, a process that is stopped), or whose resident is gone
before it has answered, does the work itself, under the same id. If both do it, the store knows it
by its id: one checkpoint, never two. What was taken is done even if the hook is gone. A hook that
has waited for its whole budget returns: then there is a note that says who is at it.
"""

import os
import time

VARIABLE = "HARDSAVE_SOCKET"
SWITCH, OFF = "HARDSAVE_RESIDENT", "off"  # then hooks leave nobody behind, and look for nobody
MEETINGS = "residents"  # where the links lie, among the user's data
BESIDE = "-run-"  # what a socket's name has after its store's
PROTOCOL = 2  # raised with every change of what is said; a resident refuses others
GREETING = b"hardsave"
TAKEN, SAVED, NOTED, NO = b"taken", b"saved", b"noted", b"no"
LARGEST_INPUT = 64 * 1024 * 1024
TAKING_SECONDS = 0.5
BUDGET_SECONDS = 10.0  # of a hook in all
_LONGEST_ANSWER = 4096
_LONGEST_PATH = 100  # of a socket's path, in bytes: 104 on some systems, 108 on Linux
_OURS, _HOMES = "HARDSAVE_", ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME")
_PROJECT = "_PROJECT_DIR"  # how the variables end by which agents tell hooks their project

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to load than all of this
    import _socket
    from collections.abc import Mapping


def new_id() -> str:
    """Of a checkpoint that is to be made."""
    return f"chk_{os.urandom(12).hex()}"


def here() -> str:
    """Where this process is, or was before somebody removed it."""
    try:
        return os.getcwd()
    except OSError:
        return os.environ.get("PWD") or "/nowhere"


def request(id: str, at: int, words: "list[str]", data: bytes) -> bytes:
    """One call of a hook, with what it depends on: where, by whom, in which surroundings.

    `at` is when it was called, in nanoseconds since 1970; `words` are the hook's arguments.
    """
    fields = [b"id=" + id.encode(), b"at=%d" % at, b"cwd=" + os.fsencode(here())]
    fields.append(b"code=" + os.fsencode(__file__))
    fields += [b"word=" + os.fsencode(word) for word in words]
    for key, value in os.environ.items():
        if key in _HOMES or key.startswith(_OURS) or key.endswith(_PROJECT):
            fields.append(b"env=" + os.fsencode(f"{key}={value}"))
    body = b"\0".join([*fields, b"", data])
    return b"%s %d %d\n%s" % (GREETING, PROTOCOL, len(body), body)


def meeting(environment: "Mapping[str, str]", directory: str) -> str | None:
    """Where hooks that are called in this place look for a resident; None if they do not.

    Whoever is found there is asked, and refuses what is not his: so the number only has to be the
    same for all hooks of one place, and nothing has to be loaded to make it.
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
    return f"{data}/hardsave/{MEETINGS}/{number:016x}"


def hand_over(path: str, message: bytes, *, seconds: float = BUDGET_SECONDS) -> bytes | None:
    """What to say, if a resident has seen to it or is at it. None: it is the caller's to do."""
    try:
        talk = _connected(path)
    except OSError:
        return None
    try:
        talk.sendall(message)
        answer, rest = _line(talk, b"", TAKING_SECONDS)
        if answer != TAKEN:
            return None
        try:
            answer, _ = _line(talk, rest, seconds)
        except TimeoutError:
            return b""
        word, _, said = answer.partition(b" ")
        return said if word in (SAVED, NOTED) else None
    except OSError:
        return None
    finally:
        talk.close()


def reachable(path: bytes) -> tuple[bytes, int | None]:
    """A path of a socket that is short enough; and a descriptor to close when it was used."""
    if len(path) <= _LONGEST_PATH:
        return path, None
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return b"/proc/self/fd/%d/%s" % (descriptor, name), descriptor


def is_ours(talk: "_socket.socket") -> bool:
    """Whether the other side belongs to the same user. Not every system can tell; there, the
    modes of directory and socket have to do."""
    found = _peer(talk)
    return found is None or found[1] == os.geteuid()


def caller(talk: "_socket.socket") -> int:
    """The process on the other side; 0 if nobody can tell, or it is one of another container."""
    found = _peer(talk)
    return 0 if found is None else found[0]


def _peer(talk: "_socket.socket") -> "list[int] | None":
    import _socket

    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return None
    return memoryview(talk.getsockopt(_socket.SOL_SOCKET, option, 12)).cast("i").tolist()


def _connected(path: str) -> "_socket.socket":
    os.stat(path)  # before anything is loaded: there may be nobody
    import _socket

    talk = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        talk.settimeout(TAKING_SECONDS)
        short, descriptor = reachable(os.fsencode(path))
        try:
            talk.connect(short)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        if not is_ours(talk):
            raise PermissionError(f"{path} is served by another user")
    except BaseException:
        talk.close()
        raise
    return talk


def _line(talk: "_socket.socket", read: bytes, seconds: float) -> tuple[bytes, bytes]:
    """One line, and what came after it. Empty if there is none to come."""
    end = time.monotonic() + seconds
    while b"\n" not in read:
        talk.settimeout(max(end - time.monotonic(), 0.001))
        more = talk.recv(_LONGEST_ANSWER)
        if not more or len(read) > _LONGEST_ANSWER:
            return b"", b""
        read += more
    line, _, rest = read.partition(b"\n")
    return line, rest
