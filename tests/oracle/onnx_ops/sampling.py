# SPDX-License-Identifier: Apache-2.0
"""Values between elements: coordinates are computed on the device, elements gathered at their neighbours."""

import functools
import itertools
import math

from graph_writer import Inexpressible
from onnx_ops.elementwise import target_type
from onnx_ops.movement import linear
from onnx_ops.networks import by_channel, sum_of

NEAREST = {
    "round_prefer_floor": lambda x: (x - 0.5).do("ceil"),
    "round_prefer_ceil": lambda x: (x + 0.5).do("floor"),
    "floor": lambda x: x.do("floor"),
    "ceil": lambda x: x.do("ceil"),
}


def triangle(t):
    return (1 - t.do("abs")).do("max", 0.0)


def cubic(a):
    def kernel(t):
        t = t.do("abs")
        near = (t * (a + 2) - (a + 3)) * t * t + 1
        far = ((t * a - 5 * a) * t + 8 * a) * t - 4 * a
        return t.graph.select(t <= 1, near, t.graph.select(t < 2, far, 0.0))

    return kernel


def coordinates(graph, mode, extent, scale, size, roi):
    """Where each element of the result lies in the operand, and which lie outside, in f64."""
    y, wide = graph.iota([size], 0, "f64"), scale * extent
    if mode == "align_corners":
        return y * ((extent - 1) / (wide - 1) if wide != 1 else 0.0), None
    if mode == "asymmetric":
        return y / scale, None
    if mode == "tf_crop_and_resize":
        begin, end = roi
        step = (end - begin) * (extent - 1) / (wide - 1) if wide != 1 else 0.0
        first = begin * (extent - 1) + (0.0 if wide != 1 else (end - begin) * (extent - 1) / 2)
        x = y * step + first
        return x, (x < 0).do("logical_or", x > extent - 1)
    if mode == "pytorch_half_pixel" and wide == 1:
        return y * 0.0 - 0.5, None
    offset = extent / 2 * (1 - size / wide) if mode == "half_pixel_symmetric" else 0.0
    return (y + 0.5) / scale - 0.5 + offset, None


def resize_axis(node, x, axis, scale, size, roi):
    graph, extent = x.graph, x.shape[axis]
    mode = node.attribute("mode", "nearest")
    position, outside = coordinates(
        graph, node.attribute("coordinate_transformation_mode", "half_pixel"), extent, scale, size, roi
    )
    column = [size if d == axis else 1 for d in range(x.rank)]
    if mode == "nearest":
        index = NEAREST[node.attribute("nearest_mode", "round_prefer_floor")](position)
        result = x.gather(index.to("i64"), axis)
    else:
        kernel, support = (
            (triangle, 1) if mode == "linear" else (cubic(node.attribute("cubic_coeff_a", -0.75)), 2)
        )
        shrink = min(scale, 1.0) if node.attribute("antialias", 0) else 1.0
        first = (position - support / shrink).do("floor")
        indices = [first + k for k in range(2 * math.ceil(support / shrink) + 2)]
        weights = [kernel((index - position) * shrink) for index in indices]
        if node.attribute("exclude_outside", 0):
            weights = [
                graph.select((i < 0).do("logical_or", i > extent - 1), 0.0, w)
                for i, w in zip(indices, weights)
            ]
        total = sum_of(weights)
        terms = []
        for index, weight in zip(indices, weights):
            weight = (weight / total).to(x.dtype).reshape(column)
            terms.append(x.gather(index.to("i64"), axis) * weight)
        result = sum_of(terms)
    if outside is not None:
        result = graph.select(outside.reshape(column), node.attribute("extrapolation_value", 0.0), result)
    return result


def resize(node):
    x = node[0]
    roi = node.known(1) if node.has(1) else None
    axes = [x.axis(a) for a in node.attribute("axes", list(range(x.rank)))]
    scales = node.known(2).tolist() if node.has(2) and node.known(2).size else None
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if scales is None:
        sizes = node.known(3).tolist()
        scales = [size / x.shape[axis] for axis, size in zip(axes, sizes)]
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales = [scale] * len(axes)
            sizes = [math.floor(scale * x.shape[axis] + 0.5) for axis in axes]
    else:
        sizes = [math.floor(x.shape[axis] * scale) for axis, scale in zip(axes, scales)]
    crops = node.attribute("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    for i, (axis, scale, size) in enumerate(zip(axes, scales, sizes)):
        if crops or scale != 1 or size != x.shape[axis]:
            bounds = (float(roi[i]), float(roi[i + len(axes)])) if crops else None
            x = resize_axis(node, x, axis, scale, size, bounds)
    return x


def upsample(node):
    x, scales = node[0], node.known(1).tolist()
    for axis, scale in enumerate(scales):
        size = math.floor(x.shape[axis] * scale)
        x = (
            x.gather((x.graph.iota([size], 0, "f64") / scale).do("floor").to("i64"), axis)
            if scale != 1
            else x
        )
    return x


# Grids


def reflected(x, low, high):
    """Turned back at the borders until it lies between them."""
    span = high - low
    away = x.graph.select(x < low, low - x, x - high)
    turns = (away / span).do("floor")
    rest = away - turns * span
    even = turns.do("rem", 2.0).do("eq", 0.0)
    from_low, from_high = low + rest, high - rest
    below = x.graph.select(even, from_low, from_high)
    above = x.graph.select(even, from_high, from_low)
    return x.graph.select(x < low, below, x.graph.select(x > high, above, x))


def padded_position(position, extent, padding, low, high):
    if padding == "border":
        return position.do("max", 0.0).do("min", extent - 1.0)
    return reflected(position, low, high) if padding == "reflection" else position


def sampled(x, positions, weights, padding, borders, batch=None):
    """Weights times the elements of x [n, c, dims...] at whole positions: [n, result...] -> [n, result..., c]. `batch`
    tells which of the n, else each its own."""
    graph, dims = x.graph, x.shape[2:]
    positions = [padded_position(p, extent, padding, *border) for p, extent, border in zip(positions, dims, borders)]
    inside = None
    for position, extent in zip(positions, dims):
        one = (position >= 0).do("logical_and", position <= extent - 1)
        inside = one if inside is None else inside.do("logical_and", one)
    positions = [p.do("max", 0.0).do("min", extent - 1.0).to("i64") for p, extent in zip(positions, dims)]
    batch = graph.iota(positions[0].shape, 0) if batch is None else batch
    rows = x.transpose([0, *range(2, x.rank), 1]).reshape([x.shape[0] * math.prod(dims), x.shape[1]])
    found = rows.gather(linear(graph, [batch, *positions], [x.shape[0], *dims]), 0)
    weight = graph.select(inside, weights, 0.0)
    return found * weight.reshape(weight.shape + [1])


def grid_sample(node):
    x, grid = node[0], node[1]
    dims, padding, mode = (
        x.shape[2:],
        node.attribute("padding_mode", "zeros"),
        node.attribute("mode", "linear"),
    )
    corners = node.attribute("align_corners", 0)
    borders = [(0.0, extent - 1.0) if corners else (-0.5, extent - 0.5) for extent in dims]
    positions = []
    for i, extent in enumerate(dims):  # the last coordinate is that of the first dim
        n = grid.narrow(-1, len(dims) - 1 - i, len(dims) - i).reshape(grid.shape[:-1])
        position = (n + 1) / 2 * (extent - 1) if corners else ((n + 1) * extent - 1) / 2
        position = position.do("round") if mode == "nearest" else position
        positions.append(padded_position(position, extent, padding, *borders[i]))
    if mode == "nearest":
        total = sampled(x, positions, 1.0 + positions[0] * 0, padding, borders)
    else:
        kernel, offsets = (
            (triangle, (0, 1)) if mode in ("linear", "bilinear") else (cubic(-0.75), (-1, 0, 1, 2))
        )
        terms = []
        for taps in itertools.product(offsets, repeat=len(dims)):
            spots = [position.do("floor") + tap for position, tap in zip(positions, taps)]
            weight = None
            for spot, position in zip(spots, positions):
                one = kernel(spot - position)
                weight = one if weight is None else weight * one
            terms.append(sampled(x, spots, weight, padding, borders))
        total = sum_of(terms)
    return total.transpose([0, total.rank - 1, *range(1, total.rank - 1)])


def neighbours(x, positions, padding, batch=None):
    """What the neighbours of each position have a share in it: 2^rank values, whose sum is the linear interpolation."""
    for taps in itertools.product((0, 1), repeat=len(positions)):
        spots = [position.do("floor") + tap for position, tap in zip(positions, taps)]
        weight = None
        for spot, position in zip(spots, positions):
            one = triangle(spot - position)
            weight = one if weight is None else weight * one
        yield sampled(x, spots, weight, padding, [(0.0, 0.0)] * len(positions), batch)


def roi_align(node):
    """Regions of an image, each cut into a grid of cells, with some samples in each cell."""
    x, rois, batch, graph = node[0], node[1], node[2], node.graph
    rows, columns = node.attribute("output_height", 1), node.attribute("output_width", 1)
    samples, half = node.attribute("sampling_ratio", 0), node.attribute(
        "coordinate_transformation_mode", "half_pixel"
    )
    if samples == 0:
        raise Inexpressible("the number of samples depends on data")
    count, shape = rois.shape[0], [rois.shape[0], rows * samples, columns * samples]
    positions, outside = [], None
    for axis, (cells, extent) in enumerate(zip((rows, columns), x.shape[2:]), 1):
        begin, end = (rois.narrow(1, i, i + 1).reshape([count, 1, 1]) for i in (2 - axis, 4 - axis))
        scale, offset = node.attribute("spatial_scale", 1.0), 0.5 if half == "half_pixel" else 0.0
        begin, end = begin * scale - offset, end * scale - offset
        width = end - begin if offset else (end - begin).do("max", 1.0)
        step = graph.iota(shape, axis, "f32") + 0.5
        position = begin + step * (width / (cells * samples))
        off = (position < -1).do("logical_or", position > extent)
        outside = off if outside is None else outside.do("logical_or", off)
        positions.append(position.do("max", 0.0).do("min", extent - 1.0))
    batch = batch.to("i64").reshape([count, 1, 1]).broadcast(shape)
    greatest = node.attribute("mode", "avg") == "max"
    shares = list(neighbours(x, positions, "border", batch))
    value = functools.reduce(lambda a, b: a.do("max", b), shares) if greatest else sum_of(shares)
    value = graph.select(outside.reshape(shape + [1]), 0.0, value)
    value = value.reshape([count, rows, samples, columns, samples, x.shape[1]])
    value = value.reduce("reduce_max", [2, 4], False) if greatest else value.mean([2, 4], False)
    return value.transpose([0, 3, 1, 2])


def deformable_convolution(node):
    """A convolution whose kernel reads between elements: where, an input tells for each position of the result."""
    x, w, offset, bias, mask = [node[i] for i in range(5)]
    graph, rank, result = node.graph, x.rank - 2, offset.shape[2:]
    groups, own_groups = node.attribute("group", 1), node.attribute("offset_group", 1)
    pads, strides = node.attribute("pads") or [0] * (2 * rank), node.attribute("strides") or [1] * rank
    dilations, taps = node.attribute("dilations") or [1] * rank, math.prod(w.shape[2:])
    n, m, c = x.shape[0], w.shape[0] // groups, w.shape[1]
    kernel = w.reshape([groups, m, c, taps])
    offset = offset.reshape([n, own_groups, taps, rank, *result])
    mask = None if mask is None else mask.reshape([n, own_groups, taps, *result])
    terms = []
    for number, tap in enumerate(itertools.product(*map(range, w.shape[2:]))):
        parts, share = [], x.shape[1] // own_groups
        for own in range(own_groups):
            positions = []
            for d in range(rank):
                moved = offset.slice(
                    [0, own, number, d] + [0] * rank, [n, own + 1, number + 1, d + 1] + result
                )
                regular = graph.iota([n, *result], d + 1, "f32") * strides[d] + (
                    tap[d] * dilations[d] - pads[d]
                )
                positions.append(regular + moved.reshape([n, *result]))
            part = sum_of(list(neighbours(x.narrow(1, own * share, (own + 1) * share), positions, "zeros")))
            if mask is not None:
                here = mask.slice([0, own, number] + [0] * rank, [n, own + 1, number + 1] + result)
                part = part * here.reshape([n, *result, 1])
            parts.append(part)
        met = graph.concat(parts, rank + 1).reshape([n, *result, groups, c])
        one = kernel.narrow(3, number, number + 1).reshape([groups, m, c])
        at = rank + 1
        terms.append(graph.op("contraction", [one, met], x.dtype, [groups, m, n, *result],
                              batch_a=[0], batch_b=[at], contract_a=[2], contract_b=[at + 1]))  # fmt: skip
    total = sum_of(terms).transpose([2, 0, 1, *range(3, rank + 3)]).reshape([n, groups * m, *result])
    return total if bias is None else total + by_channel(bias, total)


def affine_grid(node):
    theta, size = node[0], node.known(1).tolist()
    dims, graph = size[2:], node.graph
    corners = node.attribute("align_corners", 0)
    columns = []
    for d, extent in reversed(list(enumerate(dims))):
        step, first = (2 / (extent - 1), -1.0) if corners else (2 / extent, -1 + 1 / extent)
        columns.append((graph.iota(dims + [1], d, "f64") * step + first).to(theta.dtype))
    columns.append(graph.constant(1.0, theta.dtype, dims + [1]))
    points = graph.concat(columns, len(dims)).reshape([math.prod(dims), len(dims) + 1])
    return graph.matmul(points, theta.transpose([0, 2, 1])).reshape([size[0], *dims, len(dims)])


# Spectra


def transformed(x, axis, length, inverse, onesided):
    """The discrete Fourier transform of [..., 1 or 2] by products with matrices of cosines and sines."""
    graph, parts = x.graph, x.shape[-1]
    halved = inverse and onesided  # of half of a spectrum, the other half being its mirror image
    used = length // 2 + 1 if halved else length
    x = x.narrow(axis, 0, min(used, x.shape[axis]))
    x = x.pad([0] * x.rank, [used - x.shape[axis] if d == axis else 0 for d in range(x.rank)], 0)
    count = length // 2 + 1 if onesided and not inverse else length
    turns = (graph.iota([used, count], 0) * graph.iota([used, count], 1)).do("rem", length).to("f64")
    angle = turns * ((2 if inverse else -2) * math.pi / length)
    cosine, sine = angle.do("cos"), angle.do("sin")
    if inverse:
        share = 1 / length
        if halved:
            row = graph.iota([used, 1], 0)
            once = row.do("eq", 0)
            once = once.do("logical_or", row.do("eq", length // 2)) if length % 2 == 0 else once
            share = graph.select(once, graph.constant(share, "f64"), 2 * share)
        cosine, sine = cosine * share, sine * share
    order = [d for d in range(x.rank - 1) if d != axis] + [axis]
    columns = [x.narrow(-1, i, i + 1).reshape(x.shape[:-1]).transpose(order).to("f64") for i in range(parts)]
    real = graph.matmul(columns[0], cosine)
    imaginary = graph.matmul(columns[0], sine)
    if parts == 2:
        real, imaginary = real - graph.matmul(columns[1], sine), imaginary + graph.matmul(columns[1], cosine)
    back = [order.index(d) for d in range(x.rank - 1)]
    results = [part.transpose(back).to(x.dtype) for part in ([real] if halved else [real, imaginary])]
    return graph.concat([part.reshape(part.shape + [1]) for part in results], x.rank - 1)


def dft(node):
    x = node[0]
    axis = x.axis(int(node.known(2, -2)) if node.opset >= 20 else node.attribute("axis", 1))
    inverse, onesided = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    usual = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    return transformed(x, axis, int(node.known(1, usual)), inverse, onesided)


def short_time(node):
    x, step, window = node[0], int(node.known(1)), node[2]
    x = x if x.rank == 3 else x.reshape(x.shape + [1])
    length = int(node.known(3, window.shape[0] if window is not None else x.shape[1]))
    frames = [x.narrow(1, i, i + length) for i in range(0, x.shape[1] - length + 1, step)]
    framed = x.graph.concat([f.reshape([f.shape[0], 1] + f.shape[1:]) for f in frames], 1)
    if window is not None:
        framed = framed * window.reshape([length, 1])
    return transformed(framed, 2, length, False, bool(node.attribute("onesided", 1)))


def mel_weights(node):
    """Triangles over the bins of a spectrum, whose corners are evenly spaced in mel."""
    bins, length, graph = int(node.known(0)), int(node.known(1)), node.graph
    rate, low, high = (node[i].reshape([]).to("f64") for i in (2, 3, 4))
    low, high = ((edge / 700).do("log1p") * (2595 / math.log(10)) for edge in (low, high))
    mel = graph.iota([bins + 2], 0, "f64") * ((high - low) / (bins + 2)) + low
    edges = ((mel / 2595 * math.log(10)).do("expm1") * 700 * (length + 1) / rate).do("floor")
    left, middle, right = (edges.narrow(0, i, i + bins) for i in range(3))
    position = graph.iota([length // 2 + 1, bins], 0, "f64")
    rising = (position >= left).do("logical_and", position <= middle)
    falling = (position >= middle).do("logical_and", position < right)
    alone = middle.do("eq", left).do("logical_and", position.do("eq", middle))
    weight = graph.select(alone, 1.0, graph.select(rising, (position - left) / (middle - left), 0.0))
    weight = graph.select(falling, (right - position) / (right - middle), weight)
    return weight.to(target_type(node.attribute("output_datatype", 1)))


HANDLERS = {
    "AffineGrid": affine_grid,
    "DFT": dft,
    "DeformConv": deformable_convolution,
    "GridSample": grid_sample,
    "MelWeightMatrix": mel_weights,
    "Resize": resize,
    "RoiAlign": roi_align,
    "STFT": short_time,
    "Upsample": upsample,
}
