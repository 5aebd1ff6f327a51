"""What a program prints to standard error, kept in a file that a flood does not fill the disk with."""

import array
import collections
import contextlib
import fcntl
import os
import termios
import threading


class CappedLog:
    """Appends what arrives on the read end of a pipe to a file: the first half of LIMIT bytes at once, and of the rest the
    last half at the end."""

    LIMIT = 1 << 20

    def __init__(self, path):
        self._path, self._written, self._left_out = path, 0, 0
        self._tail, self._in_tail = collections.deque(), 0
        self._into, self.descriptor = os.pipe()
        self._taken, self._moved = 0, threading.Condition()  # bytes that have left the pipe
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self):
        """Called when no process holds the other end any more: the file is complete then."""
        os.close(self.descriptor)
        self._thread.join(timeout=10)

    def settle(self):
        """Returns when all that is in the pipe now has left it. Called before close()."""
        with self._moved:
            waiting = array.array("i", [0])
            fcntl.ioctl(self.descriptor, termios.FIONREAD, waiting)
            wanted = self._taken + waiting[0]
            self._moved.wait_for(lambda: self._taken >= wanted, timeout=10)

    def _read(self):
        with os.fdopen(self._into, "rb", buffering=0) as stream, open(self._path, "ab", buffering=0) as file:
            while piece := stream.read(1 << 16):
                room = max(self.LIMIT // 2 - self._written, 0)
                self._write(file, piece[:room])
                self._written += min(len(piece), room)
                self._keep(piece[room:])
                with self._moved:
                    self._taken += len(piece)
                    self._moved.notify_all()
            if self._left_out:
                self._write(file, f"\n[{self._left_out} bytes are left out here]\n".encode())
            self._write(file, b"".join(self._tail))

    @staticmethod
    def _write(file, piece):
        with contextlib.suppress(OSError):  # the disk is full: the program prints on, and the run says what it lacks
            file.write(piece)

    def _keep(self, piece):
        if piece:
            self._tail.append(piece)
            self._in_tail += len(piece)
        while self._tail and self._in_tail - len(self._tail[0]) >= self.LIMIT // 2:
            self._in_tail -= len(self._tail[0])
            self._left_out += len(self._tail.popleft())
