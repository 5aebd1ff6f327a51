#!/usr/bin/env bash
# in_peer.sh ARG...: runs Python tests with the interpreter named by PLUMBLINE_PEER_PYTHON, or in the environment of
# scripts/peer for torch; in_peer.sh --of NAME VERSION ARG...: in that of another engine. Skipped if there is none, since
# tests install nothing. The arguments are passed to Python.
set -euo pipefail

peer=$(dirname "$0")/../peer
engine=(torch 2.15.0)
given=${PLUMBLINE_PEER_PYTHON:-}
if [ "${1:-}" = --of ]; then
  engine=("$2" "$3") given=
  shift 3
fi
python=${given:-$("$peer" "${engine[@]}" --print-python)} ||
  { echo "skipped: scripts/peer ${engine[*]} is not set up, and PLUMBLINE_PEER_PYTHON names no other Python"; exit 77; }
exec "$python" -B "$@"
