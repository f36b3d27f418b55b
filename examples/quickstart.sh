#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains a small GPT on real text over two ranks and lets it write: examples/quickstart.sh [arguments of train_gpt …]
# The text is the first at hand of: what the program bible prints, the texts of miscfiles, the system's licences. About three minutes
# after the build on two cores.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/setup.sh"

weft_install "${weft_build_packages[@]}" bible-kjv
weft_require g++ cmake ninja
cd "$weft_root"

weft_quietly "configure" cmake --preset release
weft_quietly "build train_gpt" cmake --build build/release --target train_gpt --parallel "$weft_jobs"

# The text; an argument --text of the user's comes later on the command line, so it is not needed then.
text=build/quickstart.txt
arguments=()
case " $* " in
  *" --text"*) ;;
  *)
    if command -v bible >/dev/null && bible -f 'gen1:1-rev22:21' 2>/dev/null | sed 's/^[^ ]* //' >"$text" && [ "$(wc -c <"$text")" -gt 1000000 ]; then
      say "text: the King James Bible, $(wc -c <"$text") bytes"
    elif compgen -G '/usr/share/misc/*.gz' >/dev/null && zcat /usr/share/misc/*.gz | tr -cd '\n\t -~' >"$text" && [ "$(wc -c <"$text")" -gt 200000 ]; then
      say "text: the files of miscfiles, $(wc -c <"$text") bytes"
    else
      find /usr/share/common-licenses -type f -print0 | sort -z | xargs -0 cat | tr -cd '\n\t -~' >"$text"
      say "text: the system's licences, $(wc -c <"$text") bytes"
    fi
    arguments+=(--text "$text")
    ;;
esac
case " $* " in *" --ranks"* | *" --strategy"*) ;; *) arguments+=(--ranks 2) ;; esac
case " $* " in *" --steps"*) ;; *) arguments+=(--steps 2000) ;; esac

say "train_gpt ${arguments[*]} $*"
exec build/release/examples/train_gpt "${arguments[@]}" "$@"
