#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fuse on the cpu device beside PyTorch, JAX and ONNX Runtime: ./dev bench --device cpu --peers

Each contender is a process of its own with the same number of threads. All are started first; then, case by case, they
are asked in turn, round by round, with a memcpy and a copy by streaming stores in every round. A second process of fuse
shows what two equal programs differ by. Rounds in which other processes used the CPU are taken again."""

import argparse
import os
import pathlib
import shlex
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH / "peers"))

import compare_report  # noqa: E402
import contenders  # noqa: E402
import harness  # noqa: E402
import rounds  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(
        prog="./dev bench --device cpu --peers", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
        epilog="exit status: 0, 1 (something failed, or computed something else), 2 (the command line)\n"
               "tags: memory, 1MB, 16MB, 256MB; model (one_layer, bert, decode, lstm); shapes; compile; smoke")
    parser.add_argument("--peers", nargs="?", const=",".join(contenders.USUAL_PEERS),
                        default=",".join(contenders.USUAL_PEERS), metavar="NAMES",
                        help="by comma, of %s [%%(default)s]" % ", ".join(contenders.PEERS))
    parser.add_argument("--filter", default="", metavar="TEXT",
                        help="parts of names and tags, by comma; all have to fit. Without: all cases but smoke")
    parser.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1),
                        help="of each contender [%(default)s]")
    parser.add_argument("--rounds", type=int, default=15, help="[%(default)s]")
    parser.add_argument("--minutes", type=float, default=26,
                        help="no case is begun after so many; those that are left are rows 'skipped' [%(default)s]")
    parser.add_argument("--json", metavar="FILE",
                        help="write the results there too (bench/schema.json), after each case")
    parser.add_argument("--list", action="store_true", help="print the names of the cases, and measure nothing")
    parser.add_argument("--fuse-bench", default="build/release/bin/fuse_bench", metavar="PROGRAM", help="[%(default)s]")
    options = parser.parse_args()
    if not 1 <= options.threads <= 1024:
        parser.error("--threads %d: there are from 1 to 1024" % options.threads)
    if options.rounds < 2:
        parser.error("--rounds %d: at least 2, since the spread is of several" % options.rounds)
    options.peers = options.peers.split(",") if options.peers else []
    for peer in options.peers:
        if peer not in contenders.PEERS:
            parser.error("there is no peer '%s'; there are %s" % (peer, ", ".join(contenders.PEERS)))
    options.cases = wanted(options.filter, parser)
    if not options.list and not os.access(options.fuse_bench, os.X_OK):
        parser.error("there is no program %s; ./dev build fuse_bench makes it" % options.fuse_bench)
    return options


def wanted(text, parser):
    parts = text.split(",") if text else []
    if not all(parts):
        parser.error("--filter '%s' has an empty part" % text)
    cases = list(harness.cpu_cases(BENCH / "cases.json"))
    names = {case["name"] for case in cases}

    def fits(case, part):
        return case["name"] == part if part in names else part in case["tags"] or part in case["name"]

    smoke = "smoke" in parts
    chosen = [case for case in cases if (("smoke" in case["tags"]) == smoke or case["name"] in parts) and
              all(fits(case, part) for part in parts)]
    if not chosen:
        parser.error("no case's name contains '%s', and none has that tag; --list prints all" % text)
    return chosen


class Progress:
    """One line on stderr that is written over, where a person looks at it."""

    def __init__(self, count):
        self.count, self.at, self.case, self.tty = count, 0, "", sys.stderr.isatty()
        self.start = time.monotonic()

    def begin(self, case):
        self.at, self.case = self.at + 1, case["name"]
        if not self.tty:
            print("%d of %d, %.0f s: %s" % (self.at, self.count, time.monotonic() - self.start, self.case),
                  file=sys.stderr, flush=True)

    def say(self, what):
        if self.tty:
            passed = time.monotonic() - self.start
            print("\r\x1b[K[%d of %d, %.0f s] %s, %s" % (self.at, self.count, passed, self.case, what), end="",
                  file=sys.stderr, flush=True)

    def clear(self):
        if self.tty:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def huge_pages():
    try:
        text = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
        return text[text.index("[") + 1:text.index("]")]
    except (OSError, ValueError):
        return "unknown"


def scratch_folder():
    """Inputs and outputs pass through files in memory, where there is such a folder."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="fuse-compare-", dir=memory)


def meet(running):
    """(who can run, why the others cannot)."""
    able, missing = [], {}
    for contender in running:
        try:
            if contender.meet():
                able.append(contender)
                continue
            missing[contender.name] = contender.why
        except contenders.Failed as failure:
            if contender.name.startswith("fuse"):
                raise
            missing[contender.name] = str(failure)
        contender.end()
    return able, missing


def measure(options, folder):
    # Kept, so that a second run compiles less. Where compiling is measured it is not used.
    cache = BENCH.parent / "build/peers/inductor"
    running = contenders.start(options.fuse_bench, options.peers, options.threads, cache, folder)
    try:
        able, missing = meet(running)
        device = running[0].about["device"]
        versions = {each.name: each.version for each in able if each.version}
        command = "./dev bench --device cpu " + " ".join(map(shlex.quote, sys.argv[1:]))
        setting = {"command": command, "threads": options.threads, "rounds": options.rounds,
                   "versions": versions, "huge_pages": huge_pages()}
        out = compare_report.JsonFile(options.json, device, setting)
        print("%s, %s\n%d threads each, %d rounds, huge pages: %s, load: %s\n%s" % (
            harness.cpu_name(), device, options.threads, options.rounds, setting["huge_pages"], out.load_before,
            ", ".join("%s %s" % pair for pair in versions.items())))
        for name, why in missing.items():
            print("missing: %s: %s" % (name, why))
        table, progress = compare_report.Table(options.peers, options.threads), Progress(len(options.cases))
        work = rounds.Harness(able, missing, folder, options.rounds, progress.say)
        table.heading()
        for case in options.cases:
            late = time.monotonic() - progress.start > 60 * options.minutes
            progress.begin(case)
            result = rounds.skipped(case, able, "no time was left; see --minutes") if late else work.case(case)
            progress.clear()
            table.add(result)
            out.add(result)
        table.footer()
        print("load before: %s, after: %s; %.0f s" % (out.load_before, harness.Results.load(),
                                                      time.monotonic() - progress.start))
        return 1 if any(row["status"] in ("failed", "wrong") for row in out.cases) else 0
    finally:
        for contender in running:
            contender.end()


def main():
    options = arguments()
    if options.list:
        print("\n".join(case["name"] for case in options.cases))
        return 0
    with scratch_folder() as folder:
        try:
            return measure(options, folder)
        except (contenders.Ended, contenders.Failed) as error:
            print("error: %s" % error, file=sys.stderr)
            for log in sorted(pathlib.Path(folder).glob("*.log")):
                text = log.read_text(errors="replace")[-2000:]
                if text and log.stem in str(error):
                    print("%s:\n%s" % (log.stem, text), file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
