"""Ends plumbline-case in one line, with nothing left, on a signal or where its output cannot be written."""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A signal asks this program to end."""

    def __init__(self, number):
        super().__init__(f"ended by signal {int(number)} ({signal.strsignal(number)})")
        self.number = number


class OutputError(Exception):
    """Standard output takes no more."""

    def __str__(self):
        return "standard output cannot be written"


class Signals:
    """with Signals() as signals: the first of STOPS raises Stopped in the main thread, the others have no effect, so that a
    second Ctrl-C does not keep the first one from ending what runs. One that is ignored (nohup) remains so."""

    number = None  # of the signal that came
    _is_held = False

    def __enter__(self):
        Signals.number, self._before = None, {}
        if threading.current_thread() is threading.main_thread():
            taken = [stop for stop in STOPS if signal.getsignal(stop) not in (signal.SIG_IGN, None)]
            self._before = {stop: signal.signal(stop, self._come) for stop in taken}
        return self

    def __exit__(self, *_):
        for stop, handler in self._before.items():
            signal.signal(stop, handler)

    @staticmethod
    def _come(number, _):
        if Signals.number is None:
            Signals.number = number
            if not Signals._is_held:
                raise Stopped(number)

    @classmethod
    @contextlib.contextmanager
    def held(cls):
        """What is done within is done whole: a signal takes effect behind it."""
        before = cls.number
        cls._is_held = True
        try:
            yield
        finally:
            cls._is_held = False
        if cls.number != before:
            raise Stopped(cls.number)


@contextlib.contextmanager
def temporary_folder():
    """A folder that is gone afterwards, whatever signal comes."""
    with contextlib.ExitStack() as stack:
        with Signals.held():
            folder = tempfile.mkdtemp()
            stack.callback(remove, folder)
        yield folder


def remove(folder):
    with Signals.held():
        shutil.rmtree(folder, ignore_errors=True)


def end_by(number):
    """Ends this process as the signal ends one that does not catch it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class Output:
    """Standard output, whose failures are told from those of files."""

    def __init__(self):
        self._stream = sys.stdout

    def write(self, text):
        with as_output_error():
            return self._stream.write(text)

    def flush(self):
        with as_output_error():
            self._stream.flush()

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextlib.contextmanager
def as_output_error():
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        raise OutputError from None


def drop_output():
    """Nor may the interpreter's last flush complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
