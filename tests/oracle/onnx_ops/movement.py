# SPDX-License-Identifier: Apache-2.0
"""Ops that move elements, and those that make them of nothing."""

import math

import numpy
import onnx

from graph_writer import Inexpressible, type_of
from onnx_ops.elementwise import target_type


def axes_of(node):
    axes = node.attribute("axes")
    return axes if axes is not None else node.known(1).tolist() if node.has(1) else None


def reshape(node):
    x, shape = node[0], [int(extent) for extent in node.known(1)]
    if not node.attribute("allowzero", 0):
        shape = [x.shape[d] if extent == 0 else extent for d, extent in enumerate(shape)]
    if -1 in shape:
        shape[shape.index(-1)] = math.prod(x.shape) // max(
            1, math.prod(extent for extent in shape if extent != -1)
        )
    return x.reshape(shape)


def flatten(node):
    x, axis = node[0], node.attribute("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return x.reshape([math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


def squeeze(node):
    x, axes = node[0], axes_of(node)
    dropped = (
        {x.axis(a) for a in axes}
        if axes is not None
        else {d for d, extent in enumerate(x.shape) if extent == 1}
    )
    return x.reshape([extent for d, extent in enumerate(x.shape) if d not in dropped])


def unsqueeze(node):
    x, axes = node[0], axes_of(node)
    rank = x.rank + len(axes)
    extents = iter(x.shape)
    added = {axis % rank for axis in axes}
    return x.reshape([1 if d in added else next(extents) for d in range(rank)])


def expand(node):
    x = node[0]
    return x.broadcast(numpy.broadcast_shapes(tuple(x.shape), tuple(int(extent) for extent in node.known(1))))


def tile(node):
    x, repeats = node[0], [int(times) for times in node.known(1)]
    doubled = [extent for pair in zip(repeats, x.shape) for extent in pair]
    spread = x.graph.op("broadcast_in_dim", [x], x.dtype, doubled, dims=[2 * d + 1 for d in range(x.rank)])
    return spread.reshape([times * extent for times, extent in zip(repeats, x.shape)])


def one_slice(x, axis, start, end, step):
    """NumPy's slice of one axis; a negative step turns the axis first."""
    extent = x.shape[axis]
    positions = range(*slice(start, end, step).indices(extent))
    if step < 0:
        x, positions = x.reverse([axis]), range(extent - 1 - positions.start, extent - 1 - positions.stop, -step)
    first = min(positions.start, extent)
    return x.narrow(axis, first, max(positions.stop, first), positions.step)


def slices(node):
    x = node[0]
    starts, ends = node.known(1).tolist(), node.known(2).tolist()
    axes = node.known(3).tolist() if node.has(3) else range(len(starts))
    steps = node.known(4).tolist() if node.has(4) else [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps):
        x = one_slice(x, x.axis(axis), start, end, step)
    return x


def split(node):
    x = node[0]
    axis = x.axis(node.attribute("axis", 0))
    sizes = node.known(1).tolist() if node.has(1) else node.attribute("split")
    if sizes is None:
        parts = node.attribute("num_outputs", len(node.outputs))
        size = -(-x.shape[axis] // parts)
        sizes = [min(size, x.shape[axis] - i * size) for i in range(parts)]
    ends = numpy.cumsum(sizes).tolist()
    return [x.narrow(axis, end - size, end) for size, end in zip(sizes, ends)]


def mirrored(x, axis, low, high, mode):
    """One axis, padded with its own elements."""
    extent = x.shape[axis]
    before = range(-low, 0)
    positions = [*before, *range(extent), *range(extent, extent + high)]
    if mode == "edge":
        index = [min(max(p, 0), extent - 1) for p in positions]
    elif mode == "wrap":
        index = [p % extent for p in positions]
    else:  # reflect
        period = max(1, 2 * (extent - 1))
        index = [min(p % period, period - p % period) for p in positions]
    return x.graph.concat([x.narrow(axis, p, p + 1) for p in index], axis)


def pad(node):
    x, mode = node[0], node.attribute("mode", "constant")
    pads = node.known(1).tolist()
    axes = [x.axis(a) for a in node.known(3).tolist()] if node.has(3) else list(range(x.rank))
    low, high = [0] * x.rank, [0] * x.rank
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[i + len(axes)]
    for axis in range(x.rank):  # what is cut off
        if low[axis] < 0 or high[axis] < 0:
            x = x.narrow(axis, max(0, -low[axis]), x.shape[axis] - max(0, -high[axis]))
    low, high = [max(0, p) for p in low], [max(0, p) for p in high]
    if mode == "constant":
        value = node[2].reshape([]) if node.has(2) else 0
        return x.pad(low, high, value)
    for axis in range(x.rank):
        if low[axis] or high[axis]:
            x = mirrored(x, axis, low[axis], high[axis], mode)
    return x


def wrapped(indices, extent):
    """Negative indices count from the end."""
    return indices.graph.select(indices < 0, indices + extent, indices)


def gather(node):
    x = node[0]
    axis = x.axis(node.attribute("axis", 0))
    return x.gather(wrapped(node[1], x.shape[axis]), axis)


def linear(graph, parts, extents):
    """The row-major position of indices, one value for each dim."""
    position = parts[0].to("i64")
    for part, extent in zip(parts[1:], extents[1:]):
        position = position * extent + part.to("i64")
    return position


def gather_elements(node):
    x, indices = node[0], node[1]
    axis = x.axis(node.attribute("axis", 0))
    return pick(x, wrapped(indices, x.shape[axis]), axis)


def pick(x, indices, axis):
    """result[..i..] = x[..indices[..i..]..], by positions in the flat x."""
    parts = [x.graph.iota(indices.shape, d) for d in range(x.rank)]
    parts[axis] = indices
    return x.reshape([math.prod(x.shape)]).gather(linear(x.graph, parts, x.shape), 0)


def gather_nd(node):
    x, indices, batch = node[0], node[1], node.attribute("batch_dims", 0)
    depth = indices.shape[-1]
    shape = indices.shape[:-1]
    parts = [x.graph.iota(shape, d) for d in range(batch)]
    for d in range(depth):
        part = indices.narrow(-1, d, d + 1).reshape(shape)
        parts.append(wrapped(part, x.shape[batch + d]))
    leading = x.shape[: batch + depth]
    flat = x.reshape([math.prod(leading)] + x.shape[batch + depth :])
    return flat.gather(linear(x.graph, parts, leading), 0)


def reverse_sequence(node):
    x, lengths = node[0], node[1]
    batch, time = node.attribute("batch_axis", 1), node.attribute("time_axis", 0)
    positions = x.graph.iota(x.shape, time)
    ends = lengths.to("i64").reshape([x.shape[batch] if d == batch else 1 for d in range(x.rank)])
    return pick(x, x.graph.select(positions < ends, ends - 1 - positions, positions), time)


def one_hot(node):
    indices, depth, values = node[0], int(node.known(1).reshape(())), node[2]
    shape = list(indices.shape)
    axis = node.attribute("axis", -1) % (len(shape) + 1)
    wide = shape[:axis] + [depth] + shape[axis:]
    if indices.dtype in ("f32", "f64", "f16"):
        indices = indices.to("i64")
    classes = indices.graph.iota(wide, axis, indices.dtype)
    hit = wrapped(indices, depth).reshape(shape[:axis] + [1] + shape[axis:]).do("eq", classes)
    off, on = values.narrow(0, 0, 1).reshape([]), values.narrow(0, 1, 2).reshape([])
    return values.graph.select(hit, on, off)


def eye_like(node):
    x, k = node[0], node.attribute("k", 0)
    dtype = target_type(node.attribute("dtype")) if node.attribute("dtype") else x.dtype
    hit = x.graph.iota(x.shape, 1).do("eq", x.graph.iota(x.shape, 0) + k)
    return hit.to(dtype)


def ranged(node):
    start, limit, delta = (node.known(i) for i in range(3))
    count = max(0, math.ceil((limit - start) / delta))
    value = node[0]
    return node[0].reshape([]) + node.graph.iota([count], 0, "i64").to(value.dtype) * node[2].reshape([])


def constant(node):
    for name, value in node.attributes.items():
        if isinstance(value, onnx.TensorProto):
            return node.graph.input(onnx.numpy_helper.to_array(value))
        dtype = {
            "value_float": "float32",
            "value_floats": "float32",
            "value_int": "int64",
            "value_ints": "int64",
        }.get(name)
        if dtype:
            return node.graph.input(numpy.asarray(value, dtype=dtype))
    raise Inexpressible("strings")


def constant_of_shape(node):
    value = node.attribute("value")
    array = onnx.numpy_helper.to_array(value) if value is not None else numpy.zeros(1, numpy.float32)
    return node.graph.constant(
        array.reshape(-1)[0], type_of(array.dtype), [int(extent) for extent in node.known(0)]
    )


def dim_size(graph, extent):
    return graph.op("dim_size", [], "i64", [], dim=extent)


def shape(node):
    extents = node[0].shape
    extents = extents[slice(node.attribute("start", 0), node.attribute("end", len(extents)))]
    if not extents:
        return node.graph.constant(0, "i64", [0])
    return node.graph.concat([dim_size(node.graph, extent).reshape([1]) for extent in extents], 0)


def trilu(node):
    x, k = node[0], int(node.known(1, 0))
    row, column = x.graph.iota(x.shape, x.rank - 2), x.graph.iota(x.shape, x.rank - 1)
    kept = column >= row + k if node.attribute("upper", 1) else column <= row + k
    return x.graph.select(kept, x, False if x.dtype == "bool" else 0)


def depth_to_space(node):
    x, b = node[0], node.attribute("blocksize")
    n, c, h, w = x.shape
    if node.attribute("mode", "DCR") == "DCR":
        x = x.reshape([n, b, b, c // (b * b), h, w]).transpose([0, 3, 4, 1, 5, 2])
    else:
        x = x.reshape([n, c // (b * b), b, b, h, w]).transpose([0, 1, 4, 2, 5, 3])
    return x.reshape([n, c // (b * b), h * b, w * b])


def space_to_depth(node):
    x, b = node[0], node.attribute("blocksize")
    n, c, h, w = x.shape
    order = [0, 3, 5, 1, 2, 4] if node.attribute("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    return x.reshape([n, c, h // b, b, w // b, b]).transpose(order).reshape([n, c * b * b, h // b, w // b])


def center_crop_pad(node):
    x, wanted = node[0], node.known(1).tolist()
    axes = [x.axis(a) for a in node.attribute("axes", list(range(x.rank)))]
    for axis, extent in zip(axes, wanted):
        have = x.shape[axis]
        if have > extent:
            start = (have - extent) // 2
            x = x.narrow(axis, start, start + extent)
        elif have < extent:
            low, high = [0] * x.rank, [0] * x.rank
            low[axis] = (extent - have) // 2
            high[axis] = extent - have - low[axis]
            x = x.pad(low, high, 0)
    return x


def array_feature_extractor(node):
    x = node[0]
    return x.gather(node[1].reshape([math.prod(node[1].shape)]), x.rank - 1)


def transpose(node):
    x = node[0]
    return x.transpose(node.attribute("perm", list(reversed(range(x.rank)))))


HANDLERS = {
    "ArrayFeatureExtractor": array_feature_extractor,
    "CenterCropPad": center_crop_pad,
    "Concat": lambda node: node.graph.concat(node.all(), node[0].axis(node.attribute("axis"))),
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": ranged,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Shape": shape,
    "Size": lambda node: dim_size(node.graph, math.prod(node[0].shape)),
    "Slice": slices,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
