"""A backend as a command line names it: FILE.py:CLASS, MODULE:CLASS, or the command of any program with the verbs."""

import importlib
import os
import re
import shlex
import sys

from .backend import Backend
from .schema import FormatError

CLASS = re.compile(r"(?P<module>\S+):(?P<name>[A-Za-z_]\w*)")
FILE = re.compile(r"\S+\.py")


def is_class(spec):
    return bool(CLASS.fullmatch(spec) or (FILE.fullmatch(spec) and not is_program(spec)))


def is_program(file):
    """A script that the system can start is a command, as any other program."""
    if not (os.path.isfile(file) and os.access(file, os.X_OK)):
        return False
    with open(file, "rb") as script:
        return script.read(2) == b"#!"


def command(spec):
    """The words that start the backend; a verb and its options follow."""
    if is_class(spec):
        find_file(spec.rpartition(":")[0] or spec)
        return [sys.executable, "-m", "plumbline_case", "backend", spec]
    try:
        words = shlex.split(spec)
    except ValueError as error:
        raise FormatError(f"--backend: {error} in {spec!r}; expected FILE.py:CLASS, MODULE:CLASS or a command") from None
    if not words:
        raise FormatError("--backend: expected FILE.py:CLASS, MODULE:CLASS or a command, got nothing")
    return words


def load_backend(spec):
    """An object of the class. Raises FormatError, in one line, if there is no such class of Backend."""
    match = CLASS.fullmatch(spec)
    if not match and not FILE.fullmatch(spec):
        raise FormatError(f"--backend: expected FILE.py:CLASS or MODULE:CLASS, got '{spec}'")
    given, name = match.groups() if match else (spec, None)
    module = imported(given)
    classes = backends_in(module)
    if name is None:
        if len(classes) != 1:
            found = f"several: {', '.join(classes)}" if classes else "none that derives from plumbline_case.Backend"
            raise FormatError(f"--backend {given}: expected {given}:CLASS; of classes it has {found}")
        name = classes[0]
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, Backend)):
        known = f"; it has {', '.join(classes)}" if classes else ""
        raise FormatError(f"--backend: {given} has no class {name} that derives from plumbline_case.Backend{known}")
    return found()


def find_file(given):
    if given.endswith(".py") and not os.path.exists(given):
        raise FormatError(f"--backend: no file {given}; a path is taken from {os.getcwd()}")


def imported(given):
    module = given
    if given.endswith(".py"):
        find_file(given)
        sys.path.insert(0, os.path.dirname(os.path.abspath(given)))
        module = os.path.basename(given).removesuffix(".py")
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # it is there, and imports another one that is not
            raise
        raise FormatError(f"--backend: no module {module}") from None


def backends_in(module):
    """The names of the classes of Backend that the module itself defines, each once."""
    classes = dict.fromkeys(found for found in vars(module).values() if isinstance(found, type))
    return [c.__name__ for c in classes if issubclass(c, Backend) and c.__module__ == module.__name__]
