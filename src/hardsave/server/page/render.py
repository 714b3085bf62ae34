"""Pages without a script: the login, and why a request was refused. Pure.

What a caller has sent is text: all of it is escaped here, and what would reorder or hide a text is
spelt out.
"""

from html import escape

from hardsave.wording import in_our_words, shown

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} · Hardsave</title>
<link rel="stylesheet" href="{prefix}/assets/style.css">
<link rel="icon" href="{prefix}/assets/icon.svg" type="image/svg+xml">
<script src="{prefix}/assets/theme.js"></script>
<script src="{prefix}/assets/enter.js"></script>
</head>
<body>
<header id="top"><a class="brand" href="{prefix}/">Hardsave</a></header>
<main id="main" tabindex="-1">
<div class="page narrow">
<h1>{title}</h1>
{content}
</div>
</main>
</body>
</html>
"""
_BY_LINK = (
    "<p>The link that <code>hardsave ui</code> or <code>hardsave serve</code> has printed lets "
    "this browser in, once.</p>"
)
_WITHOUT_LINK = (
    "<p>Open the link that <code>hardsave ui</code> prints, or paste a token from "
    '<code>hardsave token add</code>.</p>\n<p><label>Token <input type="password" name="token" '
    'autocomplete="off"></label></p>'
)
_STRANGER = (
    "<p>This page is for a browser that has logged in. Run <code>hardsave ui</code>, which opens "
    'it, or <a href="{prefix}/login">log in with a token</a>.</p>'
)


def login(prefix: str, key: str) -> str:
    """`key` is that of the link that was followed; without one it asks for a token."""
    hidden = f'<input type="hidden" name="key" value="{escape(key)}">'
    asked = f"{_BY_LINK}\n{hidden}" if key else _WITHOUT_LINK
    focus = " autofocus" if key else ""
    form = (
        f'<form method="post" action="{escape(prefix)}/login">\n{asked}\n'
        f'<p><button class="primary"{focus}>Log in</button></p>\n</form>'
    )
    return _page(prefix, "Log in", form)


def refused(prefix: str, title: str, code: str, detail: str) -> str:
    """Why a request was refused, and what to do next."""
    at = escape(prefix)
    if code == "token":
        return _page(prefix, title, _STRANGER.format(prefix=at))
    back = f'<a class="button" href="{at}/">Home</a>'
    again = f' <a class="button" href="{at}/login">Log in</a>' if code in ("login", "form") else ""
    said = escape(shown(in_our_words(detail)))
    return _page(prefix, title, f"<p>{said}</p>\n<p>{back}{again}</p>")


def _page(prefix: str, title: str, content: str) -> str:
    return _PAGE.format(prefix=escape(prefix), title=escape(title), content=content)
