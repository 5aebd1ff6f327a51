"""A backend as a command line names it: FILE.py:CLASS, MODULE:CLASS, or the command of any program with the verbs."""

import importlib
import os
import re
import shlex
import sys

from .backend import Backend
from .schema import FormatError

CLASS = re.compile(r"(?P<module>\S+):(?P<name>[A-Za-z_]\w*)")


def command(spec):
    """The words that start the backend; a verb and its options follow."""
    if CLASS.fullmatch(spec):
        return [sys.executable, "-m", "plumbline_case", "backend", spec]
    words = shlex.split(spec)
    if not words:
        raise FormatError("--backend: expected FILE.py:CLASS, MODULE:CLASS or a command, got nothing")
    return words


def load_backend(spec):
    """An object of the class. Raises FormatError, in one line, if there is no such class of Backend."""
    match = CLASS.fullmatch(spec)
    if not match:
        raise FormatError(f"--backend: expected FILE.py:CLASS or MODULE:CLASS, got '{spec}'")
    module, name = match["module"], match["name"]
    if module.endswith(".py"):
        if not os.path.exists(module):
            raise FormatError(f"--backend: no file {module}")
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        module = os.path.basename(module).removesuffix(".py")
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise FormatError(f"--backend: no module {module}") from None
    if not (isinstance(found, type) and issubclass(found, Backend)):
        raise FormatError(f"--backend: {module} has no class {name} that derives from plumbline_case.Backend")
    return found()
