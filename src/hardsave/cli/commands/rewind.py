"""`hardsave rewind`: shows what would happen, asks, does it, and says how to take it back."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from hardsave import Checkpoint, Rewind, Timeline, config, wording
from hardsave.cli import current_timeline, going_on, past
from hardsave.cli.arguments import REF, one_of
from hardsave.cli.command import ON_A_TIMELINE, YES, command
from hardsave.cli.errors import Exit, in_lines
from hardsave.cli.render import phrases, refs, rewind_plan
from hardsave.cli.render.rewind_plan import RewindOptions
from hardsave.cli.render.summary import Summaries
from hardsave.cli.session import Session
from hardsave.errors import Conflict, HardsaveError, Misuse
from hardsave.vault import json_data

if TYPE_CHECKING:
    from rich.text import Text

    from hardsave.agents.conversation import Resumption
    from hardsave.cli.picker.state import Action
    from hardsave.vault.restore.plan import FileChanges

_NAMED = 20  # paths that a message names
_LISTED = 8  # prompts, where no list can be opened


@command(
    "rewind",
    examples="""
        hardsave rewind                        choose from a list
        hardsave rewind @~2 --dry-run
        hardsave rewind plan-ready
        hardsave rewind main:7 --files --path src --yes
        hardsave rewind --status passed --before 2h
        hardsave rewind plan-ready --tasks
    """,
    takes=ON_A_TIMELINE,
)
@click.argument("ref", type=REF, required=False)
@click.option("--state", is_flag=True, help="Only the state.")
@click.option("--files", is_flag=True, help="Only the files; the head stays.")
@click.option(
    "--path",
    "paths",
    multiple=True,
    metavar="P",
    type=click.Path(),
    help="Only this file or directory, seen from here; repeatable.",
)
@click.option("--mine", is_flag=True, help="Only what this session has changed.")
@click.option("--everyone", is_flag=True, help="What other timelines did, too.")
@click.option("--this-timeline", is_flag=True, help="On this session's, also to a REF of another.")
@click.option(
    "--into",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Write the files there, not where this timeline saves them.",
)
@click.option("--git", is_flag=True, help="Bring HEAD, branch and index back too.")
@click.option("--tasks", is_flag=True, help="Roll back the tasks that saved since, too.")
@click.option("--status", metavar="S", help="To the latest checkpoint with this status.")
@click.option(
    "--before", metavar="T", help="To the latest from before: 2h, 14:00, today, 2026-01-31T14:00."
)
@click.option("--resume", is_flag=True, help="Go on with the agent at once, without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would happen, and stop.")
@YES
def rewind(
    session: Session,
    ref: str | None,
    status: str | None,
    before: str | None,
    dry_run: bool,
    yes: bool,
    resume: bool,
    **given: Any,
) -> Exit | None:
    """Take state, files or both back to a checkpoint.

    Removes nothing: what is there is saved first, and 'hardsave undo' brings it back. Without REF
    it opens a list to choose from. With --path only these files come back, and the head stays.
    """
    options = _options(**given)
    around = going_on.inside(session)
    going_on.check(session, around, at_once=resume)
    if ref is None and status is None and before is None:
        if around is not None:
            _list_refs(session)
            return None
        chosen = _picked(session, options)
        if chosen is None:
            return _nothing_done(session)
        ref, options, action = chosen
        if action == "fork":
            _fork(session, ref)
            return None
        resume = resume or action == "go on"
        yes = yes or action == "go on"  # the list has shown what happens
    target = _target(session, ref, status, before)
    whose = ""
    if not _is_elsewhere(session, options):
        options, whose = past.whole_directory(session, options, target, is_named=ref is not None)
    line, options = _where(session, target, options)
    planned = _plan(session, line, target, options, may_ask=not (yes or dry_run))
    if planned is None:
        return _nothing_done(session)
    plan, options = planned
    if plan.files and whose:
        session.out.say(whose)
    if not options.does_something(plan):
        around = None if dry_run or around is None else around.of_run(line.name)
        return _only_conversation(session, plan, options, around, dry_run=dry_run, resume=resume)
    if dry_run:
        _answer(session, plan, options, dry_run=True, is_plan=True)
        return None
    if plan.files:
        session.out.say(
            *_still_writing(session, plan.files),
            *_missing_repository(plan),
            *_newer_files(session, plan, options),
        )
    around = None if around is None else around.of_run(line.name)
    if not yes and not _is_agreed(session, plan, options, around):
        return _nothing_done(session)
    with going_on.Leaving(around if _is_of_conversation(options) else None) as leaving:
        with _explain_interruption(session, plan), session.out.busy("rewinding"):
            done = line.rewind(target.id, **options.asked())
        back = _conversation(session, done, options)
        _answer(session, done, options, dry_run=False, back=back)
        session.hint_undo(line.name)
        failed = tell_what_failed(session, plan.files, done.files)
        if failed is None and leaving.restarted(session, back):
            return None
    return _go_on(session, back, line.name, failed, at_once=resume)


def _plan(
    session: Session, line: Timeline, target: Checkpoint, options: RewindOptions, *, may_ask: bool
) -> tuple[Rewind, RewindOptions] | None:
    """What would happen. Where others have changed files, too, a user at a terminal says whose go
    back, and need not type the command again; None: nothing shall."""
    try:
        with session.out.busy("looking"):
            return line.rewind(target.id, **options.asked(), dry_run=True), options
    except Conflict as error:
        told, hint, _ = str(error).partition("; scope=")
        if not hint or not may_ask or not session.out.can_ask:
            raise
    session.out.say(in_lines(refs.in_text(told)))
    answers = {"m": "mine alone", "e": "everyone's", "n": "nothing"}
    answer = session.out.ask("whose changes go back?", answers, what="rewind")
    if answer == "n":
        return None
    options = options._replace(scope="mine" if answer == "m" else "everyone")
    return _plan(session, line, target, options, may_ask=False)


def _go_on(
    session: Session,
    back: "Resumption | None",
    timeline: str,
    failed: Exit | None,
    *,
    at_once: bool,
) -> Exit | None:
    """Say how to go on with the agent; where nothing failed, offer it."""
    failed = going_on.tell(session, back) or failed
    if failed is None:
        going_on.offer(session, back, timeline, at_once=at_once)
    return failed


@contextmanager
def _explain_interruption(session: Session, plan: Rewind) -> Iterator[None]:
    """What is there is saved first. After an interruption the same command would go somewhere else:
    `@` now means what was saved."""
    try:
        yield
    except BaseException:
        with suppress(HardsaveError):
            head = session.vault.timeline(plan.timeline).head
            if head is not None and head not in (plan.before, plan.target):
                saved, target = (session.ref(one) for one in (head, plan.target))
                session.out.say(
                    f"not rewound; what was there is saved as {saved}, which @ means by now. This "
                    f"was to go to {target}"
                )
        raise


def _only_conversation(
    session: Session,
    plan: Rewind,
    options: RewindOptions,
    around: going_on.Inside | None,
    *,
    dry_run: bool,
    resume: bool,
) -> Exit | None:
    """An agent that was killed may have said more than it saved: all else is there already, and
    its conversation still has to be cut. There is no question: what is there is not touched."""
    with going_on.Leaving(around if _is_of_conversation(options) else None) as leaving:
        back = None if dry_run else _conversation(session, plan, options)
        _answer(session, plan, options, dry_run=dry_run, is_plan=back is None, back=back)
        is_there = plan.files is None or not plan.files.kept
        much = "nothing to do" if back is None else "nothing else to do"
        session.out.say(f"{much}{': it is all there already' if is_there else ''}")
        if dry_run:
            return None
        failed = tell_what_failed(session, plan.files, plan.files)
        if failed is None and leaving.restarted(session, back):
            return None
    return _go_on(session, back, plan.timeline, failed, at_once=resume)


def _still_writing(session: Session, files: "FileChanges") -> Iterator[str]:
    """Agents, and what those of `hardsave run` have left behind, do not notice a rewind."""
    from hardsave.daemon import processes, protocol, running_agents

    waiting = processes.ancestors()
    found = running_agents.at_work(Path(files.workspace), waiting)
    if (path := session.store_path) is not None:
        prefix = f"{path.absolute()}{protocol.SOCKET_INFIX}"
        found += processes.with_variable(protocol.SOCKET_VARIABLE, prefix, is_prefix=True)
    left = processes.outermost(each for each in found if each.pid not in waiting)
    if left:
        named = ", ".join(map(running_agents.named, left[:5]))
        yield f"still running, and may write meanwhile: {wording.shown(named)}"


def _missing_repository(plan: Rewind) -> Iterator[str]:
    """An agent that has removed a whole project has removed its repository, too."""
    if plan.files is None or plan.target.git is None or plan.target.git.commit is None:
        return
    root = config.project_root(Path(plan.files.workspace))
    if not config.has_repository(root):
        then = phrases.git(plan.target.git)
        yield f"there was a repository then ({then}), and there is none now:"
        yield "no checkpoint holds .git; clone it to another place, and move its .git here"


def _newer_files(session: Session, plan: Rewind, options: RewindOptions) -> Iterator[str]:
    """The daemon saves files also while a tool is at work; a user saves at a moment of choice."""
    if options.what != "all" or options.paths is not None or plan.target.kind != "automatic":
        return
    older_state = Summaries(session.vault).older_state(plan.target)
    if older_state is not None:
        where = wording.shown(session.ref(older_state))
        yield f"what was said goes back to {where}; the files are newer, perhaps half done"


def _conversation(session: Session, done: Rewind, options: RewindOptions) -> "Resumption | None":
    """An agent's own conversation goes back with the state, if it is one that we know.

    Not into another directory: agents look for their conversations by where they are started.
    """
    where = going_on.workspace_of(session, done.target)
    is_elsewhere = options.into is not None and options.into != where
    if not _is_of_conversation(options) or is_elsewhere:
        return None
    from hardsave.agents.going_on import conversation_of

    return conversation_of(
        session.vault, os.environ, done.target, done.timeline, workspace=where, left=done.before
    )


def _is_of_conversation(options: RewindOptions) -> bool:
    return options.what != "files" and options.paths is None


def tell_what_failed(
    session: Session, plan: "FileChanges | None", done: "FileChanges | None"
) -> Exit | None:
    """Say which paths are not as they were asked to be: then the command has failed."""
    failed = rewind_plan.failed(plan, done)
    if not failed:
        return None
    named = ", ".join(wording.shown(each.path) for each in failed[:_NAMED])
    more = f" and {len(failed) - _NAMED:,} more" if len(failed) > _NAMED else ""
    session.out.say(
        f"{wording.count(len(failed), 'path')} could not be brought back: {named}{more}; see to "
        "the reasons, then repeat"
    )
    return Exit.FAILED


def _nothing_done(session: Session) -> Exit:
    session.out.say("nothing was done")
    return Exit.FAILED


def _options(
    *, state: bool, files: bool, mine: bool, everyone: bool, paths: tuple[str, ...], **more: Any
) -> RewindOptions:
    what = cast(rewind_plan.What, one_of(state=state, files=files) or "all")
    scope = cast(rewind_plan.Scope | None, one_of(mine=mine, everyone=everyone))
    return RewindOptions(what=what, scope=scope, paths=paths or None, **more)


def _with_relative_paths(
    session: Session, options: RewindOptions, line: Timeline, target: Checkpoint
) -> RewindOptions:
    """The same with paths that are relative to the workspace which they are in.

    That is where this timeline saves its files, wherever the command was typed, or the directory
    that they shall go into.
    """
    if options.paths is None:
        return options
    own = session.timelines.workspace_of(line.name)
    if own is None:
        own = str(session.directory) if target.files is None else target.files.workspace
    roots = [own] if options.into is None else [os.path.realpath(options.into), own]
    return options._replace(paths=tuple(_inside(roots, path) for path in options.paths))


def _inside(roots: Sequence[str], path: str) -> str:
    """A path as it was typed, seen from the first of these directories that it lies in."""
    folder, name = os.path.split(os.path.abspath(path))
    real = os.path.join(os.path.realpath(folder), name)  # a link itself is what is meant
    for root in roots:
        inner = os.path.relpath(real, root)
        if inner == ".":
            raise Misuse("the whole workspace needs no --path; write --files")
        if inner != ".." and not inner.startswith("../"):
            return inner
    raise Misuse(f"{path!r} is not in the workspace {roots[-1]!r}")


# Inside of an agent


def _list_refs(session: Session) -> None:
    """What could be gone back to, newest first, for a user who cannot choose from a list here."""
    from hardsave.cli.commands.log import show_newest

    show_newest(session, _LISTED)
    session.out.hint("go back with", "rewind", "REF")


# Where to


def _picked(session: Session, options: RewindOptions) -> "tuple[str, RewindOptions, Action] | None":
    """What the user chose from a list, and to do with it; None if nothing."""
    if not session.out.can_ask or session.out.messages.is_dumb_terminal:
        raise Misuse("say where to: a REF such as @~1, or --status, or --before")
    from hardsave.cli.picker.feed import choose  # with all that a screen needs

    def planned(id: str, what: rewind_plan.What) -> Rewind:
        target = session.vault.get(id)
        line, asked = _where(session, target, _of_the_list(session, options, what))
        asked = asked._replace(tasks=asked.tasks or asked.paths is None)  # what steps did is told
        return line.rewind(id, **asked.asked(), dry_run=True)

    chosen = choose(session, options.what, planned)
    if chosen is None:
        return None
    return chosen.id, _of_the_list(session, options, chosen.what), chosen.action


def _fork(session: Session, ref: str) -> None:
    """Into a directory that the user names; beside this one, if nothing else is said."""
    from hardsave.cli.commands import fork

    one = session.vault.get(ref)
    beside = f"{session.directory}-{one.seq}"
    others = (f"{beside}-{number}" for number in count(2))
    free = next(each for each in chain([beside], others) if not os.path.lexists(each))
    into = going_on.edited("fork into: ", free)
    if not into:
        session.out.say("nothing was done")
        return
    fork.make(session, one, os.path.expanduser(into))


def _of_the_list(session: Session, options: RewindOptions, what: rewind_plan.What) -> RewindOptions:
    """The list is of all sessions here, and so is what goes back, unless it was said otherwise."""
    options = options._replace(what=what)
    if what == "state" or options.scope is not None or session.timeline_given is not None:
        return options
    return options._replace(scope="everyone")


def _where(
    session: Session, target: Checkpoint, options: RewindOptions
) -> tuple[Timeline, RewindOptions]:
    """The timeline that goes back to a checkpoint, and the options as the library takes them."""
    if options.into is not None and _is_elsewhere(session, options):
        line = _timeline_there(session, os.path.realpath(options.into))
        options = options._replace(what="files")
        return line, _with_relative_paths(session, options, line, target)
    line = session.line if options.this_timeline else _timeline_of(session, target)
    return line, _with_relative_paths(session, options, line, target)


def _is_elsewhere(session: Session, options: RewindOptions) -> bool:
    """Whether files go into another directory than this one: then nothing of this one goes back."""
    if options.into is None or options.what == "state":
        return False
    if os.path.realpath(options.into) == str(session.directory):
        return False
    if options.tasks:
        raise Misuse("--into another directory brings files alone there; leave out --tasks")
    return True


def _timeline_there(session: Session, directory: str) -> Timeline:
    """The timeline that saves what is in another directory before files go there: that of the
    directory, or a new one. On the timeline of this directory, that checkpoint would make it one of
    the other directory."""
    there = [each for each in session.timelines.saved if each.workspace == directory]
    if there:
        return session.vault.timeline(max(there, key=lambda each: each.touched).name)
    taken = {line.name for line in session.vault.timelines()}
    name = os.path.basename(directory) or current_timeline.MAIN
    return session.vault.timeline(
        current_timeline.free_name(name, taken) if name in taken else name
    )


def _target(
    session: Session, ref: str | None, status: str | None, before: str | None
) -> Checkpoint:
    """The checkpoint to go back to."""
    if ref is not None:
        if status is not None or before is not None:
            raise Misuse("give a REF, or --status and --before, not both")
        return session.look_up(ref)  # --timeline says which timeline goes there
    return past.target(session, status, before)


def _timeline_of(session: Session, target: Checkpoint) -> Timeline:
    """The timeline that goes back: the one in question, if it has been there; else the target's."""
    own = session.vault.timeline(target.timeline)
    if session.timeline_given is not None:
        return session.line
    try:
        line = session.line
    except Misuse:  # several are unfinished, but this ref says which is meant
        return own
    is_its_past = line.head is not None and target in line.ancestors()
    return line if line.name == own.name or is_its_past else own


# The question and the answer


def _is_agreed(
    session: Session, plan: Rewind, options: RewindOptions, around: going_on.Inside | None
) -> bool:
    """Inside of the agent of a run there is no terminal, and a REF is answer enough."""
    out = session.out
    if around is not None and around.restart:
        return True
    if out.can_ask:
        out.say(*_planned(session, plan, options))
    answers = {"y": "yes", "d": "diff", "n": "no"} if plan.files else {"y": "yes", "n": "no"}
    while True:
        answer = out.ask("rewind?", answers, what="rewind")
        if answer != "d":
            return answer == "y"
        out.say(*rewind_plan.patches(plan))


def _planned(session: Session, plan: Rewind, options: RewindOptions) -> "Iterator[Text]":
    yield from rewind_plan.plan_lines(plan, options, session.now)
    if options.paths is None and not _is_elsewhere(session, options):
        yield from rewind_plan.reached_outside(past.reached_outside(session, plan.target))


def _answer(
    session: Session,
    done: Rewind,
    options: RewindOptions,
    *,
    dry_run: bool,
    is_plan: bool = False,
    back: "Resumption | None" = None,
) -> None:
    """What was done; or the plan, also where it turned out that there is nothing to do."""
    also = {} if back is None else {"conversation": back._asdict()}
    session.out.result(
        lambda: {**json_data.rewind(done, dry_run=dry_run), **also},
        lambda: (
            _planned(session, done, options) if is_plan else rewind_plan.done_lines(done, options)
        ),
    )


COMMANDS = {"rewind": rewind}
