"""Where things lie: a project's root, a user's files. Reads nothing, and makes only folders.

The default store lies outside the project, in the user's data directory, so that an agent
that empties its workspace (`rm -rf .`, `git clean -fdx`) cannot reach it.
"""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

from hardsave.defaults import USER_FILE
from hardsave.errors import Misuse, Unavailable

_SERVER = re.compile(r"(postgres(?:ql)?|rediss?)(?::/?|//)")
_CONNINFO = re.compile(r"(?:^|\s)(?:host|hostaddr|dbname|user|password|service)\s*=")  # of libpq


def store_folder(environment: Mapping[str, str], directory: Path, platform: str) -> Path:
    """Where a project's own store lies."""
    return folder_of(environment, project_root(directory), platform)


def folder_of(environment: Mapping[str, str], root: Path, platform: str) -> Path:
    """What is kept about the directory `root`, whether or not it is a project's root."""
    return data_directory(environment, platform) / "projects" / _key(root)


def file_url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"


def url_of(given: str) -> str:
    """What a person has named: a URL, or the path of a file. A URL of a server that has lost a
    slash is no path, nor what libpq takes: what was to be saved there would lie here, and its
    password in a name."""
    if "://" in given:
        return given
    scheme = _SERVER.match(given)
    if scheme is not None:
        raise Misuse(
            f"a store that begins with {scheme[0]!r} is neither a URL nor a path; write "
            f"{scheme[1]}://user@host/…, or ./{scheme[0]}… for a file of that name"
        )
    if _CONNINFO.search(given):
        raise Misuse(
            "a store on PostgreSQL is named by a URL, not by host=, dbname= and the like; "
            "write postgresql://user@host/dbname, or ./… for a file of that name"
        )
    return file_url(Path(given))


def canonical(url: str) -> str:
    """One spelling for each store, however its path was written, and with or without a password;
    none is in it."""
    scheme, separator, path = url.partition(":///")
    if scheme == "sqlite" and separator:
        return f"{scheme}{separator}{os.path.realpath(path)}"
    from hardsave.wording import name_of_url  # most stores are files

    return name_of_url(url)


def project_root(directory: Path) -> Path:
    """The nearest folder upwards that holds a repository; else the directory itself."""
    real = directory.resolve()
    for folder in (real, *real.parents):
        if has_repository(folder):
            return folder
    return real


def has_repository(folder: Path) -> bool:
    """Whether a repository's worktree begins here, as git sees it: an empty `.git` is none.

    The sandboxes of agents put one into every directory that a command may write to, `/tmp` among
    them, for as long as the command runs. A project must not be another one meanwhile.
    """
    git = os.path.join(folder, ".git")
    try:
        os.stat(os.path.join(git, "HEAD"), follow_symlinks=False)
    except FileNotFoundError:
        return False
    except NotADirectoryError:  # a file names the directory of a worktree or a submodule
        return os.path.isfile(git) and os.path.getsize(git) > 0
    except OSError:
        return os.path.lexists(git)  # we may not look into it
    return True


def project_key(directory: Path) -> str:
    """The name of a project's folder: readable, and unique for its real path."""
    return _key(project_root(directory))


def _key(root: Path) -> str:
    digest = blake3(os.fsencode(root)).hexdigest(8)
    readable = "".join(c if c.isalnum() or c in "-_." else "-" for c in root.name)[:40]
    return f"{readable or 'root'}-{digest}"


def home() -> Path:
    """Where a user is at home: as the environment says, else as the system knows.

    A relative path would be another place in every directory. `Unavailable` if neither is known.
    """
    if os.path.isabs(os.environ.get("HOME", "")):
        return Path.home()
    try:
        return Path(f"~{_user_name()}").expanduser()
    except (LookupError, RuntimeError) as error:
        raise Unavailable(
            "your home directory is not known: set HOME, or name a store with HARDSAVE_STORE"
        ) from error


def _user_name() -> str:
    if os.name == "nt":
        return ""  # which does not go by HOME
    import pwd  # not on every system

    return pwd.getpwuid(os.getuid()).pw_name


def user_file(environment: Mapping[str, str], platform: str) -> Path:
    """Where a user keeps settings for all projects."""
    if platform in ("win32", "darwin"):
        return data_directory(environment, platform) / USER_FILE
    given = environment.get("XDG_CONFIG_HOME", "")
    base = Path(given) if os.path.isabs(given) else home() / ".config"
    return base / "hardsave" / USER_FILE


def data_directory(environment: Mapping[str, str], platform: str) -> Path:
    """Where this user's programs keep their data."""
    if platform == "win32":
        base = Path(environment.get("LOCALAPPDATA") or home() / "AppData" / "Local")
    elif platform == "darwin":
        base = home() / "Library" / "Application Support"
    else:
        given = environment.get("XDG_DATA_HOME", "")
        base = Path(given) if os.path.isabs(given) else home() / ".local" / "share"
    return base / "hardsave"


def make_folder(folder: Path) -> None:
    """Make a folder of ours, and all above it that are missing, for this user alone. `Path.mkdir`
    would leave those above to the umask, and another user who may write there could replace it.
    """
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_folder(folder.parent)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
