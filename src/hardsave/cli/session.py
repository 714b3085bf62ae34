"""What a command works with: the vault it is about, opened when first asked for, and its output."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import hardsave
from hardsave import config, wording
from hardsave.cli import current_timeline, waiting
from hardsave.cli.current_timeline import TimelineState
from hardsave.cli.hints import Invocation, quoted
from hardsave.cli.known_timelines import NEWEST, KnownTimelines
from hardsave.cli.render import refs as shown
from hardsave.cli.render.output import Output
from hardsave.errors import HardsaveError, Misuse, NotFound, Unavailable
from hardsave.page import every
from hardsave.timeline import refs, short_names
from hardsave.tuples import NamedTuple
from hardsave.vault.workspaces import projects

if TYPE_CHECKING:
    from hardsave.cli.moments import Moments
    from hardsave.client import RemoteJobs, RemoteVault
    from hardsave.vault.workspace import Workspace

_PAGE = 1_000
_PERHAPS = "; undo may bring it back"  # what the library says, which does not know where


class Settings(NamedTuple):
    """What a command was told."""

    store: str | None = None
    timeline: str | None = None  # as it was typed: a name, or the beginning of one
    as_json: bool = False
    invocation: Invocation = Invocation()
    timeline_of_run: str | None = None  # HARDSAVE_TIMELINE, by its whole name
    server: str | None = None  # to be asked instead of a store


class Session:
    """One command. Leaving it closes the vault."""

    def __init__(
        self, settings: Settings, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.settings = settings
        self.out = Output(as_json=settings.as_json, invocation=settings.invocation)
        self.now = clock()
        self.may_create_store = False
        self.reads_only = False
        self.may_make_timeline = False
        """Whether a timeline that is named may be a new one: then no beginnings count."""
        self.may_name_deleted = False
        """Whether a timeline that is named may be one that was deleted."""
        self._refused: Unavailable | None = None
        self._resources = ExitStack()
        self._naming = ExitStack()
        settings.invocation.short_name = self.shown_name

    def __enter__(self) -> "Session":
        self._naming.enter_context(shown.called_by(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            with suppress(HardsaveError, OSError):  # names are looked up while there is a store
                self.out.in_context(str(error))
        self.close()
        self._naming.close()

    def close(self) -> None:
        """Close the vault, before this process forks or becomes another program."""
        self._resources.close()
        self.timelines.forget_states()
        for cached in (
            "vault",
            "remote",
            "timelines_here",
            "workspace",
            "line",
            "timeline_given",
            "_callers",
        ):
            self.__dict__.pop(cached, None)

    # The store

    @property
    def url(self) -> str:
        """The store that was named, or else this project's own."""
        named = self.settings.store or os.environ.get(config.STORE_VARIABLE, "")
        return projects.store_url({**os.environ, config.STORE_VARIABLE: named}, Path.cwd())

    @property
    def canonical_url(self) -> str:
        """The store, as tokens and secrets name it. One that was named has to be there."""
        if self.settings.store or os.environ.get(config.STORE_VARIABLE):
            _ = self.vault
        return config.canonical(self.url)

    @property
    def store_path(self) -> Path | None:
        """Its main file; None if it is none."""
        from hardsave.stores import registry

        return Path(registry.file_path(self.url)) if registry.is_file(self.url) else None

    @cached_property
    def vault(self) -> hardsave.Vault:
        """Opened when first asked for. Looking makes no store: an empty one stands in for it."""
        path = self.store_path
        if path is None:
            self._settle()
        if path is None or self.may_create_store or projects.is_there(path):
            # Without a name it is opened as this project's own, and so remembered as that.
            named = self.url if self.settings.store else None
            return self._resources.enter_context(hardsave.open(named))
        if self.settings.store or os.environ.get(config.STORE_VARIABLE):
            raise NotFound(
                f"there is no store {str(path)!r}; if it was moved, name where it is now; "
                "'hardsave save' makes a new one"
            )
        projects.own_store(os.environ, Path.cwd())  # it may be elsewhere, if the project was moved
        return self._resources.enter_context(hardsave.open("memory://"))

    def _settle(self) -> None:
        """A server that is away is asked once: a command may have a dozen questions."""
        if self._refused is not None:
            raise self._refused
        try:
            waiting.settle(self.url, self.out, self.now)
        except Unavailable as error:
            self._refused = error
            raise

    @cached_property
    def remote(self) -> "RemoteVault | None":
        """The server that was named; None: the command is about a store."""
        if self.settings.server is None:
            return None
        if self.settings.store is not None:
            raise Misuse("--store means nothing beside --server; leave one of them out")
        from hardsave.client import connect  # few commands ask one

        return self._resources.enter_context(connect(self.settings.server))

    @property
    def jobs(self) -> "hardsave.Jobs | RemoteJobs":
        """Those of the server that was named, or of the store."""
        return self.vault.jobs if self.remote is None else self.remote.jobs

    def may_save_here(self) -> None:
        """Let a store be made, unless the files here are none that would be saved in it."""
        path = self.store_path
        if path is not None and not projects.is_there(path):
            from hardsave.workspace.scan.scanner import refuse_home_directory

            refuse_home_directory(os.fsencode(projects.root(os.environ, Path.cwd())))
        self.may_create_store = True

    @property
    def saved_above(self) -> str:
        """What to say where nothing was saved, but in a directory above; else nothing."""
        there = self.project_above
        return there and f"nothing was saved here, but {there} was; see: hardsave -C {there} log"

    def deleted_hint(self, name: str | None = None) -> str:
        """What to say where nothing is left, of a timeline or at all, because it was deleted, if
        that is what an undo would take back; else nothing."""
        done = (each for each in self._operations(name) if each.kind not in ("undo", "redo"))
        last = next((each for each in done if not each.is_undone), None)
        if last is None or last.timeline is None or last.kind not in ("delete", "clear"):
            return ""
        what = f"{last.timeline!r} was {'cleared' if last.kind == 'clear' else 'deleted'}"
        if "checkpoint" in last.about:
            what = f"a checkpoint of {last.timeline!r} was deleted"
        back = self.settings.invocation.command("undo", "--timeline", last.timeline)
        when = wording.ago(last.created_at, self.now)
        return f"{what} {'just now' if when == 'now' else when}; bring it back with: {back}"

    @property
    def project_above(self) -> str:
        """The directory above that was saved, as it is typed, where nothing was; else empty."""
        if self.settings.store or os.environ.get(config.STORE_VARIABLE):
            return ""
        if self.store_path is None or projects.is_there(self.store_path):
            return ""
        for folder in Path.cwd().resolve().parents:
            store = config.store_folder(os.environ, folder, sys.platform)
            if projects.is_there(store / config.STORE_FILE):
                return quoted(str(config.project_root(folder)))
        return ""

    def hint_undo(self, timeline: str) -> None:
        """Print what to type to take an operation on a timeline back."""
        self.hint_here("take it back with", "undo", "--timeline", timeline)

    def hint_here(self, what: str, *typed: str) -> None:
        """Print a command to type next that no server does."""
        where = "" if self.settings.server is None else "on the machine of the server, "
        self.out.hint(f"{where}{what}", *typed)

    # Which timeline, which directory, which checkpoint

    @cached_property
    def timelines(self) -> KnownTimelines:
        """Those of the store."""
        return KnownTimelines(lambda: self.vault, self.where)

    @cached_property
    def timelines_here(self) -> list[TimelineState]:
        """The newest that this directory's story is made of."""
        states, directory = self.timelines.saved, self.directory
        if self.timelines.is_complete or any(each.workspace == str(directory) for each in states):
            return current_timeline.of_directory(states, directory)
        found = self.timelines.standing(self.vault.sessions(workspace=directory, limit=NEWEST))
        return found or current_timeline.of_directory(states, directory)

    def where(self, files: "hardsave.Files") -> str:
        """The directory of a checkpoint's files, to be told and compared: of another host with its
        name before it, so that it is no directory of this one."""
        return f"{files.host}:{files.workspace}" if files.host else files.workspace

    @cached_property
    def directory(self) -> Path:
        """The workspace: a directory above this one that was saved, or the project's root."""
        here = Path.cwd().resolve()
        known = [each.workspace for each in self.timelines.saved if each.workspace is not None]
        return current_timeline.workspace(here, projects.root(os.environ, here), known)

    @property
    def workspace_root(self) -> Path:
        """The workspace; if there is no store to ask, where it would begin."""
        try:
            return self.directory
        except HardsaveError:
            return projects.root(os.environ, Path.cwd())

    @cached_property
    def base(self) -> hardsave.Checkpoint | None:
        """What the files here are compared with: the head, if it has files, and its timeline was
        last saved in this very directory; it may have been brought here from another one. None:
        the newest checkpoint with files of this directory."""
        head = self.line.head
        if head is None or head.files is None:
            return None
        last = self.timelines.state_of(self.line.name)
        return head if last is not None and last.workspace == str(self.directory) else None

    def inside(self, path: str) -> str:
        """A path as it was typed, seen from the workspace; `.` is all of it."""
        inner = os.path.relpath(os.path.abspath(path), self.directory)
        if inner == ".." or inner.startswith("../"):
            raise Misuse(f"{path!r} is not in the workspace {str(self.directory)!r}")
        return inner

    @cached_property
    def workspace(self) -> "Workspace":
        return self.vault.workspace(self.directory)

    @cached_property
    def timeline_given(self) -> str | None:
        """The timeline that was typed or, for a run, is in the environment; else None."""
        typed = self.settings.timeline
        if self.remote is not None:
            return None if typed is None else self._name_there(self.remote, typed)
        return self.settings.timeline_of_run if typed is None else self.whole_name(typed)

    def _name_there(self, remote: "RemoteVault", typed: str) -> str:
        """The same for the timelines of a server."""
        pages = every(lambda after: remote.sessions(prefix=typed, limit=_PAGE, after=after))
        found = short_names.named(typed, {each.timeline: each.timeline for each in pages})
        if found is None:
            raise NotFound(f"there is no timeline {typed!r} at {remote.url}")
        return found

    def whole_name(self, typed: str) -> str:
        """The timeline of which this is the name, or the beginning of it and of no other."""
        if self.may_make_timeline:
            return short_names.called(typed, self.timelines.names_that_count) or typed
        found = short_names.named(typed, self.timelines.names_that_count)
        if found is not None:
            return found
        if self.may_name_deleted and self.vault.operations(typed, limit=1):
            return typed  # it was deleted, and an undo brings it back
        why = self.deleted_hint(typed) or "'hardsave timelines' lists them"
        raise NotFound(self.saved_above or f"there is no timeline {typed!r}; {why}")

    # How timelines and checkpoints are called in what is printed

    def shown_name(self, timeline: str) -> str:
        """A timeline as it is typed; any other text stays as it is, and so does a name where the
        store cannot be read, or a server was asked."""
        if self.settings.server is not None:
            return timeline
        with suppress(HardsaveError, OSError):
            if timeline not in self.timelines.short_names and len(timeline) <= short_names.LONGEST:
                self.timelines.forget_names()  # it was made meanwhile
            return self.timelines.short_names.get(timeline, timeline)
        return timeline

    def ref(self, one: shown.Checkpoint) -> str:
        """A checkpoint as it is typed: by its number alone, on a session that has no name of its
        own and that commands are about by default."""
        is_long = len(one.timeline) > short_names.LONGEST and self.settings.server is None
        if is_long and self.is_default_timeline(one.timeline):
            return f":{one.seq}"
        return f"{self.shown_name(one.timeline)}:{one.seq}"

    def moments(self) -> "Moments":
        """The checkpoints of all sessions of this directory, newest first."""
        return self.moments_of(self.timelines_here)

    def moments_of(
        self, states: Iterable[TimelineState], *, with_origin: bool = False
    ) -> "Moments":
        """Those of some timelines, and `with_origin` of what they were forked from."""
        from hardsave.cli.moments import Moments  # few commands list any

        return Moments(self.vault, states, with_origin=with_origin)

    @property
    def line_typed(self) -> hardsave.Timeline:
        """The timeline that was typed, for what is never done to the usual one."""
        if self.settings.timeline is None:
            raise Misuse("say which with --timeline; 'hardsave timelines' lists them")
        return self.vault.timeline(self.whole_name(self.settings.timeline))

    @cached_property
    def line(self) -> hardsave.Timeline:
        """The timeline that this command is about."""
        given = self.timeline_given
        name = self._chosen(given, reads_only=self.reads_only)
        states, directory = self.timelines_here, self.directory
        is_sure = given or name in self._callers
        others = [] if is_sure else current_timeline.unfinished(states, directory)
        if len(others) > 1:
            self.out.say(f"{current_timeline.listed(others)}; this is about {name!r}")
        return self.vault.timeline(name)

    def line_to(
        self, turn: Callable[[Iterable[hardsave.Operation]], hardsave.Operation | None]
    ) -> hardsave.Timeline:
        """The timeline that an undo or a redo is about: where the operation of this directory was
        that it turns around."""
        if self.timeline_given is not None:
            return self.line
        found = turn(self._operations_here())
        if found is not None and found.timeline is not None:
            return self.vault.timeline(found.timeline)
        states, directory = self.timelines_here, self.directory
        return self.vault.timeline(
            current_timeline.timeline(None, states, directory, reads_only=True)
        )

    def _operations(self, timeline: str | None) -> Iterator[hardsave.Operation]:
        return every(lambda after: self.vault.operations(timeline, limit=_PAGE, after=after))

    def _operations_here(self) -> Iterator[hardsave.Operation]:
        """Newest first. Where all that is saved is of this directory, so is what was deleted."""
        here = {each.name for each in self.timelines_here}
        is_alone = len(here) == len(self.timelines.saved)
        for each in self._operations(None):
            if is_alone or each.timeline in here:
                yield each

    def is_default_timeline(self, name: str) -> bool:
        """Whether a command without --timeline is about this timeline."""
        named = os.environ.get("HARDSAVE_TIMELINE")
        try:
            return self._chosen(named) == name
        except Misuse:  # several might be
            return False

    def _chosen(self, given: str | None, *, reads_only: bool = False) -> str:
        states, directory = self.timelines_here, self.directory
        return current_timeline.timeline(
            given,
            states,
            directory,
            callers=() if given else self._callers,
            reads_only=reads_only,
        )

    @cached_property
    def _callers(self) -> tuple[str, ...]:
        """The timelines of the agent sessions that have called this command, by a tool or through
        an MCP server: agents tell what they start the session."""
        if len(self.timelines.saved) < 2:  # there is no choice
            return ()
        from hardsave.agents import events, registry, sessions

        told = ((each, os.environ.get(each.session_variable)) for each in registry.every())
        return tuple(
            sessions.timeline(os.environ, session) or events.timeline(agent.program, session)
            for agent, session in told
            if session
        )

    @property
    def timeline_option(self) -> list[str]:
        """What to type behind a command for it to be about the timeline that this one looks at:
        where several might be meant, those that change something ask."""
        given = self.timeline_given
        name = self._chosen(given, reads_only=True)
        return [] if self.is_default_timeline(name) else ["--timeline", name]

    def refuse_timeline(self, *, beside: str) -> None:
        """Refuse --timeline where something else that was typed leaves no meaning to it."""
        if self.settings.timeline is not None:
            raise Misuse(f"--timeline means nothing beside {beside}; leave one of them out")

    def find(self, ref: str) -> hardsave.Checkpoint:
        """The checkpoint that a command is about."""
        return self.find_all(ref)[0]

    def find_all(self, *typed: str) -> list[hardsave.Checkpoint]:
        """The checkpoints that a command is about; --timeline must be that of one of them, or be
        needed to look one up."""
        found = [self.look_up(ref) for ref in typed]
        if all(map(_stands_alone, typed)) and all(
            one.timeline != self.timeline_given for one in found
        ):
            self.refuse_timeline(beside=" and ".join(map(repr, typed)))
        return found

    def look_up(self, ref: str) -> hardsave.Checkpoint:
        """A checkpoint. Only refs that do not stand alone need a timeline."""
        meant = refs.parse(ref)
        if self.saved_above:
            raise NotFound(self.saved_above)
        if isinstance(meant, refs.Numbered) and meant.timeline:
            try:
                ref = f"{self.whole_name(meant.timeline)}:{meant.seq}"
            except NotFound:
                found = self._alias(ref)
                if found is None:
                    raise
                return found
            meant = refs.parse(ref)
        try:
            return self.vault.get(ref) if _stands_alone(ref) else self._on_its_line(ref)
        except NotFound as error:
            if standing := self._of_timeline(meant):
                raise NotFound(standing) from error
            hint = self._on_other_timelines(meant) or self._where_it_went(meant)
            if not hint:
                raise
            what = f"{str(error).removesuffix(_PERHAPS)}; " if self.timelines.saved else ""
            raise NotFound(f"{what}{hint}") from error

    def _on_its_line(self, ref: str) -> hardsave.Checkpoint:
        """By a name on the timeline in question, or by an id of a job, a task or another system,
        which needs none."""
        try:
            return self.line.get(ref)
        except (Misuse, NotFound):
            found = self._alias(ref) if isinstance(refs.parse(ref), refs.Named) else None
            if found is None:
                raise
            return found

    def _alias(self, ref: str) -> hardsave.Checkpoint | None:
        """What an id leads to that is none of ours."""
        try:
            return self.vault.get(ref)
        except NotFound:
            return None

    def _of_timeline(self, meant: refs.Ref) -> str:
        """What to say where a timeline was named instead of a checkpoint; else nothing."""
        if not isinstance(meant, refs.Named):
            return ""
        name = short_names.called(meant.name, self.timelines.names_that_count)
        head = None if name is None else self.vault.timeline(name).head
        if name is None or head is None:
            return ""
        from hardsave.cli.moments import agent_of

        kind = "session" if agent_of(name) else "timeline"
        stands = f"{self.shown_name(head.timeline)}:{head.seq}"
        return f"{meant.name!r} is a {kind}, not a checkpoint; it stands at {stands!r}"

    def _where_it_went(self, meant: refs.Ref) -> str:
        """How to bring back what a ref may mean, if it was deleted; else nothing."""
        named = meant.timeline if isinstance(meant, refs.Numbered) else ""
        is_anywhere = isinstance(meant, refs.Whole) or not self.timelines.saved
        return self.deleted_hint(None if is_anywhere else named or self.line.name)

    def _on_other_timelines(self, meant: refs.Ref) -> str:
        """Which other timelines have a name; else nothing. Each run of an agent has one of its own,
        and what was saved before it is on another."""
        if not isinstance(meant, refs.Named):
            return ""
        pages = (each.checkpoints(name=meant.name, limit=1) for each in self.vault.timelines())
        found = [f"{self.shown_name(one.timeline)}:{one.seq}" for page in pages for one in page]
        return f"on other timelines it is {', '.join(map(repr, found[:3]))}" if found else ""


def _stands_alone(ref: str) -> bool:
    """Whether a ref means the same on every timeline."""
    meant = refs.parse(ref)
    return isinstance(meant, refs.Whole) or (
        isinstance(meant, refs.Numbered) and meant.timeline != ""
    )
