# SPDX-License-Identifier: Apache-2.0
"""Softmax, norms, losses, optimisers, and windows of signals."""

import math

from graph_writer import HALVES
from onnx_ops.elementwise import sigmoid, target_type
from onnx_ops.movement import wrapped


def wide(x):
    return x.to("f32") if x.dtype in HALVES else x


def normalised(node, function):
    """function(x, axes): before opset 13 of all dims from the axis on."""
    x, old = node[0], node.opset < 13
    axis = x.axis(node.attribute("axis", 1 if old else -1))
    return function(wide(x), list(range(axis, x.rank)) if old else [axis]).to(x.dtype)


def softmax(x, axes):
    e = (x - x.reduce("reduce_max", axes)).do("exp")
    return e / e.sum(axes)


def log_softmax(x, axes):
    shifted = x - x.reduce("reduce_max", axes)
    return shifted - shifted.do("exp").sum(axes).do("log")


def hardmax(x, axes):
    (axis,) = axes
    return x.graph.iota(x.shape, axis).do("eq", x.reduce("argmax", axes)).to(x.dtype)


def lp_normalization(node):
    x, axis = node[0], node.attribute("axis", -1)
    norm = x.do("abs").sum([axis]) if node.attribute("p", 2) == 1 else (x * x).sum([axis]).do("sqrt")
    return node.graph.select(norm.do("eq", 0), 0, x / norm)


def centred(x, axes, epsilon):
    """x less its mean, the mean, and one over the deviation."""
    mean = x.mean(axes)
    d = x - mean
    return d, mean, 1 / ((d * d).mean(axes) + epsilon).do("sqrt")


def mean_variance(node):
    d, _, inverse = centred(node[0], node.attribute("axes", [0, 2, 3]), 1e-9)
    return d * inverse


def layer_norm(node):
    x = node[0]
    axes = list(range(x.axis(node.attribute("axis", -1)), x.rank))
    d, mean, inverse = centred(wide(x), axes, node.attribute("epsilon", 1e-5))
    y = (d * inverse).to(x.dtype) * node[1]
    return (y + node[2] if node.has(2) else y), mean, inverse


def rms_norm(node):
    x = node[0]
    axes = list(range(x.axis(node.attribute("axis", -1)), x.rank))
    y = wide(x)
    return (y / ((y * y).mean(axes) + node.attribute("epsilon", 1e-5)).do("sqrt")).to(x.dtype) * node[1]


def by_channel(v, x):
    """One number for each channel, beside x."""
    return v.reshape([1, v.shape[0]] + [1] * (x.rank - 2))


def instance_norm(node):
    x = node[0]
    d, _, inverse = centred(x, list(range(2, x.rank)), node.attribute("epsilon", 1e-5))
    return d * inverse * by_channel(node[1], x) + by_channel(node[2], x)


def group_norm(node):
    x, groups = node[0], node.attribute("num_groups")
    split = x.reshape([x.shape[0], groups, math.prod(x.shape[1:]) // groups])
    d, _, inverse = centred(wide(split), [2], node.attribute("epsilon", 1e-5))
    return (d * inverse).reshape(x.shape).to(x.dtype) * by_channel(node[1], x) + by_channel(node[2], x)


def batch_norm(node):
    x, scale, bias, mean, variance = node.all()
    epsilon, momentum = node.attribute("epsilon", 1e-5), node.attribute("momentum", 0.9)
    training = node.attribute("training_mode", 0)
    running = []
    if training:
        axes = [d for d in range(x.rank) if d != 1]
        own = x.mean(axes)
        d = x - own
        own, spread = own.reshape(mean.shape), (d * d).mean(axes).reshape(mean.shape)
        running = [mean * momentum + own * (1 - momentum), variance * momentum + spread * (1 - momentum)]
        mean, variance = own, spread
    y = by_channel(scale, x) * (x - by_channel(mean, x)) / (by_channel(variance, x) + epsilon).do("sqrt")
    return y + by_channel(bias, x), *running


def local_response(node):
    x, size = node[0], node.attribute("size")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    padded = (x * x).pad([0, before] + [0] * (x.rank - 2), [0, after] + [0] * (x.rank - 2), 0)
    total = sum_of([padded.narrow(1, i, i + x.shape[1]) for i in range(size)])
    return x / (
        node.attribute("bias", 1.0) + total * (node.attribute("alpha", 1e-4) / size)
    ) ** node.attribute("beta", 0.75)


def sum_of(values):
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def likelihood(node, x, target, weight):
    """The loss for each target by a sum over classes where one alone counts, then what `reduction` asks."""
    graph, ignored = node.graph, node.attribute("ignore_index")
    reduction, classes = node.attribute("reduction", "mean"), x.shape[1]
    counts = graph.constant(True, "bool", target.shape) if ignored is None else target.do("ne", ignored)
    column = target.reshape([target.shape[0], 1] + target.shape[1:])
    hit = graph.iota(x.shape, 1, target.dtype).do("eq", column)
    picked = -graph.select(hit, x, 0).sum([1], False)
    if weight is None:
        weights = counts.to(x.dtype)
    else:
        weights = weight.gather(wrapped(target, classes), 0)
    loss = graph.select(counts, picked * weights, 0)
    if reduction == "none":
        return loss
    axes = list(range(loss.rank))
    total = loss.sum(axes, False)
    return total if reduction == "sum" else total / graph.select(counts, weights, 0).sum(axes, False)


def cross_entropy(node):
    log_probability = log_softmax(node[0], [1])
    return likelihood(node, log_probability, node[1], node[2]), log_probability


def swiglu(node):
    a = node[0]
    return a * sigmoid(a * node.attribute("alpha", 1.0)) * node[1]


# Optimisers: R, T, then the tensors of all parameters, kind by kind


def optimiser(kinds, step):
    def handler(node):
        values = node.all()
        rate, time, tensors = values[0].reshape([]), values[1].reshape([]), values[2:]
        count = len(tensors) // kinds
        results = [step(node, rate, time, *tensors[i::count]) for i in range(count)]
        return [result[kind] for kind in range(kinds - 1) for result in results]

    return handler


def adagrad(node, rate, time, x, gradient, history):
    rate = rate / (1 + time.to("f32") * node.attribute("decay_factor", 0.0))
    gradient = gradient + x * node.attribute("norm_coefficient", 0.0)
    history = history + gradient * gradient
    return x - rate * gradient / (history.do("sqrt") + node.attribute("epsilon", 1e-6)), history


def adam(node, rate, time, x, gradient, v, h):
    alpha, beta = node.attribute("alpha", 0.9), node.attribute("beta", 0.999)
    gradient = gradient + x * node.attribute("norm_coefficient", 0.0)
    v, h = v * alpha + gradient * (1 - alpha), h * beta + gradient * gradient * (1 - beta)
    steps = time.to("f32")
    corrected = rate * (1 - beta**steps).do("sqrt") / (1 - alpha**steps)
    rate = node.graph.select(time > 0, corrected, rate)
    x = x - rate * v / (h.do("sqrt") + node.attribute("epsilon", 1e-6))
    return x * (1 - node.attribute("norm_coefficient_post", 0.0)), v, h


def momentum(node, rate, time, x, gradient, v):
    alpha, beta = node.attribute("alpha"), node.attribute("beta")
    gradient = gradient + x * node.attribute("norm_coefficient", 0.0)
    share = node.graph.select(time > 0, node.graph.constant(beta, x.dtype), 1.0)
    v = v * alpha + share * gradient
    return x - rate * (gradient + v * alpha if node.attribute("mode") == "nesterov" else v), v


# Windows


def window(*terms):
    """A sum of cosines: terms[k] cos(2 pi k i / n)."""

    def handler(node):
        size = int(node.known(0))
        turns = 2 * math.pi / (size if node.attribute("periodic", 1) else size - 1)
        positions = node.graph.iota([size], 0, "f64") * turns
        total = sum_of([(positions * k).do("cos") * term for k, term in enumerate(terms)])
        return total.to(target_type(node.attribute("output_datatype", 1)))

    return handler


HANDLERS = {
    "Adagrad": optimiser(3, adagrad),
    "Adam": optimiser(4, adam),
    "BatchNormalization": batch_norm,
    "BlackmanWindow": window(0.42, -0.5, 0.08),
    "GroupNormalization": group_norm,
    "HammingWindow": window(25 / 46, -21 / 46),
    "HannWindow": window(0.5, -0.5),
    "Hardmax": lambda node: normalised(node, hardmax),
    "InstanceNormalization": instance_norm,
    "LRN": local_response,
    "LayerNormalization": layer_norm,
    "LogSoftmax": lambda node: normalised(node, log_softmax),
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance,
    "Momentum": optimiser(3, momentum),
    "NegativeLogLikelihoodLoss": lambda node: likelihood(node, node[0], node[1], node[2]),
    "RMSNormalization": rms_norm,
    "Softmax": lambda node: normalised(node, softmax),
    "SoftmaxCrossEntropyLoss": cross_entropy,
    "SwiGLU": swiglu,
}
