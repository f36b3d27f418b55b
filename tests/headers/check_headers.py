#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every header alone and twice in one file, then links all of their objects twice.

  check_headers.py ROOT --compiler PATH --kind gcc|clang|nvcc [--include DIR …] [--define NAME …] [--absent PATH …] [--jobs N] [HEADER …]

gcc, clang: each header is a translation unit that includes it twice, for this machine's processor, with warnings as errors; the objects are
linked, each given twice, so that a definition that is not inline shows. A last unit includes all headers without processor flags.
nvcc: all .hpp in one unit; each .cuh alone and twice. --absent: a folder or file under include/weft whose library is not there.
HEADERs, given relative to include/weft, replace the whole tree.
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
HOST = {"gcc": ["-std=c++20", "-O0", *WARNINGS], "clang": ["-std=c++20", "-O0", *WARNINGS]}
# Line directives and attributes of nvcc's own output make -Wpedantic speak about what nobody wrote.
NVCC = ["-std=c++20", "-x", "cu", "--Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Wshadow"]
NATIVE = ["-march=native"]


def find_headers(base, absent):
    for directory, _, files in os.walk(base):
        for file in files:
            path = os.path.relpath(os.path.join(directory, file), base)
            if file.endswith((".hpp", ".cuh")) and not any(path == a or path.startswith(a + "/") for a in absent):
                yield path


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return result.returncode == 0, result.stdout


class Checker:
    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.failed = arguments, folder, []
        launcher = [shutil.which("ccache")] if arguments.kind != "nvcc" and shutil.which("ccache") else []
        self.compiler = [*launcher, arguments.compiler]
        self.flags = [f"-I{os.path.join(arguments.root, 'include')}"]
        self.flags += [f for i in arguments.include for f in (["-isystem", i] if arguments.kind != "nvcc" else [f"-I{i}"])]
        self.flags += [f"-D{d}" for d in arguments.define]

    def unit(self, name, headers, flags):
        """Compiles a file that includes the headers; gives (what it was, object or None, output)."""
        source = os.path.join(self.folder, name + ".cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.writelines(f'#include "weft/{header}"\n' for header in headers)
        ok, output = run([*self.compiler, *flags, *self.flags, "-c", source, "-o", source + ".o"])
        return (source + ".o") if ok else None, output

    def report(self, title, output):
        self.failed.append(title)
        print(f"{title}: fails\n{output[:4000]}", flush=True)

    def each_alone(self, headers, flags):
        objects = []
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            units = {pool.submit(self.unit, h.replace("/", "+"), [h, h], flags): h for h in headers}
            for done in concurrent.futures.as_completed(units):
                built, output = done.result()
                if built:
                    objects.append(built)
                else:
                    self.report(f"weft/{units[done]} alone and twice", output)
        return sorted(objects)

    def all_in_one(self, headers, flags, title):
        built, output = self.unit("all_headers", headers, flags)
        if not built:
            self.report(title, output)

    def link_twice(self, objects):
        """A relocatable link finds double definitions and leaves names of other libraries open."""
        ok, output = run([self.arguments.compiler, "-r", "-nostdlib", "-o", os.path.join(self.folder, "linked.o"), *objects, *objects])
        if not ok:
            self.report("all headers' objects linked twice", output)

    def check(self, headers):
        kind = self.arguments.kind
        host = [h for h in headers if h.endswith(".hpp")]
        if kind == "nvcc":
            self.all_in_one(host, NVCC, "all .hpp in one file")
            device = [h for h in headers if h.endswith(".cuh")]
            if device:
                self.link_twice(self.each_alone(device, NVCC))
        else:
            self.link_twice(self.each_alone(host, HOST[kind] + NATIVE))
            self.all_in_one(host, HOST[kind], "all .hpp in one file, for any processor")
        print(f"{len(headers)} headers with {self.arguments.compiler}: {len(self.failed)} faults")
        return 1 if self.failed or not headers else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("headers", nargs="*")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--kind", required=True, choices=["gcc", "clang", "nvcc"])
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("--absent", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--work", help="folder for the units, made and removed; the same each time lets a compiler cache know them again")
    arguments = parser.parse_intermixed_args()
    headers = arguments.headers or sorted(find_headers(os.path.join(arguments.root, "include/weft"), arguments.absent))
    folder = arguments.work or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    try:
        return Checker(arguments, folder).check(headers)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
