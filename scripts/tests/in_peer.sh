#!/usr/bin/env bash
# Runs tests in Python in the interpreter that PLUMBLINE_PEER_PYTHON names, or in the environment that scripts/peer made;
# skipped where neither exists, since tests install nothing. The arguments are Python's.
set -euo pipefail

version=2.15.0
python=${PLUMBLINE_PEER_PYTHON:-$("$(dirname "$0")/../peer" $version --print-python)} ||
  { echo "skipped: scripts/peer $version is not set up, and PLUMBLINE_PEER_PYTHON names no other Python"; exit 77; }
exec "$python" -B "$@"
