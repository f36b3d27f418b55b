#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The GPT training step of weft beside PyTorch's, alternately in one run: bench/gpt_step.sh [PROGRAM [ROUNDS]]
# PROGRAM: a built gpt_step_bench. Needs python3 with torch (Debian: python3-torch). Prints the ratios of each round and their medians:
# step time on one core (goal: at most 0.70 of PyTorch's), and tokens/s of two ranks (goal: at least 1.5 of DistributedDataParallel over gloo).
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${1:-$folder/../build/release/bench/gpt_step_bench}
rounds=${2:-3}
python=${PYTHON:-/usr/bin/python3}
export OMP_NUM_THREADS=1
[ -x "$program" ] || { echo "no program $program; build it: cmake --preset release && cmake --build build/release --target gpt_step_bench" >&2; exit 1; }
"$python" -c 'import torch' 2>/dev/null || { echo "$python has no torch; install python3-torch, or set PYTHON" >&2; exit 1; }

field() { sed -n "s/.*$1 \([0-9.]*\).*/\1/p" | tail -n 1; }
for round in $(seq "$rounds"); do
  weft=$("$program" --steps 60 --rounds 1)
  one=$("$python" "$folder/gpt_step_torch.py" --steps 40)
  two=$("$python" "$folder/gpt_step_torch.py" --steps 40 --ranks 2 --port $((29500 + RANDOM % 2000)))
  weft_ms=$(field step_ms <<<"$weft") torch_ms=$(field step_ms <<<"$one")
  weft_two=$(sed -n 's/.*together \([0-9.]*\) ms.*/\1/p' <<<"$weft" | tail -n 1) torch_two=$(field tokens_per_second <<<"$two")
  printf 'round %s: one core: weft %s ms, torch %s ms, ratio %s | two ranks: weft %s tokens/s, torch DDP %s tokens/s, ratio %s\n' "$round" "$weft_ms" "$torch_ms" \
    "$(awk "BEGIN { printf \"%.3f\", $weft_ms / $torch_ms }")" "$(awk "BEGIN { printf \"%.0f\", 2 * 768000 / $weft_two }")" "$torch_two" \
    "$(awk "BEGIN { printf \"%.2f\", 2 * 768000 / $weft_two / $torch_two }")"
done
