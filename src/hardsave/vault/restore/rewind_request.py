"""What a caller asks of a rewind, checked; and what it was promised: that the timeline is where it
has seen it, or that exactly what a dry run has told is done.

A plan is a text in three parts, digests of where the head was, of what was asked for, and of the
files and tasks as they were. A caller may keep it anywhere. Nothing of it is stored: it is worked
out again when it is to be applied, and compared.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from hardsave.errors import Conflict, Misuse
from hardsave.objects.hashing import digest
from hardsave.objects.records import CheckpointRecord, Id, TaskRecord, TimelineRecord
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.arguments import encoded, whole_id
from hardsave.vault.checkpoint import Checkpoint, Ref, named, record_of
from hardsave.vault.context import Context
from hardsave.vault.operations import FilesMove
from hardsave.vault.request_key import Request, request

if TYPE_CHECKING:
    from hardsave.vault.line_saves import Directory
    from hardsave.vault.restore.path_choice import Scope
    from hardsave.vault.restore.plan import RestorePlan
    from hardsave.vault.workspaces.place import Place

What = Literal["all", "state", "files"]

PLAN = "plan_"
_PART = 16  # hex digits


class How(NamedTuple):
    """What is to go back, and how."""

    what: What = "all"
    paths: tuple[bytes, ...] | None = None
    scope: "Scope | None" = None
    git: bool = False
    workspace: "Place | None" = None
    tasks: bool = False
    dry_run: bool = False
    kind: str | None = None
    expect: "Id | str | None" = None  # the head, or a plan
    request: Request | None = None  # None: it has no key

    def under(self, request: Request) -> "How":
        """The same, with the key of a request, if that has one."""
        return self._replace(request=request) if request.has_key else self

    @property
    def moves_head(self) -> bool:
        return self.what != "files" and self.paths is None

    @property
    def named(self) -> str:
        """The kind of the operation."""
        return self.kind or ("rewind" if self.moves_head else "restore")


def how(
    context: Context,
    what: Any,
    paths: "Sequence[str] | None",
    scope: Any,
    git: bool,
    workspace: "Directory | None",
) -> How:
    """What these arguments mean; `Misuse` if they do not go together."""
    if what not in get_args(What):
        raise Misuse(f"what is 'all', 'state' or 'files', not {what!r}")
    if scope not in (None, "mine", "everyone"):
        raise Misuse(f"scope is 'mine' or 'everyone', not {scope!r}")
    if isinstance(paths, str | bytes):
        raise Misuse(f"paths is a list of paths; write [{paths!r}]")
    if what == "state" and (git or (paths, scope, workspace) != (None, None, None)):
        raise Misuse(
            "paths, scope, git and workspace are about files; leave what='state' or these out"
        )
    place = None if workspace is None else context.places.at(workspace)
    given = None if paths is None else tuple(encoded(path, "the path") for path in paths)
    return How(what, given, scope, git, place)


def asked(
    context: Context,
    name: str,
    key: Any,
    how: How,
    ref: Ref | None,
    status: str | None,
    before: int | None,
) -> Request:
    """The request as its caller has put it; what it expects is no part of what is to be done. A dry
    run does nothing that could be done twice."""
    root = None if how.workspace is None else how.workspace.root
    said = (None if ref is None else named(ref), status, before)
    asked = request(context, key, "rewind", name, *said, *how[:4], root, how.tasks)
    return Request(asked.id) if how.dry_run else asked


class Planned(Protocol):
    """What a dry run returns, as far as this needs it."""

    @property
    def plan(self) -> str: ...


def expected(expect: Checkpoint | Planned | str | None) -> Id | str | None:
    """What `expect=` means: a head, or a plan."""
    if expect is None:
        return None
    if isinstance(expect, Checkpoint):
        return record_of(expect).id
    text: Any = expect if isinstance(expect, str) else getattr(expect, "plan", expect)
    if isinstance(text, str) and text.startswith(PLAN):
        if len(text) != len(PLAN) + 3 * _PART:
            raise Misuse(f"{text!r} is no plan of a rewind; take one of a dry run")
        return text
    return whole_id(text, "expect is a checkpoint, a whole id, or what a dry run has returned")


class Promise:
    """What one rewind was promised, and whether it still holds."""

    def __init__(self, context: Context, name: str, target: CheckpointRecord, how: How) -> None:
        self._context = context
        self._name = name
        self._target = target
        self._how = how
        self._head: Id | None = None  # that the timeline has to be at
        self.plan = ""  # what would be done, once that is known

    def meet(self, files: "RestorePlan | None", tasks: Sequence[TaskRecord]) -> None:
        """`Conflict` if what is about to be done is not what the caller expects."""
        standing = self._context.store.timeline(self._context.user, self._name)
        self._head = None if standing is None else standing.head
        parts = (
            _part(self._context.user, self._name, self._head),
            _part(self._target.id, *self._how[:4], self._root, self._how.tasks),
            _part(files and _done(files), [(task.name, task.epoch) for task in tasks]),
        )
        self.plan = PLAN + "".join(parts)
        if isinstance(self._how.expect, str):
            self._compare(self._how.expect)
        elif self._how.expect is not None and self._how.expect != self._head:
            raise self._moved(self._head)

    def check(self, standing: TimelineRecord, files: FilesMove | None = None) -> None:
        """`Conflict` if another process has moved the timeline since. What was saved of the present
        for this rewind alone does not count."""
        if self._how.expect is None:
            return
        head = standing.head
        if files is not None and files.made and head == files.before:
            head = self._context.history.at(files.before).parent
        if head != self._head:
            raise self._moved(head)

    @property
    def _root(self) -> bytes | None:
        return None if self._how.workspace is None else self._how.workspace.root

    def _compare(self, plan: str) -> None:
        same = [
            plan[at : at + _PART] == self.plan[at : at + _PART]
            for at in range(len(PLAN), len(plan), _PART)
        ]
        if not same[0]:
            raise self._moved(self._head)
        if not same[1]:
            raise Misuse(
                f"this plan is of another rewind of {self._name!r}; repeat the call of its dry "
                "run, with the same checkpoint and options"
            )
        if not same[2]:
            raise Conflict(
                f"the files or tasks that this rewind of {self._name!r} is about have changed "
                "since its dry run; look at a new one, then repeat"
            )

    def _moved(self, head: Id | None) -> Conflict:
        now = "has no head" if head is None else f"is at {to_text(head)}"
        return Conflict(
            f"timeline {self._name!r} {now} by now, which is not what this rewind expects; look at "
            "it again, then repeat"
        )


def _done(plan: "RestorePlan") -> object:
    """What a restore starts from, and what it does."""
    steps = [(step.do, step.path) for step in plan.files.steps]
    return plan.taken.snapshot, steps, None if plan.git is None else plan.git.as_dict()


def _part(*values: object) -> str:
    return digest(repr(values).encode("utf-8", "surrogatepass")).hex()[:_PART]
