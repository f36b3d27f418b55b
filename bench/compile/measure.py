#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what compiling costs, against the budgets: budget, measured, ratio, and peak memory.

  measure.py ROOT [--compiler g++] [--repeat 3] [--only NAME …] [--bound FACTOR] [--include DIR …]

With --bound the exit status says whether every measured figure stays below FACTOR times its budget: a test's generous bound, since
machines differ. A row whose file does not exist yet is left out and said so.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

MIB = 1024 * 1024
PLAN = "weft::Plan<weft::Gpt<weft::GptOptions{{.vocabulary = 256, .sequence = 64, .width = 128, .heads = 4, .layers = {layers}}}>, " \
       "weft::mesh(weft::DataParallel{{.ranks = {ranks}}}), weft::Batch{{.global = {batch}, .micro = 2, .sequence = 64}}>"


def plans(*settings):
    """A file with a plan for each (layers, ranks)."""
    lines = ["#include <weft/plan.hpp>"]
    for i, (layers, ranks) in enumerate(settings):
        lines.append(f"using Plan{i} = {PLAN.format(layers=layers, ranks=ranks, batch=2 * ranks)};")
        lines.append(f'static_assert(Plan{i}::bytes_per_rank() > 0, "a plan");')
    return "\n".join(lines) + "\n"


# name: (text of the file or path of an example, flags, budget in seconds, budget in MiB or None, header that it needs)
ROWS = {
    "weft.hpp": ("#include <weft/weft.hpp>\n", ["-fsyntax-only"], 2.0, None, "weft.hpp"),
    "plan.hpp": ("#include <weft/plan.hpp>\n", ["-fsyntax-only"], 2.0, None, "plan.hpp"),
    "plan_of_96_layers": (plans((96, 2)), ["-fsyntax-only"], 10.0, None, "plan.hpp"),
    "train_gpt": ("examples/train_gpt.cpp", ["-O3", "-march=native", "-c", "-o", os.devnull], 20.0, 1500, "weft.hpp"),
    "train_images": ("examples/train_images.cpp", ["-O3", "-march=native", "-c", "-o", os.devnull], 20.0, 1500, "weft.hpp"),
    "custom_layer": ("examples/custom_layer.cpp", ["-O3", "-march=native", "-c", "-o", os.devnull], 20.0, 1500, "weft.hpp"),
    "hello": ("examples/hello.cpp", ["-O3", "-march=native", "-c", "-o", os.devnull], 20.0, 1500, "weft.hpp"),
}
# Differences: (name, with, without, how many more, budget in seconds each)
FURTHER = ("each_further_strategy", plans(*((4, ranks) for ranks in (2, 3, 4, 5, 6))), plans((4, 2)), 4, 1.0)
DEPTH = ("plan_of_96_layers_over_4", plans((96, 2)), plans((4, 2)), 1, 0.5)


def compile_once(command):
    """Seconds of processor time and peak bytes of one compilation, the compiler's own processes included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.communicate()[0]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        raise RuntimeError(output[-3000:])
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime), after.ru_maxrss * 1024


def measure(arguments, source, flags, repeat):
    """The least of some runs, each in a process of its own so that peak memory is that run's."""
    best = (float("inf"), 0)
    for _ in range(repeat):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                command = [arguments.compiler, "-std=c++20", f"-I{arguments.root}/include", *[f"-isystem{i}" for i in arguments.include], *flags, source]
                text = "%f %d" % compile_once(command)
            except RuntimeError as error:
                text = "error " + str(error)
            os.write(writer, text.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        if text.startswith("error"):
            raise RuntimeError(text[6:])
        seconds, peak = text.split()
        best = min(best, (float(seconds), int(peak)))
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", action="append")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--bound", type=float)
    arguments = parser.parse_args()
    wanted = lambda name: not arguments.only or name in arguments.only
    exceeded = []
    print(f"{'what':<26}{'budget s':>10}{'measured s':>12}{'ratio':>8}{'budget MiB':>12}{'peak MiB':>10}{'ratio':>8}", flush=True)

    def row(name, budget, seconds, budget_mib=None, peak=None):
        memory = f"{budget_mib or '':>12}{peak / MIB:>10.0f}" if peak else ""
        memory += f"{peak / MIB / budget_mib:>8.2f}" if peak and budget_mib else ""
        print(f"{name:<26}{budget:>10.1f}{seconds:>12.2f}{seconds / budget:>8.2f}{memory}", flush=True)
        if arguments.bound and (seconds > arguments.bound * budget or (budget_mib and peak / MIB > arguments.bound * budget_mib)):
            exceeded.append(name)

    with tempfile.TemporaryDirectory() as folder:

        def stored(name, text):
            path = os.path.join(folder, name + ".cpp")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return path

        for name, (what, flags, budget, budget_mib, header) in ROWS.items():
            if not wanted(name):
                continue
            source = os.path.join(arguments.root, what) if what.endswith(".cpp") else stored(name, what)
            if not os.path.exists(source) or not os.path.exists(os.path.join(arguments.root, "include/weft", header)):
                print(f"{name:<26} left out: not there")
                continue
            row(name, budget, *[(s, budget_mib, p) for s, p in [measure(arguments, source, flags, arguments.repeat)]][0])
        for name, more, fewer, count, budget in (FURTHER, DEPTH):
            if wanted(name):
                with_more, _ = measure(arguments, stored(name + "_more", more), ["-fsyntax-only"], arguments.repeat)
                with_fewer, _ = measure(arguments, stored(name + "_fewer", fewer), ["-fsyntax-only"], arguments.repeat)
                row(name, budget, max(0.0, with_more - with_fewer) / count)
    for name in exceeded:
        print(f"{name}: more than {arguments.bound} times its budget")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
