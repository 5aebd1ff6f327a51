#!/usr/bin/env bash
# wrong_class.sh MPIRUN PROGRAM: the program's last rank is given a class that there is not. It must say so, and end the
# job before the others lose their patience.
set -euo pipefail
if said=$("$1" -n 2 "$2" 2>&1); then
  echo "the run succeeded although its last rank failed: $said"; exit 1
fi
grep -q 'plumbline: rank 1.*the loss of micro-batch 0: ' <<<"$said" || { echo "rank 1 does not say why: $said"; exit 1; }
if grep -q 'has not left MPI' <<<"$said"; then echo "a rank waited for the others: $said"; exit 1; fi
