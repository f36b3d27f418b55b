#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All-reduce among 2 and 4 ranks: weft's threads beside Open MPI's processes, in turn, on this machine.
#   bench/collectives.sh PATH/TO/collectives_bench
# Needs mpicc and mpirun, and python3 to print the table. Columns: microseconds of one all-reduce (median), and how many times faster.
set -eu
bench=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc -O2 -std=c11 "$here/collectives_mpi.c" -o "$work/twin"
for round in 1 2 3; do
  for ranks in 2 4; do
    mpirun --allow-run-as-root --oversubscribe -n "$ranks" "$work/twin" 2>>"$work/messages" >>"$work/mpi.txt" || {
      cat "$work/messages" >&2
      exit 1
    }
    "$bench" --benchmark_filter="ranks:$ranks/" --benchmark_format=csv 2>>"$work/messages" | grep '^"all_reduce' >>"$work/weft.txt"
  done
done
python3 - "$work/mpi.txt" "$work/weft.txt" <<'PYTHON'
import re, statistics, sys
mpi, weft = {}, {}
for line in open(sys.argv[1]):
    ranks, size, time = line.split()
    mpi.setdefault((int(ranks), int(size)), []).append(float(time))
for line in open(sys.argv[2]):
    ranks, size = map(int, re.search(r"ranks:(\d+)/bytes:(\d+)", line).groups())
    weft.setdefault((ranks, size), []).append(float(line.split(",")[2]))
print(f"{'ranks':>5} {'bytes':>9} {'weft us':>10} {'weft GB/s':>10} {'Open MPI us':>12} {'ratio':>7}")
for key in sorted(mpi):
    ours, theirs = statistics.median(weft[key]), statistics.median(mpi[key])
    print(f"{key[0]:5} {key[1]:9} {ours:10.1f} {key[1] / ours / 1e3:10.2f} {theirs:12.1f} {theirs / ours:7.2f}")
PYTHON
