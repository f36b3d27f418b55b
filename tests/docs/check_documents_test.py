#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries check_documents.py on small trees with one fault each."""
import os
import tempfile
import unittest

import check_documents as documents

MAP_TEXT = "# Map\n\n| folder | what | start |\n| --- | --- | --- |\n| `base` | basics | [a.hpp](base/a.hpp) |\n"
FILES = {
    "README.md": "# Title\n\n## A part\n",
    "include/weft/README.md": MAP_TEXT,
    "include/weft/base/a.hpp": '// see base/a.hpp\n  // [one]\n  int x;\n  // [one]\nError("base.rule", "the rule in words; change it");\n',
    "tests/run.sh": "",
}


class Documents(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        for path, text in FILES.items():
            self.put(path, text)

    def put(self, path, text):
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text)

    def faults(self, check, text):
        return [line for line, _ in check(self.root, "README.md", text)]

    def test_links(self):
        good = "[a](include/weft/README.md) [b](#a-part) [c](include/weft/README.md#map) [d](https://example.org/x)\n"
        self.assertEqual(self.faults(documents.check_links, FILES["README.md"] + good), [])
        self.assertEqual(self.faults(documents.check_links, "\n[a](nowhere.md)\n"), [2])
        self.assertEqual(self.faults(documents.check_links, "[a](include/weft/README.md#nothing)\n"), [1])
        self.assertEqual(self.faults(documents.check_links, "```cpp\n[a](nowhere.md)\n```\n"), [])

    def test_paths(self):
        good = "`tests/run.sh` `base/a.hpp` `weft/base/a.hpp` `tests/run.sh [more]` `tests/<folder>/x.hpp` `build/x.sh` `a.hpp` `1/2`\n"
        self.assertEqual(self.faults(documents.check_paths, good), [])
        self.assertEqual(self.faults(documents.check_paths, "\n`tests/walk.sh`\n"), [2])
        self.assertEqual(self.faults(documents.check_paths, "`tests/absent/`\n"), [1])
        self.assertEqual(self.faults(documents.check_paths, "```sh\ntests/run.sh\ntests/walk.sh --ranks 2\n```\n"), [3])

    def test_code(self):
        def block(mark, code):
            return f"{mark}```cpp\n{code}```\n"
        self.assertEqual(self.faults(documents.check_code, block("<!-- code: include/weft/base/a.hpp [one] -->\n", "int x;\n")), [])
        self.assertEqual(self.faults(documents.check_code, block("<!-- code: tests/run.sh -->\n", "")), [])
        self.assertEqual(self.faults(documents.check_code, block("<!-- code: include/weft/base/a.hpp [one] -->\n", "int y;\n")), [1])
        self.assertEqual(self.faults(documents.check_code, block("<!-- code: include/weft/base/a.hpp [two] -->\n", "int x;\n")), [1])
        self.assertEqual(self.faults(documents.check_code, block("<!-- code: nowhere.cpp -->\n", "int x;\n")), [1])
        self.assertEqual(self.faults(documents.check_code, "\n" + block("", "int x;\n")), [2])
        self.assertEqual(self.faults(documents.check_code, "```text\nint x;\n```\n"), [])

    def test_code_is_written(self):
        text = "a\n<!-- code: include/weft/base/a.hpp [one] -->\n```cpp\nint y;\n```\nb\n"
        self.assertEqual(documents.written(self.root, text), text.replace("int y;", "int x;"))

    def test_folders(self):
        self.assertEqual(documents.check_folders(self.root), [])
        self.put("include/weft/run/b.hpp", "")
        self.assertEqual([m for _, m in documents.check_folders(self.root)], ["folder run has headers and no row in the table of folders"])
        self.put("include/weft/README.md", MAP_TEXT + "| `run` | x | y |\n| `run` | x | y |\n| `gone` | x | y |\n")
        self.assertEqual([m for _, m in documents.check_folders(self.root)], ["folder gone of the table has no headers", "folder run has two rows"])
        self.put("include/weft/README.md", "# Map\n")
        self.assertEqual(len(documents.check_folders(self.root)), 1)

    def test_messages(self):
        headers = FILES["include/weft/base/a.hpp"]
        for good in ("weft[base.rule]\n", "`weft[base.rule]: the rule in words; change it`\n", "weft[area.rule]: anything\n"):
            self.assertEqual(list(documents.check_messages(headers, good)), [])
        self.assertEqual(len(list(documents.check_messages(headers, "weft[base.other]\n"))), 1)
        self.assertEqual(len(list(documents.check_messages(headers, "weft[base.rule]: other words\n"))), 1)

    def test_comments(self):
        self.assertEqual(list(documents.check_comments(self.root)), [])
        self.put("include/weft/base/c.hpp", "// see base/gone.hpp, kernel/<op>.hpp\n")
        self.assertEqual(list(documents.check_comments(self.root)), [("include/weft/base/c.hpp", 1, "base/gone.hpp does not exist")])

    def test_supported(self):
        self.assertEqual(len(documents.check_supported(self.root)), 1)  # no marks


if __name__ == "__main__":
    unittest.main()
