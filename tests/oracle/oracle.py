#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fuse against PyTorch and the node tests of ONNX; see README.md beside this file. Run it by ./dev oracle."""

import argparse
import os
import platform
import subprocess
import sys
import time

import numpy
import onnx
import torch

import campaign
import onnx_nodes
import programs
import text


def arguments():
    parser = argparse.ArgumentParser(prog="./dev oracle", description=__doc__)
    parser.add_argument("--only", choices=("onnx", "programs", "text"), help="one of the campaigns")
    parser.add_argument("--count", type=int, default=5000, help="generated programs (default: 5000)")
    parser.add_argument("--seed", type=int, default=1, help="of the generated programs (default: 1)")
    parser.add_argument("--filter", default="", metavar="TEXT", help="node tests with TEXT in their names")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes at once (default: one a core)"
    )
    parser.add_argument(
        "--logs", metavar="DIR", help="writes what is printed to DIR/onnx.log and programs.log too"
    )
    parser.add_argument("--bin", default="build/release/bin", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count < 1 or options.jobs < 1 or options.seed < 0:
        parser.error("--count and --jobs are at least 1, --seed is not negative")
    return options


def header():
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    packages = ", ".join(f"{package.__name__} {package.__version__}" for package in (torch, onnx, numpy))
    return f"fuse {commit}, {packages}, Python {platform.python_version()}"


def main():
    options, passed, failed = arguments(), 0, 0
    for name, module in (("onnx", onnx_nodes), ("programs", programs), ("text", text)):
        if options.only in (None, name):
            log, began = campaign.Log(), time.monotonic()
            log.say(header())
            good, bad = module.run(log, options)
            seconds = time.monotonic() - began
            log.say(
                f"{name}: {good} passed, {bad} failed, {seconds:.0f} s, {options.jobs} processes at once\n"
            )
            if options.logs:
                log.write(os.path.join(options.logs, name + ".log"))
            passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
