# SPDX-License-Identifier: Apache-2.0
"""The cpu cases in numpy, f32 alone: a contender for trying the harness where nothing else is installed."""

import numpy

from serve import Unsupported


def softmax(t, y):
    numpy.subtract(t["x"], t["x"].max(-1, keepdims=True), out=y)
    numpy.exp(y, out=y)
    numpy.divide(y, y.sum(-1, keepdims=True), out=y)


def layer_norm(t, y):
    numpy.subtract(t["x"], t["x"].mean(-1, keepdims=True), out=y)
    scale = 1 / numpy.sqrt(numpy.square(y).mean(-1, keepdims=True) + 1e-5)
    numpy.multiply(y, scale * t["gamma"], out=y)
    numpy.add(y, t["beta"], out=y)


def rms_norm(t, y):
    scale = 1 / numpy.sqrt(numpy.square(t["x"]).mean(-1, keepdims=True) + 1e-6)
    numpy.multiply(t["x"], scale * t["gamma"], out=y)


def gelu_tanh(t, y):
    x = t["x"]
    numpy.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x), out=y)
    numpy.add(y, 1, out=y)
    numpy.multiply(y, 0.5 * x, out=y)


def softmax_backward(t, y):
    p, dy = t["probabilities"], t["dy"]
    numpy.multiply(p, dy - (p * dy).sum(-1, keepdims=True), out=y)


def transpose(t, y):
    numpy.copyto(y, t["x"].T)


BUILDERS = {"softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm, "gelu_tanh": gelu_tanh,
            "softmax_backward": softmax_backward, "transpose": transpose}


class Peer:
    version = numpy.__version__

    def __init__(self, name, threads):
        del name, threads  # numpy has no threads for these

    @staticmethod
    def tensor(bits, dtype):
        return bits

    def load(self, case, tensors):
        body = BUILDERS.get(case["builder"])
        if body is None or case["dtype"] != "f32":
            raise Unsupported("numpy has no %s in %s here" % (case["builder"], case["dtype"]))
        x = next(iter(tensors.values()))
        y = numpy.empty(x.shape[::-1] if case["builder"] == "transpose" else x.shape, numpy.float32)
        return [(lambda: body(tensors, y), lambda: {"y": (y, "f32")}, "preallocated")]

    def shapes(self, case, tensors, lengths):
        raise Unsupported("numpy has no %s here" % case["builder"])

    def drop(self):
        pass
