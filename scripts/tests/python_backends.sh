#!/usr/bin/env bash
# Runs the Python backends on cases that they pass, and a script that shows a deviation, in the environment of
# scripts/peer; skipped if there is none.
set -euo pipefail

peer=$(dirname "$0")/../peer
version=2.15.0
"$peer" torch $version --check >/dev/null 2>&1 || { echo "skipped: scripts/peer torch $version is not set up"; exit 77; }
command -v mpirun >/dev/null || { echo 'skipped: no mpirun'; exit 77; }
report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT

held() { # backend, cases, schedule
  "$PLUMBLINE_PROGRAM" run --backend "$1" --case "$2" --schedule "$3" --ranks 2 --report "$report/$(basename "$1")"
}
held "$1/mpi4py_gpipe/backend.toml" 'exact-tied' gpipe
held "$1/examples/gloo_gpipe.toml" 'exact-mlp-sum,mlp' gpipe
held "$1/torch_pipelining/manual-$version.toml" 'exact-tied' 1f1b
held "$1/torch_pipelining/traced-$version.toml" 'exact-tied' gpipe
for engine in 'deepspeed 0.19.8 deepspeed_pipeline/deepspeed 1f1b exact-mlp-sum' \
  'megatron-core 0.16.1 megatron_core/batched 1f1b exact-mlp-sum' \
  'dualpipe 1.0.0 dualpipe_deepseek/dualpipe dualpipe exact-mlp-sum' \
  'jax 0.10.2 jax_interpreter/jax zb-h1 exact-mlp-sum,exact-tied'; do
  read -r name number file schedule cases <<<"$engine"
  if "$peer" "$name" "$number" --check >/dev/null 2>&1; then
    held "$1/$file-$number.toml" "$cases" "$schedule"
  else
    echo "not held: scripts/peer $name $number is not set up"
  fi
done

# A training script that runs only its own model: correct, with a fault planted on two ranks, and broken on one rank.
own=$1/examples
trained() { # report, word for train_pipeline.py
  sed -e "s|\"train_backend.py\"|&, \"$2\"|" -e "s|^schema.*|&\nfolder = \"$own\"|" \
    -e "s|\"../../../scripts/peer\"|\"$(realpath "$peer")\"|g" "$own/train_backend.toml" > "$report/$1.toml"
  "$PLUMBLINE_PROGRAM" run --backend "$report/$1.toml" --case transformer --schedule "${3:-1F1B}" --ranks 2 --report "$report/$1"
}
expect_text() { # text; what a run printed
  if grep -qF "$1"; then return; fi
  echo "not found: $1" >&2
  exit 1
}
trained sound --steps=2 1F1B,InterleavedZeroBubble
"$PLUMBLINE_PROGRAM" check "$report/sound"
if trained fault --fault=backward > "$report/fault.txt"; then echo 'the fault was not found' >&2; exit 1; fi
expect_text 'FAIL transformer x 1F1B (2 ranks, own): step 0, stage 1, micro-batch 3: backward `layers.2:out`' < "$report/fault.txt"
if trained broken --dtype=nonsense > "$report/broken.txt"; then echo 'a broken run on one rank passed' >&2; exit 1; fi
expect_text "ERROR transformer x 1F1B (2 ranks, own): on one rank: " < "$report/broken.txt"

if "$peer" torch $version -- "$1/torch_pipelining/deviations/accumulated_gradients_are_divided_again.py"; then
  echo "PyTorch $version has lost the deviation that a waiver expects" >&2
  exit 1
fi
