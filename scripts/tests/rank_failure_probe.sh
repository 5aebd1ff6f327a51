#!/usr/bin/env bash
# rank_failure_probe.sh MPIRUN PROBE: the probe's only test fails on its last rank. That must end the run with an error
# and be counted in the JUnit file that rank 0 writes.
set -euo pipefail
report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT
if "$1" -n 3 "$2" --gtest_output=xml:"$report/probe.xml" >"$report/output" 2>&1; then
  echo "the run succeeded although its last rank failed"; cat "$report/output"; exit 1
fi
grep -q '<testsuites[^>]* failures="1"' "$report/probe.xml" || { echo "the failure is not in the JUnit file"; cat "$report/probe.xml"; exit 1; }
