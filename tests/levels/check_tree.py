#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the headers against the rules of the tree: who may include whom, what a header must and must not have, links in documents.

  check_tree.py ROOT [--component NAME=PATH ...]

ROOT holds include/weft. PATH is a folder or file under include/weft that needs a library: the core must not include it. The table of
folders and levels is read from include/weft/README.md between the marks levels:begin and levels:end; without it the default holds.
"""
import argparse
import os
import re
import sys

DEFAULT_TABLE = {
    "describe": [["base"], ["dtype", "shape", "layout"], ["schedule"], ["strategy"], ["layer"], ["graph"], ["plan"], ["report"]],
    "execute": [[], ["exec", "random", "simd"], ["tensor"], ["kernel"], ["comm", "op"], ["optim"], ["data", "checkpoint"], ["run"]],
}
DESCRIBING_FACADES = {"plan.hpp"}  # the other files beside the folders are facades of the executing half
FACADE_LEVEL = 1000
FORBIDDEN = {"iostream", "functional", "ranges", "regex"}
MAX_LINES = 600
SPDX = "// SPDX-License-Identifier: Apache-2.0"
# What the core may include beyond C++'s own headers: the operating system's and the compiler's.
SYSTEM = re.compile(r"^(sys/[a-z]+\.h|(unistd|fcntl|sched|pthread|time|errno|signal|stdlib|string|stdio|dirent|x86intrin|immintrin"
                    r"|arm_neon|arm_sve|linux/futex|cuda_fp16|cuda_bf16)\.h)$")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_table(root):
    """folder -> (half, level)"""
    path = os.path.join(root, "include/weft/README.md")
    text = read(path) if os.path.exists(path) else ""
    match = re.search(r"<!-- levels:begin -->(.*?)<!-- levels:end -->", text, re.S)
    if not match:
        return {f: (half, level) for half, levels in DEFAULT_TABLE.items() for level, folders in enumerate(levels) for f in folders}
    table = {}
    for half, level, folders in re.findall(r"^\|\s*(describe|execute)\s*\|\s*(\d+)\s*\|([^|]*)\|", match.group(1), re.M):
        for folder in re.findall(r"`([a-z_0-9]+)/?`", folders):
            table[folder] = (half, int(level))
    return table


def place(path, table):
    """(half, level, folder) of a header given relative to include/weft, or None if its folder is not in the table."""
    folder, _, rest = path.partition("/")
    if not rest:
        return ("describe" if path in DESCRIBING_FACADES else "execute", FACADE_LEVEL, path)
    return (*table[folder], folder) if folder in table else None


def may_include(source, target):
    """Execute may include describe, never the reverse; within a half, a folder includes itself and lower levels."""
    (half, level, folder), (other_half, other_level, other_folder) = source, target
    if half != other_half:
        return half == "execute"
    return folder == other_folder or other_level < level or (level == other_level == FACADE_LEVEL)


def without_comments(text):
    """Comments become spaces, so that lines keep their numbers; strings stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group().startswith("/") else m.group(), text, flags=re.S)


def asserts_without_text(code):
    """Lines of static_assert whose last argument is not a string."""
    for match in re.finditer(r"\bstatic_assert\s*\(", code):
        depth, end = 1, match.end()
        for token in re.finditer(r'"(?:\\.|[^"\\])*"|[()]', code[match.end():]):
            depth += {"(": 1, ")": -1}.get(token.group(), 0)
            if depth == 0:
                end = match.end() + token.start()
                break
        if not re.search(r',\s*("(?:\\.|[^"\\])*"\s*)+$', code[match.end():end]):
            yield code.count("\n", 0, match.start()) + 1


def check_header(path, text, headers, table, components):
    """Faults of one header as (line, message)."""
    lines = text.split("\n")
    code = without_comments(text)
    if lines[0] != SPDX:
        yield 1, f"the first line is not '{SPDX}'"
    if not re.search(r"^#pragma once$", code, re.M):
        yield 1, "no '#pragma once'"
    num_lines = text.count("\n")
    if num_lines > MAX_LINES:
        yield num_lines, f"{num_lines} lines; the limit is {MAX_LINES}"
    for line in asserts_without_text(code):
        yield line, "static_assert without a text"

    def component_of(header):
        return next((n for n, p in components if header == p or header.startswith(p + "/")), None)

    here = place(path, table)
    if here is None:
        yield 1, f"folder '{path.split('/')[0]}' is not in the table of levels"
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', code, re.M):
        line, quote, target = code.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)
        if quote == "<" and target in FORBIDDEN:
            yield line, f"<{target}> is too costly for a header"
        if quote == "<" and not target.startswith("weft/"):
            if component_of(path) is None and not re.match(r"^[a-z_0-9]+$", target) and not SYSTEM.match(target):
                yield line, f"<{target}> needs a library: put the header into a component's folder"
            continue
        if not target.startswith("weft/"):
            yield line, f'"{target}": write "weft/…" in full'
            continue
        if quote == "<":
            yield line, f'<{target}>: headers include each other as "weft/…"'
        target = target[len("weft/"):]
        if target not in headers:
            yield line, f'"weft/{target}" does not exist'
            continue
        there = place(target, table)
        if here and there and not may_include(here, there):
            yield line, f"{here[0]} level {here[1]} ({here[2]}) includes weft/{target} of {there[0]} level {there[1]} ({there[2]})".replace(
                f"level {FACADE_LEVEL}", "facade")
        if component_of(target) not in (None, component_of(path)) and component_of(path) is None:
            yield line, f"the core includes weft/{target}, which belongs to component {component_of(target)}"
        if path.endswith(".hpp") and target.endswith(".cuh"):
            yield line, f"a .hpp includes weft/{target}: .hpp never needs nvcc"


def check_links(root, path):
    """Links of a document to files that do not exist."""
    text = read(os.path.join(root, path))
    text = re.sub(r"```.*?```", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    for match in re.finditer(r"\]\(([^)\s]+)\)", text):
        target = match.group(1).split("#")[0]
        if target and not re.match(r"[a-z]+:", target) and not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
            yield text.count("\n", 0, match.start()) + 1, f"link to {target}, which does not exist"


def check(root, components=()):
    """All faults of a tree as 'file:line: message'."""
    base = os.path.join(root, "include/weft")
    headers = sorted(os.path.relpath(os.path.join(d, f), base) for d, _, files in os.walk(base) for f in files if f.endswith((".hpp", ".cuh")))
    table = read_table(root)
    if not headers or not table:
        return [f"{base}: no headers" if not headers else "include/weft/README.md: no levels between the marks"], []
    faults, lengths = [], []
    for header in headers:
        text = read(os.path.join(base, header))
        lengths.append(text.count("\n"))
        faults += [f"include/weft/{header}:{line}: {message}" for line, message in check_header(header, text, set(headers), table, components)]
    for directory, folders, files in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        for file in files:
            if file.endswith(".md"):
                path = os.path.relpath(os.path.join(directory, file), root)
                faults += [f"{path}:{line}: {message}" for line, message in check_links(root, path)]
    return faults, sorted(lengths)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--component", action="append", default=[])
    arguments = parser.parse_args()
    faults, lengths = check(arguments.root, [tuple(c.split("=", 1)) for c in arguments.component])
    for fault in faults:
        print(fault)
    if lengths:
        print(f"{len(lengths)} headers, median {lengths[len(lengths) // 2]} lines, longest {lengths[-1]}; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
