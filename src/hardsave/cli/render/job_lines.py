"""Jobs as the command line shows them: data, and what a list or a page says."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hardsave import wording
from hardsave.cli.render import times
from hardsave.vault import json_data
from hardsave.wording import in_our_words

if TYPE_CHECKING:
    from datetime import datetime

    from rich.text import Text

    from hardsave import Job

as_data = json_data.job

STYLES = {"succeeded": "added", "failed": "removed", "waiting": "changed", "active": "head"}


def rows(jobs: "list[Job]", now: "datetime") -> "list[Text]":
    """A list: one line each."""
    from rich.text import Text

    from hardsave.cli.render import draw

    return draw.columns(
        [
            (
                Text(wording.shown(job.id), style="name"),
                Text(job.state, style=STYLES.get(job.state, "")),
                Text(f"turn {job.turns}/{job.max_turns}" if _has_turns(job) else ""),
                Text(wording.count(job.messages, "message")),
                Text(wording.shown(job.model or "")),
                _prospect(job),
                Text("" if job.updated_at is None else wording.ago(job.updated_at, now), "quiet"),
                Text(wording.shown(job.spec.works_in or "")),
                Text(wording.line(job.text, 60), style="quiet"),
            )
            for job in jobs
        ]
    )


def _has_turns(job: "Job") -> bool:
    """Whether its turns are known, or may still come."""
    return job.turns > 0 or not job.is_over


def _prospect(job: "Job") -> "Text":
    """What may become of it from here."""
    from rich.text import Text

    if job.is_unserved:
        return Text("no worker for it", style="removed")
    return Text("resumable" if job.can_resume else "", style="added")


_SAID = 40  # characters of a message: a line fits 80 columns


def watched(job: "Job", said: str | None) -> "Text":
    """How it stands, on one line."""
    from hardsave.cli.render import draw

    end = job.output if job.state == "succeeded" else job.error if job.is_over else said
    return draw.line(
        (wording.line(job.id, 20), "name"),
        "  ",
        (job.state, STYLES.get(job.state, "")),
        f"  turn {job.turns}/{job.max_turns}  {job.percent} %  ",
        (wording.line(str(end or ""), _SAID if job.is_over is False else None), "quiet"),
    )


def page(job: "Job", now: "datetime") -> "Iterator[Text]":
    """All that is known of one, but for its messages."""
    from hardsave.cli.render import draw

    yield draw.line((wording.shown(job.id), "name"), "  ", (job.state, STYLES.get(job.state, "")))
    spec = job.spec
    turns = f", turn {job.turns} of {job.max_turns}" if _has_turns(job) else ""
    kept = None if job.expires_at is None or not job.can_resume else times.local(job.expires_at)
    yield from draw.fields(
        {
            "asked": wording.line(spec.prompt, 200),
            "progress": f"{job.percent} %{turns}",
            "agent": spec.agent,
            "model": job.model,
            "workspace": spec.works_in,
            "attempts": str(job.attempts),
            "resumed": None if spec.resumed is None else f"from {spec.resumed.from_job}",
            "saved": None if job.updated_at is None else wording.ago(job.updated_at, now),
            "kept": None if kept is None else f"until {kept}",
            "error": None if job.error is None else wording.line(in_our_words(job.error), 300),
            "question": None if job.question is None else wording.line(job.question, 300),
            "output": wording.line(str(job.output), 300) if job.output is not None else None,
            "resume": "yes" if job.can_resume else f"no: {in_our_words(job.why_not or '')}",
        }
    )
