"""A job of an agent whose machine dies with it: it is resumed, with its files and its conversation.

The agent is one of Pydantic AI, and talks HTTP to a model that says what it was told to: no key
is needed. Without the extra `agents` there is nothing to play.
"""

import os
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import hardsave
from hardsave.cli.demo.stage import Kill, Stage, check
from hardsave.runtime.scripted import Call, Reply, ScriptedModel

TEXTS = {
    "parser.py": "def parse(text):\n    return text.split()\n",
    "test_parser.py": "from parser import parse\n\nassert parse('a b') == ['a', 'b']\n",
    "README.md": "# A parser\n",
}
KILL = Kill(after=2, last=2)  # files
SCRIPT = [
    *(
        Reply(f"Next is {path}.", (Call("write", {"path": path, "content": text}),))
        for path, text in TEXTS.items()
    ),
    Reply("The parser is written, tested and described."),
]
NEEDED = "pydantic_ai"


def worker(store: str, url: str) -> None:
    """A worker with one agent: it can write files where its job works, and says so."""
    os.environ["PYDANTIC_AI_NO_BANNER"] = "1"  # this stage is ours
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from hardsave.runtime import loop
    from hardsave.runtime.jobs.worker import Worker

    agent: Agent[None, str] = Agent(
        OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="none"))
    )
    with hardsave.open(store) as vault:
        work = Path(str(vault.jobs.get("parser").spec.workspace))

        @agent.tool_plain(metadata=loop.if_unknown("retry"))
        def write(path: str, content: str) -> str:
            """Write a file; to do so twice does no harm."""
            time.sleep(0.3)  # time for the demo to kill this process
            (work / path).write_text(content)
            return f"wrote {path}"

        vault.on("checkpoint_saved", _tell)
        Worker(vault, {"default": agent}).run(until_idle=True)


def _tell(saved: hardsave.Checkpoint) -> None:
    """What is printed is saved already: a kill at this line loses nothing."""
    if saved.description == "write returned":
        print(f"    turn {saved.read('turn')}: wrote a file", flush=True)


def play(stage: Stage) -> None:
    if find_spec(NEEDED) is None:
        stage.say("left out: it needs Pydantic AI, pip install 'hardsave[agents]'")
        return
    say, work = stage.say, stage.folder / "project"
    with ScriptedModel(SCRIPT) as model:
        say("1. A job is queued, and a worker begins it.")
        with hardsave.open(stage.store) as vault:
            vault.jobs.add("parser", "Write a parser", workspace=work, max_turns=10)
        done = len(stage.play(__name__, stage.store, model.openai_url, kill=KILL))
        shutil.rmtree(work)
        say("   Killed with SIGKILL, and its files are gone with its machine.")

        with hardsave.open(stage.store) as vault:
            job = vault.jobs.get("parser")
            say(f"2. {job.id}: {job.state}, turn {job.turns} of {job.max_turns}; it is resumed.")
            check(job.can_resume, "a killed job can be resumed")
            say(f"   It goes on as {vault.jobs.resume('parser').id}.")
        left = stage.play(__name__, stage.store, model.openai_url)
        check(len(left) <= len(TEXTS) - done, "what was written is not written again")
        asked = len(model.requests)

    with hardsave.open(stage.store) as vault:
        job = vault.jobs.get("parser")
        say(f"3. {job.id}: {job.state}. {job.output}")
        found = {path.name: path.read_text() for path in work.iterdir()}
        check(found == TEXTS, "every file is there, also those of before the kill")
        check(job.messages == 2 * len(SCRIPT), "the whole conversation is there")
        check(asked <= len(SCRIPT) + 1, f"the model was asked {asked} times")
        say(f"   {len(found)} files, {job.messages} messages; the model was asked {asked} times.")


if __name__ == "__main__":
    worker(*sys.argv[1:])
