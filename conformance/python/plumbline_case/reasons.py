"""Why a backend failed, in one line: from the exception itself, or from what it wrote to standard error."""

import os
import re
import site
import sys
import sysconfig
import traceback

from .number_text import one_line, shown

HERE = os.path.dirname(os.path.abspath(__file__))
# The last line of a Python traceback, also after "[rank0]: "; torchrun's own exception about its ranks is none.
EXCEPTION = re.compile(r"(\[[^]]*\]: )?(?![\w.]*\.ChildFailedError:)[\w.]*(Error|Exception):")
FRAME = re.compile(r"-{20,}")


# --- from an exception ------------------------------------------------------------------------------------------------
def told(error, backend=None):
    """ "ValueError: no room (my_backend.py:12)": the innermost place in the user's code."""
    said = str(error.msg if is_in_text(error) else error).strip() or "no message"
    return one_line(f"{type(error).__name__}: {said}{place(error, backend)}")


def is_in_text(error):
    """Whether Python could not read the user's file: its place is in the exception."""
    return isinstance(error, SyntaxError) and bool(error.filename)


def place(error, backend):
    """ " (my_backend.py:12)"; "" if the exception did not pass through the user's code. Calls into NumPy, torch or
    Python's own modules are at the line that makes them."""
    if is_in_text(error):
        return f" ({os.path.basename(error.filename)}:{error.lineno})"
    frames = [(os.path.abspath(f.filename), f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    frames = [(file, line) for file, line in frames if os.path.exists(file) and not is_ours(file)]
    # A backend may be installed as well: its own module counts. Without a backend, its import failed.
    module = os.path.abspath(getattr(sys.modules.get(type(backend).__module__), "__file__", None) or "")
    own = [(file, line) for file, line in frames if file == module or not is_installed(file)] or frames
    return f" ({os.path.basename(own[-1][0])}:{own[-1][1]})" if own else ""


def place_of(function):
    """" (my_backend.py:12)", where a function of the user begins; "" if it is ours, or not in Python."""
    code = getattr(function, "__code__", None)
    return "" if code is None or is_ours(code.co_filename) else f" ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"


def is_below(file, folder):
    return file.startswith(os.path.join(os.path.abspath(folder), ""))


def is_ours(file):
    return is_below(file, HERE) and not is_below(file, os.path.join(HERE, "examples"))


def is_installed(file):
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return any(is_below(file, folder) for folder in folders)


# --- from standard error ----------------------------------------------------------------------------------------------
def reason_in(text, told=()):
    """The text after the first "plumbline: ", else the first exception named, else the last line. "" without any.
    `told`: what is known of cases that ended before; their exceptions are no reason.

    The notices of Open MPI's mpirun, between lines of dashes, are long, and end with advice: of those the first sentence
    counts, and only if there is no other line or if it tells which signal ended a rank."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    outside, notices = divided(lines)
    sentences = [first_sentence(notice) for notice in notices]
    named = [line.partition("plumbline: ")[2] for line in lines if "plumbline: " in line]
    exceptions = [line for line in lines if EXCEPTION.match(line) and not any(why.startswith(line) for why in told)]
    signals = [line for line in (*sentences, *outside) if "exited on signal" in line]
    chosen = named[:1] or exceptions[:1] or signals[:1] or outside[-1:] or sentences[:1] or [""]
    return shown(chosen[0])


def divided(lines):
    """(the lines outside of notices, the notices as lists of lines)"""
    outside, notices, inside = [], [], None
    for line in lines:
        if not FRAME.fullmatch(line):
            (outside if inside is None else inside).append(line)
        elif inside:
            notices.append(inside)
            inside = None
        else:
            inside = []
    return outside + (inside or []), notices  # a single line of dashes begins no notice


def first_sentence(lines):
    text = " ".join(" ".join(lines).split())
    return re.match(r".*?[.!?:](?=\s|$)|.*", text)[0]
