# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM, unrolled."""

from graph_writer import Inexpressible
from onnx_ops.elementwise import sigmoid

TAKEN = {"Sigmoid": sigmoid, "Tanh": lambda x: x.do("tanh"), "Relu": lambda x: x.do("max", 0)}


def parts(x, count, axis=-1):
    size = x.shape[x.axis(axis)] // count
    return [x.narrow(axis, i * size, (i + 1) * size) for i in range(count)]


class Direction:
    """The weights of one direction; gates are joined along the last dim."""

    def __init__(self, node, index, gates):
        self.node, self.graph, self.gates = node, node.graph, gates
        w, r, bias = [None if node[i] is None else one(node[i], index) for i in (1, 2, 3)]
        self.w, self.r = w.transpose([1, 0]), r.transpose([1, 0])
        self.hidden = self.r.shape[0]
        self.bias = parts(bias, 2) if bias is not None else [0.0, 0.0]

    def of_input(self, x):
        return self.graph.matmul(x, self.w) + self.bias[0]

    def of_state(self, h):
        return self.graph.matmul(h, self.r) + self.bias[1]


def one(x, index):
    """x[index], of the first dim."""
    return x.narrow(0, index, index + 1).reshape(x.shape[1:])


def simple(direction, x, state, taken):
    h = taken[0](direction.of_input(x) + direction.of_state(state[0]))
    return [h]


def gated(direction, x, state, taken):
    (h,) = state
    z, r, n = parts(direction.of_input(x), 3)
    if direction.node.attribute("linear_before_reset", 0):
        hz, hr, hn = parts(direction.of_state(h), 3)
        z, r = taken[0](z + hz), taken[0](r + hr)
        n = taken[1](n + r * hn)
    else:
        weights, biases = parts(direction.r, 3), [0.0] * 3
        if direction.bias[1] != 0.0:
            biases = parts(direction.bias[1], 3)
        z = taken[0](z + direction.graph.matmul(h, weights[0]) + biases[0])
        r = taken[0](r + direction.graph.matmul(h, weights[1]) + biases[1])
        n = taken[1](n + direction.graph.matmul(r * h, weights[2]) + biases[2])
    return [(1 - z) * n + z * h]


def long_short(direction, x, state, taken):
    h, c = state
    i, o, f, n = parts(direction.of_input(x) + direction.of_state(h), 4)
    peepholes = parts(one(direction.node[7], direction.index), 3) if direction.node.has(7) else [0.0] * 3
    if direction.node.attribute("input_forget", 0):
        raise Inexpressible("no translation is written")
    i, f = taken[0](i + c * peepholes[0]), taken[0](f + c * peepholes[2])
    c = f * c + i * taken[1](n)
    o = taken[0](o + c * peepholes[1])
    return [o * taken[2](c), c]


def recurrent(step, gates, usual, states):
    def handler(node):
        graph, kind = node.graph, node.attribute("direction", "forward")
        if node.attribute("clip") or (node.has(4) and len(set(node.known(4).tolist())) > 1):
            raise Inexpressible("no translation is written")
        names = [name.decode() for name in node.attribute("activations", [])] or usual
        batch_first = bool(node.attribute("layout", 0))
        x = node[0].transpose([1, 0, 2]) if batch_first else node[0]
        length, batch, _ = x.shape
        rows, lasts = [], []
        for index in range(node[1].shape[0]):
            direction = Direction(node, index, gates)
            direction.index = index
            taken = [TAKEN[name] for name in names[index * len(usual) : (index + 1) * len(usual)] or names]
            state = []
            for position in (5, 6)[:states]:
                first = node[position]
                if first is None:
                    state.append(graph.constant(0.0, x.dtype, [batch, direction.hidden]))
                else:
                    state.append(one(first.transpose([1, 0, 2]) if batch_first else first, index))
            order, outputs = list(range(length)), [None] * length
            for t in reversed(order) if kind == "reverse" or index == 1 else order:
                state = step(direction, one(x, t), state, taken)
                outputs[t] = state[0].reshape([1, 1, batch, direction.hidden])
            rows.append(graph.concat(outputs, 0))
            lasts.append([s.reshape([1] + s.shape) for s in state])
        y = graph.concat(rows, 1)
        finals = [graph.concat([last[i] for last in lasts], 0) for i in range(states)]
        if batch_first:
            y, finals = y.transpose([2, 0, 1, 3]), [final.transpose([1, 0, 2]) for final in finals]
        return y, *finals

    return handler


HANDLERS = {
    "GRU": recurrent(gated, 3, ["Sigmoid", "Tanh"], 1),
    "LSTM": recurrent(long_short, 4, ["Sigmoid", "Tanh", "Tanh"], 2),
    "RNN": recurrent(simple, 1, ["Tanh"], 1),
}
