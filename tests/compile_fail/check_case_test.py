#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases that fail for a wrong reason, with a real compiler: check_case.py must complain about each.

  check_case_test.py COMPILER gcc|clang|nvcc
"""
import os
import sys
import tempfile
import unittest

import check_case

compiler, kind = sys.argv[1:3]
RULE = '''template <int> inline constexpr bool acceptable = false;
template <int N> constexpr int check() { static_assert(acceptable<N>, "weft[test.rule]: the rule; what to change"); return N; }
'''
RIGHT = "inline constexpr int x = check<3>();"
CONTROL = "inline constexpr int x = 3;"


def complaints(failing, control=CONTROL, head="", tail=""):
    return complaints_of(f'// id: test.rule\n{head}#include "rule.hpp"\n#ifdef WEFT_CONTROL\n{control}\n#else\n{failing}\n#endif\n{tail}int main() {{ return 0; }}\n')


def complaints_of(text):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "rule.hpp"), "w", encoding="utf-8") as file:
            file.write("#pragma once\n" + RULE)
        path = os.path.join(folder, "case.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        variants = [check_case.compile_case(kind, compiler, [folder], defines, path) for defines in (["WEFT_CONTROL"], [])]
        return check_case.judge(kind, path, text, *variants)


class CheckCase(unittest.TestCase):
    def complains(self, expected, *arguments, **named):
        found = complaints(*arguments, **named)
        self.assertTrue(any(expected in c for c in found), found)

    def test_right_case(self):
        self.assertEqual(complaints(RIGHT), [])

    def test_user_line_after_the_branch(self):
        self.assertEqual(complaints("inline constexpr int n = 4; template <int> struct Use { static constexpr int x = check<n>(); };",
                                    "template <int> struct Use { static constexpr int x = 1; };", tail="static_assert(Use<0>::x >= 0, \"a text\");\n"), [])

    def test_omission(self):
        code = "template <class T> inline constexpr int of() { if constexpr (requires { T::n; }) return T::n; else return check<int(sizeof(T))>(); }\n"
        case = code + "struct Mine {\n#ifdef WEFT_CONTROL\nstatic constexpr int n = 3;\n#endif\n};\ninline int use() { return of<Mine>(); }\n"
        self.assertEqual(complaints_of('// id: test.rule\n#include "rule.hpp"\n' + case + "int main() { return 0; }\n"), [])

    def test_misspelt_include(self):
        self.complains("the first error does not name", '#include "rul.hpp"')
        self.complains("the control variant does not compile", '#include "rul.hpp"', control='#include "rul.hpp"')

    def test_success(self):
        self.complains("the failing variant compiles", "inline constexpr int x = 4;")

    def test_success_with_warning_that_shows_the_id(self):
        self.complains("the failing variant compiles", '#warning "error: weft[test.rule]: the rule; what to change"')

    def test_other_error_whose_echoed_line_holds_the_id(self):
        self.complains("the first error does not name", 'int x = undeclared_name; const char* y = "error: weft[test.rule]";')

    def test_other_error_first(self):
        self.complains("the first error does not name", f"int y = undeclared_name;\n{RIGHT}")

    def test_two_errors(self):
        self.complains("errors; at most 1", f"{RIGHT}\nint y = undeclared_name;")

    def test_two_errors_that_are_allowed(self):
        self.assertEqual(complaints(f"{RIGHT}\nint y = undeclared_name;", head="// errors: 2\n// lines: 40\n"), [])

    def test_other_id(self):
        self.complains("the first error does not name", 'static_assert(sizeof(int) == 1, "weft[test.other]: x");')

    def test_too_many_lines(self):
        chain = "".join(f"template <int N> constexpr int f{i}() {{ return f{i - 1}<N>(); }}\n" for i in range(1, 12))
        first = "template <int N> constexpr int f0() { return check<N>(); }\n"
        self.complains("lines; at most 16", first + chain + "inline constexpr int x = f11<3>();", tail="")

    def test_line_of_the_user_is_not_named(self):
        self.complains("no line of the user's", f"#line 1 \"elsewhere.hpp\"\n{RIGHT}")

    def test_control_with_warning(self):
        self.complains("not without a word", RIGHT, control="#warning \"look here\"")

    def test_control_that_fails_too(self):
        self.complains("the control variant does not compile", RIGHT, control=RIGHT)

    def test_case_without_its_parts(self):
        for text in ("#ifdef WEFT_CONTROL\n#else\n#endif\n", "// id: test.rule\nint x;\n"):
            with self.assertRaises(ValueError):
                check_case.read_case(text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
