"""Every error that Hardsave raises.

The branches say what the caller can do about it:

    HardsaveError
    ├── NotFound       the thing named is not there: look it up, then call again
    ├── Conflict       another process moved first: read again, then repeat
    │   ├── LeaseLost  a task is not this attempt's any more: stop working on it
    │   └── WorkspaceTaken another host or attempt has the workspace now: look, then save there anew
    ├── StepUnknown    a step began and its end was not recorded: look what it did, then decide
    ├── Corrupt        stored bytes are damaged or missing: stop, and verify
    ├── Unavailable    the store cannot be used right now: free it, then repeat
    │   ├── DeadlineExceeded  the caller's deadline has passed: give it more time, or ask for less
    │   └── Stopped    the caller went away: nothing is left to do
    └── Misuse         the call itself is wrong: fix it
        ├── Unstorable a value that cannot be kept as data; names its path
        └── StepsChanged a task asks for other steps than it has recorded

A message names the thing and the next step.
"""


class HardsaveError(Exception):
    """The root of the tree: `except HardsaveError` catches all of ours and nothing else."""


class NotFound(HardsaveError):
    """A checkpoint, timeline or object that was asked for does not exist."""


class Conflict(HardsaveError):
    """A precondition of a write no longer holds; nothing was written."""


class LeaseLost(Conflict):
    """A task was taken over, cancelled or finished meanwhile; nothing was written."""


class WorkspaceTaken(Conflict):
    """A workspace was taken over since its files were captured; nothing was written."""


class StepUnknown(HardsaveError):
    """A step was begun, its process died, and the policy says not to guess what it did."""


class Corrupt(HardsaveError):
    """Stored bytes do not match their hash, or something acknowledged is missing."""


class Unavailable(HardsaveError):
    """The store cannot be reached or written: locked, full, read-only, failing."""


class DeadlineExceeded(Unavailable):
    """A call took longer than the `deadline` of the block that it was made in."""


class Stopped(Unavailable):
    """The caller of a call went away; nothing was written that was not committed by then."""


class Misuse(HardsaveError):
    """The call cannot be right, with any content of the store."""


class Unstorable(Misuse):
    """A value has no stored form. `path` says where it lies, e.g. `state.messages[3].image`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason

    def below(self, parent: str, step: str) -> "Unstorable":
        """The same, seen from further up: the value lies under `step` of `parent`.

        Paths are put together only when something is wrong, one step a level.
        """
        return Unstorable(parent + step + self.path.removeprefix(parent), self.reason)


class StepsChanged(Misuse):
    """The code asks for other steps, or the same with other arguments, than were recorded."""
