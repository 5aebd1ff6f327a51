#!/usr/bin/env bash
# Validates plumbline's exports against the JSON schemas; skipped if Python has no jsonschema.
set -euo pipefail

python3 -c 'import jsonschema' 2>/dev/null || { echo 'skipped: no jsonschema; scripts/setup installs it'; exit 77; }
exec python3 -B -m unittest discover -s "$1" -p schema_test.py
