"""Hardsave: checkpoints, recovery and time travel for AI agents.

    with hardsave.open() as vault:
        line = vault.timeline("session-1")
        line.save({"messages": [], "turn": 0})
        line.append({"messages": [{"role": "user", "content": "hello"}], "turn": 1})
        line.load()

A save that has returned is there after `kill -9` and after a power loss.
"""

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    import hardsave.aio as aio
    from hardsave.actor import acting_as
    from hardsave.errors import (
        Conflict,
        Corrupt,
        DeadlineExceeded,
        HardsaveError,
        LeaseLost,
        Misuse,
        NotFound,
        StepsChanged,
        StepUnknown,
        Unavailable,
        Unstorable,
        WorkspaceTaken,
    )
    from hardsave.objects.diff import StatePath
    from hardsave.objects.redaction import Redaction, Rule
    from hardsave.objects.types import register
    from hardsave.objects.view import StateList, StateMap
    from hardsave.page import Page
    from hardsave.progress import CallProgress, deadline, on_progress
    from hardsave.stores.results import Collected, Report, Stats
    from hardsave.tasks.attempt import Attempt
    from hardsave.tasks.child_lock import ChildLock, Survivors
    from hardsave.tasks.executor import Runner
    from hardsave.tasks.ledger import Tasks
    from hardsave.tasks.recovery import DeadSession, OutlivedTask, RecoveryReport
    from hardsave.tasks.retry import Retry
    from hardsave.tasks.stats import TaskEvent, TaskStats
    from hardsave.tasks.task import Progress, Task
    from hardsave.timeline.diff import Diff, FileDiff
    from hardsave.timeline.policy import Policy, Thin
    from hardsave.timeline.refs import checkpoint_id
    from hardsave.timeline.retention import RetentionChoice, RetentionPlan, RetentionRow
    from hardsave.timeline.step_summary import FileCounts, StepSummary
    from hardsave.timeline.summary import TimelineSummary
    from hardsave.values.spelling import from_json, to_json
    from hardsave.vault.checkpoint import Checkpoint
    from hardsave.vault.events import SaveFailed
    from hardsave.vault.files import File, Files, GitState, LeftOut
    from hardsave.vault.history.bisect import Bisected, BisectTry
    from hardsave.vault.history.file_history import FileVersion
    from hardsave.vault.history.follow import Event, Following
    from hardsave.vault.history.graph import GraphNode
    from hardsave.vault.history.session_list import Session
    from hardsave.vault.jobs.ledger import Jobs
    from hardsave.vault.jobs.spec import JobResumption, JobSpec
    from hardsave.vault.jobs.state import Job, JobHealth
    from hardsave.vault.line import Timeline
    from hardsave.vault.opening import open_vault as open
    from hardsave.vault.opening import repair_store as repair
    from hardsave.vault.purge.purge import Purged
    from hardsave.vault.restore.git_position import GitChanges
    from hardsave.vault.restore.guard import Guard
    from hardsave.vault.restore.not_saved import Checkout, NotSaved
    from hardsave.vault.restore.path_choice import Kept
    from hardsave.vault.restore.plan import FileChanges
    from hardsave.vault.restore.rewind import Rewind
    from hardsave.vault.restore.task_rollback import RolledBack
    from hardsave.vault.restore.undo import Operation
    from hardsave.vault.retention.retain import Retained
    from hardsave.vault.retention.upkeep import Upkept
    from hardsave.vault.save.captured import CapturedFiles
    from hardsave.vault.save.request import ANY_HEAD
    from hardsave.vault.search.search import Hit, Hits
    from hardsave.vault.store import Retention, VaultStore
    from hardsave.vault.transfer.transfer import Exported, Imported
    from hardsave.vault.vault import Vault
    from hardsave.vault.verify.verify import Verification
    from hardsave.vault.workspace import Fork, Watching, Workspace, WorkspaceStatus
    from hardsave.workspace.git_restore.left_behind import GitCommit

    __version__: str

# Where each name is at home. It is loaded when it is first asked for: a hook that hands its work to
# the daemon needs none of them, and asyncio takes a while to load for every program.
_HOMES = {
    "hardsave.actor": ("acting_as",),
    "hardsave.errors": (
        "Conflict",
        "Corrupt",
        "DeadlineExceeded",
        "HardsaveError",
        "LeaseLost",
        "Misuse",
        "NotFound",
        "StepUnknown",
        "StepsChanged",
        "Unavailable",
        "Unstorable",
        "WorkspaceTaken",
    ),
    "hardsave.objects.diff": ("StatePath",),
    "hardsave.objects.redaction": ("Redaction", "Rule"),
    "hardsave.objects.types": ("register",),
    "hardsave.objects.view": ("StateList", "StateMap"),
    "hardsave.page": ("Page",),
    "hardsave.progress": ("CallProgress", "deadline", "on_progress"),
    "hardsave.stores.results": ("Collected", "Report", "Stats"),
    "hardsave.tasks.attempt": ("Attempt",),
    "hardsave.tasks.child_lock": ("ChildLock", "Survivors"),
    "hardsave.tasks.executor": ("Runner",),
    "hardsave.tasks.ledger": ("Tasks",),
    "hardsave.tasks.recovery": ("DeadSession", "OutlivedTask", "RecoveryReport"),
    "hardsave.tasks.retry": ("Retry",),
    "hardsave.tasks.stats": ("TaskEvent", "TaskStats"),
    "hardsave.tasks.task": ("Progress", "Task"),
    "hardsave.timeline.diff": ("Diff", "FileDiff"),
    "hardsave.timeline.policy": ("Policy", "Thin"),
    "hardsave.timeline.refs": ("checkpoint_id",),
    "hardsave.timeline.retention": ("RetentionChoice", "RetentionPlan", "RetentionRow"),
    "hardsave.timeline.step_summary": ("FileCounts", "StepSummary"),
    "hardsave.timeline.summary": ("TimelineSummary",),
    "hardsave.values.spelling": ("from_json", "to_json"),
    "hardsave.vault.history.bisect": ("BisectTry", "Bisected"),
    "hardsave.vault.save.captured": ("CapturedFiles",),
    "hardsave.vault.checkpoint": ("Checkpoint",),
    "hardsave.vault.restore.path_choice": ("Kept",),
    "hardsave.vault.events": ("SaveFailed",),
    "hardsave.vault.history.file_history": ("FileVersion",),
    "hardsave.vault.files": ("File", "Files", "GitState", "LeftOut"),
    "hardsave.vault.history.follow": ("Event", "Following"),
    "hardsave.vault.history.graph": ("GraphNode",),
    "hardsave.vault.restore.guard": ("Guard",),
    "hardsave.vault.jobs.ledger": ("Jobs",),
    "hardsave.vault.jobs.spec": ("JobResumption", "JobSpec"),
    "hardsave.vault.jobs.state": ("Job", "JobHealth"),
    "hardsave.vault.line": ("Timeline",),
    "hardsave.vault.restore.not_saved": ("Checkout", "NotSaved"),
    "hardsave.vault.opening": ("open_vault", "repair_store"),
    "hardsave.vault.purge.purge": ("Purged",),
    "hardsave.vault.restore.git_position": ("GitChanges",),
    "hardsave.vault.restore.plan": ("FileChanges",),
    "hardsave.vault.retention.retain": ("Retained",),
    "hardsave.vault.restore.rewind": ("Rewind",),
    "hardsave.vault.restore.task_rollback": ("RolledBack",),
    "hardsave.vault.save.request": ("ANY_HEAD",),
    "hardsave.vault.search.search": ("Hit", "Hits"),
    "hardsave.vault.history.session_list": ("Session",),
    "hardsave.vault.store": ("Retention", "VaultStore"),
    "hardsave.vault.transfer.transfer": ("Exported", "Imported"),
    "hardsave.vault.restore.undo": ("Operation",),
    "hardsave.vault.retention.upkeep": ("Upkept",),
    "hardsave.vault.vault": ("Vault",),
    "hardsave.vault.verify.verify": ("Verification",),
    "hardsave.vault.workspace": ("Fork", "Watching", "Workspace", "WorkspaceStatus"),
    "hardsave.workspace.git_restore.left_behind": ("GitCommit",),
}
_CALLED = {"open": "open_vault", "repair": "repair_store"}  # there, where `open` is Python's own

__all__ = [
    "ANY_HEAD",
    "Attempt",
    "BisectTry",
    "Bisected",
    "CallProgress",
    "CapturedFiles",
    "Checkout",
    "Checkpoint",
    "ChildLock",
    "Collected",
    "Conflict",
    "Corrupt",
    "DeadSession",
    "DeadlineExceeded",
    "Diff",
    "Event",
    "Exported",
    "File",
    "FileChanges",
    "FileCounts",
    "FileDiff",
    "FileVersion",
    "Files",
    "Following",
    "Fork",
    "GitChanges",
    "GitCommit",
    "GitState",
    "GraphNode",
    "Guard",
    "HardsaveError",
    "Hit",
    "Hits",
    "Imported",
    "Job",
    "JobHealth",
    "JobResumption",
    "JobSpec",
    "Jobs",
    "Kept",
    "LeaseLost",
    "LeftOut",
    "Misuse",
    "NotFound",
    "NotSaved",
    "Operation",
    "OutlivedTask",
    "Page",
    "Policy",
    "Progress",
    "Purged",
    "RecoveryReport",
    "Redaction",
    "Report",
    "Retained",
    "Retention",
    "RetentionChoice",
    "RetentionPlan",
    "RetentionRow",
    "Retry",
    "Rewind",
    "RolledBack",
    "Rule",
    "Runner",
    "SaveFailed",
    "Session",
    "StateList",
    "StateMap",
    "StatePath",
    "Stats",
    "StepSummary",
    "StepUnknown",
    "StepsChanged",
    "Survivors",
    "Task",
    "TaskEvent",
    "TaskStats",
    "Tasks",
    "Thin",
    "Timeline",
    "TimelineSummary",
    "Unavailable",
    "Unstorable",
    "Upkept",
    "Vault",
    "VaultStore",
    "Verification",
    "Watching",
    "Workspace",
    "WorkspaceStatus",
    "WorkspaceTaken",
    "acting_as",
    "aio",
    "checkpoint_id",
    "deadline",
    "from_json",
    "on_progress",
    "open",
    "register",
    "repair",
    "to_json",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        """A name that is asked for the first time. The next time it is here."""
        import importlib

        if name == "aio":
            return importlib.import_module("hardsave.aio")
        if name == "__version__":
            from importlib.metadata import version

            return version("hardsave")
        there = _CALLED.get(name, name)
        home = next((home for home, names in _HOMES.items() if there in names), None)
        if name not in __all__ or home is None:
            raise AttributeError(f"module 'hardsave' has no attribute {name!r}")
        found = getattr(importlib.import_module(home), there)
        globals()[name] = found
        return found
