"""What people type by habit, from other programs, and which command of ours does that. A table."""

from collections.abc import Collection

# The word, what it is typed for, and what to type here.
_HABITS = (
    ("restore", "to go back", "rewind"),
    ("revert", "to go back", "rewind"),
    ("reset", "to go back", "rewind"),
    ("rollback", "to go back", "rewind"),
    ("back", "to go back", "rewind"),
    ("goto", "to go back", "rewind"),
    ("checkout", "to go back", "rewind"),
    ("load", "to go back", "rewind"),
    ("switch", "to go back", "rewind"),
    ("list", "to see what was saved", "log"),
    ("ls", "to see what was saved", "log"),
    ("checkpoints", "to see what was saved", "log"),
    ("snapshots", "to see what was saved", "log"),
    ("history", "to see what was saved", "log"),
    ("watch", "to see what is saved while it happens", "log --follow"),
    ("follow", "to see what is saved while it happens", "log --follow"),
    ("sessions", "to see the sessions", "timelines"),
    ("branches", "to see the sessions", "timelines"),
    ("cat", "to see one checkpoint", "show"),
    ("inspect", "to see one checkpoint", "show"),
    ("changes", "to see what has changed", "diff"),
    ("compare", "to see what has changed", "diff"),
    ("st", "to see which files have changed", "status"),
    ("grep", "to find words", "search"),
    ("find", "to find words", "search"),
    ("checkpoint", "to save", "save"),
    ("snapshot", "to save", "save"),
    ("commit", "to save", "save"),
    ("backup", "to save", "save"),
    ("add", "to save", "save"),
    ("stash", "to save", "save"),
    ("create", "to save", "save"),
    ("tag", "to save under a name", "save"),
    ("branch", "to start another timeline", "fork"),
    ("copy", "to start another timeline", "fork"),
    ("rm", "to delete a checkpoint", "delete"),
    ("remove", "to delete a checkpoint", "delete"),
    ("clear", "to delete all checkpoints of a timeline", "timelines clear"),
    ("ops", "to see what can be taken back", "undo --list"),
    ("operations", "to see what can be taken back", "undo --list"),
    ("reflog", "to see what can be taken back", "undo --list"),
    ("resume", "to go on with an agent", "rewind @ --resume"),
    ("continue", "to go on with an agent", "rewind @ --resume"),
    ("submit", "to queue a job", "jobs submit"),
    ("queue", "to queue a job", "jobs submit"),
    ("monitor", "to see how a job goes on", "jobs watch"),
    ("approve", "to answer a job", "jobs approve"),
    ("deny", "to answer a job", "jobs deny"),
    ("recover", "to put tasks of dead processes back to work", "tasks recover"),
    ("stats", "to see how much is stored", "store stats"),
    ("du", "to see how much is stored", "store stats"),
    ("info", "to see how much is stored", "store stats"),
    ("verify", "to check the store", "store verify"),
    ("check", "to check the store", "store verify"),
    ("fsck", "to check the store", "store verify"),
    ("repair", "to save what can be read of a damaged store", "store repair"),
    ("gc", "to give room back", "store gc"),
    ("clean", "to give room back", "store gc"),
    ("compact", "to make the store small", "store compact"),
    ("vacuum", "to make the store small", "store compact"),
    ("export", "to write timelines into a file", "store export"),
    ("import", "to read an export", "store import"),
    ("retain", "to let old checkpoints go", "store retain"),
    ("prune", "to let old checkpoints go", "store retain"),
    ("forget", "to let old checkpoints go", "store retain"),
    ("purge", "to remove something for good", "store purge"),
    ("install", "to let agents save by themselves", "init"),
    ("setup", "to let agents save by themselves", "init"),
    ("skill", "to let agents learn when to save", "init --skill"),
    ("skills", "to let agents learn when to save", "init --skill"),
    ("uninstall", "to take the hooks of agents out", "init --undo"),
    ("start", "to run an agent that is saved", "run"),
    ("server", "to serve jobs over HTTP", "serve"),
    ("exec", "to run an agent that is saved", "run"),
    ("version", "to see the version", "--version"),
    ("help", "to see the commands", "--help"),
)
MEANT = {word: (purpose, typed) for word, purpose, typed in _HABITS}


def answer(word: str, path: str, known: Collection[str]) -> str:
    """What to say of a command that there is not, below `path`."""
    is_top = " " not in path
    habits = MEANT if is_top else {}
    found = word if word in habits else _nearest(word, known, habits)
    said = f"there is no command {word!r}" + ("" if is_top else f" in '{path}'")
    if found is None:
        return f"{said}; see '{path} --help'"
    if found in habits:
        purpose, typed = habits[found]
        return f"{said}; {purpose}: '{path} {typed}'"
    return f"{said}; is it {found!r}?"


def _nearest(word: str, known: Collection[str], habits: Collection[str]) -> str | None:
    """One of our commands, if it is very much like it; else the nearest word, if one is near: a
    command may be mistyped, and a habit has to be alike."""
    from difflib import get_close_matches  # for a word that was mistyped, and for nothing else

    near = get_close_matches(word, known, n=1, cutoff=0.8)
    near = near or get_close_matches(word, [*known, *habits], n=1, cutoff=0.7)
    near = near or get_close_matches(word, known, n=1, cutoff=0.65)
    return near[0] if near else None
