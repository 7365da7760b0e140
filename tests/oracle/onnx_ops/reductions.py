# SPDX-License-Identifier: Apache-2.0
"""Reductions, and what is made of them: softmax, norms, losses are in networks.py."""

from graph_writer import HALVES, is_float


def axes_of(node):
    """The axes, or None where nothing is to be reduced."""
    axes = node.attribute("axes")
    if axes is None and node.has(1):
        axes = node.known(1).tolist()
    if not axes:
        return None if node.attribute("noop_with_empty_axes", 0) else list(range(node[0].rank))
    return axes


def reduction(function, otherwise=lambda x: x):
    """function(x, axes, keep); `otherwise` is what becomes of an element where no axis is reduced."""

    def handler(node):
        axes = axes_of(node)
        if axes is None:
            return otherwise(node[0])
        return function(node[0], axes, bool(node.attribute("keepdims", 1)))

    return handler


def named(name, logical=None):
    return lambda x, axes, keep: x.reduce(logical if x.dtype == "bool" else name, axes, keep)


def wide(x):
    return x.to("f32") if x.dtype in HALVES else x if is_float(x.dtype) else x.to("f64")


def mean(x, axes, keep):
    return x.reduce("reduce_sum", axes, keep) / count(x, axes)


def count(x, axes):
    total = 1
    for axis in axes:
        total *= x.shape[x.axis(axis)]
    return total


def log_sum_exp(x, axes, keep):
    y = wide(x)
    top = y.reduce("reduce_max", axes, True)
    top = x.graph.select(top.do("is_inf"), 0.0, top)
    sums = (y - top).do("exp").sum(axes, True).do("log") + top
    reduced = {x.axis(axis) for axis in axes}
    shape = [1 if d in reduced else extent for d, extent in enumerate(x.shape) if keep or d not in reduced]
    return sums.reshape(shape).to(x.dtype)


def arg(name):
    def handler(node):
        x, axis, keep = node[0], node[0].axis(node.attribute("axis", 0)), bool(node.attribute("keepdims", 1))
        if not node.attribute("select_last_index", 0):
            return x.reduce(name, [axis], keep)
        return (x.shape[axis] - 1) - x.reverse([axis]).reduce(name, [axis], keep)

    return handler


def cumulative_sum(node):
    x = node[0]
    axis = x.axis(int(node.known(1)))
    y = x.to("f32") if x.dtype in HALVES else x
    flags = {"exclusive": bool(node.attribute("exclusive", 0)), "reverse": bool(node.attribute("reverse", 0))}
    return x.graph.op("cumulative_sum", [y], y.dtype, y.shape, axis=axis, **flags).to(x.dtype)


HANDLERS = {
    "ArgMax": arg("argmax"),
    "ArgMin": arg("argmin"),
    "CumSum": cumulative_sum,
    "ReduceL1": reduction(lambda x, axes, keep: x.do("abs").sum(axes, keep), lambda x: x.do("abs")),
    "ReduceL2": reduction(
        lambda x, axes, keep: (wide(x) * wide(x)).sum(axes, keep).do("sqrt").to(x.dtype),
        lambda x: x.do("abs"),
    ),
    "ReduceLogSum": reduction(lambda x, axes, keep: x.sum(axes, keep).do("log"), lambda x: x.do("log")),
    "ReduceLogSumExp": reduction(log_sum_exp),
    "ReduceMax": reduction(named("reduce_max", "reduce_any")),
    "ReduceMean": reduction(mean),
    "ReduceMin": reduction(named("reduce_min", "reduce_all")),
    "ReduceProd": reduction(named("reduce_prod")),
    "ReduceSum": reduction(named("reduce_sum")),
    "ReduceSumSquare": reduction(lambda x, axes, keep: (x * x).sum(axes, keep), lambda x: x * x),
}
