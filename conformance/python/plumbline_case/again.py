"""Commands that a user can paste: this program again, as it was started."""

import os
import shlex
import shutil
import sys

from .supervise import SECONDS

NAME = "plumbline-case"


def program():
    """The words that start plumbline-case from this folder."""
    folder, name = os.path.split(sys.argv[0])
    if name != NAME:  # `python3 -m plumbline_case`, or pytest
        return [sys.executable, "-m", "plumbline_case"]
    found = shutil.which(NAME)
    is_found = found and os.path.exists(sys.argv[0]) and os.path.samefile(found, sys.argv[0])
    return [NAME] if is_found else [os.path.join(folder or os.curdir, NAME)]


def pasted(*words):
    """The line that starts plumbline-case with these words, quoted for a shell."""
    return shlex.join([*program(), *words])


def again(options, run=None):
    """The command that repeats one run, a verdict or an entry of the corpus, with these options."""
    words = ["run", "--backend", options.backend]
    if run:
        words += ["--case", run.case, "--schedule", run.schedule]
    for name in "ranks", "launcher", "corpus":
        if getattr(options, name):
            words += [f"--{name}", str(getattr(options, name))]
    if options.timeout != SECONDS:
        words += ["--timeout", f"{options.timeout:g}"]
    return pasted(*words)
