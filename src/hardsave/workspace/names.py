"""Which names may stand in a tree, which are git's own, and which look like secrets.

Pure. The names in a stored tree may come from anybody, so they are judged before anything
is done with them; the names on a disk are judged by the same functions, so that what is
captured can be restored.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache, cached_property

from hardsave.workspace.globs import of_name
from hardsave.workspace.lookup import Table

TEMPORARY_PREFIX = b".hardsave-tmp-"
"""Files that a restore, or a tool of an agent, has not put in their place yet. Never captured."""

IGNORE_FILES = (b".gitignore", b".hardsaveignore")

# Code points that HFS+ leaves out when it compares names: `.g<U+200C>it` is `.git` there.
_UNSEEN = (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)

# As whole names; a star stands for anything.
_SECRETS = (
    *(".env", ".env.*", ".envrc", "*.env"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx", "*.p8"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".yarnrc.yml", ".htpasswd"),
    *(".git-credentials", ".vault-token", ".dockercfg", ".boto", ".s3cfg"),
    *("credentials", "credentials.*", "*_credentials.json", "*-credentials.json"),
    *("client_secret*.json", "service-account*.json", "service_account*.json"),
    *("secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml", "kubeconfig"),
    *("terraform.tfvars", "*.tfstate", "*.ovpn"),
)
# These show which settings there are, and are written to be shared.
_TEMPLATES = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.env.example")


@cache  # compiled by the first who asks: a capture that finds no change does not
def _gits_own() -> re.Pattern[bytes]:
    """NTFS leaves out spaces and dots at the end, calls `.git` also `git~1`, and takes what
    follows a colon for a stream of the same file."""
    unseen = b"(?:%s)*" % b"|".join(chr(point).encode() for point in _UNSEEN)
    letters = unseen + unseen.join((rb"\.", b"g", b"i", b"t")) + unseen
    return re.compile(rb"(?:%b|git~[0-9]+)[ .]*(?::.*)?\Z" % letters, re.IGNORECASE | re.DOTALL)


@cache
def _secrets() -> Table:
    """What looks secret by rank 0; by rank 1, what of it is not."""
    ranked = [(rank, each) for rank, some in enumerate((_SECRETS, _TEMPLATES)) for each in some]
    globs = [(rank, of_name(each.encode())) for rank, each in ranked]
    return Table((rank, glob) for rank, glob in globs if glob is not None)


def is_gits_own(name: bytes) -> bool:
    """Whether git, on some system, would take this for its own directory."""
    return _gits_own().match(name) is not None


def looks_secret(name: bytes) -> bool:
    return _secrets().find(name.lower()) == 0


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
        self.patterns = tuple(sorted(set(patterns)))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        translated = [translate(pattern.decode("latin-1")) for pattern in self.patterns]
        return re.compile("|".join(translated or ["(?!)"]).encode("latin-1"), re.DOTALL)

    def holds(self, path: bytes) -> bool:
        name = path.rpartition(b"/")[2]
        return bool(self._pattern.match(path) or self._pattern.match(name))
