"""The page of all public names, put together from what stands in the code.

`python -m tests.docs.reference` writes it anew.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import hardsave
from hardsave.vault.events import EventName
from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "reference.md"
SOURCE = ROOT / "src" / "hardsave"

_BEGINNING = """\
# Reference

All names that a program uses, with their parameters, as they stand in the code
(`python -m tests.docs.reference` writes this page). What they are for is shown in the
[README](../README.md) and in [howto](howto); the words are those of the [glossary](glossary.md).
All times are UTC, and a time without a zone that you give is local.

A *ref* names a checkpoint: `@` is the head of the timeline, `@~2` is two before it (its parent's
parent), `chk_…` is an id or its beginning, `session-1:7` number 7 of a timeline, `:7` number 7
of this one, and anything else is a name. In Python a `Checkpoint` is a ref, too. `expect` is the
head that a save builds on: None means the one that this handle saw last, `hardsave.ANY_HEAD`
whichever there is.

**Coroutines.** `hardsave.aio` has the same names: `hardsave.aio.open()` gives a vault whose methods
are awaited, also `await vault.timeline(name)`, `await vault.workspace(path)` and `await line.head`.
Timelines, operations and ancestors come by `async for`; `await line.count()` stands for
`len(line)`. A state is read by `await line.load()` or `await checkpoint.read(…)`, never lazily, and
files through `checkpoint.sync`. Handlers of events, and handlers and steps of tasks
(`hardsave.aio.Attempt`), may be coroutine functions.

**Results** are immutable records: their fields are read by name, `result.replace(name=value)` makes
another one, and none can be unpacked by position, so a field that is added later breaks no program.
Where a listing is shown in parts, it is a `Page`, with the `next` one.

**What is public** is what this page names: `hardsave`, `hardsave.aio`, `hardsave.runtime`,
`hardsave.runtime.loop`, `hardsave.runtime.scripted`, `hardsave.client` and the packages of
`hardsave.compat`, each with the names in its `__all__`. Every other module may change.
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_HALVES = {  # what a class inherits, and tells as its own
    "TimelineSaves": "vault/line_saves",
    "JobReads": "vault/jobs/reads",
}
_INSIDE = {"lost", "suspects", "scalar", "keys"}


class Part(NamedTuple):
    """Some names that belong together."""

    title: str
    names: tuple[tuple[str, str], ...]  # (file, class or function)


PARTS = (
    Part(
        "Opening a store",
        (
            ("vault/opening", "open_vault"),
            ("vault/opening", "repair_store"),
        ),
    ),
    Part("Vault", (("vault/vault", "Vault"),)),
    Part(
        "Timeline",
        (
            ("vault/line", "Timeline"),
            ("vault/restore/guard", "Guard"),
            ("timeline/summary", "TimelineSummary"),
            ("vault/history/graph", "GraphNode"),
            ("vault/history/session_list", "Session"),
        ),
    ),
    Part(
        "Checkpoint",
        (
            ("vault/checkpoint", "Checkpoint"),
            ("timeline/step_summary", "StepSummary"),
            ("timeline/step_summary", "FileCounts"),
            ("objects/view", "StateMap"),
            ("objects/view", "StateList"),
            ("page", "Page"),
            ("timeline/refs", "checkpoint_id"),
        ),
    ),
    Part("Classes of your own", (("objects/types", "Types.register"),)),
    Part("Values as JSON", (("values/spelling", "to_json"), ("values/spelling", "from_json"))),
    Part(
        "Files",
        (
            ("vault/workspace", "Workspace"),
            ("vault/workspace", "WorkspaceStatus"),
            ("vault/save/captured", "CapturedFiles"),
            ("vault/workspace", "Fork"),
            ("vault/workspace", "Watching"),
            ("vault/files", "Files"),
            ("vault/files", "File"),
            ("vault/files", "LeftOut"),
            ("vault/files", "GitState"),
        ),
    ),
    Part(
        "The store as a whole",
        (
            ("vault/store", "VaultStore"),
            ("vault/store", "Retention"),
            ("progress", "on_progress"),
            ("progress", "deadline"),
            ("actor", "acting_as"),
            ("progress", "CallProgress"),
        ),
    ),
    Part(
        "Tasks",
        (
            ("tasks/ledger", "Tasks"),
            ("tasks/executor", "Runner"),
            ("tasks/attempt", "Attempt"),
            ("tasks/child_lock", "ChildLock"),
            ("tasks/child_lock", "Survivors"),
            ("tasks/task", "Task"),
            ("tasks/task", "Progress"),
            ("tasks/retry", "Retry"),
            ("tasks/stats", "TaskEvent"),
            ("tasks/stats", "TaskStats"),
            ("tasks/recovery", "RecoveryReport"),
            ("tasks/recovery", "DeadSession"),
            ("tasks/recovery", "OutlivedTask"),
        ),
    ),
    Part(
        "Jobs",
        (
            ("vault/jobs/ledger", "Jobs"),
            ("vault/jobs/state", "Job"),
            ("vault/jobs/state", "JobHealth"),
            ("vault/jobs/spec", "JobSpec"),
            ("vault/jobs/spec", "JobResumption"),
        ),
    ),
    Part(
        "Agents",
        (
            ("runtime/loop/run", "run"),
            ("runtime/loop/run", "run_sync"),
            ("runtime/loop/__init__", "if_unknown"),
            ("runtime/coding/tools", "coding_tools"),
            ("runtime/webhooks/signature", "verify_webhook"),
            ("runtime/loop/run", "Outcome"),
            ("runtime/loop/approvals", "ApprovalNeeded"),
            ("runtime/loop/approvals", "PendingCall"),
            ("runtime/jobs/worker", "Worker"),
        ),
    ),
    Part(
        "Client",
        (
            ("client/__init__", "connect"),
            ("client/vault", "RemoteVault"),
            ("client/line", "RemoteTimeline"),
            ("client/checkpoint", "RemoteCheckpoint"),
            ("client/files", "RemoteFiles"),
            ("client/tasks", "RemoteTasks"),
            ("client/jobs", "RemoteJobs"),
            ("client/follow", "RemoteFollowing"),
            ("client/records", "RemoteEvent"),
            ("client/records", "RemoteMessages"),
            ("client/records", "RemoteMessage"),
            ("client/records", "ToolCall"),
            ("client/records", "RemoteRewind"),
            ("client/records", "RemoteDiff"),
            ("client/records", "RemoteApproval"),
            ("client/records", "RemoteProject"),
            ("client/records", "RemoteHealth"),
            ("client/records", "RemoteServer"),
        ),
    ),
    Part(
        "What is kept, and what is left out",
        (
            ("timeline/policy", "Policy"),
            ("timeline/policy", "Thin"),
            ("objects/redaction", "Redaction"),
            ("objects/redaction", "Rule"),
        ),
    ),
    Part(
        "What comes back",
        (
            ("timeline/diff", "Diff"),
            ("timeline/diff", "FileDiff"),
            ("vault/history/file_history", "FileVersion"),
            ("objects/diff", "StatePath"),
            ("vault/restore/rewind", "Rewind"),
            ("vault/restore/plan", "FileChanges"),
            ("vault/restore/not_saved", "NotSaved"),
            ("vault/restore/not_saved", "Checkout"),
            ("vault/restore/path_choice", "Kept"),
            ("vault/restore/git_position", "GitChanges"),
            ("workspace/git_restore/left_behind", "GitCommit"),
            ("vault/restore/task_rollback", "RolledBack"),
            ("vault/restore/undo", "Operation"),
            ("vault/history/bisect", "Bisected"),
            ("vault/history/bisect", "BisectTry"),
            ("vault/search/search", "Hit"),
            ("vault/search/search", "Hits"),
            ("vault/history/follow", "Following"),
            ("vault/history/follow", "Event"),
            ("vault/events", "SaveFailed"),
            ("vault/verify/verify", "Verification"),
            ("vault/transfer/transfer", "Exported"),
            ("vault/transfer/transfer", "Imported"),
            ("timeline/retention", "RetentionPlan"),
            ("timeline/retention", "RetentionChoice"),
            ("timeline/retention", "RetentionRow"),
            ("vault/retention/retain", "Retained"),
            ("vault/purge/purge", "Purged"),
            ("vault/retention/upkeep", "Upkept"),
            ("stores/results", "Stats"),
            ("stores/results", "Collected"),
            ("stores/results", "Report"),
        ),
    ),
)
_CALLED = {
    "checkpoint_id": "hardsave.checkpoint_id",
    "connect": "hardsave.client.connect",
    "open_vault": "hardsave.open",
    "repair_store": "hardsave.repair",
    "Types.register": "hardsave.register",
    "to_json": "hardsave.to_json",
    "from_json": "hardsave.from_json",
    "on_progress": "hardsave.on_progress",
    "deadline": "hardsave.deadline",
    "acting_as": "hardsave.acting_as",
    "run": "hardsave.runtime.loop.run",
    "run_sync": "hardsave.runtime.loop.run_sync",
    "if_unknown": "hardsave.runtime.loop.if_unknown",
    "coding_tools": "hardsave.runtime.coding_tools",
    "verify_webhook": "hardsave.runtime.verify_webhook",
}


def page() -> str:
    """The whole page."""
    return _BEGINNING + "".join([_part(part) for part in PARTS]) + _events() + _errors()


def named() -> set[str]:
    """The names of the front door that the page explains."""
    told = {_CALLED.get(name, name).rpartition(".")[2] for part in PARTS for _, name in part.names}
    return told | {error.__name__ for error, _ in _tree(hardsave.HardsaveError)}


def _part(part: Part) -> str:
    text = f"\n## {part.title}\n\n"
    for file, name in part.names:
        node = _node(file, name)
        if isinstance(node, Function):
            text += _line(node, _CALLED[name])
            continue
        if name != part.title or (file, name) != part.names[0]:
            text = f"{text.rstrip()}\n\n### {name}\n\n"
        text += f"{_doc(node)}\n" + "".join(_members(node))
    return text


def _node(file: str, name: str) -> ast.ClassDef | Function:
    """A class or function of a file, or, with a dot, a function of a class."""
    tree = ast.parse((SOURCE / f"{file}.py").read_text())
    outer, _, inner = name.partition(".")
    found = _among(tree.body, outer)
    return _among(found.body, inner) if inner else found


def _among(nodes: list[ast.stmt], name: str) -> ast.ClassDef | Function:
    (found,) = (
        node for node in nodes if isinstance(node, ast.ClassDef | Function) and node.name == name
    )
    return found


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Its public fields, properties and methods, in the order of the code."""
    lines = []
    halves = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in _HALVES]
    body = [each for base in halves for each in _node(_HALVES[base], base).body] + node.body
    for at, each in enumerate(body):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            if not each.target.id.startswith("_"):
                lines.append(_field(each, body[at + 1 : at + 2]))
        elif isinstance(each, Function) and _is_told(each):
            lines.append(_line(each, each.name))
    if lines:
        yield "\n"
        yield from lines


def _is_told(function: Function) -> bool:
    if function.name.startswith("_") or function.name in _INSIDE:
        return False
    return "overload" not in map(ast.unparse, function.decorator_list)


def _field(field: ast.AnnAssign, following: list[ast.stmt]) -> str:
    default = "" if field.value is None else f" = {ast.unparse(field.value)}"
    text = f"- `{ast.unparse(field.target)}: {_type(field.annotation)}{default}`"
    match following:
        case [ast.Expr(value=ast.Constant(value=str() as told))]:
            return f"{text}: {_joined(told)}\n"
    return f"{text}\n"


def _line(function: Function, name: str) -> str:
    """One function or property: how it is called, and the first words on it."""
    gives = "" if function.returns is None else _type(function.returns)
    if "property" in map(ast.unparse, function.decorator_list):
        return f"- `{name}: {gives}`{_said(function)}\n"
    awaited = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    given = ", ".join(_given(function.args))
    return f"- `{awaited}{name}({given}) -> {gives}`{_said(function)}\n"


def _given(given: ast.arguments) -> Iterator[str]:
    """The parameters, without `self`."""
    without = len(given.args) - len(given.defaults)
    for at, each in enumerate(given.args):
        if each.arg != "self":
            yield _parameter(each, given.defaults[at - without] if at >= without else None)
    if given.vararg is not None:
        yield f"*{given.vararg.arg}"
    elif given.kwonlyargs:
        yield "*"
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(each, default)
    if given.kwarg is not None:
        yield f"**{given.kwarg.arg}"


def _parameter(parameter: ast.arg, default: ast.expr | None) -> str:
    kind = "" if parameter.annotation is None else f": {_type(parameter.annotation)}"
    return parameter.arg + kind + ("" if default is None else f" = {ast.unparse(default)}")


def _type(annotation: ast.expr) -> str:
    """As it reads without the quotes of what is not loaded yet."""
    return ast.unparse(annotation).replace("'", "")


def _said(function: Function) -> str:
    text = _doc(function)
    return f": {text}" if text else ""


def _doc(node: ast.ClassDef | Function) -> str:
    """The first paragraph of what it says about itself."""
    return _joined((ast.get_docstring(node) or "").partition("\n\n")[0])


def _joined(text: str) -> str:
    return " ".join(text.split())


def _tree(error: type[Exception], depth: int = 0) -> Iterator[tuple[type[Exception], int]]:
    """An error and those below it that the front door has."""
    yield error, depth
    for below in sorted(error.__subclasses__(), key=lambda each: each.__name__):
        if below.__name__ in hardsave.__all__:
            yield from _tree(below, depth + 1)


def _events() -> str:
    events = ", ".join(f"`{name}`" for name in get_args(EventName))
    return f"\n## Events\n\n`vault.on(event, handler)` knows: {events}.\n"


def _errors() -> str:
    text = "\n## Errors\n\n"
    for error, depth in _tree(hardsave.HardsaveError):
        told = _joined((inspect.getdoc(error) or "").partition("\n\n")[0])
        text += f"{'  ' * depth}- `{error.__name__}`: {told}\n"
    return text


if __name__ == "__main__":
    Path(PAGE).write_text(page())
