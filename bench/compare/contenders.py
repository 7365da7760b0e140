# SPDX-License-Identifier: Apache-2.0
"""Processes that are asked in turn over pipes, one line of JSON for each request and each answer."""

import json
import os
import pathlib
import subprocess
import sys
import time

BENCH = pathlib.Path(__file__).resolve().parent.parent
PEERS = ("torch.eager", "torch.compile", "jax.jit", "onnxruntime", "numpy")
USUAL_PEERS = PEERS[:4]
MOST_SETTLING_S = 0.1


class Ended(Exception):
    """A contender's process is gone."""


class Failed(Exception):
    """A contender's answer is an error; `status` is failed or skipped."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


def environment(threads, cache):
    """One number of threads for all. Variables that change what OpenBLAS runs would change one contender alone."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    one = str(threads)
    kept.update(OMP_NUM_THREADS=one, MKL_NUM_THREADS=one, NPROC=one, PYTHONDONTWRITEBYTECODE="1",
                TORCHINDUCTOR_CACHE_DIR=str(cache), TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="")
    kept["PYTHONPATH"] = str(BENCH / "peers")
    return kept


class Contender:
    def __init__(self, name, command, threads, cache, log):
        self.name, self.command, self.log = name, command, log
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                        env=environment(threads, cache))
        self.version, self.why, self.about = "", "", {}

    def ask(self, what, **request):
        try:
            self.process.stdin.write(json.dumps(dict(request, do=what)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.wait()
            raise Ended("%s ended with status %s at '%s'; its last words are in %s" % (
                self.name, self.process.returncode, what, self.log.name))
        answer = json.loads(line)
        if "error" in answer:
            raise Failed("failed", answer["error"])
        if "unsupported" in answer:
            raise Failed("skipped", answer["unsupported"])
        return answer

    def meet(self):
        """True where it can run; else `why` says what is missing."""
        self.about = self.ask("about")
        self.why = self.about.get("missing", "")
        self.version = self.about.get("version", "")
        return not self.why

    def settle(self):
        """Waits until no thread of it runs: workers of thread pools spin for milliseconds before they sleep."""
        end = time.monotonic() + MOST_SETTLING_S
        while self.runs() and time.monotonic() < end:
            time.sleep(0.0005)

    def runs(self):
        for task in pathlib.Path("/proc/%d/task" % self.process.pid).glob("*/stat"):
            try:
                if task.read_text().rsplit(")", 1)[1].split()[0] == "R":
                    return True
            except OSError:  # the thread has ended
                pass
        return False

    def ticks(self):
        """CPU time used so far, in clock ticks."""
        try:
            stat = pathlib.Path("/proc/%d/stat" % self.process.pid).read_text()
        except OSError:
            return 0
        return sum(map(int, stat.rsplit(")", 1)[1].split()[11:15]))  # its own and that of children it waited for

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def start(fuse_bench, peers, threads, cache, logs):
    """All processes are started before the first is asked: fuse, fuse again, and the peers."""
    def log(name):
        return open(pathlib.Path(logs) / (name + ".log"), "w", encoding="utf-8")

    fuse = [fuse_bench, "--serve", str(threads)]
    running = [Contender(name, fuse, threads, cache, log(name)) for name in ("fuse", "fuse.again")]
    for peer in peers:
        command = [sys.executable, str(BENCH / "peers" / "serve.py"), "--peer", peer, "--threads", str(threads)]
        running.append(Contender(peer, command, threads, cache, log(peer)))
    return running


class Bystanders:
    """What processes other than the contenders used of the CPU, from /proc/stat, stolen time included."""

    def __init__(self, contenders):
        self.contenders, self.cores = contenders, os.cpu_count() or 1
        self.start()

    def start(self):
        self.busy, self.total, self.ours = self.now()

    def now(self):
        fields = list(map(int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
        user, nice, system, idle, wait, irq, soft, steal = fields
        mine = sum(os.times()[:2]) * os.sysconf("SC_CLK_TCK")
        return (user + nice + system + irq + soft + steal, sum(fields),
                mine + sum(each.ticks() for each in self.contenders))

    def share(self):
        """Of the CPU time that there was since start(), the part that others used."""
        busy, total, ours = self.now()
        spent = total - self.total
        others = (busy - self.busy) - (ours - self.ours) - 2  # two ticks are the error of the counters
        return max(0.0, others / spent) if spent > 0 else 0.0
