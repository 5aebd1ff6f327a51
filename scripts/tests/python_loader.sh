#!/usr/bin/env bash
# Runs the tests of the Python loader in the environment that scripts/peer made; skipped where there is none.
set -euo pipefail

peer=$(dirname "$0")/../peer
version=2.15.0
"$peer" $version --check >/dev/null 2>&1 || { echo "skipped: scripts/peer $version is not set up"; exit 77; }
exec "$peer" $version -- -B -m unittest discover -s "$1" -p loader_test.py
