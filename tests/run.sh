#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything and runs all tests: tests/run.sh [arguments of ctest …]
# On Debian and Ubuntu it installs what is missing, if it may. WEFT_PRESET chooses another preset of CMakePresets.json than release.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"
preset=${WEFT_PRESET:-release}

weft_install "${weft_build_packages[@]}" "${weft_test_packages[@]}"
weft_require g++ cmake ninja
cd "$weft_root"

configuration=$(mktemp)
trap 'rm -f "$configuration"' EXIT
say "configure (preset $preset)"
cmake --preset "$preset" >"$configuration" 2>&1 || { cat "$configuration"; exit 1; }
weft_quietly "build" cmake --build --preset "$preset" --parallel "$weft_jobs"

status=0
say "test"
ctest --preset "$preset" --parallel "$weft_jobs" --no-label-summary "$@" || status=$?

say "parts of this build"
sed -n '/^-- weft [0-9]/,/^-- Configuring done/{/Configuring done/d;s/^-- //;p}' "$configuration"
command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || echo "  skipped: headers and refusals with nvcc (no CUDA)"
exit "$status"
