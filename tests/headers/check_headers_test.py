#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faulty headers that check_headers.py must find: check_headers_test.py COMPILER gcc|clang|nvcc"""
import os
import subprocess
import sys
import tempfile
import unittest

compiler, kind = sys.argv[1:3]
GOOD = "#pragma once\n#include <vector>\ninline int good(const std::vector<int>& v) { return v.empty() ? 0 : v[0]; }\n"


def check(headers):
    with tempfile.TemporaryDirectory() as root:
        for name, text in headers.items():
            os.makedirs(os.path.join(root, "include/weft/base"), exist_ok=True)
            with open(os.path.join(root, "include/weft/base", name), "w", encoding="utf-8") as file:
                file.write(text)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_headers.py")
        result = subprocess.run([sys.executable, script, root, "--compiler", compiler, "--kind", kind, "--absent", "base/absent.hpp"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return result.returncode, result.stdout


class CheckHeaders(unittest.TestCase):
    def fails(self, text, expected):
        status, output = check({"good.hpp": GOOD, "bad.hpp": text})
        self.assertEqual(status, 1, output)
        self.assertIn(expected, output)

    def test_good(self):
        status, output = check({"good.hpp": GOOD, "other.hpp": '#pragma once\n#include "weft/base/good.hpp"\n', "absent.hpp": "#include <no_such_library.h>\n"})
        self.assertEqual(status, 0, output)

    def test_nothing_to_check(self):
        self.assertEqual(check({"absent.hpp": ""})[0], 1)

    def test_not_for_twice(self):
        self.fails("struct Twice {};\n" * (2 if kind == "nvcc" else 1), "Twice")

    def test_warning(self):
        self.fails("#pragma once\ninline int f(int x) { int unused; return x; }\n", "unused")

    @unittest.skipIf(kind == "nvcc", "compiles all headers in one file")
    def test_needs_another_header_first(self):
        self.fails("#pragma once\ninline std::vector<int> f() { return {}; }\n", "bad.hpp alone and twice")

    @unittest.skipIf(kind == "nvcc", "links no headers for the host")
    def test_not_inline(self):
        self.fails("#pragma once\nint defined_twice() { return 1; }\n", "linked twice")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
