# SPDX-License-Identifier: Apache-2.0
"""The models of the cpu cases for ONNX Runtime: (nodes, constants, arrays to feed, output shapes, outputs in place)."""

import numpy
from onnx import helper, numpy_helper

FUSED = "com.microsoft"


class Model:
    def __init__(self, tensors):
        self.tensors, self.nodes, self.constants, self.known = tensors, [], [], set()

    def op(self, kind, inputs, out, domain="", **attributes):
        outputs = out if isinstance(out, list) else [out]
        self.nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def weight(self, name, value=None):
        if name not in self.known:
            self.known.add(name)
            self.constants.append(numpy_helper.from_array(self.tensors[name] if value is None else value, name))
        return name

    def weights(self, name):
        return [self.weight(name + ".weight"), self.weight(name + ".bias")]

    def norm(self, x, name, out):
        return self.op("LayerNormalization", [x, self.weight(name + ".gamma"), self.weight(name + ".beta")], out,
                       axis=-1, epsilon=1e-5)


def encoder(tensors, dims):
    """As the optimizer of ONNX Runtime makes BERT: Attention, SkipLayerNormalization and BiasGelu."""
    m, x = Model(tensors), "x"
    for i in range(dims[4]):
        p = "%d." % i
        mixed = m.op("Attention", [x] + m.weights(p + "qkv"), p + "mixed", FUSED, num_heads=dims[3])
        out = m.op("MatMul", [mixed, m.weight(p + "out.weight")], p + "projected")
        x = m.op("SkipLayerNormalization", [out, x, m.weight(p + "norm1.gamma"), m.weight(p + "norm1.beta"),
                                            m.weight(p + "out.bias")], p + "middle", FUSED, epsilon=1e-5)
        up = m.op("MatMul", [x, m.weight(p + "up.weight")], p + "wide")
        up = m.op("BiasGelu", [up, m.weight(p + "up.bias")], p + "active", FUSED)
        down = m.op("MatMul", [up, m.weight(p + "down.weight")], p + "narrow")
        last = i + 1 == dims[4]
        x = m.op("SkipLayerNormalization", [down, x, m.weight(p + "norm2.gamma"), m.weight(p + "norm2.beta"),
                                            m.weight(p + "down.bias")], "y" if last else p + "end", FUSED,
                 epsilon=1e-5)
    given = tensors["x"]
    return m.nodes, m.constants, {"x": given}, {"y": given.shape}, {}


def decode_step(tensors, dims):
    """GroupQueryAttention writes the caches in place where past and present are one buffer."""
    batch, length, hidden, heads, layers = dims
    m, x = Model(tensors), "x"
    fed, shapes, in_place = {"x": tensors["x"]}, {"y": (batch, hidden)}, {}
    before = m.weight("before", numpy.full(batch, length - 1, numpy.int32))
    total = m.weight("total", numpy.array(length, numpy.int32))
    flat = m.weight("flat", numpy.array([batch, hidden], numpy.int64))
    apart = m.weight("apart", numpy.array([batch, 1, hidden], numpy.int64))
    for i in range(layers):
        p = "%d." % i
        qkv = m.op("Gemm", [m.norm(x, p + "norm1", p + "n1")] + m.weights(p + "qkv"), p + "all")
        parts = [p + "q", p + "k", p + "v"]
        m.op("Split", [qkv], parts, axis=1, num_outputs=3)
        parts = [m.op("Reshape", [part, apart], part + "3") for part in parts]
        for what in ("keys", "values"):
            fed[p + what] = tensors[p + what]
            shapes[p + what + "_out"] = tensors[p + what].shape
            in_place[p + what + "_out"] = p + what
        mixed = m.op("GroupQueryAttention", parts + [p + "keys", p + "values", before, total],
                     [p + "mixed", p + "keys_out", p + "values_out"], FUSED, num_heads=heads, kv_num_heads=heads)
        mixed = m.op("Reshape", [mixed, flat], p + "mixed2")
        out = m.op("Gemm", [mixed] + m.weights(p + "out"), p + "projected")
        x = m.op("Add", [x, out], p + "middle")
        up = m.op("Gemm", [m.norm(x, p + "norm2", p + "n2")] + m.weights(p + "up"), p + "wide")
        up = m.op("Gelu", [up], p + "active", FUSED)
        down = m.op("Gemm", [up] + m.weights(p + "down"), p + "narrow")
        x = m.op("Add", [x, down], "y" if i + 1 == layers else p + "end")
    return m.nodes, m.constants, fed, shapes, in_place


def lstm(tensors, dims):
    """The gates of ONNX stand in the order input, output, forget, candidate."""
    steps, batch, width = dims
    order = [0, 3, 1, 2]

    def gates(x):
        parts = numpy.split(x, 4, axis=-1)
        return numpy.ascontiguousarray(numpy.concatenate([parts[i] for i in order], -1).T)

    m = Model(tensors)
    into = m.weight("W", gates(tensors["input.weight"])[None])
    back = m.weight("R", gates(tensors["hidden.weight"])[None])
    bias = m.weight("B", numpy.concatenate([gates(tensors["bias"]), numpy.zeros(4 * width, numpy.float32)])[None])
    m.op("LSTM", ["x", into, back, bias], ["states"], hidden_size=width)
    m.op("Squeeze", ["states", m.weight("axis", numpy.array([1], numpy.int64))], "y")
    return m.nodes, m.constants, {"x": tensors["x"]}, {"y": (steps, batch, width)}, {}


MODELS = {"encoder": encoder, "decode_step": decode_step, "lstm": lstm}
