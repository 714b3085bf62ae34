"""The manager of the checkpoint skill, over a vault."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import hardsave
from hardsave.aio.pool import to_the_end
from hardsave.compat.skill.mirror import PLACE, Mirror
from hardsave.compat.skill.records import (
    KEPT,
    Checkpoint,
    Context,
    FeatureState,
    GitState,
    check_type,
    features,
    id_for,
)
from hardsave.errors import Corrupt, NotFound
from hardsave.objects import depth
from hardsave.timeline.refs import to_text
from hardsave.tuples import NamedTuple
from hardsave.vault.opening import open_project
from hardsave.workspace.filesystem.bounded_read import read_path
from hardsave.workspace.git.exclude_file import exclude

FEATURES = "feature_list.json"
PROGRESS = "claude-progress.txt"
TIMELINE = "checkpoints"
_RECORD = "skill"
_PAGE = 200
_LARGEST_LIST = 16 << 20

Scope = Literal["mine", "everyone"]

Provider = Callable[[], Mapping[str, Any]]
"""What a state tracker tells: `session_number`, `token_usage`, `current`, `completed`."""


class Rollback(NamedTuple):
    """What a rollback did."""

    checkpoint: Checkpoint
    safety: str | None
    """What was there before, as a checkpoint of the vault; None if nothing had to change."""
    created: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    """Left as they are; see `hardsave log`."""


class CheckpointManager:
    """The checkpoints of one project. Threads and tasks may share it."""

    def __init__(
        self,
        project_dir: str | os.PathLike[str],
        *,
        vault: hardsave.Vault | str | None = None,
        feature_list: str = FEATURES,
        progress_file: str = PROGRESS,
        state: Provider | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`vault` is an open one, the URL of a store, or None for the project's own."""
        self._project = Path(project_dir).resolve()
        if not isinstance(vault, hardsave.Vault):
            vault = open_project(os.fspath(self._project), vault)
        self._vault = vault
        self._features = feature_list
        self._progress = progress_file
        self._state = state
        self._clock = clock
        self._lock = threading.RLock()
        self._guarding: set[str] = set()  # what a block under way may have to go back to
        self._mirror = Mirror(self._project, [Path(feature_list).name, Path(progress_file).name])
        self._line = vault.timeline(TIMELINE)
        self._workspace = vault.workspace(
            self._project, include=(feature_list, progress_file), leave_out=(f"{PLACE}/",)
        )
        exclude(self._project / PLACE, ["/"])
        self._mend()

    @property
    def vault(self) -> hardsave.Vault:
        return self._vault

    # Creating

    async def create_checkpoint(
        self,
        name: str,
        description: str = "",
        type: str = "manual",
        *,
        session_number: int | None = None,
        token_usage: int | None = None,
    ) -> Checkpoint:
        """Save all files, with the feature list, the progress file and where the work stands."""
        context = Context(session_number, token_usage)
        return await asyncio.to_thread(self._create, name, description, type, context)

    def _create(self, name: str, description: str, type: str, context: Context) -> Checkpoint:
        check_type(type)
        with self._lock:
            moment = self._clock()
            id = id_for(moment, {record.id for record in self._records()})
            told = dict(self._state()) if self._state is not None else {}
            record = Checkpoint(
                id=id,
                name=name,
                description=description,
                type=type,
                timestamp=moment.astimezone(UTC).isoformat(),
                git_state=self._git_state(),
                feature_state=self._feature_state(id, told),
                context=_context(context, told),
            )
            saved = self._line.save(
                {_RECORD: record.to_dict()},
                name=name,
                kind=type,
                description=description,
                metadata={_RECORD: id},
                workspace=self._workspace,
            )
            self._check(saved)
            record = replace(record, ref=saved.id)
            self._mirror.write(record, self._copies(saved))
            self._let_go()
            return record

    def _git_state(self) -> GitState:
        status = self._workspace.status()
        if status.git is None:
            return GitState()
        return GitState(status.git.commit, status.git.branch, self._workspace.dirty_files())

    def _feature_state(self, id: str, told: Mapping[str, Any]) -> FeatureState:
        data = self._read(self._features)
        found = FeatureState()
        if data is not None:
            try:
                found = features(depth.loads(data))
            except ValueError:
                found = FeatureState()  # not JSON: it is kept as it is all the same
        path = None if data is None else self._mirror.path(id, Path(self._features).name)
        return FeatureState(
            told.get("current", found.current),
            list(told.get("completed", found.completed)),
            path,
        )

    def _read(self, name: str) -> bytes | None:
        return read_path(self._project / name, limit=_LARGEST_LIST).data

    def _copies(self, saved: hardsave.Checkpoint) -> dict[str, bytes]:
        """The feature list and the progress file, as the checkpoint has them."""
        files = saved.files
        if files is None:
            return {}
        found = [
            file
            for name in (self._features, self._progress)
            if name in files
            for file in files.list(name)
        ]
        return {
            Path(file.path).name: files.read(file.path) for file in found if file.kind == "file"
        }

    def _check(self, saved: hardsave.Checkpoint) -> None:
        """What cannot be restored is no checkpoint."""
        found = self._vault.store.verify(saved.id)
        if not found.ok:
            raise Corrupt(f"checkpoint {saved.id} is damaged: {found.faults[0]}")

    def _let_go(self) -> None:
        """Of automatic ones the last 5 stay, of sessions the last 3, and what a guard needs."""
        policy = hardsave.Policy(timelines={TIMELINE}, per_kind=dict(KEPT))
        plan = self._vault.retention.plan(policy)
        drops = [each for each in plan.drops if to_text(each.row.id) not in self._guarding]
        self._vault.retention.apply(plan.replace(drops=tuple(drops)))
        self._tidy(self._records())

    # Looking

    async def list_checkpoints(self, type: str | None = None) -> list[Checkpoint]:
        """Newest first."""
        found = await asyncio.to_thread(lambda: list(self._records()))
        return [record for record in found if type in (None, record.type)]

    async def get_checkpoint(self, id: str) -> Checkpoint | None:
        return await asyncio.to_thread(self._find, id)

    async def delete_checkpoint(self, id: str) -> bool:
        """Whether there was one. `undo` brings it back."""
        return await asyncio.to_thread(self._delete, id)

    def _delete(self, id: str) -> bool:
        with self._lock:
            record = self._find(id)
            if record is None:
                return False
            self._vault.delete(record.ref)
            self._tidy(self._records())
            return True

    def _find(self, id: str) -> Checkpoint | None:
        return next((one for one in self._records() if id in (one.id, one.ref)), None)

    def _records(self) -> Iterator[Checkpoint]:
        """Newest first; what rollbacks have saved on their own is among them."""
        after: str | None = None
        while True:
            page = self._line.checkpoints(limit=_PAGE, after=after)
            for saved in page:
                yield _record(saved)
            after = page.next
            if after is None:
                return

    # Rolling back

    async def rollback(
        self, checkpoint_id: str, *, git: bool = False, scope: Scope | None = None
    ) -> Rollback:
        """Bring all files back as they were. What is there is saved first; `undo` brings it back.

        Ignored files stay. With `git`, HEAD, its branch and the index go back too. If other
        sessions have changed the project since, it refuses, unless `scope` is "mine" or
        "everyone".
        """
        return await asyncio.to_thread(self._rollback, checkpoint_id, git, scope)

    async def rollback_to_latest(
        self, type: str | None = None, *, git: bool = False, scope: Scope | None = None
    ) -> Rollback:
        """To the newest checkpoint that was asked for, of one type if it is named."""
        latest = await asyncio.to_thread(self._latest, type)
        return await self.rollback(latest.id, git=git, scope=scope)

    async def undo(self) -> None:
        """Take the latest rollback back."""
        await asyncio.to_thread(self._line.undo)

    async def redo(self) -> None:
        await asyncio.to_thread(self._line.redo)

    def _latest(self, type: str | None) -> Checkpoint:
        for saved in self._line.checkpoints(limit=_PAGE):
            if _RECORD in saved.metadata and type in (None, saved.kind):
                return _record(saved)
        what = "checkpoint" if type is None else f"{type} checkpoint"
        raise NotFound(f"this project has no {what} yet; create one first")

    def _rollback(self, id: str, git: bool, scope: Scope | None) -> Rollback:
        with self._lock:
            record = self._find(id)
            if record is None:
                raise NotFound(f"there is no checkpoint {id!r}; see list_checkpoints()")
            target = self._vault.get(record.ref)
            self._check(target)
            done = self._line.rewind(target.id, workspace=self._workspace, git=git, scope=scope)
            files = done.files
            if files is None:
                return Rollback(record, None, (), (), (), ())
            kept = tuple(f"{each.path}: {each.reason}" for each in files.kept)
            safety = done.before.id if files and done.before is not None else None
            self._mend()
            return Rollback(record, safety, files.created, files.changed, files.removed, kept)

    @asynccontextmanager
    async def guard(self, name: str, description: str = "") -> AsyncIterator[Checkpoint]:
        """A risky operation: a checkpoint before it, a rollback if it raises. What other sessions
        have changed meanwhile stays, and a note on the exception says so."""
        checkpoint = await self.create_checkpoint(name, description, "automatic")
        self._guarding.add(checkpoint.ref)
        try:
            yield checkpoint
        except BaseException as error:
            loop = asyncio.get_running_loop()
            back = partial(self._take_back, checkpoint.id, error)
            done = await to_the_end(loop.run_in_executor(None, back))
            if done.kept:
                error.add_note(f"not taken back by the guard: {'; '.join(done.kept)}")
            raise
        finally:
            self._guarding.discard(checkpoint.ref)

    def _take_back(self, id: str, error: BaseException) -> Rollback:
        """What the block left is saved first, or it could not be told from other sessions' work."""
        with self._lock:
            why = f"{type(error).__name__}: {error}"[:500]
            self._line.save_files(self._workspace, status="failed", description=why)
            return self._rollback(id, git=False, scope="mine")

    # What others of the skill's family call

    async def before_change(self, description: str) -> Checkpoint:
        """For a coding agent, before it changes something."""
        return await self.create_checkpoint("before-change", description, "automatic")

    async def recover(self, error: BaseException | str) -> Rollback:
        """For an error recoverer: back to the latest checkpoint."""
        del error  # what went wrong does not change where to go back to
        return await self.rollback_to_latest()

    async def session_started(self, number: int) -> Checkpoint:
        """For a loop, at the start of a session."""
        name = f"session-{number}"
        return await self.create_checkpoint(name, type="session", session_number=number)

    async def feature_completed(self, feature: str) -> Checkpoint:
        """For a loop, after a feature is complete. Kept for good."""
        return await self.create_checkpoint(feature, f"{feature} is complete", "feature")

    def track(self, state: Provider) -> None:
        """For a state tracker: what it tells goes into each checkpoint."""
        self._state = state

    def close(self) -> None:
        self._vault.close()

    def _mend(self) -> None:
        """Write what is missing or damaged in the mirror."""
        records = list(self._records())
        for record in records:
            if not self._mirror.is_whole(record):
                self._mirror.write(record, self._copies(self._vault.get(record.ref)))
        self._tidy(records)

    def _tidy(self, records: Iterable[Checkpoint]) -> None:
        self._mirror.keep((record.id for record in records), self._vault.knows)


def _record(saved: hardsave.Checkpoint) -> Checkpoint:
    """The skill's record of a checkpoint; one that a rollback has made gets one too."""
    if _RECORD in saved.metadata:
        return replace(Checkpoint.from_dict(saved.read(_RECORD)), ref=saved.id)
    moment = saved.created_at
    git = saved.git
    return Checkpoint(
        id=f"{id_for(moment, ())}-{saved.seq}",
        name=saved.name or "safety",
        description=saved.description,
        type=saved.kind,
        timestamp=moment.isoformat(),
        git_state=GitState() if git is None else GitState(git.commit, git.branch),
        ref=saved.id,
    )


def _context(given: Context, told: Mapping[str, Any]) -> Context:
    session, tokens = given.session_number, given.token_usage
    return Context(
        told.get("session_number") if session is None else session,
        told.get("token_usage") if tokens is None else tokens,
    )
