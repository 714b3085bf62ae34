"""Repositories that are none but in name."""

from pathlib import Path


def begin_repository(folder: Path) -> None:
    """As much of one as makes a folder a project."""
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
