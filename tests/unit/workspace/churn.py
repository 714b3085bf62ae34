"""Things that happen to a workspace, at random but always the same for one seed.

As a program it does nothing else, as fast as it can, until its standard input is closed:
`python churn.py ROOT OUTSIDE SEED`.
"""

import os
import random
import select
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

NAMES = ("a", "b", "c.txt", "dir", "sub", "build", "log", "deep")
IGNORE = (b"", b"build\nlog", b"log", b"build/", b"a", b"sub/")


class Churn:
    """What is not possible at a moment is not done. Never touches anything but its two roots."""

    def __init__(self, root: Path, outside: Path, seed: int) -> None:
        self.root = root
        self.outer_rules = outside
        self.random = random.Random(seed)
        self.done: list[str] = []
        self.is_time_to_look = False
        self.verbs: list[Callable[[], object]] = [
            *[self.create, self.write, self.append, self.truncate, self.rename] * 3,
            *[self.burst, self.remove, self.move_tree] * 2,
            *(self.move_out, self.move_in, self.chmod, self.chmod_directory),
            *(self.symlink, self.swap_symlink, self.become_directory, self.become_file),
            *(self.ignore, self.link, self.link_from_outside, self.write_through_outside),
            *(self.replace_directory, self.replace_file, self.touch, self.unlink_some),
            *(self.write_large, self.away_and_back, self.exchange),
        ]

    def steps(self, count: int) -> None:
        """So many, or fewer."""
        self.is_time_to_look = False
        self.done = []
        while len(self.done) < count and not self.is_time_to_look:
            self.step()

    def step(self) -> None:
        verb = self.random.choice(self.verbs)
        try:
            verb()
        except OSError as error:
            self.done.append(f"{getattr(verb, '__name__', verb)}: {error.strerror}")
        else:
            self.done.append(getattr(verb, "__name__", str(verb)))

    # Choosing

    def directories(self) -> list[Path]:
        found = [self.root]
        for directory, below, _ in os.walk(self.root):
            found += [Path(directory, name) for name in below if name != ".git"]
        return [path for path in found if not path.is_symlink()]

    def directory(self) -> Path:
        return self.random.choice(self.directories())

    def below(self) -> Path:
        found = self.directories()[1:]
        if not found:
            raise FileNotFoundError(2, "there is no directory")
        return self.random.choice(found)

    def files(self) -> list[Path]:
        return [
            Path(directory, name) for directory, _, names in os.walk(self.root) for name in names
        ]

    def file(self) -> Path:
        found = [path for path in self.files() if path.is_file() and not path.is_symlink()]
        if not found:
            raise FileNotFoundError(2, "there is no file")
        return self.random.choice(found)

    def path(self) -> Path:
        return self.directory() / self.random.choice(NAMES)

    def bytes(self) -> bytes:
        return self.random.randbytes(self.random.choice([0, 1, 5, 5, 5, 300]))

    # Files

    def create(self) -> None:
        self.path().write_bytes(self.bytes())

    def write(self) -> None:
        self.file().write_bytes(self.bytes())

    def write_large(self) -> None:
        self.file().write_bytes(self.random.randbytes(150_000))

    def append(self) -> None:
        with self.file().open("ab") as file:
            file.write(self.bytes())

    def truncate(self) -> None:
        os.truncate(self.file(), self.random.randrange(4))

    def touch(self) -> None:
        os.utime(self.file())

    def replace_file(self) -> None:
        """As editors do it."""
        target = self.path()
        temporary = target.with_name("deep~")
        temporary.write_bytes(self.bytes())
        temporary.replace(target)

    def rename(self) -> None:
        self.file().rename(self.path())

    def chmod(self) -> None:
        self.file().chmod(self.random.choice([0o644, 0o600, 0o755]))

    def unlink_some(self) -> None:
        self.file().unlink()

    def symlink(self) -> None:
        self.path().symlink_to(self.random.choice(["a", "../b", "no/where", str(self.outer_rules)]))

    def swap_symlink(self) -> None:
        links = [path for path in self.directories()[0].rglob("*") if path.is_symlink()]
        if links:
            link = self.random.choice(links)
            link.unlink()
            self.random.choice([lambda: link.symlink_to("c.txt"), link.mkdir, link.touch])()

    def link(self) -> None:
        """In a place that is always watched; and nothing more until the next scan:
        there is no event for a change under a name that no scan has seen."""
        (self.root / "linked").hardlink_to(self.file())
        self.is_time_to_look = True

    def link_from_outside(self) -> None:
        """A file that has had another name from the beginning."""
        name = self.outer_rules / f"link{self.random.randrange(3)}"
        if not name.exists():
            name.write_bytes(self.bytes())
        self.path().hardlink_to(name)

    def write_through_outside(self) -> None:
        for name in sorted(self.outer_rules.glob("link*")):
            name.write_bytes(self.bytes())

    # Directories

    def burst(self) -> None:
        """mkdir -p with files in it, and at once more of it."""
        top = self.path()
        for _ in range(self.random.randrange(1, 4)):
            deep = top.joinpath(*self.random.choices(NAMES, k=self.random.randrange(1, 4)))
            deep.mkdir(parents=True, exist_ok=True)
            (deep / self.random.choice(NAMES)).write_bytes(self.bytes())

    def remove(self) -> None:
        shutil.rmtree(self.below())

    def move_tree(self) -> None:
        self.below().rename(self.path())

    def away_and_back(self) -> None:
        directory = self.below()
        away = self.outer_rules / "away"
        directory.rename(away)
        (away / self.random.choice(NAMES)).write_bytes(self.bytes())
        away.rename(directory)

    def exchange(self) -> None:
        one, other = self.below(), self.below()
        away = self.outer_rules / "away"
        one.rename(away)
        try:
            other.rename(one)
        finally:
            away.rename(one if not one.exists() else other)

    def move_out(self) -> None:
        target = self.outer_rules / f"tree{self.random.randrange(4)}"
        if target.exists():
            shutil.rmtree(target)
        self.below().rename(target)

    def move_in(self) -> None:
        trees = sorted(self.outer_rules.glob("tree*"))
        if trees:
            tree = self.random.choice(trees)
            (tree / self.random.choice(NAMES)).write_bytes(self.bytes())
            tree.rename(self.path())

    def chmod_directory(self) -> None:
        self.below().chmod(self.random.choice([0o755, 0o700, 0o750]))

    def replace_directory(self) -> None:
        """Another one of the same name, at once."""
        directory = self.below()
        away = self.outer_rules / "tree9"
        if away.exists():
            shutil.rmtree(away)
        directory.rename(away)
        directory.mkdir()
        (directory / self.random.choice(NAMES)).write_bytes(self.bytes())

    def become_directory(self) -> None:
        path = self.file()
        path.unlink()
        path.mkdir()
        (path / "a").write_bytes(self.bytes())

    def become_file(self) -> None:
        path = self.below()
        shutil.rmtree(path)
        path.write_bytes(self.bytes())

    # Rules

    def ignore(self) -> None:
        file = self.directory() / self.random.choice([".gitignore", ".hardsaveignore"])
        if self.random.random() < 0.3:
            file.unlink(missing_ok=True)
        else:
            file.write_bytes(self.random.choice(IGNORE))


def main() -> None:
    root, outside, seed = sys.argv[1:]
    churn = Churn(Path(root), Path(outside), int(seed))
    churn.verbs.remove(churn.link)  # there is no scan in between
    while not select.select([sys.stdin], [], [], 0)[0]:
        churn.step()


if __name__ == "__main__":
    main()
