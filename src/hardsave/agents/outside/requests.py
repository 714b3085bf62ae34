"""Programs whose options say whether they write: requests, copies to hosts, databases, clouds.
Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from hardsave.agents.outside.wrappers import after_options, words_of


def phrase(program: str, given: Sequence[str]) -> str:
    """What one of these programs does outside; nothing for others, and where it only reads."""
    reads = _PROGRAMS.get(program)
    return "" if reads is None else reads(program, given)


# HTTP

_WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CURL_VALUES = "AbcCdDeEFhHKmoPQrtTuUwxXyYz"  # short options with a value
_CURL_DATA = ("--data", "--form", "--json", "--upload-file")
_WGET_DATA = ("--post-data", "--post-file", "--body-data", "--body-file")
_ITEM = r"[\w.\-\[\]]+(:=|=(?!=)|@)"  # of a form or a document: a=b, a:=1, a@file


def _curl(program: str, given: Sequence[str]) -> str:
    options = list(_curl_options(given))
    method = next((value for name, value in options if name in ("X", "--request")), "")
    has_data = any(name in ("d", "F", "T") or name.startswith(_CURL_DATA) for name, _ in options)
    is_get = any(name in ("G", "I", "--get", "--head") for name, _ in options)
    address = next((value for name, value in options if name in ("", "--url")), "")
    return _request(program, method or ("POST" if has_data and not is_get else ""), address)


def _curl_options(given: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options by their letters or names, with values; what is no option has an empty name."""
    words = iter(given)
    for word in words:
        if word.startswith("--"):
            name, _, value = word.partition("=")
            takes = name in ("--request", "--url") or name.startswith(_CURL_DATA)
            yield name, value or (next(words, "") if takes else "")
        elif not word.startswith("-"):
            yield "", word
        else:
            yield from _letters(word[1:], words)


def _letters(letters: str, words: Iterator[str]) -> Iterator[tuple[str, str]]:
    """`-sXPOST` is -s and -X POST."""
    for at, letter in enumerate(letters):
        if letter in _CURL_VALUES:
            yield letter, letters[at + 1 :] or next(words, "")
            return
        yield letter, ""


def _wget(program: str, given: Sequence[str]) -> str:
    method = _value(given, "--method")
    if any(each.startswith(_WGET_DATA) for each in given):
        method = method or "POST"
    return _request(program, method, next((each for each in given if "://" in each), ""))


def _httpie(program: str, given: Sequence[str]) -> str:
    plain = [each for each in given if not each.startswith("-")]
    if plain and plain[0].isalpha() and plain[0].isupper():
        return _request(program, plain[0], "".join(plain[1:2]))
    has_data = any(re.match(_ITEM, each) for each in plain[1:])
    return _request(program, "POST" if has_data else "", "".join(plain[:1]))


def _request(program: str, method: str, address: str) -> str:
    """`curl -X POST example.com`. Only the host: the rest of an address may hold secrets."""
    if method.upper() not in _WRITING:
        return ""
    try:
        host = urlsplit(address if "://" in address else f"//{address}").hostname or ""
    except ValueError:  # no address at all
        host = ""
    return f"{program}{' -X' if program == 'curl' else ''} {method.upper()} {host}".rstrip()


def _gh(program: str, given: Sequence[str]) -> str:
    """Only `gh api` is a request."""
    if given[:1] != ["api"]:
        return ""
    fields = ("-f", "-F", "--field", "--raw-field", "--input")
    method = _value(given, "-X", "--method").upper()
    method = method or ("POST" if any(each.startswith(fields) for each in given) else "")
    return f"gh api {method}" if method in _WRITING else ""


def _value(given: Sequence[str], *names: str) -> str:
    """That of an option: `-X POST`, `-XPOST`, `--method=POST`."""
    for word, following in zip(given, [*given[1:], ""], strict=True):
        for name in names:
            if word == name:
                return following
            if word.startswith(f"{name}="):
                return word.removeprefix(f"{name}=")
            if len(name) == 2 and word.startswith(name):
                return word.removeprefix(name)
    return ""


# Hosts

_SSH_VALUES = frozenset(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw")
_COPY_VALUES = words_of("-e --rsh -P -i -F -o -c -S -l -J --exclude --include --filter")
_REMOTE = r"(?:[a-z]+://)?([\w.\-]+@)?(?P<host>[\w.\-]+):"


def _ssh(program: str, given: Sequence[str]) -> str:
    host = "".join(after_options(given, _SSH_VALUES)[:1])
    return f"ssh {host.rpartition('@')[2]}" if host else ""


def _copy(program: str, given: Sequence[str]) -> str:
    """scp and rsync, if where they copy to is on another host."""
    if any(each in ("-n", "--dry-run") for each in given):
        return ""
    plain: list[str] = []
    rest = after_options(given, _COPY_VALUES)
    while rest:
        plain.append(rest[0])
        rest = after_options(rest[1:], _COPY_VALUES)
    to = re.match(_REMOTE, plain[-1]) if len(plain) > 1 else None
    return "" if to is None else f"{program} {to['host']}"


# Databases

_STATEMENTS = ("-c", "--command", "-e", "--execute", "--eval", "-Q", "-q", "--query")
_READING_SQL = ("select", "show", "explain", "describe", "desc", "\\d", "\\l", "\\z", "\\conninfo")
_READING_REDIS = words_of("get mget keys scan info ping ttl type exists hgetall lrange")
_REDIS_VALUES = frozenset({"-h", "-p", "-a", "-n", "-u", "--user", "--pass"})


def _database(program: str, given: Sequence[str]) -> str:
    """A client of a database on a host, unless all that it is told is to read."""
    if any(each in ("-l", "--list", "--version", "--help", "-V") for each in given):
        return ""
    told = _value(given, *_STATEMENTS).lower()
    statements = [each.strip() for each in told.split(";") if each.strip()]
    only_reads = bool(statements) and all(each.startswith(_READING_SQL) for each in statements)
    return "" if only_reads else program


def _redis(program: str, given: Sequence[str]) -> str:
    words = after_options(given, _REDIS_VALUES)
    verb = words[0].lower() if words else ""
    return f"{program} {verb}" if verb and verb not in _READING_REDIS else ""


# Clouds

_CLOUD_VALUES = words_of(
    "--profile --region --endpoint-url --output --query --project --account --configuration"
    " --format --subscription -g --resource-group -o"
)
_CLOUD_READS = ("describe", "list", "get", "head", "wait", "show", "batch-get", "lookup", "ls")
_CLOUD_LOCAL = frozenset({"configure", "config", "auth", "login", "logout", "help", "sts", "init"})
_CLOUD_VERBS = words_of(
    "create delete update deploy set add remove reset start stop restart import apply patch"
    " cp mv rm rsync resize scale enable disable purge upload"
)


def _aws(program: str, given: Sequence[str]) -> str:
    """`aws SERVICE OPERATION`: operations that read begin with what reads."""
    service, operation, *more = (*after_options(given, _CLOUD_VALUES), "", "")
    if not operation or service in _CLOUD_LOCAL or "--dryrun" in given or "--dry-run" in given:
        return ""
    if service == "s3" and operation in ("cp", "mv", "sync"):
        places = [each for each in more if each and not each.startswith("-")]
        return f"aws s3 {operation}" if places[1:] and places[1].startswith("s3://") else ""
    return "" if operation.startswith((*_CLOUD_READS, "-")) else f"aws {service} {operation}"


def _cloud(program: str, given: Sequence[str]) -> str:
    """`gcloud GROUP … VERB`: whether one of the first words is a verb that writes."""
    words = after_options(given, _CLOUD_VALUES)[:5]
    if not words or words[0] in _CLOUD_LOCAL:
        return ""
    for at, word in enumerate(words):
        if word.startswith("-") or word.startswith(_CLOUD_READS):
            return ""
        if word in _CLOUD_VERBS or word.split("-")[0] in ("add", "set", "remove"):
            return " ".join((program, *words[: at + 1]))
    return ""


_PROGRAMS: dict[str, Callable[[str, Sequence[str]], str]] = {
    "curl": _curl,
    "wget": _wget,
    **dict.fromkeys(("http", "https", "xh", "xhs"), _httpie),
    "gh": _gh,
    "ssh": _ssh,
    **dict.fromkeys(("scp", "rsync"), _copy),
    **dict.fromkeys(("psql", "mysql", "mariadb", "mongosh", "mongo", "sqlcmd"), _database),
    "redis-cli": _redis,
    "aws": _aws,
    **dict.fromkeys(("gcloud", "az", "gsutil"), _cloud),
}
