"""Taking back on the page, in a real Chromium over a real server: from the click to the disk."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from tests.integration.server.browser import NEEDS_CHROMIUM, Visitor, visiting
from tests.integration.server.conftest import Server, Start
from tests.integration.server.session_page import at, go_to, moment
from tests.integration.server.session_story import FIRST, NAME, SECOND, Story, say
from tests.unit.agents.test_claude_code import CALL, HELLO, RESULT, state, written

pytestmark = NEEDS_CHROMIUM


class Scene:
    """A server over a story, a visitor of it, and the store and files beneath."""

    def __init__(self, server: Server, story: Story, visitor: Visitor) -> None:
        self.server = server
        self.story = story
        self.visitor = visitor
        self.page = visitor.page
        self.line = story.line

    @property
    def head(self) -> int:
        head = self.line.head
        assert head is not None
        return head.seq

    def open(self, number: int) -> None:
        """The session at a checkpoint, and the dialog that takes it back there."""
        self.visitor.go("session", timeline=NAME, at=f":{number}")
        at(self.visitor, number)
        self.page.keyboard.press("r")
        expect(self.page.get_by_role("dialog")).to_be_visible()

    def preview(self) -> str:
        expect(self.page.get_by_role("dialog").locator(".said-first")).to_be_visible()
        return self.page.get_by_role("dialog").inner_text()

    def choose(self, what: str) -> None:
        self.page.get_by_role("radio", name=what).check()

    def apply(self, name: str) -> None:
        self.visitor.button(name).click()
        expect(self.page.get_by_role("dialog")).to_have_count(0)


@pytest.fixture
def scene(chromium: Browser, start: Start) -> Iterator[Scene]:
    server = start()
    with server.vault() as vault:
        story = Story(vault, server.folder).tell()
        with visiting(chromium, server) as visitor:
            yield Scene(server, story, visitor)


def test_a_rewind_takes_both_back_and_one_click_undoes_it(scene: Scene) -> None:
    scene.open(1)
    told = scene.preview()
    assert "4 messages are left behind" in told
    assert re.search(r"Change \(1\)\s+~\s+cart.py", told)
    assert scene.story.read("cart.py") == SECOND  # a preview does nothing
    scene.apply("Rewind both")
    expect(scene.page.locator("#notices")).to_contain_text("Rewound to :1.")
    assert (scene.head, scene.story.read("cart.py")) == (1, FIRST)
    at(scene.visitor, 1)
    expect(moment(scene.visitor, 1)).to_be_in_viewport()
    expect(moment(scene.visitor, 1).locator(".tag.head")).to_be_visible()
    scene.page.locator("#notices").get_by_role("button", name="Undo").click()
    expect(scene.page.locator("#notices")).to_contain_text("Undone: rewind.")
    at(scene.visitor, 7)
    assert (scene.head, scene.story.read("cart.py")) == (7, SECOND)
    scene.visitor.button("Redo rewind").click()
    notices = scene.page.locator("#notices")
    expect(notices).to_contain_text("Done again: rewind.")
    assert notices.get_by_role("button", name="Redo").count() == 0  # of an undo before
    at(scene.visitor, 1)
    assert (scene.head, scene.story.read("cart.py")) == (1, FIRST)


def test_the_conversation_goes_back_alone(scene: Scene) -> None:
    scene.open(1)
    scene.choose("Conversation only")
    scene.apply("Rewind the conversation")
    at(scene.visitor, 1)
    assert (scene.head, scene.story.read("cart.py")) == (1, SECOND)


def test_files_go_back_alone(scene: Scene) -> None:
    scene.open(1)
    scene.choose("Files only")
    scene.apply("Bring files back")
    expect(scene.page.locator("#notices")).to_contain_text("Files are as they were at :1.")
    assert scene.story.read("cart.py") == FIRST
    assert scene.head == 7
    scene.visitor.button("Undo restore").click()
    scene.visitor.until("the file is undone", lambda: scene.story.read("cart.py") == SECOND)


def test_only_the_files_that_are_picked_go_back(scene: Scene) -> None:
    scene.story.put("notes.md", "changed by hand\n")
    scene.open(1)
    scene.choose("Some files")
    scene.page.get_by_role("checkbox", name="notes.md").check()
    scene.apply("Bring 1 path back")
    assert scene.story.read("notes.md") == "# Notes\n"
    assert (scene.head, scene.story.read("cart.py")) == (7, SECOND)


def test_what_reached_outside_and_what_goes_is_told(scene: Scene) -> None:
    scene.line.rewind(":6")
    scene.open(3)
    told = scene.preview()
    assert "1 call reached outside and stays done: git push to origin" in told
    assert re.search(r"Come back \(1\)\s+\+\s+notes.md", told)
    assert re.search(r"Go \(1\)\s+\S\s+discount.py", told)
    scene.apply("Rewind both")
    assert scene.story.read("notes.md") == "# Notes\n"
    assert not (scene.story.project / "discount.py").exists()


def test_what_cannot_come_back_is_told(chromium: Browser, start: Start) -> None:
    server = start()
    with server.vault() as vault, visiting(chromium, server) as visitor:
        story = Story(vault, server.folder)
        story.put(".gitignore", ".env\n")
        story.put(".env", "KEY=1")
        story.step(say("one"))
        (story.project / ".env").unlink()
        story.put("a.txt", "two\n")
        story.step(say("two"))
        scene = Scene(server, story, visitor)
        scene.open(1)
        told = scene.preview()
        assert re.search(r"Cannot come back \(1\)\s+!\s+.env\s+ignored; it is gone", told)
        assert re.search(r"Go \(1\)\s+\S\s+a.txt", told)
        scene.apply("Rewind both")
        assert sorted(each.name for each in story.project.iterdir()) == [".gitignore"]


def test_what_reached_outside_is_told_though_the_history_comes_late(scene: Scene) -> None:
    scene.line.rewind(":6")
    held: list[Route] = []
    scene.page.route("**/api/v1/graph*", lambda asked: held.append(asked))  # noqa: PLW0108
    scene.visitor.go("session", timeline=NAME, at=":3")
    expect(scene.page.locator(".moment-label b")).to_have_text(":3")
    scene.page.keyboard.press("r")
    for route in held:
        route.continue_()
    scene.page.unroute("**/api/v1/graph*")
    assert "1 call reached outside and stays done: git push to origin" in scene.preview()


def test_a_rewind_whose_preview_is_stale_is_refused_and_previewed_again(scene: Scene) -> None:
    scene.open(1)
    scene.preview()
    scene.story.put("cart.py", "typed meanwhile\n")
    scene.visitor.button("Rewind both").click()
    expect(scene.page.get_by_role("alert")).to_contain_text("Nothing was done: this preview is out")
    assert (scene.head, scene.story.read("cart.py")) == (7, "typed meanwhile\n")
    scene.visitor.button("Preview again").click()
    expect(scene.page.get_by_role("alert")).to_have_text("")
    scene.apply("Rewind both")
    assert scene.story.read("cart.py") == FIRST
    assert scene.visitor.complaints.pop().startswith("Failed to load resource")  # the 412


def test_of_two_people_one_rewinds_and_the_other_is_told(scene: Scene, chromium: Browser) -> None:
    with visiting(chromium, scene.server) as other:
        second = Scene(scene.server, scene.story, other)
        for one, number in ((scene, 1), (second, 2)):
            one.open(number)
            one.preview()
        scene.apply("Rewind both")
        other.button("Rewind both").click()
        expect(other.page.get_by_role("alert")).to_contain_text("Nothing was done")
        assert (scene.head, scene.story.read("cart.py")) == (1, FIRST)
        other.button("Preview again").click()
        second.apply("Rewind both")
        at(scene.visitor, 2)  # the first one sees it
        assert (scene.head, scene.story.read("cart.py")) == (2, SECOND)
        assert other.complaints.pop().startswith("Failed to load resource")


def test_of_two_rewinds_at_once_one_is_done_and_the_other_refused(
    scene: Scene, chromium: Browser
) -> None:
    """Both are on their way before either is answered; which one wins is open."""
    with visiting(chromium, scene.server) as other:
        second = Scene(scene.server, scene.story, other)
        held: list[Route] = []

        def hold(route: Route) -> None:
            held.append(route)

        for one, number in ((scene, 1), (second, 2)):
            one.open(number)
            one.preview()
            one.page.route("**/api/v1/rewind", hold)
            one.visitor.button("Rewind both").click()
        other.until("both are on their way", lambda: len(held) == 2)
        for route in held:
            route.continue_()
        told = scene.page.get_by_role("alert").or_(scene.page.locator("#notices .notice"))
        expect(told.first).to_contain_text(re.compile("Nothing was done|Rewound"))
        won, lost = (scene, second) if scene.head == 1 else (second, scene)
        expect(won.page.locator("#notices")).to_contain_text(f"Rewound to :{scene.head}.")
        expect(lost.page.get_by_role("alert")).to_contain_text("Nothing was done")
        assert scene.story.read("cart.py") == (FIRST if scene.head == 1 else SECOND)
        assert {each.seq for each in scene.line.checkpoints()} >= set(range(1, 8))
        assert lost.visitor.complaints.pop().startswith("Failed to load resource")


def test_files_of_another_session_go_back_only_if_that_is_wanted(scene: Scene) -> None:
    other = Story(scene.story.vault, scene.story.project, "other")
    other.put("theirs.py", "made by another session\n")
    other.step(say("made a file"))
    scene.open(1)
    expect(scene.page.get_by_role("alert")).to_contain_text("other sessions have changed")
    scene.visitor.button("Only what this session changed").click()
    told = scene.preview()
    assert re.search(r"Stay as they are \(1\)\s+=\s+theirs.py", told)
    scene.apply("Rewind both")
    assert scene.story.read("cart.py") == FIRST
    assert scene.story.read("theirs.py") == "made by another session\n"
    assert scene.visitor.complaints.pop().startswith("Failed to load resource")  # the 409


def test_git_goes_back_if_that_is_wanted(chromium: Browser, start: Start) -> None:
    server = start()

    def git(*words: str) -> str:
        about = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(server.folder))
        return subprocess.run(
            ["git", *about, *words], check=True, capture_output=True, text=True
        ).stdout

    with server.vault() as vault:
        git("init", "-q", "-b", "main")
        story = Story(vault, server.folder)
        story.put("a.txt", "one\n")
        git("add", "-A")
        git("commit", "-qm", "one")
        story.step(say("one"))
        git("checkout", "-qb", "other")
        story.put("a.txt", "two\n")
        git("commit", "-qam", "two")
        story.step(say("two"))
        with visiting(chromium, server) as visitor:
            scene = Scene(server, story, visitor)
            scene.open(1)
            assert "git was on main, is on other and stays there" in scene.preview()
            scene.page.get_by_role("checkbox", name="git: branch and index, too").check()
            dialog = scene.page.get_by_role("dialog")
            expect(dialog).to_contain_text("git goes from other to main")
            scene.apply("Rewind both")
            assert git("branch", "--show-current").strip() == "main"


def test_a_fork_begins_a_timeline_with_its_files_beside_the_others(scene: Scene) -> None:
    scene.visitor.go("session", timeline=NAME, at=":1")
    at(scene.visitor, 1)
    scene.page.keyboard.press("f")
    scene.page.get_by_label("Name", exact=True).fill("another")
    scene.page.get_by_role("checkbox").check()
    scene.page.get_by_label("Name of the directory").fill("beside")
    scene.visitor.button("Fork").click()
    expect(scene.page.locator("#notices")).to_contain_text("Forked: another.")
    assert (scene.story.project.with_name("beside") / "cart.py").read_text() == FIRST
    assert scene.story.read("cart.py") == SECOND
    scene.visitor.button("Open it").click()
    expect(scene.page.get_by_role("heading", level=1)).to_have_text("another")
    assert scene.story.vault.timeline("another").head is not None


def test_a_name_that_is_taken_is_refused_in_the_dialog(scene: Scene) -> None:
    scene.visitor.go("session", timeline=NAME)
    at(scene.visitor, 7)
    scene.page.keyboard.press("f")
    scene.page.get_by_label("Name", exact=True).fill(NAME)
    scene.page.keyboard.press("Enter")
    expect(scene.page.get_by_role("alert")).to_contain_text("exists already")
    scene.page.keyboard.press("Escape")
    expect(scene.page.get_by_role("dialog")).to_have_count(0)
    assert scene.visitor.complaints.pop().startswith("Failed to load resource")  # the 409


def test_all_of_it_works_by_keyboard_and_focus_comes_back(scene: Scene) -> None:
    scene.visitor.go("session", timeline=NAME)
    at(scene.visitor, 7)
    go_to(scene.visitor, "1")
    at(scene.visitor, 1)
    keyboard = scene.page.keyboard
    scene.visitor.button("Rewind to here").focus()
    keyboard.press("Enter")
    expect(scene.page.get_by_role("radio", name="Conversation and files")).to_be_focused()
    keyboard.press("Escape")
    expect(scene.visitor.button("Rewind to here")).to_be_focused()
    keyboard.press("Enter")
    scene.preview()
    keyboard.press("ArrowDown")
    expect(scene.page.get_by_role("radio", name="Conversation only")).to_be_focused()
    expect(scene.visitor.button("Rewind the conversation")).to_be_enabled()
    for _ in range(3):
        keyboard.press("Tab")
        if scene.visitor.button("Rewind the conversation").evaluate(
            "(one) => one === document.activeElement"
        ):
            break
    keyboard.press("Enter")
    expect(scene.page.get_by_role("dialog")).to_have_count(0)
    expect(scene.visitor.button("Rewind to here")).to_be_focused()
    assert scene.head == 1


def tab_to(scene: Scene, wanted: Locator) -> None:
    """Press Tab until it has the focus."""
    for _ in range(60):
        if wanted.evaluate("(one) => one === document.activeElement"):
            return
        scene.page.keyboard.press("Tab")
    expect(wanted).to_be_focused()


def test_files_are_picked_undone_forked_and_compared_by_keys_alone(scene: Scene) -> None:
    keyboard, dialog = scene.page.keyboard, scene.page.get_by_role("dialog")
    scene.story.put("notes.md", "changed by hand\n")
    scene.visitor.go("session", timeline=NAME)
    at(scene.visitor, 7)
    keyboard.press("Home")
    at(scene.visitor, 1)
    keyboard.press("r")
    scene.preview()
    keyboard.press("ArrowUp")  # the last of the choices
    expect(scene.page.get_by_role("radio", name="Some files")).to_be_focused()
    notes = dialog.get_by_role("checkbox", name="notes.md")
    expect(notes).to_be_visible()
    tab_to(scene, notes)
    keyboard.press("Space")
    bring = scene.visitor.button("Bring 1 path back")
    expect(bring).to_be_enabled()
    expect(notes).to_be_focused()
    tab_to(scene, bring)
    keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert (scene.story.read("notes.md"), scene.story.read("cart.py")) == ("# Notes\n", SECOND)
    undo = scene.visitor.button("Undo restore")
    expect(undo).to_be_visible()
    tab_to(scene, undo)
    keyboard.press("Enter")
    expect(scene.page.locator("#notices")).to_contain_text("Undone: restore.")
    assert scene.story.read("notes.md") == "changed by hand\n"
    keyboard.press("f")
    expect(scene.page.get_by_label("Name", exact=True)).to_be_focused()
    tab_to(scene, dialog.get_by_role("checkbox"))
    keyboard.press("Space")
    keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    beside = scene.story.project.with_name(f"{scene.story.project.name}-1")
    assert (beside / "cart.py").read_text() == FIRST
    assert scene.story.vault.timeline(f"{NAME}-from-1").head is not None
    keyboard.press("d")
    expect(scene.page.locator(".entry.file")).to_contain_text(["cart.py", "notes.md"])
    keyboard.press("Escape")
    at(scene.visitor, 1)
    tab_to(scene, scene.page.get_by_text("Compare", exact=True))
    keyboard.press("Enter")
    tab_to(scene, scene.visitor.button("with the head"))
    keyboard.press("Enter")
    expect(scene.page.get_by_label("To", exact=True)).to_have_value(":7")


def test_the_command_that_goes_on_is_copied(scene: Scene) -> None:
    scene.visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    scene.visitor.go("session", timeline=NAME, at=":2")
    at(scene.visitor, 2)
    scene.visitor.button("Copy command").click()
    expect(scene.page.locator("#notices")).to_contain_text("Copied:")
    copied = scene.page.evaluate("navigator.clipboard.readText()")
    second = scene.line.get(":2").id
    assert copied == (
        f"cd {scene.story.project} && hardsave rewind {second} --timeline {NAME} --resume"
    )


def test_after_a_rewind_the_command_that_goes_on_with_the_agent_is_told(
    chromium: Browser, start: Start, tmp_path: Path
) -> None:
    room = tmp_path / "claude" / "projects" / "-p"
    room.mkdir(parents=True)
    path = written(room, HELLO, CALL, RESULT)
    server = start(CLAUDE_CONFIG_DIR=str(tmp_path / "claude"))
    with server.vault() as vault:
        line = vault.timeline("claude-s-1")
        for lines in ((HELLO,), (HELLO, CALL, RESULT)):
            line.save(state(path, *lines), workspace=server.folder, metadata={"hook": "Stop"})
    with visiting(chromium, server, permissions=["clipboard-read", "clipboard-write"]) as visitor:
        visitor.go("session", timeline="claude-s-1", at=":1")
        at(visitor, 1)
        visitor.page.keyboard.press("r")
        visitor.button("Rewind both").click()
        visitor.button("Copy the command").click()
        expect(visitor.page.locator("#notices")).to_contain_text("Copied:")
        (copy,) = (each for each in room.iterdir() if each != path)
        copied = visitor.page.evaluate("navigator.clipboard.readText()")
        assert copied.endswith(f"claude --resume {copy.stem}")
        visitor.button("Undo rewind").click()
        expect(visitor.page.locator(".going-on .command")).to_have_text(re.compile("--resume s-1$"))


def test_a_caller_that_may_only_read_is_offered_no_act(scene: Scene) -> None:
    told = scene.server.call("GET", "/api/v1").json() | {"scope": "read"}
    scene.page.route("**/api/v1", lambda route: route.fulfill(json=told))
    scene.visitor.go("session", timeline=NAME)
    at(scene.visitor, 7)
    expect(scene.visitor.button("Copy command")).to_be_visible()
    expect(scene.visitor.button("Rewind to here")).to_be_hidden()
    for key in ("r", "f"):
        scene.page.keyboard.press(key)
        expect(scene.page.get_by_role("dialog")).to_have_count(0)
