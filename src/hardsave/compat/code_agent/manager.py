"""CodeAgent's checkpoint manager, on the ledger of a vault.

Where the original falls short, this does what was meant: several servers may share a store,
a retry keeps its identity and counts on, a completed task is not started again unless that is
forced, everything that a dead server had begun is put back, settings are heeded, and damage is
an error, never an empty state. What the original only logs (an unknown id, a second start) is
logged, answered with False, and changes nothing.
"""

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hardsave
from hardsave import config
from hardsave.compat.code_agent.beside import StatusManager, tick_off
from hardsave.compat.code_agent.mirror import ENDINGS, Mirror
from hardsave.compat.code_agent.records import TaskCheckpoint, TaskState, checkpoint_of
from hardsave.compat.code_agent.taking_in import ONCE, take_in
from hardsave.errors import Conflict, Misuse, NotFound, Unavailable
from hardsave.page import every
from hardsave.stores.ledger import Work
from hardsave.tasks import acts, adding, names, reclaim, settings, states
from hardsave.tasks.executor import Runner
from hardsave.tasks.ledger import Tasks
from hardsave.tasks.task import view
from hardsave.vault.opening import open_project
from hardsave.workspace.git.exclude_file import exclude

VERSION = "1.0"
_PAGE = 500
_TAKEN_IN = "code agent"
_CALLED = "called"  # a task was, by another id than its own

_log = logging.getLogger(__name__)


class CheckpointManager:
    """The tasks of one project's server."""

    def __init__(
        self,
        project_dir: str | Path,
        checkpoint_file: str | None = None,
        *,
        store: str | None = None,
        status_manager: StatusManager | None = None,
    ) -> None:
        """`checkpoint_file` is seen from `project_dir`, and may be in a folder below it. Settings
        are those of the project, wherever the program was started: its `hardsave.yaml`, and the
        section `server.checkpoint` of `config/config.yaml` in `project_dir`."""
        self.project_dir = Path(project_dir)
        if not self.project_dir.is_dir():
            raise Misuse(f"{self.project_dir} is no directory; name that of the project")
        root = config.project_root(self.project_dir)
        self._settings = settings.of_project(root, os.environ, code_agent=self.project_dir)
        self._mirror = self._mirrored_in(checkpoint_file or self._settings.checkpoint_file)
        url = store if self.enabled else "memory://"
        self._vault = open_project(os.fspath(self.project_dir), url)
        self._tasks = Tasks(self._vault.tasks._context, self._settings, self._vault.store.upkeep)
        self._status = status_manager
        self._runner: Runner | None = None
        self._attempts: dict[str, hardsave.Attempt] = {}
        self._ids: dict[str, str] = {}  # that a text was added again with, and the task's own
        self._ids_read = 0  # up to which number of the ledger
        if self.enabled:
            exclude(self.checkpoint_file, ENDINGS)
            self._take_in()
            self._show()

    def _mirrored_in(self, name: str) -> Mirror:
        """A program that names a file elsewhere means that; a name below the project stays there,
        also if a folder of it is a link."""
        is_below = not os.path.isabs(name) and ".." not in Path(name).parts
        return Mirror(self.project_dir / name, self.project_dir if is_below else None)

    @property
    def checkpoint_file(self) -> Path:
        """Where the tasks are shown as JSON."""
        return self._mirror.path

    @property
    def backup_file(self) -> Path:
        """The same, one change older."""
        return self._mirror.backup

    @property
    def checkpoint_data(self) -> dict[str, Any]:
        """All that the file shows, as it is now. A copy: to change it changes no task."""
        return self._picture()

    @property
    def enabled(self) -> bool:
        """Whether the project's settings let anything be kept. If not, this forgets with its
        process, and finds no crash."""
        return self._settings.enabled

    def close(self) -> None:
        """Release the store. A server that was not stopped counts as one that crashed."""
        if self._runner is not None:
            self._runner.close(clean=False)
            self._runner = None
        self._tasks.close()
        self._vault.close()

    # The server

    def mark_server_start(self, session_id: str) -> None:
        """Begin a session. What a dead one had begun is put back to work."""
        if self._runner is not None:
            self.mark_server_stop(clean=True)
        self._runner = self._tasks.runner(session_id).__enter__()
        report = self._runner.report
        if not report.was_clean and self._status is not None:
            count = report.incomplete_count
            self._status.append_status(f"Recovered after a crash. Incomplete tasks: {count}", 2)
        self._say(f"Server started: session {session_id}")
        self._show()

    def mark_server_stop(self, clean: bool = True) -> None:
        """End the session. After an unclean stop the next start recovers what was under way."""
        if self._runner is None:
            _log.warning("there is no server to stop")
            return
        if clean:
            self._hand_back_all()
        self._attempts.clear()
        self._runner.close(clean=clean)
        self._runner = None
        self._say(f"Server stopped, {'cleanly' if clean else 'not cleanly'}")
        self._show()

    def _hand_back_all(self) -> None:
        for attempt in self._attempts.values():
            try:
                if not attempt.is_over:
                    attempt.hand_back()
            except Conflict as error:  # it was taken away, or cancelled
                _log.warning("%s", error)

    def was_clean_shutdown(self) -> bool:
        """Whether the last server has ended as it should. A store that was never used is clean."""
        begun, ended = self._latest("session_started"), self._latest("session_stopped")
        if begun is None:
            return True
        if ended is None or ended["number"] < begun["number"]:
            return False
        return bool(ended["about"]["clean"]) and not self._dead()

    def _dead(self) -> bool:
        context = self._tasks._context
        owners = context.store.owners(None)
        return any(fate.is_ == "dead" for _, fate in reclaim.fates(context, owners))

    def get_recovery_info(self) -> dict[str, Any]:
        """What the next start would find. Of a server that runs also what its own start has found:
        `was_clean_start`, and the tasks that it put back."""
        incomplete, failed = self.get_incomplete_tasks(), self.get_failed_tasks()
        began, ended = self._latest("session_started"), self._latest("session_stopped")
        info: dict[str, Any] = {
            "was_clean_shutdown": self.was_clean_shutdown(),
            "session_id": None if began is None else began["about"]["session"],
            "last_start_time": None if began is None else began["at"],
            "last_stop_time": None if ended is None else ended["at"],
            "iteration_count": self.get_iteration_count(),
            "current_task": self.get_current_task(),
            "interrupted_tasks": [t for t in incomplete if t.state is TaskState.IN_PROGRESS],
            "incomplete_tasks_count": len(incomplete),
            "failed_tasks_count": len(failed),
            "incomplete_tasks": incomplete,
            "failed_tasks": failed,
        }
        if self._runner is not None:
            report = self._runner.report
            info["was_clean_start"] = report.was_clean
            info["interrupted_tasks"] = [checkpoint_of(task) for task in report.interrupted]
        return info

    def reset_interrupted_task(self) -> bool:
        """Put back to work what this server has begun and what dead ones had; attempts stay
        counted. What another server is at work on stays. False if there was nothing to put back.

        A server that starts does this by itself, for the dead.
        """
        found = [task.id for task in self._tasks.recover().interrupted]
        found += [id for id, attempt in self._attempts.items() if self._is_put_back(attempt)]
        self._attempts.clear()
        if not found:
            _log.warning("no task was interrupted")
            return False
        return self._done(f"Tasks put back: {', '.join(found)}")

    def _is_put_back(self, attempt: hardsave.Attempt) -> bool:
        if attempt.is_over:
            return False
        context = self._tasks._context
        now = context.clock()
        try:
            acts.change(
                context, attempt.id, "interrupted", lambda task: (states.interrupted(task, now), [])
            )
        except Conflict as error:  # it was taken away, or cancelled
            _log.warning("%s", error)
            return False
        return True

    # Tasks

    def add_task(
        self, task_id: str, task_text: str, metadata: Mapping[str, Any] | None = None
    ) -> bool:
        """Add a task; False if its id or its text is there already, which changes nothing.

        The id stands for the task that has the text, from here on: a server that makes a new one
        for each try goes on with the same task, and its attempts are counted.
        """
        added = self._added(task_id, task_text, metadata)
        if not added.is_new:
            _log.warning("task %r is there already, as %r (%s)", task_id, added.id, added.state)
        self._show()
        return added.is_new

    def _added(
        self, task_id: str, task_text: str, metadata: Mapping[str, Any] | None = None
    ) -> hardsave.Task:
        found = self._standing(task_id, task_text)
        if found is None:
            found = self._tasks.add(task_id, task_text, metadata=metadata)
        if found.id != task_id and self._meant_by(task_id) != found.id:
            self._note_id(task_id, found.id)
        return found

    def _standing(self, task_id: str, task_text: str) -> hardsave.Task | None:
        with contextlib.suppress(NotFound):
            return self._tasks.get(task_id)
        return self._of_text(task_text)

    def _of_text(self, task_text: str) -> hardsave.Task | None:
        """The task that a text means; of several, which an old file may have, the last."""
        names.check_text("the text of a task", task_text)
        context = self._tasks._context
        found = context.store.task_by_key(None, adding.key_of(task_text))
        return None if found is None else view(found, context.codec)

    def mark_task_start(self, task_id: str, *, force: bool = False) -> bool:
        """Begin an attempt; False if it is not known, is done, or a server is at work on it."""
        known = self._known(task_id)
        if known is None or (known.state == "completed" and not force):
            if known is not None:
                _log.warning("task %r is completed; force=True runs it again", task_id)
            return False
        claim = self._tasks.claim if self._runner is None else self._runner.claim
        try:
            forced = force or known.state in ("failed", "rolled_back")
            self._attempts[known.id] = claim(known.id, force=forced, retry=ONCE)
        except Conflict as error:
            _log.warning("%s", error)
            return False
        return self._done(f"Task started: {task_id}")

    def mark_task_completed(self, task_id: str, result: Any = None) -> bool:
        """It is done; False if it is not known, or not ours any more."""
        return self._end(task_id, lambda attempt: attempt.complete(result), "completed")

    def mark_task_failed(self, task_id: str, error_message: str) -> bool:
        """It has failed; False if it is not known, or not ours any more."""
        return self._end(task_id, lambda attempt: attempt.fail(str(error_message)), "failed")

    def _end(self, task_id: str, end: Callable[[hardsave.Attempt], None], how: str) -> bool:
        known = self._known(task_id)
        if known is None:
            return False
        if known.id not in self._attempts and not self.mark_task_start(task_id):
            return False
        attempt = self._attempts.pop(known.id)
        try:
            end(attempt)
        except Conflict as error:
            _log.warning("%s", error)
            return False
        except BaseException:
            if not attempt.is_over:  # a result that is refused is no end
                self._attempts[known.id] = attempt
            raise
        return self._done(f"Task {how}: {task_id}")

    def start_task(self, item: str | Mapping[str, Any], task_id: str) -> bool:
        """Add a task if it is new, and begin it. An item of a list may be a mapping with a `text`;
        what else it has is the task's metadata."""
        about = dict(item) if isinstance(item, Mapping) else {"text": str(item)}
        self._added(task_id, str(about.pop("text", "")), about)
        return self.mark_task_start(task_id)

    def end_task(self, task_id: str, success: bool, error: str | None = None) -> bool:
        if success:
            return self.mark_task_completed(task_id)
        return self.mark_task_failed(task_id, error or "failed")

    def get_task(self, task_id: str) -> TaskCheckpoint | None:
        known = self._known(task_id)
        return None if known is None else checkpoint_of(known)

    def _find_task(self, task_id: str) -> TaskCheckpoint | None:
        """The same as `get_task`, by the name that CodeAgent's server calls."""
        return self.get_task(task_id)

    def get_current_task(self) -> TaskCheckpoint | None:
        """The one that was begun last, of those under way."""
        running = self._every("in_progress")
        return max(running, key=lambda task: task.start_time or _NEVER, default=None)

    def get_incomplete_tasks(self) -> list[TaskCheckpoint]:
        return self._every("pending") + self._every("in_progress")

    def get_failed_tasks(self) -> list[TaskCheckpoint]:
        return self._every("failed")

    def is_task_completed(self, task_text: str) -> bool:
        """Whether this text is done; its latest attempt decides."""
        found = self._of_text(task_text)
        return found is not None and found.state == "completed"

    def should_retry(self, task_id: str, max_attempts: int | None = None) -> bool:
        """Whether it has attempts left; False if it is not known."""
        known = self._known(task_id)
        if known is None:
            return False
        limit = self._settings.max_attempts if max_attempts is None else max_attempts
        return known.attempts < limit

    def should_retry_task(self, task_id: str, max_attempts: int | None = None) -> bool:
        """The same as `should_retry`."""
        return self.should_retry(task_id, max_attempts)

    def update_instruction_progress(
        self, task_id: str, instruction_num: int, total_instructions: int
    ) -> bool:
        """So many instructions of a task under way are done. The next attempt goes on from there;
        False if the task is not this server's."""
        known = self._known(task_id)
        attempt = None if known is None else self._attempts.get(known.id)
        if attempt is None:
            _log.warning("task %r was not begun here: its progress is not kept", task_id)
            return False
        try:
            attempt.progress(instruction_num, total_instructions)
        except Conflict as error:
            _log.warning("%s", error)
            return False
        self._show()
        return True

    def get_instruction_progress(self, task_id: str) -> dict[str, Any] | None:
        """How far its instructions have come, also before a crash; None if it is not known."""
        known = self._known(task_id)
        return None if known is None else checkpoint_of(known).instruction_progress

    def rollback_task(self, task_id: str) -> bool:
        """Mark that what it did was taken back."""
        known = self._known(task_id)
        if known is None:
            return False
        self._attempts.pop(known.id, None)
        self._tasks.roll_back(known.id)
        return self._done(f"Task rolled back: {task_id}")

    # Counting and cleaning

    def increment_iteration(self) -> int:
        count = self._tasks.iterate()
        self._show()
        return count

    def get_iteration_count(self) -> int:
        return self._tasks.iterations

    def get_statistics(self) -> dict[str, Any]:
        stats = self._tasks.stats()
        return {
            "total_tasks": stats.total,
            **{state.value: getattr(stats, state.value) for state in TaskState},
            "iteration_count": stats.iterations,
            "session_id": stats.session,
        }

    def clear_old_tasks(self, keep_last_n: int | None = None) -> int:
        """Forget completed tasks but for the newest; how many went."""
        count = self._tasks.forget(keep_completed=keep_last_n)
        self._show()
        return count

    def sync_todo(self, todo_file: str | Path) -> bool:
        """Tick off in a to-do list what is completed; whether anything changed."""
        path = Path(todo_file).resolve()
        before = path.read_bytes().decode(errors="surrogateescape")
        after = tick_off(before, {task.task_text for task in self._every("completed")})
        if after == before:
            return False
        # A name that cannot be guessed: one that came with the project might be a link elsewhere.
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        try:
            with open(descriptor, "wb") as file:
                file.write(after.encode(errors="surrogateescape"))
            shutil.copymode(path, temporary)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
        return True

    # Reading and showing

    def _known(self, task_id: str) -> hardsave.Task | None:
        try:
            return self._tasks.get(task_id)
        except NotFound as error:
            meant = self._meant_by(task_id)
            with contextlib.suppress(NotFound):
                if meant is not None:
                    return self._tasks.get(meant)
            _log.warning("%s", error)
            return None

    def _note_id(self, task_id: str, meant: str) -> None:
        """In the history of the task that it stands for, with which it goes: a server that makes a
        new id for each try may be started anew between two of them."""
        context = self._tasks._context
        record = context.store.task(context.user, meant)
        with contextlib.suppress(NotFound):  # it was forgotten just now
            context.commit(context.entry(_CALLED, record, {"id": task_id}), Work())
        self._ids[task_id] = meant

    def _meant_by(self, task_id: str) -> str | None:
        """The task that an id stands for. What this and other servers have noted since the last
        look is read when an id is not known."""
        while task_id not in self._ids:
            events = self._tasks.happened(self._ids_read)
            if not events:
                return None
            self._ids_read = events[-1].number
            noted = (each for each in events if each.kind == _CALLED and each.task is not None)
            self._ids |= {each.about["id"]: str(each.task) for each in noted}
        return self._ids[task_id]

    def _every(self, state: str) -> list[TaskCheckpoint]:
        found = every(lambda after: self._tasks.find(state=state, limit=_PAGE, after=after))
        return [checkpoint_of(task) for task in found]

    def _latest(self, kind: str) -> dict[str, Any] | None:
        found = self._tasks._latest(kind)
        if found is None:
            return None
        about = {"clean": True, **found.about}
        return {"number": found.number, "at": found.at, "about": about}

    def _done(self, line: str) -> bool:
        self._say(line)
        self._show()
        return True

    def _say(self, line: str) -> None:
        _log.info("%s", line)
        if self._status is not None:
            self._status.append_status(line, 0)

    def _show(self) -> None:
        if not self.enabled:
            return
        try:
            self._mirror.write(self._picture)
        except (
            OSError,
            Unavailable,
        ) as error:  # a picture: the work is in the store
            _log.warning("%s cannot be written: %s", self._mirror.path, error)

    def _picture(self) -> dict[str, Any]:
        began, ended = self._latest("session_started"), self._latest("session_stopped")
        current = self.get_current_task()
        return {
            "version": VERSION,
            "server_state": {
                "last_start_time": None if began is None else began["at"].isoformat(),
                "last_stop_time": None if ended is None else ended["at"].isoformat(),
                "clean_shutdown": self.was_clean_shutdown(),
                "iteration_count": self.get_iteration_count(),
            },
            "tasks": [task.to_dict() for state in TaskState for task in self._every(state.value)],
            "current_task": None if current is None else current.task_id,
            "session_id": None if began is None else began["about"]["session"],
            "last_update": datetime.now(UTC).isoformat(),
        }

    def _take_in(self) -> None:
        """A file from before there was a store: its tasks become ours. If that is interrupted, the
        next start goes on with it."""
        if self._tasks.bookmark(_TAKEN_IN) or self._latest("session_started") is not None:
            return
        if not self._mirror.is_within:  # `_show` reports that
            return
        found = self._mirror.found()
        take_in(self._tasks, [] if found is None else found["tasks"])
        self._tasks.bookmark(_TAKEN_IN, 1)


_NEVER = datetime.min.replace(tzinfo=UTC)
