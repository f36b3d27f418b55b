#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats our C++ files, or with --check says which are not formatted: cmake/format.sh [--check] [FILE …]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(-i)
if [ "${1:-}" = --check ]; then
  mode=(--dry-run -Werror)
  shift
fi
if [ $# -gt 0 ]; then files=("$@"); else
  # Cases of wrong programs are left as they are: tests compare line numbers in them.
  mapfile -d '' files < <(git ls-files -z -- '*.hpp' '*.cpp' '*.cuh' '*.cu' ':!tests/compile_fail/cases')
fi
[ ${#files[@]} -gt 0 ] || exit 0
clang-format "${mode[@]}" "${files[@]}"
