# SPDX-License-Identifier: Apache-2.0
"""Generated programs: what PyTorch makes of them, and what fuse's emulated device answered, within fuse's own bounds.

`fuse_fuzz --answers` tells for each element of an output the least and the greatest value of a right answer, by error
analysis (docs/fuzz.md). The device has to be inside, which fuse_fuzz checks itself; so has PyTorch, which shares no code
with fuse. A wrong idea of an op, common to the device and to the reference, shows as PyTorch outside."""

import collections
import os
import subprocess
import threading

import torch

import campaign
import fuse_text
from torch_ops import OPS, Context
from torch_types import TYPES, from_bytes

BATCH = 32
SECONDS = 1800  # after which a batch counts as hung


class Failure(Exception):
    """One output, or a whole program, that is not as it should be."""


def evaluate(graph, dims, inputs):
    values = dict(inputs)
    for op in graph.ops:
        context = Context(op, dims, TYPES[op.type.dtype])
        result = OPS[op.name](context, *(values[operand] for operand in op.operands))
        if list(result.shape) != context.shape or result.dtype != context.dtype:
            raise Failure(f"the oracle makes {result.dtype}{list(result.shape)} of {op.result} {op.name}")
        values[op.result] = result
    return values


def same(a, b):
    """The same value; a NaN for a NaN, a zero of the same sign."""
    if not a.is_floating_point():
        return a == b
    return ((a == b) & (a.signbit() == b.signbit())) | (a.isnan() & b.isnan())


def outside(got, least, greatest):
    """Which elements are no right answer, and how many elements the bounds leave undecided."""
    exact = same(least, greatest)
    inside = (least <= got) & (got <= greatest)
    undecided = torch.zeros_like(exact)
    if got.is_floating_point():
        undecided = ~exact & least.isinf() & greatest.isinf()
    return ~torch.where(exact, same(least, got), inside | undecided), exact, undecided


def ancestors(graph, value):
    """Names of the ops that make a value."""
    wanted, names = {value}, set()
    for op in reversed(graph.ops):
        if op.result in wanted:
            wanted.update(op.operands)
            names.add(op.name)
    return names


def judge_output(graph, name, value, got, bounds, totals):
    expected, device = graph_type(graph, value), bounds[0]
    wrong, exact, undecided = outside(got, bounds[1], bounds[2])
    totals["elements"] += wrong.numel()
    totals["exact"] += int(exact.sum())
    totals["undecided"] += int(undecided.sum())
    if not wrong.any():
        return None
    at = int(wrong.reshape(-1).nonzero()[0])
    numbers = [t.reshape(-1)[at].item() for t in (got, device, bounds[1], bounds[2])]
    where = f"output {name!r} {expected.dtype}{list(got.shape)}: {int(wrong.sum())} elements; element {at}"
    return where + ": PyTorch has {!r}, the device {!r}, right is [{!r}, {!r}]".format(*numbers)


def graph_type(graph, value):
    if value in graph.inputs:
        return graph.inputs[value]
    return next(op.type for op in graph.ops if op.result == value)


class Program:
    """One program as fuse_fuzz tells it: a graph, then runs of inputs and outputs."""

    def __init__(self, index):
        self.index, self.graph, self.failures, self.broken = index, None, [], False
        self.good, self.bad = (
            collections.Counter(),
            collections.Counter(),
        )  # ops behind right and wrong outputs

    def hear(self, words, totals):
        kind, rest = words[0], words[1:]
        if kind in ("graph", "input", "output"):
            rest = [bytes.fromhex(word) for word in rest]
        if kind == "graph":
            self.graph = fuse_text.parse(rest[0].decode())
        elif kind == "run":
            self.dims = dict(zip(self.graph.dims, map(int, rest)))
            self.inputs, self.values, self.judged = {}, None, 0
        elif kind == "input":
            name, type = list(self.graph.inputs.items())[len(self.inputs)]
            self.inputs[name] = from_bytes(rest[0] if rest else b"", type.dtype, type.shape(self.dims))
        elif kind == "output":
            self.output(rest or [b"", b"", b""], totals)
        elif kind == "done" and rest[0] not in ("ok", "wasted"):
            self.failures.append(f"fuse_fuzz says {rest[0]}: {bytes.fromhex(''.join(rest[1:])).decode()}")

    def output(self, data, totals):
        name, value = self.graph.outputs[self.judged]
        self.judged += 1
        if self.values is None:
            self.values = evaluate(self.graph, self.dims, self.inputs)
        type = graph_type(self.graph, value)
        bounds = [from_bytes(part, type.dtype, type.shape(self.dims)) for part in data]
        text = judge_output(self.graph, name, value, self.values[value], bounds, totals)
        (self.bad if text else self.good).update(ancestors(self.graph, value))
        if text:
            self.failures.append(text)


def run_batch(fuse_fuzz, seed, first, count):
    """Failures as (index, text), totals, and how often each op stood behind a right and behind a wrong output."""
    torch.set_num_threads(1)
    failures, totals = [], collections.Counter()
    good, bad = collections.Counter(), collections.Counter()
    command = [fuse_fuzz, "--seed", str(seed), "--answers", str(first), "--count", str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        program, timer = None, threading.Timer(SECONDS, process.kill)
        timer.daemon = True
        timer.start()
        for line in process.stdout:
            words = line.split()
            if words[0] == "program":
                program = Program(int(words[1]))
                continue
            try:
                if not program.broken or words[0] == "done":
                    program.hear(words, totals)
            except Exception as error:
                program.broken = True
                program.failures.append(f"{type(error).__name__}: {error}")
            if words[0] == "done":
                totals["programs"] += 1
                totals["failed"] += bool(program.failures)
                failures += [(program.index, text) for text in program.failures]
                totals.update({"op " + op.name: 1 for op in program.graph.ops} if program.graph else {})
                good.update(program.good)
                bad.update(program.bad)
        timer.cancel()
        status = process.wait()
    if totals["programs"] != count or status != 0:
        at = first + totals["programs"]
        failures.append(
            (at, f"fuse_fuzz ended with status {status} after {totals['programs']} of {count} programs")
        )
        totals["failed"] += 1
    return failures, totals, good, bad


def run(log, options):
    """The campaign. Returns how many programs passed and failed."""
    seed, count = options.seed, options.count
    log.say(f"generated programs, seed {seed}: 0 to {count - 1}")
    fuse_fuzz = os.path.join(options.bin, "fuse_fuzz")
    work = [(fuse_fuzz, seed, first, min(BATCH, count - first)) for first in range(0, count, BATCH)]
    failures, sums = [], [collections.Counter() for _ in range(3)]
    for batch, *counts in campaign.each(run_batch, options.jobs, work, "programs"):
        failures += batch
        for total, part in zip(sums, counts):
            total.update(part)
    totals, good, bad = sums
    for index, text in sorted(failures):
        log.say(f"FAILED --seed {seed} --index {index}: {text}")
    if bad:
        suspects = sorted(bad, key=lambda op: -bad[op] / (bad[op] + good[op]))[:5]
        log.say("suspects, by the share of wrong outputs that they stand behind:")
        for op in suspects:
            log.say(f"  {op}: {bad[op]} of {bad[op] + good[op]}")
    elements = max(1, totals["elements"])
    within = elements - totals["exact"] - totals["undecided"]
    log.say(
        f"{totals['elements']} elements: {100 * totals['exact'] / elements:.1f}% compared bit for bit, "
        f"{100 * within / elements:.1f}% within a bound, {100 * totals['undecided'] / elements:.1f}% undecided"
    )
    log.table("programs with each op:", [(n, key[3:]) for key, n in totals.items() if key.startswith("op ")])
    never = sorted(set(OPS) - {key[3:] for key in totals if key.startswith("op ")})
    if never:
        log.say("in no program: " + ", ".join(never))
    return totals["programs"] - totals["failed"], totals["failed"]
