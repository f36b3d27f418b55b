# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# Sourced by tests/run.sh, examples/quickstart.sh and .ci/run: gets what is missing on Debian and Ubuntu, and shows progress.

weft_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
weft_jobs=$(nproc)

# What ccache keeps is good for another checkout too.
export CCACHE_BASEDIR=$weft_root CCACHE_NOHASHDIR=1

say() { printf '%s\n' "== $*"; }

# weft_quietly TITLE COMMAND…: output is shown if the command fails, or always where a person is watching.
weft_quietly() {
  local title=$1 log status=0 start=$SECONDS
  shift
  say "$title"
  if [ -t 1 ]; then
    "$@" || status=$?
  else
    log=$(mktemp)
    "$@" >"$log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || tail -n 200 "$log"
    rm -f "$log"
  fi
  [ "$status" -eq 0 ] || { say "$title: failed with exit status $status"; return "$status"; }
  say "$title: $((SECONDS - start)) s"
}

# weft_install PACKAGE…: installs those that are missing and can be had. Without the rights to, says what is missing; never fails.
weft_install() {
  local package missing=() available=() as_root=()
  command -v dpkg-query >/dev/null || { say "not a Debian or Ubuntu system: going on with what is here"; return 0; }
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "missing, and no rights to install: ${missing[*]}; going on with what is here"
      return 0
    fi
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null 2>&1 || say "apt-get update failed; going on with the lists that are here"
  for package in "${missing[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then available+=("$package"); else say "no package $package here; going on without"; fi
  done
  [ ${#available[@]} -gt 0 ] || return 0
  say "installing ${available[*]}"
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${available[@]}" >/dev/null 2>&1; then
    # One that cannot be installed must not keep the others away.
    for package in "${available[@]}"; do
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1 ||
        say "$package could not be installed; going on without"
    done
  fi
}

# Without these nothing can be built.
weft_require() {
  local command missing=()
  for command in "$@"; do command -v "$command" >/dev/null || missing+=("$command"); done
  [ ${#missing[@]} -eq 0 ] || { say "cannot go on without: ${missing[*]}"; exit 1; }
}

weft_build_packages=(g++ cmake ninja-build pkg-config libopenblas-dev libdnnl-dev nlohmann-json3-dev zlib1g-dev libcli11-dev)
weft_test_packages=(doctest-dev libbenchmark-dev librandom123-dev clang libclang-rt-dev python3 dataset-fashion-mnist)
