"""`hardsave store copy`: all users of a store, into another one, and compared at the end."""

from contextlib import closing

from hardsave.errors import Conflict, Corrupt, Misuse
from hardsave.record import Record
from hardsave.stores import registry
from hardsave.stores.base import Store
from hardsave.stores.registry import shown
from hardsave.vault.copying.comparison import differences
from hardsave.vault.copying.events import STEPS, Side
from hardsave.vault.copying.user_copy import OTHER, UserCopy
from hardsave.vault.scratch import Scratch


class CopiedStore(Record):
    """What has been copied and compared, earlier attempts included."""

    users: int
    checkpoints: int
    objects: int
    tasks: int
    commits: int
    """Saves, operations, and what happened to tasks; steps of tasks, too."""


def copy_store(source: str, target: str) -> CopiedStore:
    """Copy a store that is not written to meanwhile into one that is empty, or that holds a part of
    this copy. `Conflict` if one of them is not as it has to be, `Corrupt` if they differ in the
    end."""
    if "memory://" in (source, target):
        raise Misuse("a store in memory ends with its program: copy to a file or a server")
    if source == target:
        raise Misuse(f"{shown(source)} is named twice; name another store to copy to")
    with (
        closing(registry.open_store(source, read_only=True)) as one,
        closing(registry.open_store(target)) as other,
    ):
        return copy(one, other)


def copy(source: Store, target: Store) -> CopiedStore:
    """From one store that is open to another."""
    done = CopiedStore(users=0, checkpoints=0, objects=0, tasks=0, commits=0)
    users = source.users()
    if any(target.latest_number(user) for user in set(target.users()).difference(users)):
        raise Conflict(OTHER)
    for user in users:
        _check_unused(source, user)
        commits = _copy_user(Side(source, user), Side(target, user))
        stats = target.stats(user)
        done = done.replace(
            users=done.users + 1,
            checkpoints=done.checkpoints + stats.checkpoints,
            objects=done.objects + stats.objects,
            tasks=done.tasks + sum(target.task_counts(user).values()),
            commits=done.commits + commits,
        )
    return done


def _check_unused(store: Store, user: str | None) -> None:
    now = store.moment()
    if any(each.clock == now.clock and each.until > now.at for each in store.owners(user)):
        raise Conflict(
            "processes work on tasks of the store that is copied, or did a moment ago; stop them, "
            "wait until their leases have passed, and repeat"
        )


def _copy_user(source: Side, target: Side) -> int:
    with Scratch(STEPS) as steps, Scratch(STEPS) as steps_of_copy:
        made = UserCopy(source, target, steps)
        made.run()
        found = next(differences(made, steps, steps_of_copy), None)
        if found is not None:
            raise Corrupt(f"{found}; make an empty store, and copy once more")
        return made.commits
