"""What a save keeps for lists, and lists that are read from rows alone."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import hardsave
from hardsave import FileCounts, StepSummary, Vault
from hardsave.errors import Misuse
from hardsave.stores.base import Changes
from hardsave.testing.batches import operate
from hardsave.vault.checkpoint import record_of
from hardsave.vault.save.parts import Parts
from tests.unit.vault.secrets_scanner import found

SECRET = "sesame-opens-7919"  # noqa: S105 # a text to be purged


@pytest.fixture(params=["sqlite", "memory"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url) as opened:
        yield opened


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


CALL = {
    "role": "assistant",
    "content": [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}],
}
RESULT = {"role": "user", "content": [{"type": "tool_result", "content": "a.py"}]}


def summary(one: hardsave.Checkpoint) -> StepSummary:
    assert one.summary is not None
    return one.summary


# Messages


@pytest.mark.parametrize("is_appended", [True, False])
@pytest.mark.parametrize("is_fresh", [True, False])
def test_messages_are_counted_and_the_last_is_told(
    vault: Vault, is_appended: bool, is_fresh: bool
) -> None:
    line, told = vault.timeline("main"), []
    messages: list[Any] = []
    for new in ([user("fix it")], [assistant("a"), CALL], [RESULT], [assistant("done")]):
        messages += new
        if is_fresh:
            line = vault.timeline("main")
        save = line.append({"messages": new}) if is_appended else line.save({"messages": messages})
        told.append(summary(save))
    assert [each.messages for each in told] == [1, 3, 4, 5]
    assert [each.new_messages for each in told] == [1, 2, 1, 1]
    assert [each.prompt for each in told] == ["fix it", "", "", ""]
    assert (told[0].said, told[1].said, told[3].said) == (
        "fix it",
        'Bash({"command": "ls"})',
        "done",
    )
    assert all(each.files is None for each in told)


def test_a_long_conversation_is_counted_without_being_read(vault: Vault) -> None:
    line = vault.timeline("main")
    for turn in range(300):
        line.append({"messages": [user(f"question {turn}"), assistant("x" * 200)], "turn": turn})
    assert summary(line.append({"turn": 300})).messages == 600
    assert summary(vault.timeline("main").append({"turn": 301})).said[:3] == "xxx"
    assert summary(vault.timeline("main").append({"messages": [user("a")]})).messages == 601


def test_a_state_that_comes_in_parts_is_told_of_as_one(vault: Vault) -> None:
    def parts() -> Any:
        yield {"messages": [user("first"), assistant("a")]}
        yield {"messages": [user("second"), assistant("b")]}

    line = vault.timeline("main")
    told = summary(line.save(Parts(parts, goes_on=False)))
    assert (told.messages, told.new_messages, told.said, told.prompt) == (4, 4, "b", "second")
    told = summary(line.save(Parts(parts, goes_on=True)))
    assert (told.messages, told.new_messages) == (8, 4)


@dataclass
class State:
    messages: list[Any] = field(default_factory=list)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State([user("hello")]), (1, "hello")),
        ({"history": ["plain text"]}, (1, "plain text")),
        ({"messages": "none"}, (None, "")),
        ([1, 2], (None, "")),
        (None, (None, "")),
        ({"messages": [{"role": "user", "content": 5, "tool_calls": 7}]}, (1, "5")),
        ({"messages": [object]}, None),
    ],
)
def test_states_of_any_kind_are_told_of(vault: Vault, state: Any, expected: Any) -> None:
    line = vault.timeline("main")
    if expected is None:
        with pytest.raises(Misuse):
            line.save(state)
        return
    told = summary(line.save(state))
    assert (told.messages, told.said) == expected


def test_files_alone_carry_on_what_was_said(vault: Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    vault.timeline("main").append({"messages": [user("hello")]})
    told = summary(vault.timeline("main").save_files(work))
    assert (told.messages, told.new_messages, told.said, told.prompt) == (1, 0, "hello", "")


def test_the_head_of_a_row_without_a_summary_is_counted(vault: Vault) -> None:
    line = vault.timeline("main")
    saved = record_of(line.append({"messages": [user("a"), user("b")]}))
    changes = Changes(replace=[saved._replace(summary=None)])
    operate(vault._context.store, "as it was before", changes)
    assert line.get().summary is None
    told = summary(vault.timeline("main").save({"messages": [user("a"), user("b"), user("c")]}))
    assert (told.messages, told.new_messages) == (3, 1)


# Files


def test_files_are_counted_against_the_head(vault: Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "a.py").write_text("a")
    (work / "src/b.py").write_text("b")
    line = vault.timeline("main")
    first = summary(line.save_files(work))
    assert (first.files, first.paths) == (FileCounts(added=2, total=2), ())
    assert summary(line.save_files(work)).files == FileCounts(total=2)
    (work / "a.py").write_text("longer")
    (work / "src/b.py").unlink()
    for name in "cdef":
        (work / f"src/{name}.py").write_text(name)
    told = summary(line.save_files(work))
    assert told.files == FileCounts(added=4, changed=1, removed=1, total=5)
    assert told.paths == ("a.py", "src/b.py", "src/c.py", "src/d.py", "src/e.py")


def test_another_timeline_is_compared_with_its_own_head(vault: Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("a")
    one, two = vault.timeline("one"), vault.timeline("two")
    one.save_files(work)
    (work / "b.py").write_text("b")
    two.save_files(work)
    assert summary(one.save_files(work)).paths == ("b.py",)
    assert summary(one.save_files(work)).files == FileCounts(total=2)


# What a caller tells


def test_a_caller_tells_of_the_step_and_the_rest_is_filled_in(vault: Vault) -> None:
    given = StepSummary(
        messages=99, call="Bash(rm x)", call_id="c1", phase="before", outside=("git push",)
    )
    told = summary(vault.timeline("main").append({"messages": [user("a")]}, step=given))
    assert (told.messages, told.call, told.phase, told.outside) == (
        1,
        "Bash(rm x)",
        "before",
        ("git push",),
    )
    assert told.prompt == ""  # a caller that tells of steps tells of prompts as well


def test_a_title_is_given_once(vault: Vault) -> None:
    line = vault.timeline("main")
    line.append({"n": 1})
    assert line.title == ""
    line.append({"n": 2}, title="fix the\nparser")
    line.append({"n": 3}, title="another")
    assert vault.timeline("main").title == line.title == "fix the parser"
    line.rewind("@~1")
    line.undo()
    assert line.title == "fix the parser"


@pytest.mark.parametrize(
    "wrong", [{"step": {"call": "x"}}, {"title": 5}, {"step": StepSummary(phase="x")}]
)
def test_what_is_no_step_and_no_title_is_refused(vault: Vault, wrong: Any) -> None:
    with pytest.raises(Misuse):
        vault.timeline("main").append({"n": 1}, **wrong)


def test_secrets_are_redacted_in_what_is_kept_for_lists(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2c3D4" * 12
    url = f"sqlite:///{tmp_path}/store.db"
    with hardsave.open(url, redact=True) as vault:
        line = vault.timeline("main")
        line.append({"messages": [user(f"use {key}"), CALL]}, title=f"use {key}")
        line.save(
            {"messages": [user(f"use {key}")]}, step=StepSummary(call=f"Bash({key})", prompt=key)
        )
    assert found(tmp_path, (key, key[13:40])) == set()


# Purge, export, import


def test_a_purged_text_goes_from_summaries_and_titles(tmp_path: Path) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        line, gone = vault.timeline("main"), vault.timeline("gone")
        step = StepSummary(prompt=f"say {SECRET}", call=f"Bash({SECRET})")
        line.append({"messages": [user(f"say {SECRET}")]}, step=step, title=f"say {SECRET}")
        gone.append({"n": 1}, title=f"say {SECRET}")
        gone.delete()
        vault.store.purge(text=SECRET)
        line.append({"n": 1})
        assert line.title == "say [purged]"
        assert summary(line.get("@~1")).call == "Bash([purged])"
    assert found(tmp_path, (SECRET,)) == set()


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_purged_checkpoint_takes_its_prompt_from_the_title(
    tmp_path: Path, is_whole: bool
) -> None:
    with hardsave.open(f"sqlite:///{tmp_path}/store.db") as vault:
        line = vault.timeline("main")
        doomed = line.append({"n": 1}, step=StepSummary(prompt=SECRET), title=SECRET)
        line.save({"n": 2})
        if is_whole:
            vault.store.purge(timeline="main")
        else:
            vault.store.purge(doomed.id)
    assert found(tmp_path, (SECRET,)) == set()


def test_an_export_has_summaries_and_titles(vault: Vault, tmp_path: Path) -> None:
    line = vault.timeline("main")
    line.append({"messages": [user("fix it")]}, title="fix it")
    told = summary(line.append({"n": 1}, step=StepSummary(call="Bash(ls)", phase="after")))
    vault.export_file(tmp_path / "x.hsx")
    with hardsave.open("memory://") as other:
        other.import_file(tmp_path / "x.hsx")
        assert other.timeline("main").title == "fix it"
        assert other.timeline("main").get().summary == told


# Lists


def test_sessions_of_a_directory_come_by_their_last_update(vault: Vault, tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    for directory in (work, other):
        directory.mkdir()
    vault.timeline("one").save({"n": 1}, workspace=work, title="the first")
    vault.timeline("two").save({"n": 1}, workspace=work)
    vault.timeline("else").save({"n": 1}, workspace=other)
    saved = vault.timeline("one").save({"n": 2}, workspace=work)
    assert [each.timeline for each in vault.sessions()] == ["one", "else", "two"]
    here = vault.sessions(workspace=work, limit=1)
    assert [(each.timeline, each.title) for each in here] == [("one", "the first")]
    assert (here[0].newest, here[0].head, here[0].updated_at) == (saved, saved, saved.created_at)
    (last,) = vault.sessions(workspace=work, limit=1, after=here.next)
    assert last.timeline == "two"
    vault.timeline("two").delete()
    assert [each.timeline for each in vault.sessions(workspace=work)] == ["one"]
    assert {each.timeline for each in vault.sessions(deleted=True)} == {"one", "two", "else"}


def test_moments_of_a_directory_come_newest_first_in_pages(vault: Vault, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    one, two = vault.timeline("one"), vault.timeline("two")
    saved = [line.save({"n": n}, workspace=work) for n in range(3) for line in (one, two)]
    one.save({"n": 9})  # without files
    vault.delete(saved[2])
    del saved[2]
    assert list(vault.moments(work)) == saved[::-1]
    first = vault.moments(work, limit=2)
    assert list(vault.moments(work, limit=9, after=first.next)) == saved[-3::-1]


@pytest.mark.parametrize("after", ["x", "1", 5, ":a"])
def test_a_cursor_that_is_none_is_refused(vault: Vault, after: Any) -> None:
    with pytest.raises(Misuse, match="the `next` of an earlier page"):
        vault.sessions(after=after)
