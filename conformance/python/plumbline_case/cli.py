"""plumbline-case: cases of plumbline as files, and backends checked with them, without plumbline's program."""

import argparse
import contextlib
import math
import os
import shutil
import signal
import sys
import traceback

from .again import again, pasted
from .corpus import PACKAGED, entries, select
from .doctor import examine
from .loading import load_backend
from .number_text import shown
from .progress import Progress
from .reasons import told
from .report_folder import Checker
from .run import run
from .schema import FormatError
from .stopping import Output, OutputError, Signals, Stopped, drop_output, end_by
from .supervise import SECONDS, BackendError

BACKEND_HELP = """usage: plumbline-case backend SPEC VERB

Does a verb of a backend class, as plumbline and `plumbline-case run` do. SPEC: FILE.py:CLASS or MODULE:CLASS (FILE.py if
it has one class only).

  describe                print what it is, the schedules it runs and the kinds of results it delivers
  plan --job J            print for each case of the job file J whether it is supported
  run --job J --out D     run the cases of J and write their results below the folder D"""
EXIT = "exit: 0 all as expected, 1 a failure, 2 bad input (one line says what), 3 nothing could be judged"


def exit_code(progress):
    if progress.is_broken or any(verdict.is_failure() for verdict in progress.verdicts):
        return 1
    ran = any(verdict.status == "PASS" for verdict in progress.verdicts)
    return 0 if ran and not any(verdict.status == "NOT RUN" for verdict in progress.verdicts) else 3


def list_command(options):
    for entry in select(entries(options.corpus), options.case):
        print(f"{entry.case}  {entry.schedule}  {entry.ranks} ranks  {entry.folder}")
    return 0


def run_command(options):
    if options.launcher and not options.ranks:
        raise FormatError("--launcher starts ranks: give --ranks too")
    with Progress(options.verbose, lambda verdict: again(options, verdict), options.report) as progress:
        run(options, progress)
    progress.summary()
    return exit_code(progress)


def check_command(options):
    checker = Checker(options.results, options.corpus or PACKAGED)
    with Progress(options.verbose, report=options.results) as progress:
        checker.judge_all(progress)
    progress.summary()
    for problem in checker.problems:
        print(f"plumbline-case: {problem}", file=sys.stderr)
    return 2 if checker.problems else exit_code(progress)


def example_command(options):
    if os.path.lexists(options.output):
        raise FormatError(f"{options.output}: exists already, and is kept; give another name: {pasted('example')} FILE")
    toy = os.path.join(os.path.dirname(os.path.abspath(__file__)), "examples", "toy.py")
    with open(toy, "rb") as source, open(options.output, "xb") as copy:
        shutil.copyfileobj(source, copy)
    print(f"{options.output}: {pasted('run', '--backend', f'{options.output}:Toy')}")
    return 0


def backend_command(options):
    if options.backend in ("-h", "--help"):
        print(BACKEND_HELP)
        return 0
    with contextlib.redirect_stdout(sys.stderr):  # only the answer to the verb may go there
        try:
            backend = load_backend(options.backend)
        except FormatError as error:
            print(f"plumbline: {error}", file=sys.stderr)  # the process that started it reads the reason there
            return 2
        except Exception as error:
            traceback.print_exc()
            print(f"plumbline: {told(error)}", file=sys.stderr)
            return 1
    backend.main(options.verb)
    return 0


def seconds(text):
    """What --timeout says."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, got '{text}'")
    return value


def parser():
    root = argparse.ArgumentParser(prog="plumbline-case", description=__doc__, epilog=EXIT)
    root.add_argument("--version", action=Version)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, action, about, **more):
        added = commands.add_parser(name, help=about, description=about, epilog=EXIT, **more)
        added.set_defaults(action=action)
        return added

    def of_corpus(added):
        added.add_argument(
            "--corpus",
            metavar="DIR",
            help="the output folder of `plumbline export --expected` (default: the cases in this package)",
        )

    listing = command("list", list_command, "the cases of the corpus, and their folders")
    listing.add_argument("--case", default="*", metavar="GLOB", help="only ids that match one of these, separated by commas")
    of_corpus(listing)

    def of_backend(added):
        added.add_argument(
            "--backend",
            required=True,
            metavar="SPEC",
            help="FILE.py:CLASS or MODULE:CLASS (FILE.py if it has one class only), or in quotes the command of any program with the verbs describe, plan and run",
        )
        added.add_argument(
            "--ranks",
            type=int,
            metavar="N",
            help="only cases on N ranks, with a process for each (RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them); default: one process acts as all ranks",
        )
        added.add_argument("--launcher", metavar="WORDS", help="starts the ranks instead: 'mpirun -n {np}'")
        added.add_argument(
            "--timeout", type=seconds, default=SECONDS, metavar="S", help=f"seconds for a case (default: {SECONDS:g})"
        )
        of_corpus(added)

    doctor = command("doctor", examine, "check a backend step by step, down to a first comparison")
    of_backend(doctor)

    running = command("run", run_command, "run the exact cases on a backend, and judge its results")
    of_backend(running)
    running.add_argument("--case", default="*", metavar="GLOB", help="only ids that match one of these, separated by commas")
    running.add_argument("--schedule", default="*", metavar="GLOB", help="likewise for schedules")
    running.add_argument("--report", metavar="DIR", help="keep the results and the backend's output there")
    running.add_argument("-v", "--verbose", action="store_true", help="a line for each run")

    checking = command("check", check_command, "judge the folder of a finished run again, from its files: exact cases only")
    checking.add_argument(
        "results", metavar="RESULTS", help="the folder of `plumbline run --report` or `plumbline-case run --report`"
    )
    checking.add_argument("-v", "--verbose", action="store_true", help="a line for each run")
    of_corpus(checking)

    example = command("example", example_command, "write the toy backend to a file, to begin with")
    example.add_argument("output", nargs="?", default="my_backend.py", metavar="FILE")

    verbs = command("backend", backend_command, "do a verb of a backend: what `run` and plumbline start", prefix_chars="\0")
    verbs.add_argument("backend", metavar="SPEC")
    verbs.add_argument("verb", nargs="*")
    return root


class Version(argparse.Action):
    """--version. The version is read only for it: the modules that know it take a tenth of a start."""

    def __init__(self, **known):
        super().__init__(nargs=0, help="show program's version number and exit", **known)

    def __call__(self, parser, *_):
        from importlib import metadata

        try:
            print(f"plumbline-case {metadata.version('plumbline-case')}")
        except metadata.PackageNotFoundError:
            print("plumbline-case of plumbline's sources")
        parser.exit()


def act(arguments):
    """Does what the command line asks for. Returns the exit code."""
    if sys.stdout is None:  # it was closed
        raise OutputError
    with contextlib.redirect_stdout(Output()) as output:
        try:
            options = parser().parse_args(arguments)
            if options.action is backend_command:  # signals are the backend's
                return backend_command(options)
            with Signals():
                return options.action(options)
        finally:
            output.flush()


def complain(error):
    print(f"plumbline-case: {shown(str(error))}", file=sys.stderr)


def main(arguments=None):
    try:
        return act(arguments)
    except BrokenPipeError:  # `| head` has read enough
        drop_output()
        return 128 + signal.SIGPIPE
    except OutputError as error:
        complain(error)
        if sys.stdout:
            drop_output()
        return 1
    except Stopped as stopped:
        complain(stopped)
        end_by(stopped.number)
    except (BackendError, FormatError, OSError) as error:
        complain(error)
        return 3 if isinstance(error, BackendError) else 2
