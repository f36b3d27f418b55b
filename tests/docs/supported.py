#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What weft supports, read off the headers, as the table in README.md between the marks supported:begin and supported:end.

  supported.py ROOT           prints the table
  supported.py ROOT --write   puts it into README.md
"""
import argparse
import glob
import os
import re
import sys

BEGIN, END = "<!-- supported:begin -->", "<!-- supported:end -->"
NAME = r"\n  static constexpr const char\* name = "


class Tree:
    def __init__(self, root):
        self.root = root
        self.base = os.path.join(root, "include/weft")

    def headers(self, *patterns):
        """(path under include/weft, text) of the headers that match."""
        paths = sorted({p for pattern in patterns for p in glob.glob(os.path.join(self.base, pattern), recursive=True)})
        return [(os.path.relpath(p, self.base), open(p, encoding="utf-8").read()) for p in paths]

    def text(self, path):
        with open(os.path.join(self.base, path), encoding="utf-8") as file:
            return file.read()


def types_of(text):
    """(name, body) of the structs and classes that begin a line. A body ends where the next type does begin."""
    starts = list(re.finditer(r"^(?:struct|class)(?: alignas\([^)]*\))? (\w+)[^;{]*\{", text, re.M))
    for start, following in zip(starts, starts[1:] + [None]):
        yield start.group(1), text[start.end() - 1:following.start() if following else len(text)]


def link(name, path):
    return f"[`{name}`](include/weft/{path})"


def links_of_types(tree, patterns, wanted):
    """Links to the types whose body has what is wanted; a type that has aliases is named by them."""
    out = []
    for path, text in tree.headers(*patterns):
        for name, body in types_of(text):
            if wanted(body):
                aliases = re.findall(rf"^using (\w+) = {name}<", text, re.M)
                out += [link(alias, path) for alias in aliases or [name]]
    return out


def links_of_matches(tree, path, pattern):
    return [link(name, path) for name in re.findall(pattern, tree.text(path), re.M)]


def has_name(body):
    return re.search(NAME, body) is not None


def token_formats(tree):
    path = "data/token_file.hpp"
    enumeration = re.search(r"enum class TokenFormat[^{]*\{(.*?)\};", tree.text(path), re.S).group(1)
    return [link(f"TokenFormat::{name}", path) for name in re.findall(r"^\s*(\w+),", enumeration, re.M)]


def rows(tree):
    """(what, cells). A row without cells tells that the headers are written in another way than this file reads: see check_documents.py."""
    exchanged = re.findall(r'return "(\w+)";', re.search(r"name_of\(ElementType.*?\n\}", tree.text("dtype/element_type.hpp"), re.S).group())
    return [
        ("layers", links_of_types(tree, ["layer/*.hpp"], lambda body: has_name(body) and re.search(r" LayerFacts facts\(", body))),
        ("put together by", links_of_types(tree, ["graph/nodes.hpp"], lambda body: True)),
        ("blocks and models", links_of_matches(tree, "graph/attention_block.hpp", r"^using (\w+) =")
         + links_of_matches(tree, "graph/models.hpp", r"^struct (\w+)Options")),
        ("losses", links_of_types(tree, ["layer/loss.hpp"], has_name)),
        ("optimizers", links_of_types(tree, ["optim/*.hpp"], lambda body: has_name(body) and "num_states" in body)),
        ("rate schedules", links_of_types(tree, ["optim/*.hpp"], lambda body: re.search(r"double factor_at\(Index", body))),
        ("parallel strategies", links_of_types(tree, ["strategy/*.hpp"], lambda body: has_name(body) or "auto axes() const" in body)),
        ("communicators", links_of_types(tree, ["comm/*/*.hpp"], lambda body: "using communicator_tag" in body)),
        ("executors", links_of_types(tree, ["exec/*/*.hpp"], has_name)),
        ("matrix products", links_of_types(tree, ["kernel/**/*.hpp"], lambda body: has_name(body) and re.search(r"static void gemm\(", body))),
        ("vector registers", links_of_types(tree, ["simd/isa.hpp"], lambda body: "register_bytes" in body)),
        ("data sources", links_of_types(tree, ["data/**/*.hpp"],
                                        lambda body: re.search(r"Leading leading\(Index", body) and "targets_per_item() const" in body)),
        ("data files", token_formats(tree) + links_of_matches(tree, "data/text.hpp", r"^class (\w+Vocabulary)")
         + links_of_matches(tree, "data/idx.hpp", r"^inline IdxArray (\w+)\(")
         + [link("gzip::" + name, path) for path, text in tree.headers("data/gzip/*.hpp") for name in re.findall(r"^inline \w+ (read_\w+)\(", text, re.M)]),
        ("checkpoint files", links_of_types(tree, ["checkpoint/*.hpp"], lambda body: re.search(r"\n  explicit \w+File\(const std::string& path\)", body))),
        ("names in checkpoints", links_of_matches(tree, "checkpoint/layouts.hpp", r"^inline Layout (\w+)\(\)")),
        ("element types of models", links_of_types(tree, ["plan/settings.hpp"], lambda body: "static constexpr ElementType type" in body)),
        ("element types of calls", [f"`{name}`" for name in exchanged if name != "none"]),
    ]


def table(root):
    lines = ["| what | which |", "| --- | --- |"]
    lines += [f"| {what} | {' '.join(cells)} |" for what, cells in rows(Tree(root))]
    return "\n".join(lines)


def between_marks(readme):
    """(first, last) of what stands between the marks, without their line ends."""
    first, last = readme.index(BEGIN) + len(BEGIN) + 1, readme.index(END) - 1
    return first, last


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if not arguments.write:
        print(table(arguments.root))
        return 0
    path = os.path.join(arguments.root, "README.md")
    with open(path, encoding="utf-8") as file:
        readme = file.read()
    first, last = between_marks(readme)
    with open(path, "w", encoding="utf-8") as file:
        file.write(readme[:first] + table(arguments.root) + readme[last:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
