# SPDX-License-Identifier: Apache-2.0
"""Integers with scales and zero points."""

from graph_writer import LIMITS, Inexpressible
from onnx_ops.elementwise import target_type
from onnx_ops.matrices import centred, product
from onnx_ops.windows import convolution


def beside(v, x, node):
    """A scale or zero point for all, for each index of an axis, or for each block of an axis, in the shape of x."""
    if v.shape in ([], [1]):
        return v.reshape([])
    axis, block = x.axis(node.attribute("axis", 1)), node.attribute("block_size", 0)
    if not block:
        return v.reshape([v.shape[0] if d == axis else 1 for d in range(x.rank)])
    shape = v.shape[: axis + 1] + [block] + v.shape[axis + 1 :]
    dims = [d if d <= axis else d + 1 for d in range(v.rank)]
    spread = v.graph.op("broadcast_in_dim", [v], v.dtype, shape, dims=dims)
    return spread.reshape(shape[:axis] + [shape[axis] * block] + shape[axis + 2 :]).narrow(
        axis, 0, x.shape[axis]
    )


def saturated(x, dtype):
    """Rounded to the nearest, halves to even, and into the range of an integer."""
    low, high = LIMITS[dtype]
    return x.do("round").do("max", low).do("min", high).to(dtype)


def quantize(node):
    x, scale, zero = node[0], node[1], node[2]
    dtype = zero.dtype if zero is not None else target_type(node.attribute("output_dtype") or 2)
    if dtype not in ("i8", "u8"):
        raise Inexpressible(f"type {dtype}")
    if node.attribute("precision"):
        x, scale = x.to(target_type(node.attribute("precision"))), scale.to(
            target_type(node.attribute("precision"))
        )
    y = (x / beside(scale, x, node)).do("round").to("f32")
    return saturated(y if zero is None else y + beside(zero, x, node).to("f32"), dtype)


def dequantize(node):
    x, scale, zero = node[0], node[1], node[2]
    dtype = target_type(node.attribute("output_dtype")) if node.attribute("output_dtype") else scale.dtype
    y = x.to("f32")
    y = y if zero is None else y - beside(zero, x, node).to("f32")
    return (y * beside(scale, x, node).to("f32")).to(dtype)


def dynamic_quantize(node):
    x, axes = node[0], list(range(node[0].rank))
    top, bottom = x.reduce("reduce_max", axes, False).do("max", 0), x.reduce("reduce_min", axes, False).do(
        "min", 0
    )
    scale = x.graph.select(top.do("eq", bottom), 1.0, top - bottom) / 255
    zero = ((-bottom) / scale).do("max", 0).do("min", 255).do("round")
    return saturated((x / scale).do("round") + zero, "u8"), scale, zero.to("u8")


def requantized(sums, scale, zero, like):
    y = sums.to("f32") * scale.to("f32")
    return saturated(y if zero is None else y + zero.to("f32").reshape([]), (zero or like).dtype)


def quantized_matmul(node):
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = [node[i] for i in range(8)]
    sums = product(node.graph, centred(a, a_zero, -2), centred(b, b_zero, -1))
    return requantized(sums, a_scale.reshape([]) * b_scale.reshape([]) / scale.reshape([]), zero, a)


def quantized_convolution(node):
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, bias = [node[i] for i in range(9)]
    sums = convolution(node, centred(x, x_zero, 1).to("f64"), centred(w, w_zero, 0).to("f64"))
    per_channel = [1, w_scale.shape[0]] + [1] * (x.rank - 2) if w_scale.rank else []
    factor = x_scale.reshape([]) * w_scale.reshape(per_channel) / scale.reshape([])
    if bias is not None:
        sums = sums + bias.to("f64").reshape([1, bias.shape[0]] + [1] * (x.rank - 2))
    return requantized(sums, factor, zero, x)


def integer_convolution(node):
    return convolution(
        node, centred(node[0], node[2], 1).to("f64"), centred(node[1], node[3], 0).to("f64")
    ).to("i32")


HANDLERS = {
    "ConvInteger": integer_convolution,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "QLinearConv": quantized_convolution,
    "QLinearMatMul": quantized_matmul,
    "QuantizeLinear": quantize,
}
