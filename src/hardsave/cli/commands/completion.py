"""`hardsave completion`: what lets a shell complete commands, timelines and refs."""

import click
from click.shell_completion import get_completion_class

from hardsave.cli.command import command
from hardsave.cli.session import Session
from hardsave.errors import Misuse

# bash takes a colon for the end of a word, and main:7 for three.
BASH_COLON = "\n\nCOMP_WORDBREAKS=${COMP_WORDBREAKS//:/}"


@command(
    "completion",
    examples="""
        hardsave completion bash >> ~/.bashrc
        hardsave completion zsh > ~/.zfunc/_hardsave
        hardsave completion fish > ~/.config/fish/completions/hardsave.fish
    """,
    takes=("--json",),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(session: Session, shell: str) -> None:
    """Print what lets a shell complete commands and refs."""
    made = get_completion_class(shell)
    program = click.get_current_context().find_root()
    if made is None:
        raise Misuse(f"there is no completion for {shell}")
    script = made(program.command, {}, "hardsave", "_HARDSAVE_COMPLETE").source().rstrip()
    if shell == "bash":
        script = script.replace("read type", "read -r type") + BASH_COLON  # a backslash is one
    session.out.result(lambda: {"shell": shell, "script": script}, lambda: [script])


COMMANDS = {"completion": completion}
