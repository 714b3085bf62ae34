"""An agent that deletes its whole workspace and is killed over it: the files come back."""

import shutil
import sys
import time
from pathlib import Path

import hardsave
from hardsave.cli.demo.stage import Kill, Stage, check

TEXTS = {
    "src/parser.py": "def parse(text):\n    return text.split()\n",
    "tests/test_parser.py": "from parser import parse\n\nassert parse('a b') == ['a', 'b']\n",
    "README.md": "# A parser\n",
}
TASK = "clean-up"


def agent(store: str, folder: str) -> None:
    """Writes some files and saves each; then a task cleans up far too much."""
    work = Path(folder)
    with hardsave.open(store) as vault:
        line = vault.timeline("coder")
        for turn, (path, text) in enumerate(TEXTS.items(), 1):
            (work / path).parent.mkdir(exist_ok=True)
            (work / path).write_text(text)
            line.save({"turn": turn}, workspace=work, description=f"wrote {path}")
            print(f"    wrote {path}", flush=True)
        vault.tasks.add(TASK, "Clean up")
        with vault.tasks.attempt(TASK) as attempt:
            for each in list(work.iterdir()):
                shutil.rmtree(each) if each.is_dir() else each.unlink()
            attempt.step("mail", print, "    told the team that it is clean now")
            line.save({"turn": 4}, workspace=work, description="cleaned up")
            print("    deleted everything", flush=True)
            time.sleep(60)  # and then it is killed


def play(stage: Stage) -> None:
    say, work = stage.say, stage.folder / "project"
    work.mkdir()
    say("1. An agent writes files, and saves them with its state. Then it deletes them all.")
    lines = len(TEXTS) + 2
    stage.play(__name__, stage.store, str(work), kill=Kill(after=lines, first=lines))
    check(list(work.iterdir()) == [], "nothing is left")
    say("   Killed with SIGKILL. The workspace is empty.")

    with hardsave.open(stage.store) as vault:
        line = vault.timeline("coder")
        say("2. Rewind: files, state and tasks go back together.")
        done = line.rewind("@~1", tasks=True)
        say(f"   files: {done.files}; the state is that of turn {line.load()['turn']} again")
        (task,) = done.tasks
        say(f"   task {task.id}: rolled back; still done outside: {', '.join(task.effects)}")
        check(_seen(work) == TEXTS, "every file is back")

        say("3. Nothing is final: undo, and redo.")
        line.undo()
        say(f"   undone: {len(_seen(work))} files, task {TASK} is {vault.tasks.get(TASK).state}")
        check(_seen(work) == {}, "the rewind was undone")
        line.redo()
        state = vault.tasks.get(TASK).state
        say(f"   redone: {len(_seen(work))} files, task {TASK} is {state}")
        check((_seen(work), state) == (TEXTS, "rolled_back"), "the rewind was done again")


def _seen(work: Path) -> dict[str, str]:
    found = [path for path in work.rglob("*") if path.is_file()]
    return {str(path.relative_to(work)): path.read_text() for path in found}


if __name__ == "__main__":
    agent(*sys.argv[1:])
