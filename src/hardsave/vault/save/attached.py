"""Labels and notes: small things that belong to a checkpoint beside its state.

A label is a text under a key, given with the save, and checkpoints are found by it. A note is data
under a key, put with the checkpoint or later, replaced by its key, and gone with it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

from hardsave.defaults import MAX_LABELS, MAX_NAME, MAX_NOTE_BYTES, MAX_NOTE_KEY
from hardsave.errors import Misuse
from hardsave.objects.records import Id, Labels, Note
from hardsave.page import Page, cursor_of
from hardsave.progress import check_deadline
from hardsave.timeline import names
from hardsave.tuples import NamedTuple
from hardsave.vault import fencing
from hardsave.vault.arguments import check_limit, cursor
from hardsave.vault.checkpoint import Checkpoint, Ref
from hardsave.vault.context import Context


class Attached(NamedTuple):
    """What is committed with a checkpoint, redacted and checked."""

    labels: Labels
    notes: tuple[Note, ...]


def attached(
    context: Context, labels: Mapping[str, str] | None, notes: Mapping[str, Any] | None
) -> Attached | None:
    """None: there is nothing."""
    if labels is None and notes is None:
        return None
    return Attached(labels_of(context, labels), notes_of(context, notes))


def labels_of(context: Context, given: Mapping[str, str] | None) -> Labels:
    """Labels as they are kept and looked for: without secrets, in the order of their keys."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise Misuse(f"labels is a dict of texts, not {type(given).__name__}")
    if len(given) > MAX_LABELS:
        raise Misuse(f"a checkpoint has at most {MAX_LABELS} labels, not {len(given)}")
    for key, value in given.items():
        names.check_label(key)
        names.check_label_value(value)
    redacted = context.objects.redacted
    return tuple(sorted((key, redacted(value)) for key, value in given.items()))


def notes_of(context: Context, given: Mapping[str, Any] | None) -> tuple[Note, ...]:
    """Notes as they are kept: encoded, without secrets, in the order in which they are given."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise Misuse(f"notes is a dict, not {type(given).__name__}")
    encode = context.objects.codec.encode
    notes = []
    for key, value in given.items():
        data = encode(value, f"notes[{names.check_note(key)!r}]")
        if len(data) > MAX_NOTE_BYTES:
            raise Misuse(f"a note takes at most {MAX_NOTE_BYTES:,} bytes; use the state")
        notes.append(Note(key, data))
    return tuple(notes)


def put_notes(context: Context, ref: Ref, given: Mapping[str, Any], *, replace: bool) -> None:
    if given is None:
        raise Misuse("notes is a dict, not None")
    notes = notes_of(context, given)
    record = context.find(ref)
    if notes:
        fencing.check(context)
        context.store.put_notes(context.user, record.id, notes, replace=replace)


def without_text(
    context: Context,
    ids: Collection[Id],
    text: Callable[[str], str],
    value: Callable[[bytes], bytes],
) -> tuple[dict[Id, Labels], dict[Id, list[Note]]]:
    """What has to be written for these checkpoints to have no labels and notes with a text; `text`
    and `value` take it out of texts and of encoded values."""
    labels, notes = {}, {}
    for id, held in context.store.labels(context.user, ids).items():
        keys = _apart([key for key, _ in held], text, MAX_NAME)
        clean = tuple(sorted((keys[key], text(each)) for key, each in held))
        if clean != held:
            labels[id] = clean
    for id, put in context.store.notes(context.user, ids).items():
        keys = _apart([key for key, _ in put], text, MAX_NOTE_KEY)
        changed = [Note(keys[key], value(data)) for key, data in put]
        if changed != put:
            pairs = [pair for pair in zip(put, changed, strict=True) if pair[0] != pair[1]]
            gone = [Note(old.key, b"") for old, new in pairs if old.key != new.key]
            notes[id] = gone + [new for _, new in pairs]
    return labels, notes


def _apart(keys: Sequence[str], text: Callable[[str], str], longest: int) -> dict[str, str]:
    """What keys become without a text. Those that would be equal are numbered, as under one key
    only the last of their values would stay. No number may bring the text back."""
    became = {key: key for key in keys if text(key) == key}
    taken = set(became)
    for key in keys:
        if key not in became:
            clean = text(key)
            endings = ("" if at == 1 else str(at) for at in count(1))
            tried = (clean[: longest - len(ending)] + ending for ending in endings)
            became[key] = next(new for new in tried if new not in taken and text(new) == new)
            taken.add(became[key])
    return became


def labelled(
    context: Context, given: Mapping[str, str], limit: int, after: str | None
) -> Page[Checkpoint]:
    """Checkpoints of all timelines that have these labels, the last saved first."""
    check_deadline()
    check_limit(limit)
    labels = labels_of(context, given)
    if not labels:
        raise Misuse("labels names at least one label; timelines are listed by vault.timelines()")
    listing = f"labelled {context.user!r} {labels!r}"
    rows = context.store.labelled(context.user, labels, cursor(after, listing), limit + 1)
    shown = [context.checkpoint(row) for row in rows[:limit]]
    following = cursor_of(listing, rows[limit - 1].number) if len(rows) > limit else None
    return Page(shown, following)
