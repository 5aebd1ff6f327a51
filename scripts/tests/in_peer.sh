#!/usr/bin/env bash
# Runs the tests of the Python loader in the Python that PLUMBLINE_PEER_PYTHON names, or in the environment that
# scripts/peer made; skipped where there is none.
set -euo pipefail

version=2.15.0
python=${PLUMBLINE_PEER_PYTHON:-}
if [ -z "$python" ]; then
  peer=$(dirname "$0")/../peer
  "$peer" $version --check >/dev/null 2>&1 || { echo "skipped: scripts/peer $version is not set up"; exit 77; }
  python=$("$peer" $version)
fi
exec "$python" -B -m unittest discover -s "$1" -p loader_test.py
