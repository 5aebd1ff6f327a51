"""python -m plumbline_case.torch run FOLDER -o FILE     runs a case in one process, with plain torch
python -m plumbline_case.torch check FOLDER...          does so and compares with the expected results there
"""

import argparse
import sys

from ..schema import FormatError
from .case import load
from .expected import differences
from .one_process import run_case


def check(folders):
    failed = 0
    for folder in folders:
        lines = differences(folder, run_case(load(folder)))
        failed += bool(lines)
        print(f"{'FAIL' if lines else 'PASS'} {folder}" + "".join(f"\n  {line}" for line in lines[:5]))
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(prog="python -m plumbline_case.torch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a case in one process, with plain torch")
    run.add_argument("folder")
    run.add_argument("-o", dest="output", required=True, help="the safetensors file for the results")
    checked = commands.add_parser("check", help="compare the results of plain torch with the expected ones")
    checked.add_argument("folders", nargs="+")
    options = parser.parse_args()
    try:
        if options.command == "check":
            return check(options.folders)
        run_case(load(options.folder)).write(options.output)
        return 0
    except (FormatError, OSError) as error:
        print(f"plumbline_case: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
