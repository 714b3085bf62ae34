"""Which names may stand in a tree, which are git's own, and which look like secrets.

Pure. The names in a stored tree may come from anybody, so they are judged before anything
is done with them; the names on a disk are judged by the same functions, so that what is
captured can be restored.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache, cached_property

from hardsave.workspace.entries import above

TEMPORARY_PREFIX = b".hardsave-tmp-"
"""Files that a restore, or a tool of an agent, has not put in their place yet. Never captured."""


_WILD = (b"*", b"?", b"[")

# Code points that HFS+ leaves out when it compares names: `.g<U+200C>it` is `.git` there.
_UNSEEN = (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)

_SECRETS = frozenset(
    b".env .envrc id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk .netrc _netrc .pgpass"
    b" .my.cnf .pypirc .npmrc .yarnrc.yml .htpasswd .git-credentials .vault-token .dockercfg .boto"
    b" .s3cfg credentials secrets.json secrets.toml secrets.yaml secrets.yml kubeconfig"
    b" terraform.tfvars".split()
)
_SECRET_BEGINNINGS = (b".env.", b"credentials.")
_SECRET_ENDINGS = tuple(
    b".env .pem .key .p12 .pfx .jks .keystore .ppk .kdbx .p8 _credentials.json -credentials.json"
    b" .tfstate .ovpn".split()
)
_SECRET_KEYS = (b"client_secret", b"service-account", b"service_account")  # at the front of .json
# Local data and settings, which projects ignore and nothing else holds.
_LOCAL_ENDINGS = tuple(
    b".db .sqlite .sqlite3 .local.json .local.toml .local.yaml .local.yml".split()
)
# These show which settings there are, and are written to be shared.
_TEMPLATES = (b".env.example", b".env.sample", b".env.template", b".env.dist")


@cache  # compiled by the first who has such a name
def _gits_own() -> re.Pattern[bytes]:
    unseen = b"(?:%s)*" % b"|".join(chr(point).encode() for point in _UNSEEN)
    letters = unseen + unseen.join((rb"\.", b"g", b"i", b"t")) + unseen
    return re.compile(rb"(?:%b|git~[0-9]+)[ .]*(?::.*)?\Z" % letters, re.IGNORECASE | re.DOTALL)


def is_gits_own(name: bytes) -> bool:
    """Whether git, on some system, would take this for its own directory.

    NTFS leaves out spaces and dots at the end, calls `.git` also `git~1`, and takes what follows a
    colon for a stream of the same file.
    """
    if not name.isascii():
        return _gits_own().match(name) is not None
    plain = name.lower()
    if not plain.startswith((b".git", b"git~")):
        return False
    plain = plain.partition(b":")[0].rstrip(b" .")
    return plain == b".git" or (plain.startswith(b"git~") and plain[4:].isdigit())


def looks_secret(name: bytes) -> bool:
    plain = name.lower()
    if plain in _TEMPLATES or plain.endswith(_TEMPLATES[0]):
        return False
    return (
        plain in _SECRETS
        or plain.startswith(_SECRET_BEGINNINGS)
        or plain.endswith(_SECRET_ENDINGS)
        or (plain.startswith(_SECRET_KEYS) and plain.endswith(b".json"))
    )


def is_worth_noting(name: bytes) -> bool:
    """Whether a file of this name is missed if it was ignored and is gone: a secret, a local
    setting, a local database."""
    return looks_secret(name) or name.lower().endswith(_LOCAL_ENDINGS)


def fault(name: bytes) -> str | None:
    """Why a name must not stand in a tree; None if it may."""
    if name in (b"", b".", b".."):
        return "it does not name an entry"
    if b"/" in name or b"\0" in name:
        return "it is more than one name"
    if is_gits_own(name):
        return "it is git's own"
    return None


class Chosen:
    """Paths that somebody asked for by pattern: each is held against the name and the path."""

    def __init__(self, patterns: Iterable[bytes] = ()) -> None:
        self.patterns = tuple(sorted({pattern.rstrip(b"/") for pattern in patterns}))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        translated = [translate(pattern.decode("latin-1")) for pattern in self.patterns]
        return re.compile("|".join(translated or ["(?!)"]).encode("latin-1"), re.DOTALL)

    def holds(self, path: bytes) -> bool:
        name = path.rpartition(b"/")[2]
        return bool(self._pattern.match(path) or self._pattern.match(name))

    def spares(self, path: bytes) -> bool:
        """Whether no ignore rule counts for a path: it was asked for, lies in a directory that
        was, or is on the way to what was. A secret has to be asked for itself."""
        return path in self._on_the_way or any(self.holds(each) for each in (path, *above(path)))

    @cached_property
    def _on_the_way(self) -> frozenset[bytes]:
        """Directories, as far as patterns name them: a star must not lead into all there are."""
        over = {each for pattern in self.patterns for each in above(pattern)}
        return frozenset(each for each in over if not any(mark in each for mark in _WILD))


NONE_CHOSEN = Chosen()
