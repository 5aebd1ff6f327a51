"""Opens files that a backend wrote: a FIFO or a device in the place of one must not make the reader wait, nor a link lead
it elsewhere."""

import os
import stat

from .schema import FormatError

KINDS = {
    stat.S_IFREG: "a regular file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def expect_kind(path, mode, kind):
    if stat.S_IFMT(mode) != kind:
        raise FormatError(f"{path}: it is {KINDS[stat.S_IFMT(mode)]}; expected {KINDS[kind]}")


def open_regular(path, follow=True):
    """The open file. Raises FormatError if it is of another kind; `follow`: the user named it, so that it may be a link."""
    # The kind is looked at first, since to open a device has effects, and again when it is open.
    expect_kind(path, (os.stat if follow else os.lstat)(path).st_mode, stat.S_IFREG)
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        expect_kind(path, os.fstat(file.fileno()).st_mode, stat.S_IFREG)
    except FormatError:
        file.close()
        raise
    return file


def size_of(path):
    """The bytes of what stands there, itself and not what a link leads to; 0 if nothing does or the system will not say."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def expect_folders(folder, below):
    """Raises FormatError for a part of `below` that exists and is no folder, such as a link."""
    for part in below.split(os.sep):
        folder = os.path.join(folder, part)
        if os.path.lexists(folder):
            expect_kind(folder, os.lstat(folder).st_mode, stat.S_IFDIR)
