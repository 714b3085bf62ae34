"""Our ignore rules and git's own agree about every path of a tree."""

import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardsave.workspace.ignore.rules import Rules, root_rules
from tests.unit.objects.strategies import examples
from tests.unit.workspace.repository import Repository

NAMES = (
    *(b"a", b"b", b"ab", b"aa", b"a.b", b"ba", b"aab", b"*", b"[", b"]", b"\\", b"a b", b"a "),
    *(b"-", b"!a", b"#a", b"z", b"\xff", b"A", b"^", b"a\r", b"a\n", b"build", b"x.log"),
)
GLOBAL, EXCLUDE = b"/global", b"/exclude"  # no directory has such a path


class Tree:
    """A repository with files and directories of such names, three levels deep."""

    def __init__(self, root: Path, names: Mapping[bytes, bool]) -> None:
        self.repository = Repository(root / "tree", home=root / "home").init()
        self.config = root / "home" / ".config" / "git"
        self.config.mkdir(parents=True)
        self.paths = dict(sorted(names.items()))
        self.directories = [path for path, is_dir in self.paths.items() if is_dir]
        for path, is_dir in self.paths.items():
            target = os.fsencode(self.repository.root) + b"/" + path
            if is_dir:
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY))

    def place(self, where: bytes) -> bytes:
        if where == GLOBAL:
            return os.fsencode(self.config / "ignore")
        if where == EXCLUDE:
            return os.fsencode(self.repository.root / ".git" / "info" / "exclude")
        return os.path.join(os.fsencode(self.repository.root), where, b".gitignore")

    def by_git(self, contents: Mapping[bytes, bytes]) -> dict[bytes, bool]:
        """Which paths git ignores, with ignore files of these contents in these directories."""
        for where, content in contents.items():
            Path(os.fsdecode(self.place(where))).write_bytes(content)
        options = ("--stdin", "-z", "--verbose", "--non-matching")
        asked = b"".join(path + b"\0" for path in self.paths)
        answer = self.repository.git("check-ignore", *options, stdin=asked, codes=(0, 1))
        for where in contents:
            os.unlink(self.place(where))
        return dict(judged(answer))

    def by_us(self, contents: Mapping[bytes, bytes]) -> dict[bytes, bool]:
        """The same, by a walk that does not enter what is ignored."""
        found = dict.fromkeys(self.paths, True)
        for path, rules in self.walk(b"", self.root_rules(contents), contents):
            found[path] = rules.match(path.rpartition(b"/")[2], self.paths[path])
        return found

    def root_rules(self, contents: Mapping[bytes, bytes]) -> Rules:
        outer = [contents.get(GLOBAL, b""), contents.get(EXCLUDE, b"")]
        return root_rules(exclude_files=outer, patterns=own(contents, b""))

    def walk(
        self, directory: bytes, rules: Rules, contents: Mapping[bytes, bytes]
    ) -> Iterator[tuple[bytes, Rules]]:
        for path, is_dir in self.paths.items():
            parent, _, name = path.rpartition(b"/")
            if parent != directory:
                continue
            yield path, rules
            if is_dir and not rules.match(name, True):
                yield from self.walk(path, rules.enter(name, own(contents, path)), contents)

    def assert_agreement(self, contents: Mapping[bytes, bytes]) -> int:
        git, ours = self.by_git(contents), self.by_us(contents)
        assert git.keys() == ours.keys()
        differing = {path: by_git for path, by_git in git.items() if ours[path] != by_git}
        assert differing == {}, contents
        return sum(git.values())


def own(contents: Mapping[bytes, bytes], directory: bytes) -> list[bytes]:
    return [contents[directory]] if directory in contents else []


def judged(answer: bytes) -> Iterator[tuple[bytes, bool]]:
    """(source, line, pattern, path) for each path; a pattern that includes begins with `!`."""
    fields = iter(answer.split(b"\0")[:-1])
    for source, _, pattern, path in zip(fields, fields, fields, fields, strict=True):
        yield path, bool(source) and not pattern.startswith(b"!")


def grown(
    rnd: random.Random, directory: bytes = b"", depth: int = 0
) -> Iterator[tuple[bytes, bool]]:
    for name in rnd.sample(NAMES, 12 if depth == 0 else 6):
        is_dir = depth < 3 and rnd.random() < 0.45
        yield directory + name, is_dir
        if is_dir:
            yield from grown(rnd, directory + name + b"/", depth + 1)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("ignore"), dict(grown(random.Random(5))))


# What people write, and what they should not


class Case(NamedTuple):
    """A tree for one pattern each."""

    patterns: tuple[bytes, ...]
    paths: tuple[bytes, ...]  # a directory ends with a slash


def split(text: bytes) -> tuple[bytes, ...]:
    return tuple(text.split())


CASES = {
    "anchors": Case(
        split(
            rb"a /a a/ /a/ a/b /a/b a/b/ //a a//b a// / // ./a a/. a/../a b/a */a */* /* /*/ */"
            rb" /*/*/b"
        ),
        split(rb"a/ a/a/ a/a/b a/b/ a/b/a b/ b/a c"),
    ),
    "stars": Case(
        split(
            rb"** /** **/ /**/ **/b **/b/ a/** a/**/ a/**/b *** a/**/**/b a/***/b a** a**b a**/b"
            rb" a**/**/b /a** x/a** a**/ a**// x/a**/b x/a**/ x/a**// x/a**/** **a **/a** x/**a"
            rb" **\/b a/**\/b a**\/b a/**\/ */**/b a/*/b a/*\/b a/**/* **/* **/** x**/* ?**/b"
            rb" [a]**/b \a**/b **/x/**/b a/**b a/b**/b **b/b a*/**/b* **/a/*/b **//b a/**//b **?/b"
            rb" x/a**\/b"
        ),
        split(
            rb"a/ a/b a/x/ a/x/b a/x/x/ a/x/x/b ab/ ab/b ab/x/ ab/x/b b x/ x/a/ x/a/b x/ab x/aab/"
            rb" x/aab/b x/b xa abb"
        ),
    ),
    "classes": Case(
        split(
            rb"[ab] [!ab] [^ab] [a-c] [c-a] [a-] [-a] [--a] [a--] []] [!]] []-a] [\]] [\]-a] [a-\]]"
            rb" [a-\c] [\a-c] [ [a [! [] [!] [\ [a- [a\ a[ [[] [[a] [a[] [[:alpha:]] [![:alpha:]]"
            rb" [[:alpha:][:digit:]] [[:alpha:]-z] [a-[:alpha:]] [[:x:]] [[:alpha:] [[:alpha]] [[:]"
            rb" [[::]] [[:]] [:alpha:] [[: [a-c-e] [a/b] x[/]a x[!a]a x[^/]a [/] [a-c]* *[c] [*]"
            rb" [?] [\\] [\-a] [^^] [!!] [^!] [a]] [[:upper:]] [b-\ ![a-c] a[[:alpha:] [[:a\]b]"
        ),
        split(
            rb"a b c d e z A 1 - ] [ \ ^ ! * ? a] ]] -z] p:] x/ x/a xaa xba a- bc ab [b"
            rb" q/ q/: q/:] q/a:"  # a path that begins with a colon means something else to git
        ),
    ),
    "escapes": Case(
        split(
            rb"\a \* \? \[a] \!a \#a #a !a \\ a\ \ a\b a\/b \/a a/\b *\* \** \a* a\\b !\a"
            rb" a\/ \a/ d\/b"
        ),
        split(rb"a * ? [a] !a #a \ a\ ab a\b d/ d/b x* a\/ **"),
    ),
    "spaces": Case(
        (
            *(
                b"a ",
                b"a  ",
                b"a\\ ",
                b"a\\  ",
                b"a \\ ",
                b"a\\\\ ",
                b"a\\\\\\ ",
                b"a\\ \\ ",
                b"a \\",
            ),
            *(b" a", b"\\ a", b" ", b"\\ ", b"a b", b"a b ", b"a/ ", b"a /", b"! a", b"# "),
            *(b"a\t", b"a \r", b"a\\ \r"),
        ),
        (b"a", b"a ", b"a  ", b"a\\", b"a\t", b" a", b" ", b"a b", b"b/", b"b/ ", b" \\", b"\\ "),
    ),
    "lines": Case(
        (
            *(b"a\r\nb\r\n", b"a\r", b"a\r\r\n", b"\r\na", b"\n\n\na", b"a\nb", b"#\na"),
            *(
                b"\xef\xbb\xbfa",
                b"\xef\xbb\xbf#a\nb",
                b"b\n\xef\xbb\xbfa",
                b"\xef\xbb\xbf" * 2 + b"a",
            ),
            *(b"a\0b\nc", b"\0a\nb", b"!", b"!\n", b"!!a", b"\x0ba", b"*\n!a", b"!a\n*"),
            *(b"*a\n!*a", b"!*a\n*a", b"a*\n!a*", b"!a*\na*", b"a*\n!*a\n", b"[a]\n![a-b]\n[a]"),
            *(b"*\n!*/\n!a", b"a\n!a\na", b"/*\n!/d\n/d/*\n!/d/a", b"d\n!d/a", b"d/*\n!d/a"),
        ),
        (
            *(b"a", b"b", b"c", b"a\r", b"\r", b"\xef\xbb\xbfa", b"ab", b"!a"),
            *(b"d/", b"d/a", b"d/b", b"e/", b"e/a"),
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_nastiest_patterns_mean_what_they_mean_to_git(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    tree = Tree(tmp_path, {path.removesuffix(b"/"): path.endswith(b"/") for path in case.paths})
    ignored = sum(tree.assert_agreement({b"": content}) for content in case.patterns)
    assert ignored > len(case.patterns) / 4  # or it would not be a test


def test_named_classes_hold_the_bytes_that_git_thinks(tmp_path: Path) -> None:
    every = {b"c%c" % byte: False for byte in range(1, 256) if byte != ord("/")}
    tree = Tree(tmp_path, every)
    names = b"alnum alpha blank cntrl digit graph lower print punct space upper xdigit"
    for name in split(names):
        assert tree.assert_agreement({b"": b"c[[:%b:]]" % name}) > 0
        assert tree.assert_agreement({b"": b"c[![:%b:]]" % name}) > 0


def test_the_global_file_the_repository_s_and_every_directory_s_own_rank_as_in_git(
    tmp_path: Path,
) -> None:
    tree = Tree(tmp_path, {b"a": False, b"b": False, b"d": True, b"d/a": False, b"d/b": False})
    for plus, minus in ((b"a\n", b"!a\n"), (b"!a\n", b"a\n"), (b"/d/a\n", b"!d/a\n")):
        places = (GLOBAL, EXCLUDE, b"", b"d")
        for upper in range(len(places)):
            for lower in range(upper):
                tree.assert_agreement({places[upper]: plus, places[lower]: minus})
                tree.assert_agreement({places[upper]: minus, places[lower]: plus})


# What chance writes

ATOMS = (
    *(b"a", b"b", b"*", b"**", b"/", b"/**/", b"**/", b"/**", b"?", b"[ab]", b"[!a]", b"[a-z]"),
    *(b"[z-a]", b"[[:alpha:]]", b"[[:punct:]", b"[]a]", b"[", b"]", b"\\", b"\\*", b"\\/", b"\\a"),
    *(b" ", b"\\ ", b"!", b"#", b".", b"-", b"[a/b]", b"***", b"\xff", b"\r", b"[^b]", b"[\\]]"),
)
patterns = st.builds(
    lambda sign, atoms, end: sign + b"".join(atoms) + end,
    st.sampled_from((b"", b"", b"", b"!")),
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=6),
    st.sampled_from((b"", b"", b"", b"/", b"\r", b" ")),
) | st.sampled_from(NAMES)
files = st.builds(
    lambda start, lines, end: start + b"\n".join(lines) + end,
    st.sampled_from((b"", b"", b"", b"\xef\xbb\xbf")),
    st.lists(patterns, min_size=1, max_size=5),
    st.sampled_from((b"\n", b"")),
)


def agrees_on_random_patterns(tree: Tree, count: int) -> None:
    places = st.sampled_from((GLOBAL, EXCLUDE, b"", b"", b"", *tree.directories))

    @examples(count)
    @given(st.dictionaries(places, files, min_size=1, max_size=4))
    def agree(contents: dict[bytes, bytes]) -> None:
        tree.assert_agreement(contents)

    agree()


def test_random_patterns_mean_what_they_mean_to_git(tree: Tree) -> None:
    agrees_on_random_patterns(tree, 60)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_many_random_patterns_mean_what_they_mean_to_git(tmp_path: Path, seed: int) -> None:
    agrees_on_random_patterns(Tree(tmp_path, dict(grown(random.Random(seed)))), 500)
