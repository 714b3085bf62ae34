from pathlib import Path

import pytest

from hardsave.errors import Unavailable
from hardsave.stores.sqlite.open.presence import Presence, pid_of_holder
from tests.unit.stores.processes import Child

LOCKS = """\
1: POSIX  ADVISORY  READ 100 08:01:42 128 128
2: FLOCK  ADVISORY  READ 777 08:01:42 0 EOF
2: -> FLOCK  ADVISORY  WRITE 778 08:01:42 0 EOF
3: FLOCK  ADVISORY  WRITE 779 00:2b:43 0 EOF
4: FLOCK  ADVISORY  WRITE -1 00:2b:44 0 EOF
5: OFDLCK ADVISORY  READ -1 00:06:9 0 EOF
"""


@pytest.mark.parametrize(("inode", "pid"), [(42, 777), (43, 779), (44, None), (45, None)])
def test_the_kernel_says_who_holds_a_lock(inode: int, pid: int | None) -> None:
    assert pid_of_holder(LOCKS, inode) == pid


def test_a_system_that_does_not_say_names_no_process() -> None:
    assert pid_of_holder("", 42) is None


def test_many_share_and_one_seizes(tmp_path: Path) -> None:
    one, two = (Presence(str(tmp_path / "store.db-open")) for _ in range(2))
    one.share()
    two.share()
    with pytest.raises(Unavailable, match=r"store\.db has to be mended"):
        one.seize()
    two.close()
    one.seize()
    with pytest.raises(Unavailable):
        two.share()
    one.share()
    two.share()
    one.close()
    two.close()


def test_the_holder_is_named(tmp_path: Path) -> None:
    def work(child: Child) -> None:
        mine = Presence(str(tmp_path / "store.db-open"))
        mine.share()
        child.tell()
        child.wait()

    child = Child(work)
    child.hear()
    presence = Presence(str(tmp_path / "store.db-open"))
    with pytest.raises(Unavailable, match=rf"process {child.pid} has it open|another process"):
        presence.seize()
    child.go()
    assert child.end() == 0
    presence.seize()
    presence.close()


def test_a_process_that_asks_whether_it_is_alone_stays_present(tmp_path: Path) -> None:
    one, two, third = (Presence(str(tmp_path / "store.db-open")) for _ in range(3))
    one.share()
    assert one.is_alone()
    two.share()
    assert not one.is_alone()
    assert not two.is_alone()
    two.close()
    with pytest.raises(Unavailable):
        third.seize()  # the first is still there
    assert one.is_alone()
