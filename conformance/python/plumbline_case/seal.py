"""What the result files of a case were when the backend said that it was done: they must not change any more, since the verdict
is about them, and `check` reads them again."""

import hashlib
import os

from .judge import USUAL_BYTES, rank_of
from .regular import open_regular
from .schema import FormatError

PIECE = 1 << 20


class Seal:
    """Looks at the files that list_files() returns, and reads those of ordinary size once."""

    def __init__(self, list_files):
        self._list, self.files = list_files, list_files()
        self._states = {file: state_of(file) for file in self.files}

    def why_broken(self):
        """Why the files are not as they were, in one line that names the first one that was changed, removed or added; "" if
        they are. A file that was written again with the same bytes is as it was."""
        try:
            now = self._list()
        except FormatError as error:
            return str(error)
        for file, was in self._states.items():
            if file not in now:
                return said_of(file, "removed")
            if state_of(file) != was:
                return said_of(file, "changed")
        return next((said_of(file, "added") for file in now if file not in self._states), "")


def said_of(file, what):
    return f"{rank_of(file)}: {what} after its case was done; results must not change once they are announced"


def state_of(path):
    """Of a large file its identity, of others their bytes; None if it cannot be read, since the judge tells why."""
    try:
        with open_regular(path, follow=False) as file:
            about = os.fstat(file.fileno())
            if about.st_size > USUAL_BYTES:
                return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
            digest = hashlib.sha256()
            while piece := file.read(PIECE):
                digest.update(piece)
            return digest.digest()
    except (FormatError, OSError):
        return None
