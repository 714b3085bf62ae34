"""A temporary repository that real git works on, and nothing of the user's configuration."""

import os
import subprocess
from pathlib import Path

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@example.com"), ("DATE", "1700000000 +0000"))
}


class Repository:
    """Git itself runs here, and only here: what is tested reads files."""

    def __init__(self, root: Path, *, home: Path | None = None) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **IDENTITY,
            "HOME": str(home or root.parent / "nobody"),
            "XDG_CONFIG_HOME": str((home or root.parent / "nobody") / ".config"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(root.parent),
            "GIT_EDITOR": "true",
            "LC_ALL": "C",
        }

    def git(self, *arguments: str, stdin: bytes = b"", codes: tuple[int, ...] = (0,)) -> bytes:
        """What git prints, if it ends with one of these codes."""
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode in codes, (arguments, done.stdout, done.stderr)
        return done.stdout

    def init(self, *options: str) -> "Repository":
        self.git("init", "--quiet", "--initial-branch=main", *options)
        return self

    def write(self, path: str, content: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content)

    def commit(self, path: str, content: str) -> str:
        self.write(path, content)
        self.git("add", "--force", path)
        self.git("commit", "--quiet", "--message", f"{path}: {content}")
        return self.line("rev-parse", "HEAD")

    def line(self, *arguments: str) -> str:
        return self.git(*arguments).decode().removesuffix("\n")
