# SPDX-License-Identifier: Apache-2.0
"""The node tests of ONNX on fuse's emulated device: each model is translated, run by fusec, and compared as ONNX says.

Operands that decide a shape (axes, starts, repeats ...) are read from the test, since fuse's ranks and attributes are
fixed; ONNX's reference evaluator tells those that a model computes. A model that fuse cannot express is counted with
its reason."""

import collections
import functools
import os
import subprocess
import tempfile
import warnings

import numpy
import onnx
import onnx.reference
from onnx.backend.test.loader import load_model_tests

import campaign
from graph_writer import Graph, Inexpressible, Value, as_npy, numpy_type
from onnx_ops import HANDLERS, IMPOSSIBLE

BATCH = 8
UNITS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}  # in the last place of 1
SECONDS = 120  # that one test may take


@functools.lru_cache(None)
def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case.name: case for case in load_model_tests(kind="node")}


def read_tensor(tensor):
    """Data of a test: an array, or what is none."""
    if isinstance(tensor, onnx.TensorProto):
        return onnx.numpy_helper.to_array(tensor)
    if not isinstance(tensor, (numpy.ndarray, numpy.generic)):
        raise Inexpressible("sequences and optional values")
    return numpy.asarray(tensor)


def evaluated(model, feeds):
    """All values of a model, by ONNX's reference evaluator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return onnx.reference.ReferenceEvaluator(model).run(None, feeds, intermediate=True)


class Node:
    """One ONNX node as its handler sees it."""

    def __init__(self, translation, node):
        self.translation, self.node, self.graph = translation, node, translation.graph
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        self.outputs = [name for name in node.output]

    def __len__(self):
        """How many inputs are given, with those left out in between."""
        return len(self.node.input)

    def has(self, index):
        return index < len(self.node.input) and self.node.input[index] != ""

    def __getitem__(self, index):
        """The value of an input, or None where it is left out."""
        return self.translation.value(self.node.input[index]) if self.has(index) else None

    def all(self):
        return [self[i] for i in range(len(self))]

    def known(self, index, default=None):
        """What an input holds in this test: for operands that decide shapes."""
        return self.translation.known(self.node.input[index]) if self.has(index) else default

    def attribute(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def opened(self, name, inputs):
        """The results of a graph that is an attribute, opened here; the inputs where there is none."""
        return self.translation.opened(self.attributes[name], inputs) if name in self.attributes else inputs

    @property
    def opset(self):
        return self.translation.opset


class Translation:
    """A model with the inputs of one test, as a graph of fuse."""

    def __init__(self, model, inputs):
        self.model, self.graph = model, Graph()
        self.opset = {entry.domain: entry.version for entry in model.opset_import}.get("", 0)
        named = [value.name for value in model.graph.input]
        self.arrays = dict(zip(named, inputs))
        self.arrays.update({t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer})
        self.values, self.evaluated, self.inside = {}, None, {}
        self.translate(model.graph.node)
        self.graph.outputs = [self.value(value.name) for value in model.graph.output]

    def translate(self, nodes):
        for node in nodes:
            if node.op_type in IMPOSSIBLE:
                raise Inexpressible(IMPOSSIBLE[node.op_type])
            if node.op_type not in HANDLERS:
                raise Inexpressible("no translation is written")
        for node in nodes:
            results = HANDLERS[node.op_type](Node(self, node))
            for name, value in zip(node.output, [results] if isinstance(results, Value) else results):
                self.values[name] = value

    def opened(self, graph, inputs):
        """A graph inside of the model; its names are its own. What decides shapes in it depends on shapes alone."""
        outer = dict(self.values)
        feeds = {
            value.name: numpy.zeros(x.shape, numpy_type(x.dtype)) for value, x in zip(graph.input, inputs)
        }
        inner = onnx.helper.make_model(graph, opset_imports=self.model.opset_import)
        self.inside.update(evaluated(inner, feeds))
        self.values.update(zip((value.name for value in graph.input), inputs))
        self.arrays.update({t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer})
        self.translate(graph.node)
        results = [self.value(value.name) for value in graph.output]
        self.values = outer
        return results

    def value(self, name):
        if name not in self.values:
            self.values[name] = self.graph.input(read_tensor(self.arrays[name]))
        return self.values[name]

    def known(self, name):
        if name in self.arrays:
            return read_tensor(self.arrays[name])
        if name in self.inside:
            return self.inside[name]
        if self.evaluated is None:
            self.evaluated = evaluated(self.model, self.arrays)
        return self.evaluated[name]


def run_fusec(fusec, graph, folder):
    """The outputs, by number."""
    words = [fusec, "run", os.path.join(folder, "node.fuse"), "--device", "emulated", "--output-dir", folder]
    with open(words[2], "w", encoding="utf-8") as file:
        file.write(graph.text())
    for value, array in graph.inputs:
        path = os.path.join(folder, f"{value.name[1:]}.npy")
        numpy.save(path, as_npy(array))
        words += ["--input", f"{value.name[1:]}={path}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"fusec ended with status {done.returncode}: {done.stderr.strip()[:400]}")
    return [numpy.load(os.path.join(folder, f"y{i}.npy")) for i in range(len(graph.outputs))]


def difference(got, expected, rtol, atol):
    """Empty where they are equal by ONNX's measure: |got - expected| <= atol + rtol |expected|."""
    if str(expected.dtype) == "bfloat16" and got.dtype == numpy.dtype("V2"):
        got = got.view(expected.dtype)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"is {got.dtype}{list(got.shape)}, not {expected.dtype}{list(expected.shape)}"
    if str(expected.dtype) in ("bfloat16", "bool"):
        got, expected = got.astype(numpy.float32), expected.astype(numpy.float32)
    try:
        numpy.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def rounding(expected):
    """Four units in the last place of the greatest element: ONNX's own bounds are less than one unit of bf16, and less
    than what f32 loses where large terms cancel."""
    values = numpy.abs(expected.astype(numpy.float64))
    return 4 * UNITS.get(str(expected.dtype), 0) * float(values[numpy.isfinite(values)].max(initial=0))


def run_case(fusec, case):
    """('passed' | 'rounded' | 'inexpressible' | 'failed', text); rounded: beyond ONNX's bounds by rounding alone"""
    verdict = "passed"
    try:
        for inputs, outputs in case.data_sets:
            translation = Translation(case.model, inputs)
            expected = [read_tensor(tensor) for tensor in outputs]
            with tempfile.TemporaryDirectory() as folder:
                got = run_fusec(fusec, translation.graph, folder)
            for one, (mine, right) in enumerate(zip(got, expected, strict=True)):
                if not difference(mine, right, case.rtol, case.atol):
                    continue
                verdict = "rounded"
                if text := difference(mine, right, case.rtol, max(case.atol, rounding(right))):
                    return "failed", f"output {one} {text}"
    except Inexpressible as reason:
        return "inexpressible", str(reason)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return verdict, ""


def run_batch(fusec, names):
    return [(name, *run_case(fusec, cases()[name])) for name in names]


def op_of(name):
    """The op that a test is about: that of its one node, or of the test whose function is expanded."""
    nodes = cases()[name].model.graph.node
    if len(nodes) == 1:
        return nodes[0].op_type
    base, expanded, _ = name.partition("_expanded")
    return op_of(base) + " expanded" if expanded and base in cases() else "(several nodes)"


def run(log, options):
    """The campaign. Returns how many tests passed and failed."""
    fusec = os.path.join(options.bin, "fusec")
    names = sorted(name for name in cases() if options.filter in name)
    work = [(fusec, names[i : i + BATCH]) for i in range(0, len(names), BATCH)]
    by_op, reasons = collections.defaultdict(collections.Counter), collections.defaultdict(list)
    verdicts, failures, rounded = collections.Counter(), [], []
    for results in campaign.each(run_batch, options.jobs, work, "node tests"):
        for name, verdict, text in results:
            if verdict == "rounded":
                rounded.append(name)
                verdict = "passed"
            by_op[op_of(name)][verdict] += 1
            verdicts[verdict] += 1
            if verdict == "inexpressible":
                reasons[text].append(op_of(name))
            if verdict == "failed":
                failures.append(f"FAILED {name} ({op_of(name)}): {text}")
    for failure in sorted(failures):
        log.say(failure)
    log.say("op: passed / inexpressible / failed")
    for op, counts in sorted(by_op.items()):
        log.say(f"  {op}: {counts['passed']} / {counts['inexpressible']} / {counts['failed']}")
    rows = [(len(ops), f"{reason} ({', '.join(sorted(set(ops)))})") for reason, ops in reasons.items()]
    log.table("inexpressible, by reason:", rows)
    log.say(f"passed beyond ONNX's own bounds, by rounding: {len(rounded)} ({', '.join(sorted(rounded))})")
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("passed", "inexpressible", "failed"))
    log.say(f"{len(names)} node tests: {counts}")
    return verdicts["passed"], verdicts["failed"]
