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


def arguments():
    parser = argparse.ArgumentParser(prog="./dev oracle", description=__doc__)
    parser.add_argument("--only", choices=("onnx", "programs"), help="one of the two campaigns")
    parser.add_argument("--count", type=int, default=5000, help="generated programs (default: 5000)")
    parser.add_argument("--seed", type=int, default=1, help="of the generated programs (default: 1)")
    parser.add_argument("--filter", default="", metavar="TEXT", help="node tests with TEXT in their names")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes at once (default: one a core)"
    )
    parser.add_argument("--log", metavar="FILE", help="writes there what is printed, too")
    parser.add_argument("--bin", default="build/release/bin", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count < 1 or options.jobs < 1 or options.seed < 0:
        parser.error("--count and --jobs are at least 1, --seed is not negative")
    return options


def main():
    options, log, began = arguments(), campaign.Log(), time.monotonic()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True
    ).stdout.strip()
    log.say(
        f"fuse {commit}, torch {torch.__version__}, onnx {onnx.__version__}, numpy {numpy.__version__}, Python {platform.python_version()}"
    )
    passed = failed = 0
    if options.only != "programs":
        log.say("\n== ONNX node tests")
        good, bad = onnx_nodes.run(log, os.path.join(options.bin, "fusec"), options.filter, options.jobs)
        passed, failed = passed + good, failed + bad
    if options.only != "onnx":
        log.say(f"\n== generated programs: seed {options.seed}, 0 to {options.count - 1}")
        good, bad = programs.run(
            log, os.path.join(options.bin, "fuse_fuzz"), options.seed, options.count, options.jobs
        )
        log.say(f"{good} programs passed, {bad} failed")
        passed, failed = passed + good, failed + bad
    log.say(f"\n{time.monotonic() - began:.0f} s, {options.jobs} processes at once")
    log.say(f"{passed} passed, {failed} failed")
    if options.log:
        log.write(options.log)
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
