"""What a job is, as plain data: it lies with its task and with its conversation. Pure.

A job is known by its *lineage*, which is also the name of its timeline. Each time it is
resumed, it goes on under an id of its own: `fix`, `fix~2`, `fix~3`. All of them lead to it,
also when nothing is left but one of the two places.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from hardsave.defaults import JOB_DEATHS, JOB_TURNS, MOST_ATTEMPTS
from hardsave.errors import Misuse
from hardsave.tuples import NamedTuple
from hardsave.vault.purge import REPLACEMENT

KEY = "job"
WORKSPACE = "workspace"
"""What `about` calls the workspace of a job that has no directory of ours."""
DEFAULT_AGENT = "default"
OWN_PROGRAM = "ai-coder"
"""The agent of jobs that a program of the user runs by itself: no worker takes them."""
MOST_TURNS = 1_000_000

_PURGE = "/purge"

OnSuccess = Literal["archive", "purge"]
ON_SUCCESS: tuple[OnSuccess, ...] = ("archive", "purge")

_RESUMED = re.compile(r"(?P<lineage>.+)~(?P<number>[2-9]|[1-9][0-9]{1,8})")
_YES = frozenset({"yes", "y", "ok", "true", "approve", "approved"})
_NO = frozenset({"", "no", "n", "false", "deny", "denied"})


class JobId(NamedTuple):
    """The id of a job at one of its resumptions."""

    lineage: str
    number: int = 1

    def __str__(self) -> str:
        return self.lineage if self.number == 1 else f"{self.lineage}~{self.number}"

    @property
    def next(self) -> "JobId":
        return self._replace(number=self.number + 1)


def parse(id: str) -> JobId:
    found = _RESUMED.fullmatch(id)
    return JobId(id) if found is None else JobId(found["lineage"], int(found["number"]))


def purge_id(id: str) -> str:
    """The task that purges what a job has left."""
    return f"{id}{_PURGE}"


def of_purge(task: str) -> JobId:
    """The job that a task purges."""
    return parse(task.removesuffix(_PURGE))


@dataclass(frozen=True, kw_only=True)
class JobResumption:
    """Where a job was taken up again."""

    from_job: str
    at: str


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """What was asked for. `about` is the caller's own, and goes along with every resumption."""

    lineage: str
    prompt: str
    agent: str = DEFAULT_AGENT
    workspace: str | None = None
    max_turns: int = JOB_TURNS
    turns_given: int = JOB_TURNS
    """What it had at first: so many more it gets when it is resumed with none left."""
    model: str | None = None
    retries: int = 0
    callback: str | None = None
    on_success: OnSuccess = "archive"
    about: Mapping[str, Any] = field(default_factory=dict)
    resumed: JobResumption | None = None
    restore_from: str | None = None
    """The checkpoint that it was taken back to; its files are brought back before it goes on."""
    keep_files: bool = False
    """Whether it goes on with the files that lie in its directory, not with those of its last
    save."""

    @property
    def works_in(self) -> str | None:
        """Its directory, or what the program that runs it calls its workspace."""
        named = self.about.get(WORKSPACE)
        return self.workspace or (named if isinstance(named, str) else None)

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise Misuse("a job needs a prompt: what its agent is asked to do")
        if not 1 <= self.max_turns <= MOST_TURNS:
            raise Misuse(f"max_turns is between 1 and {MOST_TURNS:,}, not {self.max_turns!r}")
        if not 0 <= self.retries <= 99:
            raise Misuse(f"retries is between 0 and 99, not {self.retries!r}")
        if self.on_success not in ON_SUCCESS:
            raise Misuse(f"on_success is 'archive' or 'purge', not {self.on_success!r}")
        if self.callback is not None:
            check_url(self.callback)


def most_attempts(spec: JobSpec, *, is_shared: bool) -> int:
    """How often a job may be begun: once, for each retry, and where another machine can take it up
    also for each death of a worker. No worker takes up what a program runs by itself."""
    deaths = JOB_DEATHS if is_shared and spec.agent != OWN_PROGRAM else 0
    return min(1 + spec.retries + deaths, MOST_ATTEMPTS)


def check_url(url: str) -> None:
    """What can be called back. Where it leads is looked at when it is called."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # a number, or an error
    except ValueError:
        is_one = False
    if not is_one or not url.isprintable() or " " in url:
        raise Misuse(f"a callback is an address, http://… or https://…, not {url!r}")


def to_plain(spec: JobSpec, id: JobId) -> dict[str, Any]:
    """As it is stored. `_resume` has the names that callers of other systems know."""
    plain = {**asdict(spec), "id": str(id)}
    del plain["resumed"]
    if spec.resumed is not None:
        plain["_resume"] = {"fromJobId": spec.resumed.from_job, "resumedAt": spec.resumed.at}
    return plain


def from_plain(stored: Any) -> tuple[JobSpec, JobId] | None:
    """What was stored, or None if it is none of ours: a task's metadata are its adder's own, and
    one that only looks like a job must not end a worker."""
    if not isinstance(stored, Mapping) or "lineage" not in stored or "prompt" not in stored:
        return None
    if not isinstance(stored.get("about", {}), Mapping):
        return None
    known = {name: stored[name] for name in _FIELDS if name in stored}
    resume = stored.get("_resume")
    try:
        if resume is not None:
            known["resumed"] = JobResumption(from_job=resume["fromJobId"], at=resume["resumedAt"])
        return JobSpec(**known), parse(stored.get("id", stored["lineage"]))
    except (Misuse, TypeError, ValueError, LookupError, AttributeError):
        return None


def purged(spec: JobSpec) -> JobSpec:
    """What stays of it when its job is purged: ids, names and numbers."""
    return replace(spec, prompt=REPLACEMENT, callback=None, about={})


def is_purged(spec: JobSpec) -> bool:
    return spec.on_success == "purge" and spec.prompt == REPLACEMENT


_FIELDS = tuple(name for name in JobSpec.__dataclass_fields__ if name != "resumed")


def more_turns(spec: JobSpec, used: int, wanted: int | None) -> int:
    """The limit of a resumption. One that has used all its turns gets as many again: to resume
    it cannot mean anything else."""
    if wanted is not None:
        if wanted <= used:
            raise Misuse(f"{used} turns are used already: max_turns={wanted} would end it at once")
        return wanted
    return spec.max_turns if used < spec.max_turns else used + spec.turns_given


ARGUMENTS = "arguments"


def verdict(answer: Any) -> bool | str | Mapping[str, Any]:
    """What an answer means for a call that waits for approval. Only a clear yes is one; any other
    text is a reason why not, for the model. `{"arguments": {…}}` is a yes with other arguments."""
    if isinstance(answer, Mapping) and isinstance(answer.get(ARGUMENTS), Mapping):
        return dict(answer[ARGUMENTS])
    if isinstance(answer, str):
        word = answer.strip().lower()
        return word in _YES or (False if word in _NO else answer)
    return answer is True
