#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the documents are true to the tree.

  check_documents.py ROOT           prints faults as file:line: message; ends non-zero if there are any
  check_documents.py ROOT --write   puts code and the supported table into the documents anew

 - Links lead to files and headings that exist; so do paths in `code` and in shell blocks, and file names in comments of headers.
 - The table of folders in include/weft/README.md names the folders that have headers, each once.
 - A block of C++ or CMake stands behind <!-- code: FILE --> or <!-- code: FILE [region] --> and equals that file, or what stands there
   between two lines that hold [region] in a comment, moved to the left margin.
 - The table of what is supported is what supported.py reads off the headers.
 - Every weft[area.rule] is an error of the headers; where its text follows, it is the text of the headers.
"""
import argparse
import os
import re
import sys
import textwrap

import supported

MAP = "include/weft/README.md"
# Documents whose blocks of C++ and CMake must all be compiled ones.
COMPILED_DOCUMENTS = ("README.md", "examples/README.md", MAP)
COMPILED_LANGUAGES = ("cpp", "cmake")
FENCE = re.compile(r"(?:^<!-- code: (?P<file>\S+?)(?: \[(?P<region>[\w-]+)\])? -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.S | re.M)
FILE_NAME = r"(?:[\w.-]+/)*[\w.-]+\.(?:hpp|cuh|cpp|py|sh|md|cmake)\b"


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def files_of(root, suffix):
    for directory, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")))
        for file in sorted(files):
            if file.endswith(suffix):
                yield os.path.relpath(os.path.join(directory, file), root)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def without_fences(text):
    """Blocks become blank lines, so that lines keep their numbers."""
    return FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def anchors_of(text):
    """What links to headings are called, in the way of the usual renderers."""
    titles = re.findall(r"^#+ (.*)$", without_fences(text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(root, path, text):
    for match in re.finditer(r"\]\(([^)\s]+)\)", without_fences(text)):
        target, _, anchor = match.group(1).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(root, file)):
            yield line_of(text, match.start()), f"link to {target}, which does not exist"
        elif anchor and anchor not in anchors_of(read(root, file)):
            yield line_of(text, match.start()), f"link to heading #{anchor}, which {file} has not"


def exists_somewhere(root, directory, name):
    return any(os.path.exists(os.path.join(root, place, name)) for place in ("", directory, "include", "include/weft"))


def check_paths(root, path, text):
    """Paths in `code` and in shell blocks: with a slash and a suffix, or below a folder of the tree. <, *, … stand for something else."""
    top = {f for f in os.listdir(root) if os.path.isdir(os.path.join(root, f)) and not f.startswith("build")}
    pieces = [(m.start(1), m.group(1)) for m in re.finditer(r"`([^`\n]+)`", without_fences(text))]
    pieces += [(m.start("code"), m.group("code")) for m in FENCE.finditer(text) if m.group("language") == "sh"]
    for start, piece in pieces:
        for match in re.finditer(r"[^\s\"'()=,;]+", piece):
            word = match.group().removeprefix("./").rstrip(".:")
            if "/" not in word or not re.fullmatch(r"[\w./-]+", word) or word.startswith(("/", "build/", "../")):
                continue
            if (re.fullmatch(FILE_NAME, word) or word.split("/")[0] in top) and not exists_somewhere(root, os.path.dirname(path), word):
                yield line_of(text, start + match.start()), f"{word} does not exist"


def region_of(text, region):
    """What stands between the two lines with the region's mark, or None."""
    lines = text.split("\n")
    marks = [i for i, line in enumerate(lines) if re.fullmatch(rf"\s*(//|#) \[{re.escape(region)}\]", line)]
    if len(marks) != 2:
        return None
    return textwrap.dedent("\n".join(lines[marks[0] + 1:marks[1]]) + "\n")


def code_of(root, match):
    """(code, fault) of the file or region that a block names."""
    file, region = match.group("file"), match.group("region")
    if not os.path.isfile(os.path.join(root, file)):
        return None, f"{file} does not exist"
    text = read(root, file)
    if not region:
        return text, None
    code = region_of(text, region)
    return code, None if code is not None else f"{file} has not two lines with the mark [{region}]"


def check_code(root, path, text):
    for match in FENCE.finditer(text):
        line = line_of(text, match.start())
        if match.group("file"):
            code, fault = code_of(root, match)
            if fault or code != match.group("code"):
                yield line, fault or f"this block is not what {match.group('file')} has; run tests/docs/check_documents.py . --write"
        elif path in COMPILED_DOCUMENTS and match.group("language") in COMPILED_LANGUAGES:
            yield line, "this block does not name the compiled file that it is from: <!-- code: FILE [region] -->"


def written(root, text):
    """The document with its blocks as the files have them."""
    def block(match):
        if not match.group("file"):
            return match.group()
        code, fault = code_of(root, match)
        start = match.start()
        return match.group() if fault else text[start:match.start("code")] + code + text[match.end("code"):match.end()]
    return FENCE.sub(block, text)


def check_folders(root):
    text = read(root, MAP)
    base = os.path.join(root, "include/weft")
    there = {f for f in os.listdir(base) if os.path.isdir(os.path.join(base, f)) and any(files_of(os.path.join(base, f), (".hpp", ".cuh")))}
    head = re.search(r"^\| folder \|.*\n\|[ -|]*\n", text, re.M)
    if not head:
        return [(1, "no table of folders, with the columns: folder, what is in it, start reading at")]
    named = [re.match(r"\| `(\w+)` \|", row) for row in re.match(r"(?:\|.*\n)*", text[head.end():]).group().splitlines()]
    names = [match.group(1) for match in named if match]
    line = line_of(text, head.start())
    faults = [(line, f"folder {folder} has headers and no row in the table of folders") for folder in sorted(there - set(names))]
    faults += [(line, f"folder {name} of the table has no headers") for name in names if name not in there]
    return faults + [(line, f"folder {name} has two rows") for name in sorted(set(names)) if names.count(name) > 1]


def check_supported(root):
    readme = read(root, "README.md")
    if supported.BEGIN not in readme or supported.END not in readme:
        return [(1, "no table of what is supported: no marks " + supported.BEGIN + " and " + supported.END)]
    first, last = supported.between_marks(readme)
    line = line_of(readme, first)
    faults = [(line, f"supported.py finds nothing for '{what}'; teach it how the headers say that") for what, cells in
              supported.rows(supported.Tree(root)) if not cells]
    if readme[first:last] != supported.table(root):
        faults.append((line, "the table of what is supported is not what the headers say; run tests/docs/supported.py . --write"))
    return faults


def check_messages(headers, text):
    """Errors that a document quotes. headers: the text of all headers."""
    for match in re.finditer(r"weft\[([a-z_0-9]+\.[a-z_0-9]+)\](?:: ([^\n`\"]+))?", text):
        rule, message = match.groups()
        if rule == "area.rule":
            continue
        line = line_of(text, match.start())
        if f"weft[{rule}]" not in headers and f'"{rule}"' not in headers:
            yield line, f"no header has an error weft[{rule}]"
        elif message and f"weft[{rule}]: {message.rstrip()}" not in headers and f'"{rule}", "{message.rstrip()}' not in headers:
            yield line, f"the text of weft[{rule}] is another one in the headers"


def check_comments(root):
    """File names in comments of headers."""
    for path in files_of(os.path.join(root, "include"), (".hpp", ".cuh")):
        path = "include/" + path
        text = read(root, path)
        for comment in re.finditer(r"//.*", text):
            for match in re.finditer(rf"(?<![\w/<.*…>]){FILE_NAME}", comment.group()):
                if not exists_somewhere(root, os.path.dirname(path), match.group()):
                    yield path, line_of(text, comment.start()), f"{match.group()} does not exist"


def check(root):
    headers = "".join(read(root, path) for path in files_of(root, (".hpp", ".cuh")) if path.startswith("include/"))
    faults = [f"{path}:{line}: {message}" for path, line, message in check_comments(root)]
    for path in files_of(root, ".md"):
        text = read(root, path)
        found = [*check_links(root, path, text), *check_paths(root, path, text), *check_code(root, path, text), *check_messages(headers, text)]
        found += check_folders(root) if path == MAP else check_supported(root) if path == "README.md" else []
        faults += [f"{path}:{line}: {message}" for line, message in sorted(found)]
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.write:
        for path in list(files_of(arguments.root, ".md")):
            text = read(arguments.root, path)
            new = written(arguments.root, text)
            if supported.BEGIN in new and supported.END in new:
                first, last = supported.between_marks(new)
                new = new[:first] + supported.table(arguments.root) + new[last:]
            if new != text:
                with open(os.path.join(arguments.root, path), "w", encoding="utf-8") as file:
                    file.write(new)
    faults = check(arguments.root)
    for fault in faults:
        print(fault)
    print(f"{len(list(files_of(arguments.root, '.md')))} documents; {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
