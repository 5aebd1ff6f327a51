#!/usr/bin/env bash
# Runs Python tests with the interpreter named by PLUMBLINE_PEER_PYTHON, or in the environment of scripts/peer; skipped
# if neither exists, since tests install nothing. The arguments are passed to Python.
set -euo pipefail

version=2.15.0
python=${PLUMBLINE_PEER_PYTHON:-$("$(dirname "$0")/../peer" torch $version --print-python)} ||
  { echo "skipped: scripts/peer torch $version is not set up, and PLUMBLINE_PEER_PYTHON names no other Python"; exit 77; }
exec "$python" -B "$@"
