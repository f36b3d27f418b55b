#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults put into a small tree, each of which check_tree.py must find, and nothing else."""
import itertools
import os
import tempfile
import unittest

import check_tree

GOOD = {
    "base/config.hpp": "",
    "shape/features.hpp": '#include "weft/base/config.hpp"\n',
    "plan/plan.hpp": '#include <vector>\n#include "weft/shape/features.hpp"\nstatic_assert(f<1, 2>(")"), "a text");\n',
    "kernel/gemm.hpp": '#include <sys/mman.h>\n#include "weft/base/config.hpp"\n',
    "kernel/blas/gemm.hpp": '#include <cblas.h>\n#include "weft/kernel/gemm.hpp"\n',
    "run/engine.hpp": '#include "weft/kernel/gemm.hpp"\n#include "weft/plan/plan.hpp"\n',
    "plan.hpp": '#include "weft/plan/plan.hpp"\n',
    "weft.hpp": '#include "weft/plan.hpp"\n#include "weft/run/engine.hpp"\n',
}
HEAD = check_tree.SPDX + "\n#pragma once\n"
RAW = "RAW"  # begins a text that gets no head


def faults_of(changes, documents=None):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**GOOD, **changes}.items():
            full = os.path.join(root, "include/weft", path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text[len(RAW):] if text.startswith(RAW) else HEAD + text)
        for path, text in (documents or {}).items():
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return check_tree.check(root, [("blas", "kernel/blas")])[0]


class CheckTree(unittest.TestCase):
    def one(self, path, text, expected, documents=None):
        faults = faults_of({path: text}, documents)
        self.assertEqual(len(faults), 1, faults)
        self.assertIn(expected, faults[0])
        self.assertTrue(faults[0].startswith(f"include/weft/{path}:"), faults[0])

    def test_good_tree_passes(self):
        self.assertEqual(faults_of({}), [])

    def test_comments_are_not_code(self):
        self.assertEqual(faults_of({"base/x.hpp": '// #include <regex>\n/*\n#include "weft/run/engine.hpp"\nstatic_assert(1)*/\n'}), [])

    def test_up_the_levels(self):
        self.one("shape/x.hpp", '#include "weft/plan/plan.hpp"\n', "describe level 1 (shape) includes weft/plan/plan.hpp")

    def test_across_the_halves(self):
        self.one("plan/x.hpp", '#include "weft/kernel/gemm.hpp"\n', "describe level 6 (plan) includes weft/kernel/gemm.hpp of execute")

    def test_across_folders_of_a_level(self):
        self.one("dtype/x.hpp", '#include "weft/shape/features.hpp"\n', "describe level 1 (dtype)")

    def test_facade_from_below(self):
        self.one("run/x.hpp", '#include "weft/weft.hpp"\n', "execute level 7 (run) includes weft/weft.hpp of execute facade")

    def test_describing_facade_executes(self):
        self.one("plan.hpp", '#include "weft/run/engine.hpp"\n', "describe facade (plan.hpp)")

    def test_unknown_folder(self):
        self.one("misc/x.hpp", "", "folder 'misc' is not in the table")

    def test_missing_header(self):
        self.one("base/x.hpp", '#include "weft/base/gone.hpp"\n', "does not exist")

    def test_short_include(self):
        self.one("base/x.hpp", '#include "config.hpp"\n', "in full")

    def test_core_includes_component(self):
        self.one("run/x.hpp", '#include "weft/kernel/blas/gemm.hpp"\n', "component blas")

    def test_core_includes_library(self):
        self.one("run/x.hpp", "#include <zlib.h>\n", "needs a library")

    def test_host_header_includes_device_header(self):
        faults = faults_of({"kernel/x.cuh": "", "kernel/x.hpp": '#include "weft/kernel/x.cuh"\n'})
        self.assertEqual(len(faults), 1, faults)
        self.assertIn("never needs nvcc", faults[0])

    def test_costly_header(self):
        for name in check_tree.FORBIDDEN:
            self.one("base/x.hpp", f"  #  include <{name}>\n", "too costly")

    def test_assert_without_text(self):
        self.one("base/x.hpp", 'static_assert(f<1, 2>,\n  "a");\nstatic_assert(f("x, y"),\n "b" "c");\nstatic_assert(name == "a");\n', "x.hpp:7: static_assert")
        self.one("base/x.hpp", "static_assert(f(1, 2));\n", "static_assert without a text")

    def test_long_header(self):
        self.one("base/x.hpp", "\n" * 599, "601 lines")
        self.assertEqual(faults_of({"base/x.hpp": "\n" * 598}), [])

    def test_first_line(self):
        self.one("base/x.hpp", RAW + "#pragma once\n", "the first line")
        self.one("base/x.hpp", RAW + check_tree.SPDX + "\n", "pragma once")

    def test_table_is_read_from_the_map(self):
        table = "<!-- levels:begin -->\n| half | level | folders |\n| --- | --- | --- |\n| describe | 0 | `base` |\n| execute | 0 | `kernel` `run` |\n| describe | 1 | `shape` `plan` |\n<!-- levels:end -->\n"
        faults = faults_of({"README.md": RAW + table})
        self.assertEqual(len(faults), 2, faults)  # plan and shape, kernel and run now share a level
        self.assertTrue(all("level 1 (plan)" in f or "level 0 (run)" in f for f in faults), faults)

    def test_dead_link(self):
        text = "[a](include/weft/weft.hpp) [b](gone.md#part) [c](https://example.org/x) [d](#here)\n```\n[e](no)\n```\n"
        faults = faults_of({}, {"GUIDE.md": text})
        self.assertEqual(faults, ["GUIDE.md:1: link to gone.md, which does not exist"])

    def test_checking_edges_checks_paths(self):
        """Who may include is a transitive relation, so that faultless edges make faultless paths."""
        table = {f: (h, n) for h, levels in check_tree.DEFAULT_TABLE.items() for n, folders in enumerate(levels) for f in folders}
        places = [(*where, folder) for folder, where in table.items()]
        places += [check_tree.place(facade, table) for facade in ("plan.hpp", "weft.hpp")]
        for a, b, c in itertools.product(places, repeat=3):
            if check_tree.may_include(a, b) and check_tree.may_include(b, c):
                self.assertTrue(check_tree.may_include(a, c), (a, b, c))


if __name__ == "__main__":
    unittest.main()
