"""Finding texts. The index lies in memory here; its file has tests of its own."""

import dataclasses
import enum
import os
import random
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardsave.errors import Misuse
from hardsave.stores.base import Changes
from hardsave.stores.memory.store import MemoryStore
from hardsave.vault.checkpoint import Checkpoint
from hardsave.vault.line import Timeline
from hardsave.vault.search import search
from hardsave.vault.search import walk as search_walk
from hardsave.vault.search.search import Hit
from hardsave.vault.vault import Vault
from tests.unit.vault.operations import drop, hide, operate, show
from tests.unit.vault.stage import Clock, Watched, messages


def where(vault: Vault, text: str, **options: Any) -> list[tuple[str, int, str]]:
    """(timeline, number, path or field) of every hit."""
    found = vault.search(text, **options)
    return [(hit.timeline, hit.checkpoint.seq, hit.path or hit.field) for hit in found]


def rows(vault: Vault, table: str) -> int:
    index = vault._context.search_index()
    sql = f"SELECT count(*) FROM {table}"  # noqa: S608 # a name from a test
    return int(index.use(lambda connection: connection.execute(sql).get))


def test_a_message_is_found_where_it_first_appeared(vault: Vault, line: Timeline) -> None:
    draw = random.Random(5)
    places = {}
    count = 0
    for turn in range(1, 301):
        new = [
            {"role": "user", "content": f"w{count + n}x " + "pad " * draw.choice([0, 5, 40, 900])}
            for n in range(draw.randrange(1, 12))
        ]
        places.update({f"w{count + n}x": (turn, count + n) for n in range(len(new))})
        count += len(new)
        line.append({"messages": new, "turn": turn})
    assert count > 1_500
    for word in draw.sample(sorted(places), 60):
        turn, at = places[word]
        assert where(vault, word) == [("main", turn, f"messages[{at}].content")]
        hit = vault.search(word)[0]
        assert hit.snippet.startswith(word)
        assert hit.marks == ((0, len(word)),)
        assert word in hit.checkpoint.read("messages", at, "content")


def test_a_large_first_save_is_indexed_with_its_paths(vault: Vault, line: Timeline) -> None:
    state = {"messages": [f"word{n} here" for n in range(5_000)], "map": {}}
    state["map"] = {f"key {n}": f"value{n}" for n in range(3_000)}
    line.save(state)
    for n in (0, 1, 77, 2_500, 4_999):
        assert where(vault, f"word{n}") == [("main", 1, f"messages[{n}]")]
    assert where(vault, "value2999") == [("main", 1, "map['key 2999']")]


@dataclasses.dataclass
class Plan:
    goal: str


class Mood(enum.Enum):
    CALM = "serene"


def test_texts_of_every_type_are_found(vault: Vault, line: Timeline) -> None:
    line.save(
        {
            "plan": Plan("conquer"),
            "mood": Mood.CALM,
            "pair": ("first", {"inner": "second"}),
            "set": frozenset({"member"}),
            7: {(1, "k"): "odd keys"},
            "lone": "surrogate \ud800 inside",
            "bytes": b"binary",
        }
    )
    assert where(vault, "conquer") == [("main", 1, "plan.goal")]
    assert where(vault, "serene") == [("main", 1, "mood")]
    assert where(vault, "second") == [("main", 1, "pair[1].inner")]
    assert where(vault, "member") == [("main", 1, "set[0]")]
    assert where(vault, "odd") == [("main", 1, "[7][(1, 'k')]")]
    assert where(vault, "surrogate inside") == [("main", 1, "lone")]
    assert where(vault, "binary") == []


def test_a_state_that_is_a_text_is_found(vault: Vault, line: Timeline) -> None:
    line.save("just words")
    hit = vault.search("words")[0]
    assert (hit.field, hit.path, hit.snippet) == ("state", "", "just words")


def test_names_descriptions_statuses_and_timelines_are_found(vault: Vault, line: Timeline) -> None:
    line.save({}, name="plan ready", description="before the refactoring", status="waiting")
    line.save({}, status="waiting")
    line.fork("@", name="second thoughts")
    assert where(vault, "plan") == [("main", 1, "name")]
    assert where(vault, "refactoring") == [("main", 1, "description")]
    assert where(vault, "waiting") == [("main", 1, "status")]
    assert where(vault, "main") == [("main", 1, "timeline")]
    assert where(vault, "thoughts") == [("second thoughts", 2, "timeline")]


def test_a_search_sees_what_was_saved_a_moment_ago(vault: Vault, line: Timeline) -> None:
    for n in range(5):
        line.append({"messages": [f"word{n}"]})
        assert where(vault, f"word{n}") == [("main", n + 1, f"messages[{n}]")]


# What people type


@pytest.fixture
def told(line: Timeline) -> Timeline:
    line.save(
        [
            "the quick brown fox",
            "Crème brûlée, naïve café",
            "東京タワーに行きました",
            "한국어 문장입니다",
            "shipped 🎉today",
            "snake_case and don't-stop 3.14 C++",
        ]
    )
    return line


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("quick fox", 0),
        ("QUICK", 0),
        ('"quick brown"', 0),
        ('"brown quick"', None),
        ("qui*", 0),
        ("qui", None),
        ("brulee", 1),
        ("CAFÉ", 1),
        ("cafe\u0301", 1),
        ("タワー", 2),
        ("東京", 2),
        ("京東", None),
        ("문장", 3),
        ("🎉", 4),
        ("today", 4),
        ("snake_case", 5),
        ("case", 5),
        ("don't", 5),
        ("3.14", 5),
        ("C++", 5),
    ],
)
def test_what_people_type_finds_what_they_mean(
    vault: Vault, told: Timeline, text: str, at: int | None
) -> None:
    assert where(vault, text) == ([] if at is None else [("main", 1, f"[{at}]")])


@pytest.mark.parametrize("text", ["", "  ", '""', "*", "...", None, 3, b"x"])
def test_a_search_for_nothing_is_misuse(vault: Vault, told: Timeline, text: Any) -> None:
    with pytest.raises(Misuse):
        vault.search(text)


@pytest.mark.parametrize("limit", [0, -1, True + 10_000, "5", None])
def test_an_odd_limit_is_misuse(vault: Vault, told: Timeline, limit: Any) -> None:
    with pytest.raises(Misuse, match="limit"):
        vault.search("fox", limit=limit)


@pytest.mark.parametrize(
    "after",
    [
        "",
        "x",
        "[1]",
        "{}",
        5,
        f'[0.5, {1 << 64}, 1, 1, "state", "a"]',
        f'[1{"0" * 400}, 1, 1, 1, "state", "a"]',
        '[0.5, 1.5, 1, 1, "state", "a"]',
        '[0.5, 1, 1, 1, "\\ud800", "a"]',
        "[" * 100_000,
    ],
    ids=str,
)
def test_an_odd_cursor_is_misuse(vault: Vault, told: Timeline, after: Any) -> None:
    with pytest.raises(Misuse, match="after"):
        vault.search("fox", after=after)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=30))
def test_no_text_is_a_syntax_error(vault: Vault, text: str) -> None:
    for typed in (text, f'"{text}', f"{text} OR NOT (", f"text:{text}*", f"a {text} NEAR(b"):
        try:
            vault.search(typed)
        except Misuse:
            assert not any(character.isalnum() for character in typed)


LETTERS = st.characters(categories=["Ll", "Lu", "Nd"], max_codepoint=0x5FF)
OTHERS = st.sampled_from(" .,-_\n漢字かなไทย🎉")
TEXTS = st.text(st.one_of(LETTERS, OTHERS), min_size=1, max_size=60)


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=12))
def test_every_text_is_found_by_any_of_its_words(texts: list[str]) -> None:
    with Vault(MemoryStore(), clock=Clock()) as vault:
        line = vault.timeline("main")
        for text in texts:
            line.append({"messages": [{"content": text}]})
        for at, text in enumerate(texts):
            for word in re.findall(r"[^\W_]+", text):
                paths = {hit.path for hit in vault.search(word, limit=500)}
                assert f"messages[{at}].content" in paths, (word, text)


# Pages and ranks


def test_pages_follow_each_other_without_gap_or_repeat(vault: Vault, line: Timeline) -> None:
    for n in range(25):
        line.append({"messages": [f"needle number {n}"]})
    seen: list[str] = []
    after = None
    while True:
        page = vault.search("needle", limit=10, after=after)
        seen += [hit.path for hit in page]
        after = page.next
        if after is None:
            break
    assert seen == [f"messages[{n}]" for n in reversed(range(25))]  # equal ranks: newest first


def test_what_says_it_more_densely_comes_first(vault: Vault, line: Timeline) -> None:
    line.save(["a story in which the needle is mentioned once " + "hay " * 50, "needle needle"])
    assert [hit.path for hit in vault.search("needle")] == ["[1]", "[0]"]


# Sharing


def test_what_checkpoints_share_is_indexed_once(vault: Vault, line: Timeline) -> None:
    state: dict[str, Any] = {"messages": messages(50), "mood": "thinking hard"}
    for turn in range(40):
        state["turn"] = turn
        line.save(state)
    assert where(vault, "thinking") == [("main", 1, "mood")]
    # 50 contents, the role, the mood; the timeline's name and the status
    assert rows(vault, "texts") == 54
    assert rows(vault, "words") == 54
    assert rows(vault, "places") == 50 + 50 + 1 + 2


def test_only_new_objects_are_read(store: Watched, vault: Vault, line: Timeline) -> None:
    line.save({"messages": messages(2_000)})
    vault.search("message")
    line.append({"messages": messages(1, start=2_000)})
    store.forget_reads()
    assert where(vault, "2000")
    assert len(store.read_hashes) < 20


def test_each_timeline_shows_a_text_at_its_own_first(vault: Vault, line: Timeline) -> None:
    line.append({"messages": ["shared words"]})
    line.append({"messages": ["more"]})
    other = line.fork("@", name="other")
    other.append({"messages": ["only here"]})
    assert set(where(vault, "shared")) == {
        ("main", 1, "messages[0]"),
        ("other", 1, "messages[0]"),
    }
    assert where(vault, "shared", timeline="other") == [("other", 1, "messages[0]")]
    assert where(vault, "only", timeline="main") == []
    assert where(vault, "only", timeline="nowhere") == []


# Hidden and dropped


def test_what_is_hidden_is_not_found_until_it_is_shown(
    store: Watched, vault: Vault, line: Timeline
) -> None:
    one = line.save({"note": "precious"}, name="named so")
    line.save({"note": "other"})
    assert where(vault, "precious")
    number = hide(store, one)
    assert where(vault, "precious") == []
    assert where(vault, "named") == []
    show(store, number)
    assert where(vault, "precious") == [("main", 1, "note")]


def test_what_is_dropped_is_not_found_and_leaves_the_index(
    store: Watched, vault: Vault, line: Timeline
) -> None:
    one = line.save({"note": "precious"})
    line.save({"note": "other"})
    assert where(vault, "precious")
    drop(store, one)
    assert where(vault, "precious") == []
    assert rows(vault, "texts WHERE text_of(size, body) = 'precious'") == 0
    assert rows(vault, "words WHERE words MATCH 'precious'") == 0


@pytest.mark.parametrize("take_away", [hide, drop])
def test_a_text_whose_first_checkpoint_went_is_found_in_the_next(
    store: Watched, vault: Vault, line: Timeline, take_away: Any
) -> None:
    saved = [line.append({"messages": [f"word{n} " * 40]}) for n in range(6)]
    other = line.fork("@", name="other")
    other.append({"messages": ["more"]})
    assert where(vault, "word0", timeline="main") == [("main", 1, "messages[0]")]
    take_away(store, *saved[:3])
    assert where(vault, "word0", timeline="main") == [("main", 4, "messages[0]")]
    assert where(vault, "word3", timeline="main") == [("main", 4, "messages[3]")]
    assert where(vault, "word0", timeline="other") == [("other", 1, "messages[0]")]
    take_away(store, *saved[3:5])
    hide(store, saved[5])
    assert where(vault, "word0") == [("other", 1, "messages[0]")]


def test_an_operation_that_is_not_logged_yet_is_noticed_in_the_hits(
    store: Watched, vault: Vault, line: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = line.save({"note": "precious"})
    line.save({"note": "precious"})
    assert where(vault, "precious") == [("main", 1, "note")]
    quiet = store.log_before(None, None, 1)
    hide(store, one)
    monkeypatch.setattr(store, "log_before", lambda *_: quiet)
    assert where(vault, "precious") == [("main", 2, "note")]


def test_the_name_of_a_fork_that_was_taken_back_is_forgotten(
    vault: Vault, line: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.save({"note": "precious"})
    line.fork(name="precious-fork")
    assert where(vault, "precious") == [("main", 1, "note"), ("precious-fork", 1, "timeline")]
    vault.undo()
    assert where(vault, "precious") == [("main", 1, "note")]
    assert vault.search("precious", limit=1).next is None
    looked = mock.Mock(wraps=search_walk.catch_up)
    monkeypatch.setattr(search, "catch_up", looked)
    assert where(vault, "precious") == [("main", 1, "note")]
    looked.assert_called_once()  # nothing was found that had to be looked for again
    vault.redo()
    assert where(vault, "precious") == [("main", 1, "note"), ("precious-fork", 1, "timeline")]


def test_a_checkpoint_that_was_replaced_is_read_anew(
    store: Watched, vault: Vault, line: Timeline
) -> None:
    one = line.save({"note": "secret"})
    two = line.save({"note": "harmless"})
    assert where(vault, "secret")
    operate(store, Changes(replace=[one._record._replace(root=two._record.root)]))
    assert where(vault, "secret") == []
    assert where(vault, "harmless") == [("main", 1, "note")]


def test_everything_against_a_plain_model(vault: Vault, store: Watched) -> None:
    """Saves, forks, hides, shows and drops at random; each word is where it should be."""
    draw = random.Random(11)
    lines = [vault.timeline("main")]
    lines[0].append({"messages": ["w0"]})
    hidden: dict[int, list[Checkpoint]] = {}
    for step in range(1, 120):
        line = draw.choice(lines)
        done = draw.random()
        visible = [c for one in lines for c in one.checkpoints(limit=500)]
        heads = {one.head for one in lines} | {one.get("@") for one in lines}
        free = [c for c in visible if c not in heads]
        if done < 0.6:
            line.append({"messages": [f"w{step}" + " pad" * draw.choice([0, 60])]})
        elif done < 0.7:
            lines.append(line.fork("@", name=f"fork {step}"))
        elif done < 0.8 and free:
            chosen = draw.sample(free, min(3, len(free)))
            hidden[hide(store, *chosen)] = chosen
        elif done < 0.88 and hidden:
            show(store, hidden.popitem()[0])
        elif free:
            drop(store, draw.choice(free))
        if step % 10 == 0:
            compare(vault, lines, step)


def compare(vault: Vault, lines: list[Timeline], steps: int) -> None:
    expected: dict[str, set[tuple[str, int]]] = {}
    for line in lines:
        for checkpoint in reversed(line.checkpoints(limit=500)):
            for text in checkpoint.read("messages"):
                word = text.split()[0]
                places = expected.setdefault(word, set())
                if line.name not in {name for name, _ in places}:
                    places.add((line.name, checkpoint.seq))
    for step in range(steps):
        found = {(hit.timeline, hit.checkpoint.seq) for hit in vault.search(f"w{step}", limit=500)}
        assert found == expected.get(f"w{step}", set()), step


# Users


def test_nobody_finds_or_notices_what_is_another_users() -> None:
    store = MemoryStore()
    kim, lee, nobody = (Vault(store, user=user) for user in ("kim", "lee", None))
    kim.timeline("main").save({"messages": ["common words", "rare words"], "x": "kims secret"})
    lee.timeline("main").save({"messages": ["common words", "rare words"]})
    before = ranks(kim)
    assert [where(vault, "secret") for vault in (kim, lee, nobody)] == [[("main", 1, "x")], [], []]
    for n in range(200):
        lee.timeline("main").append({"messages": [f"rare {n}"]})
    assert len(lee.search("rare", limit=500)) == 201
    assert ranks(kim) == before


def ranks(vault: Vault) -> list[tuple[str, float]]:
    hits: list[Hit[Checkpoint]] = [*vault.search("common"), *vault.search("rare")]
    return [(hit.path, hit.score) for hit in hits]


# Operations as people do them


def test_a_deleted_timeline_is_not_found_until_the_deletion_is_undone(vault: Vault) -> None:
    line = vault.timeline("doomed line")
    line.save({"note": "precious"})
    assert where(vault, "precious") == [("doomed line", 1, "note")]
    line.delete()
    assert where(vault, "precious") == []
    assert where(vault, "doomed") == []
    vault.undo()
    assert where(vault, "precious") == [("doomed line", 1, "note")]
    assert where(vault, "doomed") == [("doomed line", 1, "timeline")]


def test_what_was_rewound_over_is_still_found(vault: Vault, line: Timeline) -> None:
    line.save({"note": "first"})
    line.save({"note": "abandoned"})
    line.rewind("@~1")
    line.save({"note": "third"})
    assert where(vault, "abandoned") == [("main", 2, "note")]
    assert where(vault, "third") == [("main", 3, "note")]


# Names of files


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "parser.py").write_text("one")
    (folder / "notes.md").write_text("about the parser")
    return folder


def files(vault: Vault, text: str, **options: Any) -> list[tuple[str, str, int, int, str | None]]:
    """(timeline, path, first and newest number, what became of it) of every file."""
    return [
        (hit.timeline, hit.path, hit.checkpoint.seq, hit.newest.seq, hit.change)
        for hit in vault.search(text, **options)
        if hit.newest is not None
    ]


def test_a_file_is_found_by_its_name_where_it_changed(
    vault: Vault, line: Timeline, work: Path
) -> None:
    line.save({}, workspace=work)
    (work / "src" / "parser.py").write_text("two")
    line.save({}, workspace=work)
    line.save({"said": "nothing of it"}, workspace=work)
    (work / "src" / "parser.py").unlink()
    line.save({}, workspace=work)
    line.save({})
    assert files(vault, "parser") == [("main", "src/parser.py", 1, 4, "removed")]
    assert files(vault, "parser.py") == files(vault, "src/pars*") == files(vault, "parser")
    assert files(vault, "md") == [("main", "notes.md", 1, 1, "added")]
    assert not vault.search("about"), "what is in it is not searched"
    (hit,) = vault.search("parser")
    assert (hit.field, hit.snippet, hit.marks) == ("file", "src/parser.py", ((4, 10),))


def test_the_files_of_a_directory_are_listed_once_for_all_its_sessions(
    vault: Vault, work: Path
) -> None:
    vault.timeline("first").save({}, workspace=work)
    for number in range(5):
        vault.timeline(f"other-{number}").save({}, workspace=work)
    assert files(vault, "notes.md") == [("first", "notes.md", 1, 1, "added")]
    assert rows(vault, "changes") == 2
    (work / "notes.md").write_text("two")
    vault.timeline("other-3").save({}, workspace=work)
    found = files(vault, "notes.md")
    assert {*found} == {
        ("first", "notes.md", 1, 1, "added"),
        ("other-3", "notes.md", 2, 2, "changed"),
    }


def test_a_file_is_still_found_when_the_session_that_brought_it_is_deleted(
    vault: Vault, work: Path
) -> None:
    vault.timeline("first").save({}, workspace=work)
    vault.timeline("other").save({}, workspace=work)
    assert files(vault, "notes.md") == [("first", "notes.md", 1, 1, "added")]
    vault.timeline("first").delete()
    assert files(vault, "notes.md") == [("other", "notes.md", 1, 1, "added")]
    vault.undo()
    assert files(vault, "notes.md") == [("first", "notes.md", 1, 1, "added")]


def test_names_that_are_no_text_are_found_by_what_is_text_in_them(
    vault: Vault, line: Timeline, work: Path
) -> None:
    for name in (b"caf\xe9 menu.txt", "メニュー.txt".encode()):
        (Path(os.fsdecode(os.fsencode(work) + b"/" + name))).write_text("x")
    line.save({}, workspace=work)
    assert len(files(vault, "menu")) == 1
    assert files(vault, "ニュ") == [("main", "メニュー.txt", 1, 1, "added")]


def test_a_search_may_be_about_some_timelines(vault: Vault) -> None:
    for name in ("a", "b", "c"):
        vault.timeline(name).save({"said": "word"})
    assert {hit.timeline for hit in vault.search("word", timeline=["a", "c"])} == {"a", "c"}
    assert [hit.timeline for hit in vault.search("word", timeline="b")] == ["b"]
    assert not vault.search("word", timeline=[])
    wrong: Any = 7
    for names in (wrong, [wrong], ["a:b"]):
        with pytest.raises(Misuse):
            vault.search("word", timeline=names)
