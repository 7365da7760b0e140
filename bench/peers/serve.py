#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A peer as a contender of bench/compare: answers the requests of bench/serve/serve.hpp, one line of JSON each.

    serve.py --peer torch.compile --threads 2

A peer is a class with `load(case, tensors)`, which returns the ways in which the peer can run the case: a function
that runs once and waits, and a function that returns the outputs by name. The fastest way is measured."""

import argparse
import importlib
import json
import os
import sys
import time

MODULES = {"torch.eager": "cpu_torch", "torch.compile": "cpu_torch", "jax.jit": "cpu_jax",
           "onnxruntime": "cpu_onnx", "numpy": "cpu_numpy"}


class Unsupported(Exception):
    """What the peer has no kernel for."""


def bits_of(entry):
    """The values of an input as numpy has them; bf16 as its 16 bits, which the peer takes as its own type."""
    import numpy
    dtype = {"f32": numpy.float32, "bf16": numpy.uint16, "i64": numpy.int64}[entry["dtype"]]
    return numpy.fromfile(entry["file"], dtype).reshape(entry["shape"])


class Server:
    def __init__(self, name, threads):
        self.name, self.threads = name, threads
        self.peer, self.missing, self.way = None, "", None
        try:
            self.peer = importlib.import_module(MODULES[name]).Peer(name, threads)
        except ImportError as error:
            self.missing = str(error)

    def answer(self, request):
        return getattr(self, "do_" + request["do"])(request)

    def do_about(self, _):
        if self.missing:
            return {"missing": self.missing}
        return {"name": self.name, "version": self.peer.version, "threads": self.threads}

    def do_load(self, request):
        self.way = None
        tensors = {entry["name"]: self.peer.tensor(bits_of(entry), entry["dtype"]) for entry in request["inputs"]}
        start = time.perf_counter()
        ways = self.peer.load(request["case"], tensors)
        run, outputs, how = ways[0]
        run()
        start_s = time.perf_counter() - start
        listed = []
        for name, (bits, dtype) in outputs().items():
            path = "%s.%s.bin" % (request["out"], name)
            bits.tofile(path)
            listed.append({"name": name, "dtype": dtype, "shape": list(bits.shape), "file": path})
        if len(ways) > 1:
            run, _, how = min(ways, key=lambda way: shortest(way[0]))
        self.way = run
        return {"start_s": start_s, "outputs": listed, "how": how}

    def do_run(self, request):
        run = self.way
        for _ in range(request.get("warm", 0)):
            run()
        cpu, start = time.process_time(), time.perf_counter()
        for _ in range(request["runs"]):
            run()
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}

    def do_shapes(self, request):
        """A graph of this length, then the next: cold is the first run of each, steady the second."""
        tensors = {entry["name"]: self.peer.tensor(bits_of(entry), entry["dtype"]) for entry in request["inputs"]}
        cold, steady = self.peer.shapes(request["case"], tensors, request["lengths"])
        return {"cold_s": cold, "steady_s": steady}

    def do_drop(self, _):
        self.way = None
        if self.peer:
            self.peer.drop()
        return {}


def shortest(run):
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main():
    parser = argparse.ArgumentParser(prog="serve.py")
    parser.add_argument("--peer", choices=sorted(MODULES), required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    server = Server(options.peer, options.threads)
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Unsupported as why:
            answer = {"unsupported": str(why)}
        except Exception as error:  # a failure is an answer, and the next case goes on
            answer = {"error": "%s: %s" % (type(error).__name__, str(error)[:400])}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    sys.modules["serve"] = sys.modules["__main__"]
    main()
