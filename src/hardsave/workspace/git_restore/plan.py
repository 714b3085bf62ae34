"""What a restore of a git position would do, decided before anything is done. Pure.

From where a repository stands to where it stood: HEAD, the branches that belong to it, the
index, the notes of unfinished work. What the present names and the target does not is
pinned first, so that `git gc` cannot take it. A stored position is untrusted, so the
target is judged here before anything of it is believed.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from hardsave.errors import Corrupt, Misuse, NotFound
from hardsave.tuples import NamedTuple
from hardsave.workspace.git import index, unfinished
from hardsave.workspace.git import refs as git_refs
from hardsave.workspace.git.position import GitPosition, rebased
from hardsave.workspace.git_restore import staged_contents
from hardsave.workspace.git_restore.staged_contents import Content

_SHARED_INDEX = re.compile(r"sharedindex\.[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")

# Notes that are nothing but ids of objects.
_NEEDED = frozenset(
    ["MERGE_HEAD", "MERGE_AUTOSTASH", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer/head"]
    + [f"rebase-{how}/{name}" for how in ("merge", "apply") for name in ("onto", "orig-head")]
    + [f"rebase-{how}/autostash" for how in ("merge", "apply")]
)
_USEFUL = frozenset(["ORIG_HEAD", "AUTO_MERGE", "REBASE_HEAD"])  # git does without
_REFS_OF_NOTES = ("refs/bisect/", "refs/rewritten/")


class FileChange(NamedTuple):
    """A file in the worktree's own git directory. None: there is none."""

    path: str
    before: bytes | None
    after: bytes | None


class RefMove(NamedTuple):
    """A branch that is moved, made or removed. None: it has no commit."""

    ref: str
    before: str | None
    after: str | None


class Pin(NamedTuple):
    """An object that the present names, and the name under which it is kept."""

    name: str  # below refs/hardsave/ID/
    id: str


class GitPlan(NamedTuple):
    """The way from one position to another."""

    files: tuple[FileChange, ...]  # in order; the index and HEAD last
    refs: tuple[RefMove, ...]
    logs: tuple[RefMove, ...]  # what the reflogs will say; HEAD first
    pins: tuple[Pin, ...]
    staged: tuple[Content, ...]  # in the present's index that are not in the target's
    needs: tuple[str, ...]  # objects without which the target is none
    contents: tuple[Content, ...]  # the same, of its index; a partial clone may lack them
    switch: tuple[str, str] | None  # from which branch or commit to which HEAD is switched
    before: str | None  # what is unfinished: a merge, a rebase
    after: str | None

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.refs


def plan_git(present: GitPosition, target: GitPosition) -> GitPlan:
    """From the `present`, captured with `also=branches(target)`, to the `target`.

    Raises `NotFound` if either is not whole, `Corrupt` if the target contradicts itself or
    would write what no position holds, `Misuse` if they cannot be of one repository.
    """
    _refuse_parts(present, "the present")
    _refuse_parts(target, "the target")
    if present.hash_name != target.hash_name:
        raise Misuse(
            f"the target is of a repository with {target.hash_name}, and this one has "
            f"{present.hash_name}; restore the files without git"
        )
    _judge(target)
    files, moves = changes(present, target)
    staged, contents = staged_contents.differing(present, target)
    return GitPlan(
        files=files,
        refs=moves,
        logs=(*_log_of_head(present, target), *moves),
        pins=tuple(_pins(present, target)),
        staged=tuple(sorted(staged)),
        needs=tuple(sorted({*_needed(target)})),
        contents=tuple(sorted(contents)),
        switch=_switch(present, target),
        before=_operation(present),
        after=_operation(target),
    )


def changes(
    present: GitPosition, target: GitPosition
) -> tuple[tuple[FileChange, ...], tuple[RefMove, ...]]:
    """What is to be written, and nothing else of a plan."""
    return tuple(_changes(present, target)), _moves(present, target)


def branches(target: GitPosition) -> tuple[str, ...]:
    """The branches that a restore of this position sets: the present must know them too."""
    return tuple(sorted(_branches(target)))


def _operation(position: GitPosition) -> str | None:
    return unfinished.operation(file.path for file in position.files)


def _branches(position: GitPosition) -> dict[str, str | None]:
    own = {} if position.ref is None else {position.ref: position.commit}
    return {**dict(position.refs), **own}


# What is refused


def _refuse_parts(position: GitPosition, what: str) -> None:
    for missed in position.not_captured:
        raise NotFound(
            f"{what} does not hold all of its git position: {missed.path}: {missed.reason}; "
            "restore the files without git"
        )


def _judge(target: GitPosition) -> None:
    said = git_refs.target(target.head, target.hash_name)
    ref = None if said.ref is None else os.fsdecode(said.ref)
    commit = None if said.commit is None else said.commit.decode()
    if said.problem or ref != target.ref or (ref is None and commit != target.commit):
        raise _unusable(f"the stored HEAD is none: {target.head[:80]!r}")
    for name, id in _branches(target).items():
        is_branch = name.startswith("refs/heads/") and git_refs.is_name(os.fsencode(name))
        if not is_branch or not (id is None or _is_id(id, target.hash_name)):
            raise _unusable(f"the stored position moves {name!r} to {id!r}, which is no branch")
    for file in target.files:
        if not unfinished.is_known(os.fsencode(file.path)):
            raise _unusable(f"the stored position would write {file.path!r} into the repository")
    if {*rebased(target.files)} - {*_branches(target)}:
        raise _unusable("the stored position does not hold the branch that its rebase moves")
    if target.shared_index and not _SHARED_INDEX.fullmatch(target.shared_index.path):
        raise _unusable(f"the stored position would write {target.shared_index.path!r}")


def _unusable(why: str) -> Corrupt:
    return Corrupt(f"{why}; restore the files without git")


def _is_id(text: str, hash_name: str) -> bool:
    width = 2 * index.HASH_BYTES[hash_name]
    return len(text) == width and _ID.fullmatch(text.encode("ascii", "replace")) is not None


# What changes


def _moves(present: GitPosition, target: GitPosition) -> tuple[RefMove, ...]:
    now, then = _branches(present), _branches(target)
    if unknown := then.keys() - now.keys():
        raise Misuse(
            f"the present was captured without {', '.join(sorted(unknown))}; "
            "capture it with also=branches(target)"
        )
    return tuple(RefMove(ref, now[ref], then[ref]) for ref in sorted(then) if now[ref] != then[ref])


def _log_of_head(present: GitPosition, target: GitPosition) -> Iterator[RefMove]:
    if (present.head, present.commit) != (target.head, target.commit):
        yield RefMove("HEAD", present.commit, target.commit)


def _switch(present: GitPosition, target: GitPosition) -> tuple[str, str] | None:
    if present.head == target.head or not present.commit or not target.commit:
        return None
    return present.branch or present.commit, target.branch or target.commit


def _changes(present: GitPosition, target: GitPosition) -> Iterator[FileChange]:
    """Notes first, HEAD last: a git that runs in between sees where the repository still is."""
    now, then = own_files(present), own_files(target)
    if target.shared_index is not None and present.shared_index != target.shared_index:
        yield FileChange(target.shared_index.path, None, target.shared_index.data)
    for path in sorted(
        now.keys() | then.keys(), key=lambda path: (path in ("index", "HEAD"), path)
    ):
        before, after = now.get(path), then.get(path)
        if before != after and path != "HEAD":
            yield FileChange(path, before, after)
    if present.head != target.head:
        yield FileChange("HEAD", present.head, target.head)


def own_files(position: GitPosition) -> dict[str, bytes]:
    """Every file of a position in the worktree's own git directory, but a shared index."""
    found = {file.path: file.data for file in position.files} | {"HEAD": position.head}
    return found if position.own_index is None else found | {"index": position.own_index}


# What must not be lost, and what must be there


def _pins(present: GitPosition, target: GitPosition) -> Iterator[Pin]:
    """All but what a branch or the same note still names: git gc goes by branches, not by notes."""
    same = {*_named(target)}
    seen = {id for id in (*_branches(target).values(), target.commit) if id is not None}
    for name, id in _named(present):
        if id not in seen and (name, id) not in same:
            seen.add(id)
            is_name = git_refs.is_name(os.fsencode(f"refs/{name}"))
            yield Pin(name if is_name else f"other-{id}", id)


def _named(position: GitPosition) -> Iterator[tuple[str, str]]:
    """Every object that a position names, but the contents of its index."""
    if position.commit is not None:
        yield "HEAD", position.commit
    for ref, commit in position.refs:
        if commit is not None:
            yield ref.removeprefix("refs/"), commit
    for file in position.files:
        if file.path in _NEEDED | _USEFUL or file.path.startswith(_REFS_OF_NOTES):
            for number, id in enumerate(_ids(file.data, position.hash_name)):
                name = file.path.removeprefix("refs/")
                yield (f"{name}-{number + 1}" if number else name), id


def _needed(position: GitPosition) -> Iterator[str]:
    yield from filter(None, _branches(position).values())
    if position.commit is not None:
        yield position.commit
    for file in position.files:
        if file.path in _NEEDED or file.path.startswith(_REFS_OF_NOTES):
            yield from _ids(file.data, position.hash_name)


def _ids(data: bytes, hash_name: str) -> list[str]:
    words = [word.decode("ascii", "replace") for word in data.split()]
    return [word for word in words if _is_id(word, hash_name) and any(c != "0" for c in word)]


# What is between two positions


def changed_by_others(now: GitPosition, present: GitPosition, target: GitPosition) -> list[str]:
    """What is neither as the present has it nor as the target does: another program changed it."""
    found = [missed.path for missed in now.not_captured]
    places: Iterable[tuple[Mapping[str, object], ...]] = (
        tuple(_without_index(each) for each in (now, present, target)),
        tuple(_of(_branches(each), branches(target)) for each in (now, present, target)),
    )
    for here, ours, theirs in places:
        paths = sorted(here.keys() | ours.keys() | theirs.keys())
        found += [
            each for each in paths if here.get(each) not in (ours.get(each), theirs.get(each))
        ]
    if now.own_index != target.own_index and not staged_contents.are_same(now, present):
        found.append("index")
    return found


def _of(values: Mapping[str, object], chosen: Iterable[str]) -> dict[str, object]:
    return {name: values.get(name) for name in chosen}


def _without_index(position: GitPosition) -> dict[str, bytes]:
    found = own_files(position)
    found.pop("index", None)
    return found
