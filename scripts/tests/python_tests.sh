#!/usr/bin/env bash
# python_tests.sh ARG...: runs Python tests that need the modules of scripts/requirements/tests.txt; skipped without
# them. The arguments are passed to Python.
set -euo pipefail

python3 -c 'import flit_core, jsonschema, numpy, pytest' 2>/dev/null ||
  { echo 'skipped: scripts/setup has not installed scripts/requirements/tests.txt'; exit 77; }
exec python3 "$@"
