"""What the tests of the package plumbline-case share: its programs as users start them, and a folder for a class of tests."""

import os
import shlex
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.dirname(HERE)
ROOT = os.path.dirname(os.path.dirname(PYTHON))
PROGRAM = os.path.abspath(os.environ["PLUMBLINE_PROGRAM"])
TOY = "plumbline_case.examples.toy"
TOOL = [sys.executable, "-m", "plumbline_case"]
TYPED = shlex.join(TOOL)  # as a shell takes it
IN_FULL = bool(os.environ.get("PLUMBLINE_IN_FULL"))  # tests that take long check a sample otherwise
sys.path.insert(0, PYTHON)


def sample(items, apart, first=0):
    """Every `apart`-th of a list, beginning with `first`, or all of them in scripts/nightly."""
    return items if IN_FULL else items[first::apart]


# Whatever finds the package in the sources.
OF_SOURCES = ("PYTHONPATH",)


def start_outside(words, seconds=1800, path=None, **more):
    """In an environment that does not know the sources. `path`: the folders in which programs are found."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_SOURCES}
    environment["PATH"] = path or environment["PATH"]
    return subprocess.run(words, capture_output=True, text=True, timeout=seconds, env=environment, **more)


def start(words, folder=None, **environment):
    """With the package of the sources."""
    environment = os.environ | {"PYTHONPATH": PYTHON} | environment
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=environment, cwd=folder)


def paste(line, folder=None, **environment):
    """As a user pastes a line into a shell."""
    return start(["sh", "-c", line], folder, **environment)


def export(corpus, *cases, more=("--ranks", "2", "--expected")):
    """Adds the exact cases on 2 ranks to the folder `corpus`, or as the options `more` say."""
    for case in cases:
        done = start([PROGRAM, "export", "--case", case, *more, "-o", corpus])
        assert done.returncode == 0, done.stderr


class InFolder(unittest.TestCase):
    """Tests with one temporary folder."""

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name

    @classmethod
    def written(cls, name, text):
        """The path of a new file in the folder."""
        path = os.path.join(cls.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path
