"""A file system in memory that takes names that differ in case alone for one, as macOS does.

Served over the kernel's own FUSE protocol, without any library: `python caseless.py DIR` mounts
it there, says `ready`, and serves until it is unmounted. Needs root.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
import time
from collections.abc import Callable

_IN = struct.Struct("<IIQQIIIHH")
_OUT = struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q10I")
_SETATTR = struct.Struct("<IIQQQQQQ8I")
_ROOM = (1 << 20) + 4096
_NOREPLACE = 1


class Node:
    """A file, a directory or a symlink."""

    def __init__(self, number: int, mode: int) -> None:
        self.number = number
        self.mode = mode
        self.links = 1
        self.uid = self.gid = 0
        self.data = bytearray()
        self.names: dict[bytes, tuple[bytes, Node]] = {}  # by their lower case
        self.times = [time.time_ns()] * 3

    def touch(self) -> None:
        self.times[1] = self.times[2] = time.time_ns()


def _ends(data: bytes) -> list[bytes]:
    return data.split(b"\0")


class Caseless:
    def __init__(self) -> None:
        self.nodes = {1: Node(1, stat.S_IFDIR | 0o755)}
        self.calls: dict[int, Callable[[Node, bytes], bytes]] = {
            1: self.lookup,
            3: self.getattr,
            4: self.setattr,
            5: self.readlink,
            6: self.symlink,
            9: self.mkdir,
            10: self.unlink,
            11: self.rmdir,
            12: self.rename,
            13: self.link,
            14: self.open,
            15: self.read,
            16: self.write,
            17: self.statfs,
            27: self.open,
            28: self.readdir,
            35: self.create,
            45: self.rename2,
            **dict.fromkeys((18, 20, 25, 29, 30, 34), lambda _, __: b""),
        }

    def serve(self, device: int) -> None:
        while True:
            try:
                request = os.read(device, _ROOM)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT):
                    continue
                return  # unmounted
            _, code, unique, number, *_ = _IN.unpack_from(request)
            body = request[_IN.size :]
            if code in (2, 36, 42):  # forgotten, interrupted: nothing to say
                continue
            wrong, answer = 0, b""
            try:
                if code == 26:
                    answer = struct.pack(
                        "<IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 1 << 17, 1, 0, 0, 0, *[0] * 7
                    )
                elif code in self.calls:
                    answer = self.calls[code](self.nodes[number], body)
                else:
                    wrong = errno.ENOSYS
            except OSError as error:
                wrong = error.errno or errno.EIO
            os.write(device, _OUT.pack(_OUT.size + len(answer), -wrong, unique) + answer)

    # Answers

    def attributes(self, node: Node) -> bytes:
        seconds = [each // 10**9 for each in node.times]
        rest = [each % 10**9 for each in node.times]
        size = len(node.data)
        return _ATTRIBUTES.pack(
            *(node.number, size, (size + 511) // 512, *seconds, *rest),
            *(node.mode, node.links, node.uid, node.gid, 0, 4096, 0),
        )

    def entry(self, node: Node) -> bytes:
        return struct.pack("<4Q2I", node.number, 0, 0, 0, 0, 0) + self.attributes(node)

    def getattr(self, node: Node, _: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self.attributes(node)

    # Names

    def find(self, folder: Node, name: bytes) -> Node:
        try:
            return folder.names[name.lower()][1]
        except KeyError:
            raise OSError(errno.ENOENT, "") from None

    def put(self, folder: Node, name: bytes, node: Node) -> bytes:
        if name.lower() in folder.names:
            raise OSError(errno.EEXIST, "")
        folder.names[name.lower()] = (name, node)
        self.nodes[node.number] = node
        folder.touch()
        node.times[2] = time.time_ns()
        return self.entry(node)

    def new(self, mode: int) -> Node:
        return Node(max(self.nodes) + 1, mode)

    def lookup(self, folder: Node, body: bytes) -> bytes:
        return self.entry(self.find(folder, _ends(body)[0]))

    def mkdir(self, folder: Node, body: bytes) -> bytes:
        mode, mask = struct.unpack_from("<II", body)
        return self.put(
            folder, _ends(body[8:])[0], self.new(stat.S_IFDIR | (mode & ~mask & 0o7777))
        )

    def symlink(self, folder: Node, body: bytes) -> bytes:
        name, target, *_ = _ends(body)
        node = self.new(stat.S_IFLNK | 0o777)
        node.data[:] = target
        return self.put(folder, name, node)

    def link(self, folder: Node, body: bytes) -> bytes:
        node = self.nodes[struct.unpack_from("<Q", body)[0]]
        made = self.put(folder, _ends(body[8:])[0], node)
        node.links += 1
        return made

    def create(self, folder: Node, body: bytes) -> bytes:
        _, mode, mask, _ = struct.unpack_from("<IIII", body)
        node = self.new(stat.S_IFREG | (mode & ~mask & 0o7777))
        return self.put(folder, _ends(body[16:])[0], node) + self.open(node, b"")

    def unlink(self, folder: Node, body: bytes) -> bytes:
        name = _ends(body)[0]
        self.find(folder, name).links -= 1
        del folder.names[name.lower()]
        folder.touch()
        return b""

    def rmdir(self, folder: Node, body: bytes) -> bytes:
        if self.find(folder, _ends(body)[0]).names:
            raise OSError(errno.ENOTEMPTY, "")
        return self.unlink(folder, body)

    def rename(self, folder: Node, body: bytes) -> bytes:
        return self.move(folder, self.nodes[struct.unpack_from("<Q", body)[0]], 0, body[8:])

    def rename2(self, folder: Node, body: bytes) -> bytes:
        to, flags, _ = struct.unpack_from("<QII", body)
        return self.move(folder, self.nodes[to], flags, body[16:])

    def move(self, folder: Node, to: Node, flags: int, names: bytes) -> bytes:
        old, new, *_ = _ends(names)
        node = self.find(folder, old)
        there = to.names.get(new.lower())
        if there is not None and there[1] is not node:
            if flags & _NOREPLACE:
                raise OSError(errno.EEXIST, "")
            if there[1].names:
                raise OSError(errno.ENOTEMPTY, "")
            there[1].links -= 1
        del folder.names[old.lower()]
        to.names[new.lower()] = (new, node)
        folder.touch()
        to.touch()
        node.times[2] = time.time_ns()
        return b""

    # Contents

    def open(self, node: Node, _: bytes) -> bytes:
        return struct.pack("<QII", node.number, 1, 0)  # past the page cache

    def read(self, node: Node, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(node.data[offset : offset + size])

    def write(self, node: Node, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        if len(node.data) < offset:
            node.data += bytes(offset - len(node.data))
        node.data[offset : offset + size] = body[40 : 40 + size]
        node.touch()
        return struct.pack("<II", size, 0)

    def readlink(self, node: Node, _: bytes) -> bytes:
        return bytes(node.data)

    def readdir(self, node: Node, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        found = b""
        for at, (name, each) in list(enumerate(node.names.values(), 1))[offset:]:
            row = struct.pack("<QQII", each.number, at, len(name), stat.S_IFMT(each.mode) >> 12)
            row += name + bytes(-len(name) % 8)
            if len(found) + len(row) > size:
                break
            found += row
        return found

    def setattr(self, node: Node, body: bytes) -> bytes:
        given = _SETATTR.unpack_from(body)
        valid, size, mode, uid, gid = given[0], given[3], given[11], given[13], given[14]
        if valid & 1:
            node.mode = stat.S_IFMT(node.mode) | (mode & 0o7777)
        if valid & 2:
            node.uid = uid
        if valid & 4:
            node.gid = gid
        if valid & 8:
            node.data = node.data[:size] + bytes(max(size - len(node.data), 0))
            node.touch()
        node.times[2] = time.time_ns()
        return self.getattr(node, b"")

    def statfs(self, _: Node, __: bytes) -> bytes:
        return struct.pack(
            "<5Q4I6I", 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096, 255, 4096, 0, *[0] * 6
        )


def main(where: str) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,default_permissions".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"caseless", os.fsencode(where), b"fuse", 0, options):
        sys.exit(os.strerror(ctypes.get_errno()))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    Caseless().serve(device)


if __name__ == "__main__":
    main(sys.argv[1])
