"""ASCII letters for drawing characters that the terminal's encoding does not have. Pure."""

import codecs

SPELT = "hardsave.spelt"
"""How to encode what an encoding does not have: drawings by letters, all else written out."""

_LETTERS = dict(zip("─│├╯┴┼●○×▏…→←↑↓▸▾◂✓✗", "-||''|*ox|.><^v>v<+x", strict=True))


def _spelt(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    if (letter := _LETTERS.get(error.object[error.start])) is not None:
        return letter, error.start + 1
    error.end = error.start + 1  # behind it may be a drawing
    return codecs.backslashreplace_errors(error)


codecs.register_error(SPELT, _spelt)


def in_place(text: str, encoding: str) -> str:
    """The same with a letter for each that the encoding does not have, so that no line gets longer
    than it was measured."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_one(each, encoding) for each in text)
    return text


def _one(character: str, encoding: str) -> str:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return _LETTERS.get(character, "?")
    return character
