#!/usr/bin/env bash
# The backends in Python against cases that they pass, and a script that shows a deviation; in the environment that
# scripts/peer made, skipped where there is none.
set -euo pipefail

peer=$(dirname "$0")/../peer
version=2.15.0
"$peer" $version --check >/dev/null 2>&1 || { echo "skipped: scripts/peer $version is not set up"; exit 77; }
command -v mpirun >/dev/null || { echo 'skipped: no mpirun'; exit 77; }
report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT

held() { # backend, cases, schedule
  "$PLUMBLINE_PROGRAM" run --backend "$1" --case "$2" --schedule "$3" --ranks 2 --report "$report/$3"
}
held "$1/mpi4py_gpipe/backend.toml" 'exact-tied' gpipe
held "$1/torch_pipelining/manual-$version.toml" 'exact-tied' 1f1b
held "$1/torch_pipelining/traced-$version.toml" 'exact-tied' gpipe

if "$peer" $version -- "$1/torch_pipelining/deviations/accumulated_gradients_are_divided_again.py"; then
  echo "PyTorch $version has lost the deviation that a waiver expects" >&2
  exit 1
fi
