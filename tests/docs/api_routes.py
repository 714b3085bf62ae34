"""The routes that the page about the API lists: `python -m tests.docs.api_routes` writes them."""

from collections.abc import Iterator

from hardsave.server.api.table import ROUTES
from hardsave.server.fields import Field
from tests.docs.pages import DOCS

PAGE = DOCS / "howto" / "api.md"
HEAD = "| method | path | what | takes | scope |\n|---|---|---|---|---|\n"


def table() -> str:
    return HEAD + "".join(f"{row}\n" for row in rows())


def rows() -> Iterator[str]:
    for route in ROUTES:
        assert route.spec is not None
        fields = (*route.spec.query, *(route.spec.body or ()))
        takes = ", ".join(map(named, fields))
        path = route.path.removeprefix("/api/v1") or "/"
        yield f"| {route.method} | `{path}` | {route.spec.summary} | {takes} | {route.scope} |"


def named(field: Field) -> str:
    return f"**`{field.name}`**" if field.needed else f"`{field.name}`"


def written(page: str) -> str:
    """The page with the table as the code has it."""
    begin = page.index(HEAD)
    end = page.index("\n\n", begin) + 1
    return page[:begin] + table() + page[end:]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
