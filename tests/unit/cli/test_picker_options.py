"""The rows that the picker lists, and what it shows of one before it is chosen."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

import hardsave
from hardsave.cli.picker import preview
from hardsave.cli.picker.options import Listing, Names, Since, listing, since
from hardsave.cli.picker.state import What
from hardsave.errors import Conflict
from hardsave.timeline.story import Head, Row, Told
from hardsave.timeline.telling import tell
from hardsave.vault.restore.task_rollback import RolledBack

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOTHING = Told()
NAMES = Names(
    lambda session: Text(f"{session.timeline}  {session.title}"),
    lambda row: row.name != "no-files",
)


class Rows(list[Row]):
    """Checkpoints, one after the other."""

    def add(self, timeline: str, told: Told = NOTHING, **fields: Any) -> None:
        seq = sum(row.timeline == timeline for row in self) + 1
        parent = next((row.id for row in reversed(self) if row.timeline == timeline), None)
        number = len(self) + 1
        moment = NOW - timedelta(minutes=60 - number)
        self.append(
            Row(
                *(f"chk_{number}", timeline, seq, number, moment, parent),
                told=told,
                is_counted=True,
                **fields,
            )
        )

    def listing(self, **heads: Head) -> Listing:
        return listing(tell(self, heads), NAMES, NOW)


def two_sessions() -> Rows:
    rows = Rows()
    rows.add("docs", Told(prompt="Write docs", phase="prompt"), new_messages=1)
    rows.add("docs", Told("", "Edit(docs.md)", "d1", "after"), new_messages=2, files={"+": 1})
    rows.add("code", Told(prompt="Fix it", phase="prompt"), new_messages=1)
    rows.add("code", Told("", "Bash(git push)", "c1", "before"), new_messages=1)
    rows.add(
        *("code", Told("", "Bash(git push)", "c1", "after")),
        new_messages=1,
        files={"~": 2},
        outside=("git push",),
    )
    rows.add("code", Told(phase="answer"), new_messages=1, said="Pushed.")
    rows.add("code", Told(prompt="Now make it fast", phase="prompt"), new_messages=1)
    return rows


def test_sessions_stand_above_prompts_and_prompts_above_steps_newest_first() -> None:
    found = two_sessions().listing()
    assert [(each.level, each.text.plain, each.ref) for each in found.options] == [
        ("session", "code  Fix it", ""),
        ("prompt", "Now make it fast", ":5"),
        ("prompt", "Fix it", ":1"),
        ("step", "Pushed.", ":4"),
        ("step", "Bash(git push)", ":3"),
        ("session", "docs  Write docs", ""),
        ("prompt", "Write docs", ":1"),
        ("step", "Edit(docs.md)", ":2"),
    ]
    under = {each.text.plain: each.under for each in found.options if each.level == "step"}
    keys = {each.text.plain: each.key for each in found.options}
    assert under["Pushed."] == under["Bash(git push)"] == keys["Fix it"]


def test_every_row_that_can_be_chosen_has_a_key_of_its_own_and_a_moment() -> None:
    found = two_sessions().listing()
    keys = [each.key for each in found.options]
    assert len(set(keys)) == len(keys)
    assert found.moments.keys() == {each.key for each in found.options if each.id}


def test_a_single_session_has_no_heading_and_steps_without_a_prompt_stand_alone() -> None:
    rows = Rows()
    rows.add("main", name="plan-ready", description="A plan")
    rows.add("main", kind="manual", name="no-files")
    found = rows.listing(main=Head("chk_2", 2))
    assert [(each.level, each.under) for each in found.options] == [("step", ""), ("step", "")]
    assert [each.mark for each in found.options] == ["@", "●"]
    assert [each.has_files for each in found.options] == [False, True]
    assert "plan-ready" in found.options[1].searched


def test_a_prompt_leads_to_before_its_answer_and_shows_it() -> None:
    found = two_sessions().listing()
    option = next(each for each in found.options if each.text.plain == "Fix it")
    moment = found.moments[option.key]
    assert option.id == "chk_3"
    assert moment.way == "before this prompt was answered"
    assert moment.said == [("prompt", "Fix it"), ("answer", "Pushed.")]


def test_a_step_leads_to_after_it_and_shows_what_was_asked_and_said() -> None:
    rows = two_sessions()
    rows[4] = rows[4]._replace(said="I push it.")
    moments = {each.row.id: each for each in rows.listing().moments.values()}
    assert moments["chk_5"].way == "after this step"
    assert moments["chk_5"].said == [
        ("prompt", "Fix it"),
        ("step", "Bash(git push)"),
        ("said", "I push it."),
    ]
    assert moments["chk_6"].said == [("prompt", "Fix it"), ("step", "Pushed.")]  # once


@pytest.mark.parametrize("about", ["after Bash", "after Bash, Edit", 'Bash({"command": "ls"})'])
def test_what_describes_a_call_was_not_said(about: str) -> None:
    rows = two_sessions()
    rows[4] = rows[4]._replace(said=about)
    moments = {each.row.id: each for each in rows.listing().moments.values()}
    assert moments["chk_5"].said == [("prompt", "Fix it"), ("step", "Bash(git push)")]


def test_what_calls_did_outside_since_is_counted_and_other_sessions_are_named() -> None:
    found = two_sessions().listing()
    seen = {
        f"{moment.row.timeline}:{moment.row.seq}": since(found.story, moment)
        for moment in found.moments.values()
    }
    assert seen["code:1"] == Since((("git push", 1),))
    assert seen["code:3"] == seen["code:5"] == Since()  # after the push
    assert seen["docs:1"] == Since((("git push", 1),), ("code",))


def test_the_notes_say_what_stays_done_and_whose_files_go_back() -> None:
    found = Since((("git push", 2), ("npm publish", 1)), ("claude-1",))
    assert [each.plain for each in preview.notes(found, lambda name: "fix-it", "all")] == [
        "! 3 calls since reached outside, still done: git push ×2, npm publish",
        "! files of other sessions since go back too: fix-it",
    ]
    assert len([*preview.notes(found, str, "state")]) == 1
    assert not [*preview.notes(Since(), str, "all")]


@pytest.mark.parametrize(
    ("what", "has_files", "has_talk"),
    [("all", True, True), ("state", False, True), ("files", True, False)],
)
def test_a_preview_compares_with_the_disk_and_tells_of_what_goes_back_alone(
    what: What, has_files: bool, has_talk: bool, session_1: Path
) -> None:
    (session_1 / "a.txt").write_text("ruined\n")
    (session_1 / "new.txt").write_text("since\n")
    with hardsave.open() as vault:
        line = vault.timeline("session-1")

        def plan(id: str, what: What) -> hardsave.Rewind:
            return line.rewind(id, what=what, dry_run=True)

        id = line.get("@~1").id
        found = preview.facts(plan, id, what)
        planned = plan(id, what)
        patch = [each.plain for each in preview.diff(plan, id, what)]
    lines = [each.plain for each in found.lines]
    assert any(each == f"files  {planned.files}" for each in lines) == has_files
    assert any("3 → 2 messages" in each for each in lines) == has_talk
    stats = [(each.sign, each.path, each.added, each.removed) for each in found.stats]
    changed = [("~", "a.txt", 2, 1), ("-", "b.txt", 0, 1), ("-", "new.txt", 0, 1)]
    assert stats == (changed if has_files else [])
    assert ("-ruined" in patch) == has_files


def test_what_cannot_be_gone_back_to_says_why() -> None:
    def plan(id: str, what: What) -> hardsave.Rewind:
        raise Conflict("other sessions have changed this workspace since")

    found = preview.facts(plan, "chk_1", "all")
    assert [each.plain for each in found.lines] == [
        "! other sessions have changed this workspace since"
    ]
    assert [each.plain for each in preview.diff(plan, "chk_1", "all")] == [
        "! other sessions have changed this workspace since"
    ]


def test_what_steps_of_tasks_did_since_is_still_done(session_1: Path) -> None:
    task = RolledBack(id="mail", text="", state="succeeded", effects=("send", "archive"))
    with hardsave.open() as vault:
        line = vault.timeline("session-1")

        def plan(id: str, what: What) -> hardsave.Rewind:
            return line.rewind(id, what=what, dry_run=True).replace(tasks=(task,))

        found = preview.facts(plan, line.get("@~1").id, "all")
    assert "! 2 steps of tasks since, still done: send, archive" in [
        each.plain for each in found.lines
    ]
