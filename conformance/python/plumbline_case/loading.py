"""A backend as a command line names it: FILE.py:CLASS, MODULE:CLASS, or the command of any program with the verbs."""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys

from .backend import Backend
from .reasons import reason_in
from .schema import FormatError
from .supervise import ENVIRONMENT

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


def find_program(name):
    """Its whole path. Raises FormatError, with the remedy, if it cannot be started."""
    if name.endswith(".toml"):
        remedy = "give FILE.py:CLASS, or the argv of the file in quotes: --backend 'python3 adapter.py'"
        raise FormatError(f"--backend {name}: plumbline-case takes no backend.toml, plumbline does; {remedy}")
    found = shutil.which(name)
    if found:
        return found
    if os.path.isfile(name):
        raise FormatError(f"{name} is no program that may be started; chmod +x it, or put its interpreter before it")
    if os.path.isfile(name + ".py"):
        raise FormatError(f"no program '{name}' in PATH, but there is a file {name}.py: --backend {name}.py")
    if os.path.dirname(name):
        raise FormatError(f"{name} does not exist; a path is taken from {os.getcwd()}")
    remedy = "install it, or give its whole path; a class is FILE.py:CLASS or MODULE:CLASS"
    raise FormatError(f"no program '{name}' in PATH; {remedy}")


def check_launcher(launcher, ranks):
    """Its finding. Raises FormatError if the launcher does not start that many ranks: one process alone would act as all."""
    words = [word.replace("{np}", str(ranks)) for word in shlex.split(launcher)]
    found = find_program((words or [""])[0])
    if os.path.basename(found) == "torchrun" and "--no-python" not in words:
        return f"{found} (starts Python programs: not tried by itself)"
    words += ["sh", "-c", "echo rank"]
    try:
        done = subprocess.run(
            words, env=ENVIRONMENT | os.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
    except subprocess.TimeoutExpired:
        raise FormatError(f"{found}: no end within 60 s; try: {shlex.join(words)}") from None
    count = done.stdout.count("\n")
    if done.returncode or count != ranks:
        why = f" ({reason_in(done.stderr)})" if done.stderr.strip() else ""
        ended = f"exited with code {done.returncode}{why}, they printed {count} lines"
        raise FormatError(f"{found} does not start {ranks} ranks of `echo rank`: {ended}; try: {shlex.join(words)}")
    return f"{found} starts {ranks} ranks"


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
