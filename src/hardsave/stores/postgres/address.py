"""Where a store lies: a URL for libpq, and the schema inside of that database.

    postgresql://ada:secret@db.example:5432/agents?sslmode=require&schema=team_a

All but `schema` is libpq's own. A password is part of no message: what people see is `shown`.
"""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlencode

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple

_SCHEMA = "hardsave"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Address(NamedTuple):
    """Where a store lies."""

    conninfo: str
    schema: str
    shown: str  # for people, without what is secret

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def address_of(url: str) -> Address:
    """What a URL says. `Misuse` if libpq cannot read it, or the schema has no plain name."""
    try:
        base, _, after = url.partition("?")
        _check_base(base)
        given = parse_qsl(after.replace("+", "%2B"), keep_blank_values=True)  # libpq: no space
        schemas = [value for key, value in given if key == "schema"] or [_SCHEMA]
        rest = [pair for pair in given if pair[0] != "schema"]
        found = conninfo_to_dict(f"{base}?{urlencode(rest, quote_via=quote)}" if rest else base)
    except (ProgrammingError, ValueError):  # its message has the URL in it, and the password
        raise Misuse(
            "this is no URL of a PostgreSQL server; write postgresql://user@host:5432/database, "
            "special characters in a password as %.."
        ) from None
    if not _PLAIN.fullmatch(schemas[0]):
        raise Misuse(f"schema={schemas[0]!r}: write small letters, digits and _ only")
    return Address(make_conninfo("", **found), schemas[0], _shown(found, schemas[0]))


def session_options(address: Address, environment: Mapping[str, str]) -> str:
    """What `options` say for sessions that find the tables by themselves. What is given to libpq
    takes the place of the URL's own, which take that of the environment's."""
    given = conninfo_to_dict(address.conninfo).get("options", environment.get("PGOPTIONS", ""))
    return f"{given} -c search_path={address.schema}".strip()


def _check_base(base: str) -> None:
    """`ValueError` for a password with a `/` or `@` as it is: libpq would read the rest of it as
    the name of a host or database, and messages tell those."""
    where, _, database = base.partition("://")[2].partition("/")
    if where.count("@") > 1 or "@" in database:
        raise ValueError("@")


def _shown(found: Mapping[str, object], schema: str) -> str:
    user = f"{found['user']}@" if "user" in found else ""
    port = f":{found['port']}" if "port" in found else ""
    where = f"{found.get('host', '')}{port}/{found.get('dbname', '')}"
    return f"postgresql://{user}{where}" + (f"?schema={schema}" if schema != _SCHEMA else "")
