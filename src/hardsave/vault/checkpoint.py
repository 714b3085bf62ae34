"""A checkpoint as people hold it in their hands."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hardsave.errors import Misuse, NotFound
from hardsave.objects.records import CheckpointRecord
from hardsave.objects.view import plain, view
from hardsave.timeline import step_summary
from hardsave.timeline.refs import to_text
from hardsave.timeline.step_summary import StepSummary
from hardsave.vault.objects import Objects

if TYPE_CHECKING:
    from hardsave.vault.files import Files, GitState, LeftOut
    from hardsave.vault.workspaces.places import Places


class Checkpoint:
    """An immutable record. Its state is read when it is touched, and only as far as that."""

    __slots__ = ("_objects", "_places", "_record", "_user")

    def __init__(
        self, record: CheckpointRecord, objects: Objects, user: str | None, places: "Places"
    ) -> None:
        self._record = record
        self._objects = objects
        self._user = user
        self._places = places

    @property
    def id(self) -> str:
        return to_text(self._record.id)

    @property
    def timeline(self) -> str:
        """The timeline that it was saved on."""
        return self._record.timeline

    @property
    def seq(self) -> int:
        """Its number on that timeline."""
        return self._record.seq

    @property
    def parent(self) -> str | None:
        return None if self._record.parent is None else to_text(self._record.parent)

    @property
    def created_at(self) -> datetime:
        return datetime.fromtimestamp(self._record.created_at / 1_000_000, UTC)

    @property
    def name(self) -> str | None:
        return self._record.name

    @property
    def kind(self) -> str:
        return self._record.kind

    @property
    def status(self) -> str:
        return self._record.status

    @property
    def description(self) -> str:
        return self._record.description

    @property
    def summary(self) -> StepSummary | None:
        """What is new in it, as lists tell it; None if it was saved before there were summaries, or
        none could be made of its state."""
        data = self._record.summary
        return None if data is None else step_summary.decode(data)

    @property
    def by(self) -> str | None:
        """Who saved it: see `hardsave.acting_as`. None if that was not said."""
        summary = self.summary
        return None if summary is None else summary.by or None

    @property
    def user(self) -> str | None:
        return self._user

    @property
    def metadata(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._objects.codec.decode(self._record.metadata)
        return found

    @property
    def labels(self) -> Mapping[str, str]:
        """The texts that it is found by."""
        return self._objects.labels_of(self._record)

    @property
    def notes(self) -> Mapping[str, Any]:
        """What was put beside it, with it or later, in the order in which the keys first came."""
        return self._objects.notes_of(self._record)

    @property
    def state(self) -> Any:
        """The state, lazily: `state["messages"][-20:]` reads twenty messages."""
        return view(self._objects.reader_of(self._record), self._record.root)

    @property
    def files(self) -> "Files | None":
        """The captured files, lazily; None if it was saved without."""
        address, workspace = self._record.snapshot, self._record.workspace
        if address is None or workspace is None:
            return None
        from hardsave.vault.files import Files  # few programs look at files

        where = self._places.shown(workspace)
        return Files(address, where, self._objects.fetch_of(self._record))

    @property
    def git(self) -> "GitState | None":
        """Where the repository stood; None without files, or without a repository."""
        return None if (files := self.files) is None else files.git

    @property
    def not_captured(self) -> "tuple[LeftOut, ...]":
        """Paths of the workspace that are not in it, each with its reason."""
        return () if (files := self.files) is None else files.not_captured

    @property
    def task(self) -> str | None:
        """The id of the task whose attempt saved it; None if none did."""
        return self._record.task

    @property
    def attempt(self) -> int | None:
        """Which attempt at that task it was, from 1."""
        return self._record.attempt or None

    def read(self, *path: Any) -> Any:
        """The plain value at a path of keys, indexes and slices: `read("messages", -1)`."""
        return plain(reached(self, path))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Checkpoint) and self._record.id == other._record.id

    def __hash__(self) -> int:
        return hash(self._record.id)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<checkpoint {self.id} {self.timeline}:{self.seq}{name}>"


def reached(checkpoint: Checkpoint, path: Sequence[Any]) -> Any:
    """What lies at a path of a state, lazily if it is large."""
    value = checkpoint.state
    for at, step in enumerate(path):
        try:
            value = value[step]
        except (KeyError, IndexError) as error:
            raise NotFound(f"{checkpoint.id} has no {path[: at + 1]} in its state") from error
        except TypeError as error:
            raise Misuse(f"{path[: at + 1]} leads into a {type(value).__name__}") from error
    return value


def record_of(checkpoint: Checkpoint) -> CheckpointRecord:
    """The row behind a checkpoint, for code of this package."""
    return checkpoint._record


Ref = Checkpoint | str
"""What names a checkpoint: one that is at hand, or a text such as `@~2`."""


def named(ref: Ref) -> str:
    """The text that names it."""
    return ref.id if isinstance(ref, Checkpoint) else ref
