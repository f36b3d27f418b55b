#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles a case twice: the control variant must compile without a word, the failing variant must fail for the reason that it names.

  check_case.py CASE.cpp --compiler PATH --kind gcc|clang|nvcc [--include DIR ...]

A case says '// id: area.rule' in its head and holds '#ifdef WEFT_CONTROL … #else … #endif', without #else where the fault is an omission. It may say '// errors: N' and '// lines: N'
where more than one error or sixteen lines are meant. The failing variant must

- exit non-zero,
- give no more errors and lines than that,
- name the rule, as weft[area.rule], in the message of its *first* error: in what the compiler says, not in source that it echoes,
- name a line of the user's file: one of the failing branch or after it.
"""
import argparse
import os
import re
import subprocess
import sys

# A diagnostic begins a line with file and line number; "file:12:3: error: text" or, from nvcc, "file(12): error: text" or "error #123:".
DIAGNOSTIC = {
    "gcc": re.compile(r"^\S+?:\d+(?::\d+)?: (?:fatal )?error: (?P<text>.*)$|^(?:cc1plus|g\+\+\S*): (?:fatal )?error: (?P<tool>.*)$"),
    "clang": re.compile(r"^\S+?:\d+(?::\d+)?: (?:fatal )?error: (?P<text>.*)$|^clang\S*: error: (?P<tool>.*)$"),
    "nvcc": re.compile(r"^\S+?\(\d+\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>.*)$"
                       r"|^\S+?:\d+(?::\d+)?: (?:fatal )?error: (?P<host>.*)$|^nvcc (?:fatal|error)\s*: (?P<tool>.*)$"),
}


def command_of(kind, compiler, includes, defines, case):
    flags = [f"-I{i}" for i in includes] + [f"-D{d}" for d in defines] + ["-std=c++20"]
    if kind == "nvcc":
        return [compiler, *flags, "-x", "cu", "-cuda", "-o", os.devnull, case]
    plain = ["-fdiagnostics-color=never", "-fsyntax-only", "-Wall", "-Wextra"]
    return [compiler, *plain, *flags, case]


def compile_case(kind, compiler, includes, defines, case):
    result = subprocess.run(command_of(kind, compiler, includes, defines, case), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                    errors="replace", env={**os.environ, "LC_ALL": "C.UTF-8"})
    return result.returncode, result.stdout


def read_case(text):
    """What the case's head says, and the user's lines: those of the failing branch and after it, or all if there is no such branch."""
    settings = dict(re.findall(r"^// (id|errors|lines): *(\S+) *$", text, re.M))
    lines = text.split("\n")
    marks = {line.strip(): i + 1 for i, line in enumerate(lines) if line.strip() in ("#ifdef WEFT_CONTROL", "#else", "#endif")}
    if "id" not in settings:
        raise ValueError("no '// id: area.rule' in the case")
    begin, end = marks.get("#ifdef WEFT_CONTROL", 0), marks.get("#endif", 0)
    control_end = marks.get("#else", end)
    if not 0 < begin < control_end <= end:
        raise ValueError("no '#ifdef WEFT_CONTROL … [#else …] #endif' in the case")
    if "#else" in marks:
        return settings, set(range(control_end + 1, len(lines) + 1)) - {end}
    # What is wrong is what is missing: any line of code may be named.
    return settings, {i + 1 for i, line in enumerate(lines) if line.strip() and not re.match(r"\s*(#|//)", line)} - set(range(begin, end + 1))


def judge(kind, case, text, control, failing):
    """The complaints about a case whose two variants gave (exit status, output); none if it is right."""
    settings, user_lines = read_case(text)
    complaints = []
    status, output = control
    if status != 0:
        complaints.append(f"the control variant does not compile (exit status {status})")
    elif output.strip():
        complaints.append("the control variant compiles, but not without a word")
    status, output = failing
    lines = output.rstrip("\n").split("\n")
    errors = [next(g for g in m.groups() if g is not None) for m in map(DIAGNOSTIC[kind].match, lines) if m]
    wanted, max_errors, max_lines = f"weft[{settings['id']}]", int(settings.get("errors", 1)), int(settings.get("lines", 16))
    if status == 0:
        return complaints + ["the failing variant compiles"]
    if not errors:
        return complaints + ["the failing variant fails without an error that this driver recognises"]
    if wanted not in errors[0]:
        complaints.append(f"the first error does not name {wanted}: {errors[0]}")
    if len(errors) > max_errors:
        complaints.append(f"{len(errors)} errors; at most {max_errors}")
    if len(lines) > max_lines:
        complaints.append(f"{len(lines)} lines; at most {max_lines}")
    name = re.escape(os.path.basename(case))
    named = {int(n) for pair in re.findall(rf"{name}[:(](\d+)|at line (\d+) of \S*{name}", output) for n in pair if n}
    if not named & user_lines:
        complaints.append(f"no line of the user's is named (named: {sorted(named)})")
    return complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--kind", required=True, choices=sorted(DIAGNOSTIC))
    parser.add_argument("--include", action="append", default=[])
    arguments = parser.parse_args()
    with open(arguments.case, encoding="utf-8") as file:
        text = file.read()
    variants = [compile_case(arguments.kind, arguments.compiler, arguments.include, defines, arguments.case) for defines in (["WEFT_CONTROL"], [])]
    try:
        complaints = judge(arguments.kind, arguments.case, text, *variants)
    except ValueError as error:
        complaints = [str(error)]
    for complaint in complaints:
        print(f"{arguments.case}: {complaint}")
    if complaints:
        for name, (status, output) in zip(("control", "failing"), variants):
            print(f"--- {name} variant, exit status {status}\n{output[:6000]}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
