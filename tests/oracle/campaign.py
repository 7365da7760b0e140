# SPDX-License-Identifier: Apache-2.0
"""What both campaigns share: worker processes, a progress line, and the log."""

import concurrent.futures
import multiprocessing
import signal
import sys
import time


def each(function, jobs, work, name):
    """Yields function(*arguments) for each of `work`, as they end; tells on stderr how far it is."""
    began, shown, terminal = time.monotonic(), 0.0, sys.stderr.isatty()
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, context, ignore_interrupt) as pool:
        futures = [pool.submit(function, *arguments) for arguments in work]
        try:
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                yield future.result()
                now = time.monotonic() - began
                if now - shown < (0.5 if terminal else 10) and done < len(futures):
                    continue
                shown, left = now, now / done * (len(futures) - done)
                line = f"{name}: {done} of {len(futures)}, {now:.0f} s, {left:.0f} s left"
                print(
                    f"\r{line:78}" if terminal else line,
                    end="" if terminal else "\n",
                    file=sys.stderr,
                    flush=True,
                )
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    if terminal:
        print(f"\r{'':78}\r", end="", file=sys.stderr)


def ignore_interrupt():
    """A worker leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Log:
    """Prints, and keeps what it printed for the file."""

    def __init__(self):
        self.lines = []

    def say(self, line=""):
        print(line, flush=True)
        self.lines.append(line)

    def table(self, title, rows):
        """rows: (count, text), the largest first."""
        self.say(title)
        for count, text in sorted(rows, key=lambda row: (-row[0], row[1])):
            self.say(f"  {count:6} {text}")

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines) + "\n")
