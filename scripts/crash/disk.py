"""Reads the writes of an emulated disk, as QEMU records them, and makes the disk that a power cut among them leaves."""

import struct
import subprocess

# The driver blklogwrites of QEMU writes the format of the kernel's drivers/md/dm-log-writes.c.
MAGIC, VERSION = 0x6A736677736872, 1
FLUSH, DISCARD = 1, 4


class Write:
    """A write with its place; without data, a flush."""

    def __init__(self, at, data):
        self.at, self.data = at, data


def drive(disk, log):
    """The options that give QEMU this disk and record every write in the log."""
    open(log, "wb").close()
    return f"driver=blklogwrites,file.driver=file,file.filename={disk},log.driver=file,log.filename={log},if=virtio"


def recorded(log):
    """The writes and flushes of a log, in the order in which they were done."""
    writes = []
    with open(log, "rb") as file:
        magic, version, entries, sector = struct.unpack("<QQQL", file.read(28))
        if (magic, version) != (MAGIC, VERSION):
            raise RuntimeError(f"{log} is not a log of writes: it begins with {magic:x}, version {version}")
        at = sector
        for _ in range(entries):
            file.seek(at)
            begin, count, flags, _ = struct.unpack("<QQQQ", file.read(32))
            at += sector
            if flags & DISCARD:
                continue
            file.seek(at)
            writes.append(Write(begin * sector, b"" if flags & FLUSH else file.read(count * sector)))
            at += count * sector
    return writes


def first(writes, words):
    """The number of writes before the first that contains these words."""
    return next(number for number, write in enumerate(writes) if words in write.data)


def cut(before, after, writes, survives):
    """Makes `after`, the disk `before` with these writes when the power fails after them.

    Writes before the last flush are on the disk. The others were in the disk's cache: `survives` decides for each of
    them whether it reached the disk."""
    subprocess.run(["cp", "--sparse=always", before, after], check=True)
    flushed = max((number for number, write in enumerate(writes) if not write.data), default=0)
    with open(after, "r+b") as file:
        for number, write in enumerate(writes):
            if number < flushed or survives():
                file.seek(write.at)
                file.write(write.data)
