# SPDX-License-Identifier: Apache-2.0
"""Convolution and pooling, by one strided slice for each position of the kernel."""

import itertools
import math

from onnx_ops.networks import by_channel, sum_of


class Frame:
    """How the kernel lies over the dims behind batch and channel."""

    def __init__(self, node, x, kernel):
        self.kernel, rank = list(kernel), len(kernel)
        self.strides = node.attribute("strides") or [1] * rank
        self.dilations = node.attribute("dilations") or [1] * rank
        pads = node.attribute("pads") or [0] * (2 * rank)
        self.low, self.high = list(pads[:rank]), list(pads[rank:])
        extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        automatic = node.attribute("auto_pad", "NOTSET")
        if automatic.startswith("SAME"):
            for i, extent in enumerate(x.shape[2:]):
                total = max(0, (-(-extent // self.strides[i]) - 1) * self.strides[i] + extents[i] - extent)
                small = total // 2
                self.low[i], self.high[i] = (
                    (small, total - small) if automatic == "SAME_UPPER" else (total - small, small)
                )
        self.result, self.spare = [], []  # spare: read behind the padding, where the last window is not whole
        for i, extent in enumerate(x.shape[2:]):
            room = extent + self.low[i] + self.high[i] - extents[i]
            count = room // self.strides[i] + 1
            if node.attribute("ceil_mode", 0):
                count = -(-room // self.strides[i]) + 1
                if (count - 1) * self.strides[i] >= extent + self.low[i]:
                    count -= 1  # a window that begins in the padding behind
            self.result.append(count)
            self.spare.append(
                max(0, (count - 1) * self.strides[i] + extents[i] - extent - self.low[i] - self.high[i])
            )

    def slices(self, x, fill, spare_fill=None):
        """For each position of the kernel, what it meets: [batch, channels, result...]."""
        x = x.pad([0, 0] + self.low, [0, 0] + self.high, fill)
        x = x.pad([0] * x.rank, [0, 0] + self.spare, fill if spare_fill is None else spare_fill)
        for position in itertools.product(*map(range, self.kernel)):
            starts = [p * d for p, d in zip(position, self.dilations)]
            limits = [s + (c - 1) * stride + 1 for s, c, stride in zip(starts, self.result, self.strides)]
            yield x.slice([0, 0] + starts, x.shape[:2] + limits, [1, 1] + self.strides)


def convolution(node, x, w):
    """x [n, c, ..], w [m, c / groups, ..] -> [n, m, ..]: a contraction over channels for each kernel position."""
    groups, graph, frame = node.attribute("group", 1), x.graph, Frame(node, x, w.shape[2:])
    m, c = w.shape[0] // groups, w.shape[1]
    taps = w.reshape([groups, m, c, math.prod(frame.kernel)])
    terms = []
    for i, part in enumerate(frame.slices(x, 0)):
        part = part.reshape([x.shape[0], groups, c] + frame.result)
        tap = taps.narrow(3, i, i + 1).reshape([groups, m, c])
        shape = [groups, m, x.shape[0]] + frame.result
        terms.append(
            graph.op(
                "contraction",
                [tap, part],
                x.dtype,
                shape,
                batch_a=[0],
                batch_b=[1],
                contract_a=[2],
                contract_b=[2],
            )
        )
    order = [2, 0, 1] + list(range(3, x.rank + 1))
    return sum_of(terms).transpose(order).reshape([x.shape[0], groups * m] + frame.result)


def conv(node):
    result = convolution(node, node[0], node[1])
    return result + by_channel(node[2], result) if node.has(2) else result


def conv_transpose(node):
    """A convolution of x, spread out by zeros, with the kernel turned round."""
    x, w = node[0], node[1]
    groups, rank = node.attribute("group", 1), x.rank - 2
    strides, dilations = node.attribute("strides") or [1] * rank, node.attribute("dilations") or [1] * rank
    added = node.attribute("output_padding") or [0] * rank
    pads = node.attribute("pads") or [0] * (2 * rank)
    extents = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations)]
    full = [(n - 1) * s + e + a for n, s, e, a in zip(x.shape[2:], strides, extents, added)]
    wanted, automatic = node.attribute("output_shape"), node.attribute("auto_pad", "NOTSET")
    if wanted or automatic.startswith("SAME"):
        wanted = (wanted or [n * s for n, s in zip(x.shape[2:], strides)])[-rank:]
        totals = [f - e for f, e in zip(full, wanted)]
        small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
        pads = small + large if automatic == "SAME_UPPER" else large + small
    for axis, stride in enumerate(strides, 2):  # zeros between the elements of an axis
        if stride > 1:
            spread = x.reshape(x.shape[: axis + 1] + [1] + x.shape[axis + 1 :])
            spread = spread.pad(
                [0] * spread.rank, [stride - 1 if d == axis + 1 else 0 for d in range(spread.rank)], 0
            )
            x = spread.reshape(x.shape[:axis] + [x.shape[axis] * stride] + x.shape[axis + 1 :])
            x = x.narrow(axis, 0, x.shape[axis] - stride + 1)
    low = [e - 1 - p for e, p in zip(extents, pads[:rank])]
    high = [e - 1 - p + a for e, p, a in zip(extents, pads[rank:], added)]
    for axis in range(rank):  # padding of more than a kernel cuts off
        x = x.narrow(axis + 2, max(0, -low[axis]), x.shape[axis + 2] - max(0, -high[axis]))
    x = x.pad([0, 0] + [max(0, p) for p in low], [0, 0] + [max(0, p) for p in high], 0)
    m, c = w.shape[1], w.shape[0] // groups
    turned = w.reshape([groups, c, m] + w.shape[2:]).transpose([0, 2, 1] + list(range(3, rank + 3)))
    turned = turned.reshape([groups * m, c] + w.shape[2:]).reverse(list(range(2, rank + 2)))
    plain = Plain(group=groups, dilations=dilations)
    result = convolution(plain, x, turned)
    return result + by_channel(node[2], result) if node.has(2) else result


class Plain:
    """Attributes of a convolution that no node has."""

    def __init__(self, **attributes):
        self.attributes = attributes

    def attribute(self, name, default=None):
        return self.attributes.get(name, default)


def average_pool(node):
    x = node[0]
    frame = Frame(node, x, node.attribute("kernel_shape"))
    total = sum_of(list(frame.slices(x, 0)))
    inside = 1 if node.attribute("count_include_pad", 0) else 0
    ones = node.graph.constant(1.0, x.dtype, [1, 1] + x.shape[2:])
    return total / sum_of(list(frame.slices(ones, inside, 0)))


def lp_pool(node):
    x, p = node[0], node.attribute("p", 2)
    frame = Frame(node, x, node.attribute("kernel_shape"))
    return sum_of(list(frame.slices(x.do("abs") ** p, 0))) ** (1.0 / p)


def max_pool(node):
    """The greatest, and its position in the flat x: the first of equals."""
    x, graph = node[0], node.graph
    frame = Frame(node, x, node.attribute("kernel_shape"))
    lowest = -math.inf if x.dtype in ("f64", "f32", "f16", "bf16") else {"u8": 0, "i8": -128}[x.dtype]
    order = list(range(x.rank))
    if node.attribute("storage_order", 0):  # columns first
        order = order[:2] + order[:1:-1]
    positions = None
    if len(node.outputs) > 1:
        turned = [x.shape[d] for d in order]
        positions = graph.iota([math.prod(x.shape)], 0).reshape(turned).transpose(order)
    best = where = None
    parts = frame.slices(positions, 0) if positions is not None else itertools.repeat(None)
    for part, position in zip(frame.slices(x, lowest), parts):
        if best is not None and position is not None:
            where = graph.select(part > best, position, where)
        best, where = (part, position) if best is None else (best.do("max", part), where)
    return (best, where) if where is not None else best


def global_pool(function):
    return lambda node: function(node[0], list(range(2, node[0].rank)))


HANDLERS = {
    "AveragePool": average_pool,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "GlobalAveragePool": global_pool(lambda x, axes: x.mean(axes)),
    "GlobalMaxPool": global_pool(lambda x, axes: x.reduce("reduce_max", axes)),
    "LpPool": lp_pool,
    "MaxPool": max_pool,
}
