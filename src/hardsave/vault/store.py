"""`vault.store` and `vault.retention`: the store as a whole, and which checkpoints it keeps."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hardsave.errors import Misuse
from hardsave.objects import envelope
from hardsave.stores import on_disk
from hardsave.stores.base import Survives
from hardsave.stores.results import Collected, Report, Stats
from hardsave.vault.checkpoint import Ref, named
from hardsave.vault.context import Context

if TYPE_CHECKING:
    from hardsave.timeline.policy import Policy
    from hardsave.timeline.retention import RetentionPlan
    from hardsave.vault.purge.purge import Purged
    from hardsave.vault.retention.retain import Retained
    from hardsave.vault.retention.upkeep import Upkept
    from hardsave.vault.verify.verify import Verification


class VaultStore:
    """The store of a vault as a whole. Made by `vault.store`."""

    def __init__(
        self, context: Context, directory: str | None, recover: Callable[[], None]
    ) -> None:
        self._context = context
        self._directory = directory
        self._recover = recover

    def stats(self) -> Stats:
        """How much this user has stored, and how many saves have failed since it was opened."""
        store, user = self._context.store, self._context.user
        failures = self._context.events.count("save_failed")
        tasks = sum(store.task_counts(user).values())
        return store.stats(user).replace(save_failures=failures, tasks=tasks)

    def saves(self) -> int:
        """How many checkpoints this user has saved so far, those included that were deleted or
        dropped since. Reads a row a timeline, unlike `stats`."""
        lines = self._context.history.timelines(deleted=True)
        return sum(line.last_seq for line in lines)

    def check_usable(self) -> None:
        """Raise `Unavailable` or `Corrupt` if the store was removed, replaced, damaged or closed to
        this process since it was opened. Quick, and writes nothing; `verify` reads everything."""
        self._context.store.check_usable()

    def durability(self) -> Survives:
        """What a save that has returned survives, as far as the store can tell: a power loss, or
        only the end of its process. It may be less than what was asked for. A server is asked."""
        return self._context.store.durability()

    def failover(self) -> str:
        """What may be lost, in a sentence, when a replica takes over from the server that keeps
        the store; empty if the store is of one host."""
        return self._context.store.failover()

    def verify(self, ref: Ref | None = None) -> "Verification":
        """Read and check one checkpoint, or everything. Damage is reported, not raised."""
        from hardsave.vault.verify.verify import verify

        one = None if ref is None else self._context.find(ref)
        return verify(self._context, one)

    def repair(self) -> Report:
        """Save what can be read, of all users, set the old files aside, and go on.

        No other process may have the store open. What is lost or incomplete is named.
        """
        report = on_disk.repair(self._context.store, self._context.user)
        self._context.objects.forget()
        return report

    def gc(self) -> Collected:
        """Remove what no checkpoint leads to, of all users, and give the room back.

        May run beside any number of writers. `Corrupt` if something is damaged: what it may
        still lead to is not removed.
        """
        gone = self._context.store.collect(envelope.refs)
        self._context.objects.forget()
        # The names of other users are not told.
        left = tuple(user for user in gone.left if user == self._context.user)
        collected = gone.replace(left=left)
        self._context.events.tell("collected", collected)
        return collected

    def compact(self) -> None:
        """Rewrite what is scattered so that it is small, and a timeline is quick to read."""
        on_disk.compact(self._context.store, envelope.refs)

    def upkeep(self) -> "Upkept | None":
        """Let go what the settings let go, and give its room back; None if that was done today, or
        is not wanted. The search index is brought up to date in any case. `hardsave run`, hooks and
        `tasks.iterate` call it by themselves."""
        from hardsave.vault.retention import upkeep

        retention = Retention(self._context, self._directory, self._recover)

        def retain(policy: "Policy") -> "Retained":
            return retention.apply(retention.plan(policy))

        done = upkeep.once_a_day(self._context, self._directory, retain, self.gc)
        self.update_search(seconds=upkeep.SEARCH_SECONDS)
        return done

    def update_search(self, *, seconds: float) -> bool:
        """Bring the search index up to date, if a search has ever made one, for so many seconds of
        the processor; whether there is no more to do. Daemons and `upkeep` do it by themselves."""
        from hardsave.vault.search import search

        return search.advance(self._context, seconds)

    def purge(
        self, ref: Ref | None = None, *, timeline: str | None = None, text: str | None = None
    ) -> "Purged":
        """Remove a checkpoint, a timeline or a text so that its bytes are in no file of the store.

        **It cannot be undone.** A text is replaced by `[purged]` in every checkpoint that has
        it, and tasks that have it are forgotten, if they are over. With the timeline of a job goes
        the job: what it was asked, did and answered. What other checkpoints share with a purged
        one stays. `left` names where it still is. Exported files are yours to delete; a
        conversation, a file or a state that has the text when it is saved next brings it back.
        """
        from hardsave.vault.purge import purge  # few callers need it

        self._recover()
        if ref is not None and timeline is text is None:
            purged = purge.checkpoint(self._context, named(ref))
        elif timeline is not None and ref is text is None:
            purged = purge.timeline(self._context, timeline)
        elif text is not None and ref is timeline is None:
            purged = purge.text(self._context, text)
        else:
            raise Misuse("purge takes one of a ref, a timeline and a text")
        self._context.events.tell("purged", purged)
        return purged


class Retention:
    """Which checkpoints are kept. Made by `vault.retention`."""

    def __init__(
        self, context: Context, directory: str | None, recover: Callable[[], None]
    ) -> None:
        self._context = context
        self._directory = directory
        self._recover = recover

    def plan(self, policy: "Policy | None" = None, *, own: bool = False) -> "RetentionPlan":
        """What a policy would let go, and why; by default what is older than 30 days, or what the
        settings say. Where several projects share the store, those of this one are about its
        own timelines; one that is given is about all that it names, or with `own` about those
        of this project alone.

        Named checkpoints stay until they are deleted, heads and what can be undone in any
        case. Nothing happens until the plan is applied.
        """
        from hardsave.vault.retention import retain  # with its rules, which few callers need

        if policy is None or own:
            from hardsave.vault.retention import upkeep

            policy = policy or upkeep.policy_here(self._context, self._directory)
            if own:
                policy = upkeep.kept_to_own(self._context, self._directory, policy)
        return retain.plan(self._context, policy)

    def apply(self, plan: "RetentionPlan") -> "Retained":
        """Drop what a plan shows, as far as its policy still wants it. Cannot be undone."""
        from hardsave.vault.retention import retain

        self._recover()
        done = retain.apply(self._context, plan)
        self._context.events.tell("retained", done)
        return done
