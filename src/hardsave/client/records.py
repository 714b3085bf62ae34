"""What a server tells that the library has no record for, or has one that needs its store."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from hardsave.actor import signature
from hardsave.page import Page
from hardsave.record import Record
from hardsave.stores.results import Stats
from hardsave.tasks.stats import TaskStats
from hardsave.tasks.task import Task
from hardsave.timeline.diff import NO_FILES, FileDiff

if TYPE_CHECKING:
    from hardsave.vault.jobs.state import JobHealth
    from hardsave.vault.restore.not_saved import Checkout, NotSaved
    from hardsave.vault.restore.plan import FileChanges
    from hardsave.vault.restore.task_rollback import RolledBack


class _Signed(Protocol):
    """What an event needs of its checkpoint."""

    @property
    def by(self) -> str | None: ...


C = TypeVar("C")
S = TypeVar("S", bound=_Signed)


class ToolCall(Record):
    """A tool that a message calls."""

    tool: str
    arguments: str


class RemoteMessage(Record):
    """A message of an agent, in whichever shape its program keeps it."""

    number: int
    """Its place in the conversation, from 0."""
    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[str, ...] = ()
    is_cut: bool = False
    """Whether a text was too long for a list; `messages(…, full=True)` cuts none."""
    value: Any = None
    """The message as it was saved; only with `full=True`."""


class RemoteMessages(Page[RemoteMessage]):
    """Some messages of a conversation, in its order."""

    def __init__(
        self, items: Iterable[RemoteMessage], following: str | None, *, total: int, key: str | None
    ) -> None:
        super().__init__(items, following)
        self.total = total
        """How many the conversation has."""
        self.key = key
        """Under which key of the state they lie; None if there are none."""


class RemoteRewind(Record, Generic[C]):
    """What a rewind did, or would do. As `Rewind`."""

    timeline: str
    before: C | None
    """The head until then, or what was saved of the present before files were touched."""
    target: C
    """The checkpoint gone back to."""
    moved: bool
    """Whether the head moved: not if it was there already, or if this was a dry run."""
    files: "FileChanges | None" = None
    """What happened, or would happen, to files; None if none were to be restored."""
    tasks: "tuple[RolledBack, ...]" = ()
    """Those that are, or would be, rolled back."""
    plan: str = ""
    """Of a dry run: `rewind(…, expect=plan)` with the same arguments does what this tells, or
    refuses."""
    messages_left: int | None = None
    """How many messages the head has more than the target; None if that is not known."""

    @property
    def not_saved(self) -> "tuple[NotSaved, ...]":
        """Files that the target did not save and that do not come back."""
        return () if self.files is None else self.files.not_saved

    @property
    def checkout(self) -> "Checkout | None":
        """That git was on another branch then, and stays on the one it is on."""
        return None if self.files is None else self.files.checkout


class RemoteDiff(Record):
    """What changed from one checkpoint to another, or to the files on the server's disk. As `Diff`,
    with paths as people write them: `messages[3].content`."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    old_status: str
    new_status: str | None
    """None: it is compared with the disk."""
    files: FileDiff = NO_FILES
    is_cut: bool = False
    """Whether there are more paths of a kind than the `limit`."""

    def __bool__(self) -> bool:
        """Whether anything differs."""
        changes = bool(self.added or self.removed or self.changed or self.files)
        return changes or self.new_status not in (None, self.old_status)


class RemoteEvent(Record, Generic[S]):
    """Something that happened. A save has a checkpoint, everything else has data."""

    id: str
    """`follow(after=id)` goes on behind it. Of events that came together, all but the last have
    that of the one before them: some may come twice then, and none is missing."""
    kind: str
    """`checkpoint_saved`, `task_…`, or the kind of the entry in log or ledger."""
    timeline: str | None
    created_at: datetime
    checkpoint: S | None
    data: Mapping[str, Any] | None
    task: str | None = None
    """The id of the task that it happened to."""

    @property
    def by(self) -> str | None:
        """Who did it: see `hardsave.acting_as`. None if that was not said."""
        return signature(self.data) if self.checkpoint is None else self.checkpoint.by


class RemoteProject(Record):
    """A project that the server knows."""

    id: str
    """What `connect(…, project=id)` takes."""
    name: str
    directory: str | None = None
    is_here: bool = False
    updated_at: datetime | None = None


class RemoteApproval(Record):
    """A question that a person has to answer."""

    kind: str
    """`job`: `vault.jobs.approve` or `deny`; `task`: `vault.tasks.answer`."""
    id: str
    question: str
    task: Task
    timeline: str | None = None


class RemoteHealth(Record):
    """How the store of a project stands."""

    usable: bool
    store: Stats
    tasks: TaskStats
    jobs: "JobHealth"
    saves_missed: int = 0
    """By hooks, in any project of the server's user."""
    trouble: str | None = None
    """Why it is not usable, and what helps."""


class RemoteServer(Record):
    """The server that was connected to, and what this caller may do there."""

    version: str
    api: int
    caller: str
    """The name of the token."""
    scope: str
    """`read`, `act` or `admin`."""
    user: str | None = None
    project: str | None = None
    """The id of the project that calls are about, if none is named."""
    all_projects: bool = False
    host: str = ""
