"""The command tree: every command and group, where its code is, and its help in one line.

This table is all that `hardsave --help` needs: no command is imported for it. Decision 0041 has the
reasons, and the places of the commands that are still to come.
"""

from hardsave.tuples import NamedTuple


class Entry(NamedTuple):
    """A command: the module below `cli/commands` that has it, and its help in one line."""

    module: str
    help: str


class Branch(NamedTuple):
    """A group of commands. Its bare name runs the `default`, or without one shows the help.
    `is_remote`: its commands can ask a server instead of a store."""

    help: str
    commands: dict[str, Entry]
    examples: str
    default: str | None = None
    is_remote: bool = False


TIMELINES = {
    "list": Entry("timelines", "List sessions and other timelines, the last updated first."),
    "delete": Entry("timelines", "Delete a timeline; undo brings it back."),
    "clear": Entry(
        "timelines", "Delete all checkpoints of a timeline, which stays; undo brings them back."
    ),
}
JOBS = {
    "list": Entry(
        "jobs", "List the jobs that are not over, or can be resumed; --all lists every job."
    ),
    "submit": Entry("jobs", "Queue a job for an agent, in this workspace."),
    "show": Entry("jobs", "Show one job: how far it is, what was said, which tools it called."),
    "resume": Entry(
        "jobs", "Queue a job again that failed or was killed; it goes on where it was."
    ),
    "watch": Entry("jobs_watch", "Show how a job goes on, until it is over."),
    "approve": Entry("jobs", "Let a job make the call that it has asked about."),
    "deny": Entry("jobs", "Let a job go on without the call that it has asked about."),
    "delete": Entry("jobs", "Delete a job: it is taken out of the queue, and cannot be resumed."),
}
TASKS = {
    "list": Entry("tasks", "List tasks, in the order they were added."),
    "add": Entry("tasks", "Add a task, unless it is there already."),
    "show": Entry("tasks", "Show one task, and what happened to it."),
    "start": Entry("tasks", "Run a command as an attempt at a task."),
    "run": Entry("tasks_run", "Run a command, or a function, for each task that is due."),
    "retry": Entry("tasks", "Put a failed or rolled back task back to work."),
    "cancel": Entry("tasks", "Let a task not run, or not any further."),
    "answer": Entry("tasks", "Answer what a task has asked; it goes on with that."),
    "recover": Entry("tasks", "Put tasks of dead processes back to work, and tell what happened."),
    "settings": Entry("tasks", "Show the settings that tasks are run with here."),
}
WORKFLOW = {
    "run": Entry("workflow", "Run the agents that a file names, one after the other."),
    "check": Entry("workflow", "Check a workflow's file, and list its steps."),
}
STORE = {
    "stats": Entry("store.maintenance", "Show how much is stored, and where."),
    "verify": Entry("store.maintenance", "Read everything once, to know that it can be read."),
    "repair": Entry("store.maintenance", "Save what can be read of a damaged store."),
    "gc": Entry("store.maintenance", "Remove what no checkpoint leads to."),
    "compact": Entry("store.maintenance", "Make the store small and quick to read."),
    "export": Entry("store.transfer", "Write timelines, with their history, into one file."),
    "import": Entry("store.transfer", "Add what an export holds and is not here yet."),
    "copy": Entry("store.copying", "Copy a whole store into another one, and compare them."),
    "retain": Entry("store.removal", "Let old checkpoints go, for good."),
    "purge": Entry("store.removal", "Remove something from every file of the store, for good."),
}
TOKEN = {
    "add": Entry(
        "token", "Make a token for the server of this store, or of all; it is shown once."
    ),
    "list": Entry("token", "List the tokens that count for this store; none of them is shown."),
    "revoke": Entry(
        "token", "End a token, by its name or id; a server that runs refuses it from now on."
    ),
}
WEBHOOK = {
    "add": Entry("webhook", "Sign callbacks with one more secret, which is shown once."),
    "list": Entry("webhook", "List the secrets, and the receivers that are told nothing more."),
    "remove": Entry("webhook", "Remove a secret, by its id; a worker that runs heeds it at once."),
    "enable": Entry("webhook", "Tell a receiver again that has answered 410 Gone."),
}

SECTIONS: dict[str, dict[str, Entry | Branch]] = {
    "Set up": {
        "init": Entry("init", "Let Claude Code, Codex and Qwen Code save by themselves, by hooks."),
        "run": Entry("run", "Run any agent, with its workspace watched and saved."),
        "mcp": Entry("mcp", "Serve save, log, show, diff, search and rewind to agents, over MCP."),
        "doctor": Entry("doctor", "Prove that saving and restoring works here."),
        "trust": Entry("trust", "Let all of this project's hardsave.yaml count, as it is now."),
        "move": Entry("move", "Let a project that was moved go on where it is now."),
        "demo": Entry("demo", "Show agents that are really killed, and go on."),
        "completion": Entry("completion", "Print what lets a shell complete commands and refs."),
    },
    "Look": {
        "log": Entry("log", "Show what was done here, in all sessions, newest first."),
        "show": Entry("show", "Show one checkpoint: its messages, its files, its state."),
        "diff": Entry("diff", "Show what changed between two checkpoints, or since the last."),
        "search": Entry("search", "Find words in what was said and saved, and in file names."),
        "status": Entry("status", "Show what has changed here since the last checkpoint."),
        "timelines": Branch(
            "List, delete and clear timelines.",
            TIMELINES,
            """
            hardsave timelines
            hardsave timelines delete --timeline session-1
            """,
            default="list",
        ),
    },
    "Save and go back": {
        "save": Entry(
            "save", "Save the files of this workspace, and the state that goes with them."
        ),
        "rewind": Entry("rewind", "Take state, files or both back to a checkpoint."),
        "undo": Entry("undo", "Take back the latest rewind, fork, deletion or import."),
        "redo": Entry("undo", "Do again what the latest undo took back."),
        "fork": Entry("fork", "Start another timeline from a checkpoint."),
        "bisect": Entry("bisect", "Find the checkpoint that broke something."),
        "delete": Entry("delete", "Delete a checkpoint; undo brings it back."),
    },
    "Agents and tasks": {
        "jobs": Branch(
            "Jobs of agents: list, submit, resume, watch, approve, delete.",
            JOBS,
            """
            hardsave jobs
            hardsave jobs submit fix-1 --prompt "Fix the failing test"
            hardsave jobs resume fix-1
            """,
            default="list",
            is_remote=True,
        ),
        "worker": Entry("worker", "Run the jobs that are queued, with agents of your own."),
        "tasks": Branch(
            "Work that survives its process: list, add, run, answer, recover.",
            TASKS,
            """
            hardsave tasks
            hardsave tasks add fix-parser "Fix the parser"
            hardsave tasks run -- ./agent.sh {text}
            hardsave tasks recover --dry-run
            """,
            default="list",
        ),
        "workflow": Branch(
            "Several agents, one after the other, as a file says.",
            WORKFLOW,
            """
            hardsave workflow check release.yaml
            hardsave workflow run release.yaml --agents agents.py:AGENTS
            """,
        ),
    },
    "Keep": {
        "store": Branch(
            "The store: how large, whether it is sound, export, import, retention.",
            STORE,
            """
            hardsave store
            hardsave store verify
            hardsave store export everything.hardsave
            """,
            default="stats",
        ),
    },
    "Serve": {
        "ui": Entry("ui", "Open the dashboard in a browser: all your projects, this one first."),
        "serve": Entry(
            "serve",
            "Serve this project, or all of yours, to programs and to a browser.",
        ),
        "token": Branch(
            "Which programs may call the server: add, list, revoke.",
            TOKEN,
            """
            hardsave token
            hardsave token add ci
            hardsave token revoke ci
            """,
            default="list",
        ),
        "webhook": Branch(
            "How callbacks of jobs are signed: add, list, remove, enable.",
            WEBHOOK,
            """
            hardsave webhook
            hardsave webhook add --for https://ci.example
            hardsave webhook remove 1f6c0a52
            """,
            default="list",
        ),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
