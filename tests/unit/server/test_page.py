"""What a browser is served without a browser: the shell, its files, the pages without a script."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from importlib.resources import files

import pytest

import hardsave
from hardsave.errors import NotFound
from hardsave.server.caller import Caller
from hardsave.server.errors import answer, refusal
from hardsave.server.page import render, shell, shortening
from hardsave.server.public import Public, public_of
from hardsave.server.route import HTML, Allowed, Answer, Call
from hardsave.server.sending import in_bytes
from hardsave.server.table import find

HOSTILE = '"><script>document.title="taken"</script>\' onclick=x \u202eevil\u202c \x1b[31mred'
MOST_BYTES = 80_000  # of all files of the page, gzipped
DIRECT = Public()
PROXY = public_of("https://tools.example.com/hardsave")


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [about for name, about in self.tags if name == tag]

    @property
    def addresses(self) -> list[str]:
        names = ("href", "src", "action")
        return [about[name] or "" for _, about in self.tags for name in names if name in about]


def get(path: str, *, public: Public = DIRECT, headers: Mapping[str, str] = {}) -> Answer:
    found = find("GET", path)
    assert found.route is not None
    with hardsave.open("memory://") as vault:
        call = Call(
            vault=vault,
            path=found.path,
            query={},
            body=None,
            caller=Caller("link", None, "act", form_token="f0rm"),  # noqa: S106 # no secret
            request_id="1",
            allowed=Allowed(),
            logins=None,  # type: ignore[arg-type] # neither the shell nor its files ask for it
            headers=headers,
            public=public,
        )
        return found.route.handler(call)


def test_the_shell_loads_files_of_the_package_alone() -> None:
    page = Reader(get("/").body)
    loaded = [each for each in page.addresses if not each.startswith("#")]
    assert page.of("base") == [{"href": "/"}]
    assert {*loaded} - {"/"} == {each for each in loaded if each.startswith("assets/")}
    for name in loaded:
        if name != "/":
            assert get(f"/{name}").status == 200
    assert page.text.count("hardsave log") == 1  # what a browser without scripts is told


def test_every_module_imports_files_that_are_there() -> None:
    names = shell.assets().keys()
    for name, asset in shell.assets().items():
        if name.endswith(".js"):
            text = asset.content.decode()
            imported = re.findall(r'\b(?:from |import |import\()"(\./[^"]+)"', text)
            assert {each.removeprefix("./") for each in imported} <= names, name


def test_no_file_of_the_page_names_another_site_or_makes_html_of_a_text() -> None:
    for name, asset in shell.assets().items():
        text = asset.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//cdn|@import|url\(", text), name
        made = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|Function\("
        assert not re.search(made, text), name
        assert not re.search(r"\bstyle: [`\"']|setAttribute\(\"style\"", text), name


def test_the_page_is_small() -> None:
    sent = [in_bytes(get(f"/assets/{name}"), "gzip").body for name in shell.assets()]
    assert sum(map(len, sent)) <= MOST_BYTES


def test_what_is_sent_lacks_what_is_for_readers_of_the_source() -> None:
    source = (
        '// for readers\nconst a = "is, // no comment"; // is one\n\n  /** of\n   * b */\n'
        "  if (b && c !== 'it, is') d({ e: f ? -g - -1 : h });\n"
        "  const text = (one) => `a, ${b}`;\n  i = j.replace(/ , /g, k);\n"
        '  f(a, `b, ${c ? `d, e` : "f"}`, g); // "stays",\n  l\n  m()\n'
    )
    assert shortening.script(source) == (
        'const a="is, // no comment";\n'
        "if(b&&c!=='it, is')d({e:f?-g - -1:h});"
        "const text=(one)=>`a, ${b}`;i = j.replace(/ , /g, k);"
        'f(a, `b, ${c ? `d, e` : "f"}`, g); // "stays",\nl\nm()\n'
    )


def test_a_stylesheet_keeps_the_spaces_that_mean_something() -> None:
    source = "/* a */\na :focus, b > c {\n  width: calc(1px - 2px);\n}\n@media (width: 1px) {\n}\n"
    assert shortening.stylesheet(source) == (
        "a :focus,b > c{width:calc(1px - 2px);}@media (width:1px){}"
    )


def test_files_of_the_page_are_written_as_shortening_them_relies_on() -> None:
    for each in (files("hardsave.server.page") / "assets").iterdir():
        if each.name.endswith(".js"):
            lines = each.read_text("utf-8").splitlines()
            code = [line for line in lines if not line.lstrip().startswith(("//", "*", "/*"))]
            assert [line for line in code if line.count("`") % 2] == [], each.name


def test_a_file_that_a_browser_has_is_not_sent_again() -> None:
    first = get("/assets/main.js")
    tag = dict(first.headers)["ETag"]
    again = get("/assets/main.js", headers={"if-none-match": tag})
    assert (first.status, again.status, again.body) == (200, 304, b"")
    assert get("/assets/main.js", headers={"if-none-match": '"old"'}).status == 200
    assert dict(first.headers)["Cache-Control"] == "private, no-cache"


def test_a_file_with_the_hash_of_all_in_its_address_is_asked_for_once() -> None:
    kept = {
        version: dict(get(f"/assets/{version}/main.js").headers)["Cache-Control"]
        for version in (shell.version(), "0" * 20)
    }
    assert [("immutable" in how, "no-cache" in how) for how in kept.values()] == [
        (True, False),
        (False, True),  # of a page that is older or newer than this server
    ]
    assert f"assets/{shell.version()}/main.js" in str(get("/").body)


@pytest.mark.parametrize("name", ["nosuch.js", "index.html", "..", "../shell.py", "main.js/x"])
def test_only_files_of_the_page_are_served(name: str) -> None:
    found = find("GET", f"/assets/{name}")
    if found.route is not None:
        with pytest.raises(NotFound):
            get(f"/assets/{name}")


def test_behind_a_proxy_every_address_has_its_prefix() -> None:
    refused = answer(refusal(NotFound("gone")), None, "1", as_page=True, prefix=PROXY.prefix)
    pages = [render.login(PROXY.prefix, "k"), render.login(PROXY.prefix, ""), refused.body]
    for page in pages:
        addresses = Reader(page).addresses
        assert [each for each in addresses if not each.startswith("/hardsave/")] == []
    assert Reader(get("/", public=PROXY).body).of("base") == [{"href": "/hardsave/"}]


def test_what_a_caller_sent_is_text_on_pages_without_a_script() -> None:
    refused = answer(refusal(NotFound(HOSTILE)), None, "1", as_page=True)
    assert (refused.status, refused.media_type) == (404, HTML)
    shown = Reader(refused.body)
    assert "\\u202eevil\\u202c \\x1b[31mred" in shown.text
    for page in (shown, Reader(render.login("", HOSTILE))):
        own = [each.get("src") for each in page.of("script")]
        assert own == ["/assets/theme.js", "/assets/enter.js"]
        assert not any(name.startswith("on") for _, about in page.tags for name in about)
    assert Reader(render.login("", HOSTILE)).of("input")[0]["value"] == HOSTILE


def test_a_refusal_says_the_next_step() -> None:
    with hardsave.open("memory://") as vault, pytest.raises(NotFound) as caught:
        vault.jobs.get("other")
    refused = answer(refusal(caught.value), None, "1", as_page=True)
    assert "'hardsave jobs list --all' lists them" in Reader(refused.body).text
    stranger = Reader(render.refused("", "Unauthorized", "token", "…"))
    assert "hardsave ui" in stranger.text
    assert {"href": "/login"} in stranger.of("a")
