# SPDX-License-Identifier: Apache-2.0
"""fuse's ops in PyTorch: one entry of OPS for each, written from docs/ops.md alone.

An entry takes the operands and the context `op`: op.dtype and op.shape of the result, op.attribute(name) with extents
evaluated. Elements are computed in the graph's own types, as a device does; PyTorch's order of sums is its own.
"""

import string

import numpy
import torch

import torch_random
from torch_types import convert, highest, lowest


def sign(op, x):
    signs = (x > 0).to(x.dtype) - (x < 0).to(x.dtype)
    return torch.where(x.isnan(), x, signs) if x.is_floating_point() else signs


def correctly_rounded(function):
    """By NumPy, where PyTorch's vector library errs: sqrt by an ulp at times, fmod of large quotients."""

    def evaluate(op, *operands):
        with numpy.errstate(all="ignore"):
            return torch.from_numpy(numpy.asarray(function(*(x.numpy() for x in operands))))

    return evaluate


def larger(op, a, b):
    both_zero = (a == 0) & (b == 0)
    return torch.where(both_zero, a + b, torch.maximum(a, b))  # +0 is greater than -0


def smaller(op, a, b):
    both_zero = (a == 0) & (b == 0)
    return torch.where(both_zero, -(-a + -b), torch.minimum(a, b))


def divide(op, a, b):
    if a.is_floating_point():
        return a / b
    safe = torch.where((b == 0) | minus_one(b), torch.ones_like(b), b)
    quotient = torch.div(a, safe, rounding_mode="trunc")
    return torch.where(b == 0, torch.zeros_like(a), torch.where(minus_one(b), -a, quotient))


def remainder(op, a, b):
    if a.is_floating_point():
        return correctly_rounded(numpy.fmod)(op, a, b)
    none = (b == 0) | minus_one(b)
    return torch.where(none, torch.zeros_like(a), torch.fmod(a, torch.where(none, torch.ones_like(b), b)))


def minus_one(b):
    return (b == -1) if b.dtype != torch.uint8 else torch.zeros_like(b, dtype=torch.bool)


def power(op, a, b):
    if a.is_floating_point():
        return torch.pow(a, b)
    result, square, left = torch.ones_like(a), a, b
    for _ in range(a.element_size() * 8):  # the bits of the exponent
        result = torch.where((left & 1) != 0, result * square, result)
        square, left = square * square, left >> 1
    if a.dtype == torch.uint8:
        return result
    alternating = torch.where((b & 1) != 0, a, torch.ones_like(a))  # of base 1 and -1
    fraction = torch.where((a == 1) | (a == -1), alternating, torch.zeros_like(a))
    return torch.where(b < 0, fraction, result)


def shift_left(op, a, b):
    valid = (b >= 0) & (b < a.element_size() * 8)
    shifted = torch.bitwise_left_shift(a, torch.where(valid, b, 0))
    return torch.where(valid, shifted, torch.zeros_like(a))


def shift_right(op, a, b):
    valid = (b >= 0) & (b < a.element_size() * 8)
    shifted = torch.bitwise_right_shift(a, torch.where(valid, b, 0))
    return torch.where(valid, shifted, torch.where(a < 0, -torch.ones_like(a), torch.zeros_like(a)))


# Reductions


def reduced(x, dims, one):
    for dim in sorted(dims, reverse=True):
        x = one(x, dim)
    return x


def extreme(of, empty):
    def reduce(op, x):
        dims = op.attribute("dims")
        if any(x.shape[d] == 0 for d in dims):
            return torch.full(op.shape, empty(x.dtype), dtype=x.dtype)
        return of(x, dim=dims) if dims else x

    return reduce


def position(of):
    def reduce(op, x):
        (dim,) = op.attribute("dims")
        best = of(x, dim=dim, keepdim=True)
        hit = (x == best) | (x.isnan() if x.is_floating_point() else False)
        hit &= ~(best.isnan() & ~x.isnan()) if x.is_floating_point() else True
        positions = torch.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.dim())])
        return torch.where(hit, positions, x.shape[dim]).amin(dim=dim)

    return reduce


# Sources


def iota(op):
    axis = op.attribute("axis")
    positions = torch.arange(op.shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(op.shape))])
    return convert(positions, op.dtype).expand(op.shape)


def constant(op):
    value = op.op.attributes["value"]
    if isinstance(value, float):  # exact in the type
        return convert(torch.tensor(value, dtype=torch.float64), op.dtype).expand(op.shape)
    return torch.full(op.shape, value, dtype=op.dtype)


def random_uniform(op, seed, offset):
    return torch_random.uniform(int(seed), int(offset), op.attribute("stream"), op.shape, op.dtype)


# Movement


def broadcast(op, x):
    shape = [1] * len(op.shape)
    for own, dim in enumerate(op.attribute("dims")):
        shape[dim] = x.shape[own]
    return x.reshape(shape).expand(op.shape)


def slices(op, x):
    starts, limits = op.attribute("starts"), op.attribute("limits")
    strides = op.attribute("strides", [1] * x.dim())
    return x[tuple(slice(*bounds) for bounds in zip(starts, limits, strides))]


def pad(op, x, value):
    result = value.expand(op.shape).clone()
    low = op.attribute("low")
    result[tuple(slice(at, at + extent) for at, extent in zip(low, x.shape))] = x
    return result


def gather(op, x, indices):
    axis = op.attribute("axis")
    positions = indices.reshape(-1).to(torch.int64).clamp(0, max(0, x.shape[axis] - 1))
    return x.index_select(axis, positions).reshape(op.shape)


def window(x, starts, sizes):
    """Where a window of these sizes lies: its starts are clamped so that it is inside of x."""
    firsts = [min(max(int(s), 0), extent - size) for s, extent, size in zip(starts, x.shape, sizes)]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes))


def dynamic_update_slice(op, x, update, *starts):
    result = x.clone()
    result[window(x, starts, update.shape)] = update
    return result


def custom_call(op, x):
    """The generator has one kernel, which turns the order of the elements round."""
    if not op.attribute("kernel").startswith("turn_"):
        raise NotImplementedError(f"the custom kernel {op.attribute('kernel')}")
    return x.reshape(-1).flip(0).reshape(op.shape)


# Sums


def cumulative_sum(op, x):
    axis, backwards = op.attribute("axis"), op.attribute("reverse", False)
    x = x.flip(axis) if backwards else x
    sums = torch.cumsum(x, axis, dtype=op.dtype)
    if op.attribute("exclusive", False):
        first = torch.zeros_like(sums.narrow(axis, 0, min(1, sums.shape[axis])))
        sums = torch.cat([first, sums.narrow(axis, 0, max(0, sums.shape[axis] - 1))], dim=axis)
    return sums.flip(axis) if backwards else sums


def accumulating(x):
    return x if x.dtype == torch.float64 else x.to(torch.float32)


def matmul(op, a, b):
    a = a.transpose(-1, -2) if op.attribute("transpose_a", False) else a
    b = b.transpose(-1, -2) if op.attribute("transpose_b", False) else b
    return convert(torch.matmul(accumulating(a), accumulating(b)), op.dtype)


def contraction(op, a, b):
    letters = iter(string.ascii_letters)
    of_a, of_b = [next(letters) for _ in a.shape], [next(letters) for _ in b.shape]
    for pair in ("batch", "contract"):
        for left, right in zip(op.attribute(pair + "_a"), op.attribute(pair + "_b")):
            of_b[right] = of_a[left]
    batch = [of_a[d] for d in op.attribute("batch_a")]
    free_a = [letter for letter in of_a if letter not in of_b]
    free_b = [letter for letter in of_b if letter not in of_a]
    equation = "".join(of_a) + "," + "".join(of_b) + "->" + "".join(batch + free_a + free_b)
    return convert(torch.einsum(equation, accumulating(a), accumulating(b)), op.dtype)


def plain(function):
    return lambda op, *operands: function(*operands)


OPS = {
    # Element by element
    "neg": plain(torch.neg),
    "abs": plain(torch.abs),
    "sign": sign,
    "floor": plain(torch.floor),
    "ceil": plain(torch.ceil),
    "round": plain(torch.round),
    "sqrt": correctly_rounded(numpy.sqrt),
    "rsqrt": plain(torch.rsqrt),
    "reciprocal": plain(torch.reciprocal),
    "exp": plain(torch.exp),
    "exp2": plain(torch.exp2),
    "expm1": plain(torch.expm1),
    "log": plain(torch.log),
    "log2": plain(torch.log2),
    "log1p": plain(torch.log1p),
    "sin": plain(torch.sin),
    "cos": plain(torch.cos),
    "tanh": plain(torch.tanh),
    "erf": plain(torch.erf),
    "is_nan": plain(torch.isnan),
    "is_inf": plain(torch.isinf),
    "logical_not": plain(torch.logical_not),
    "bit_not": plain(torch.bitwise_not),
    "add": plain(torch.add),
    "sub": plain(torch.sub),
    "mul": plain(torch.mul),
    "div": divide,
    "rem": remainder,
    "pow": power,
    "atan2": plain(torch.atan2),
    "max": larger,
    "min": smaller,
    "logical_and": plain(torch.logical_and),
    "logical_or": plain(torch.logical_or),
    "bit_and": plain(torch.bitwise_and),
    "bit_or": plain(torch.bitwise_or),
    "bit_xor": plain(torch.bitwise_xor),
    "shift_left": shift_left,
    "shift_right": shift_right,
    "eq": plain(torch.eq),
    "ne": plain(torch.ne),
    "lt": plain(torch.lt),
    "le": plain(torch.le),
    "gt": plain(torch.gt),
    "ge": plain(torch.ge),
    "clamp": lambda op, a, b, c: smaller(op, larger(op, a, b), c),
    "select": plain(torch.where),
    "convert": lambda op, x: convert(x, op.dtype),
    # Reductions
    "reduce_sum": lambda op, x: reduced(x, op.attribute("dims"), lambda y, d: torch.sum(y, d, dtype=x.dtype)),
    "reduce_prod": lambda op, x: reduced(
        x, op.attribute("dims"), lambda y, d: torch.prod(y, d, dtype=x.dtype)
    ),
    "reduce_max": extreme(torch.amax, lowest),
    "reduce_min": extreme(torch.amin, highest),
    "reduce_any": lambda op, x: reduced(x, op.attribute("dims"), torch.any),
    "reduce_all": lambda op, x: reduced(x, op.attribute("dims"), torch.all),
    "argmax": position(torch.amax),
    "argmin": position(torch.amin),
    # All others
    "constant": constant,
    "iota": iota,
    "dim_size": lambda op: torch.tensor(op.attribute("dim"), dtype=torch.int64),
    "broadcast_in_dim": broadcast,
    "expand": lambda op, x: x.expand(op.shape),
    "reshape": lambda op, x: x.reshape(op.shape),
    "transpose": lambda op, x: x.permute(op.attribute("dims")),
    "slice": slices,
    "reverse": lambda op, x: x.flip(op.attribute("dims")),
    "pad": pad,
    "concat": lambda op, *parts: torch.cat(parts, dim=op.attribute("axis")),
    "gather": gather,
    "dynamic_slice": lambda op, x, *starts: x[window(x, starts, op.shape)],
    "dynamic_update_slice": dynamic_update_slice,
    "cumulative_sum": cumulative_sum,
    "matmul": matmul,
    "contraction": contraction,
    "random_uniform": random_uniform,
    "custom_call": custom_call,
}


class Context:
    """One op with the values of the dims."""

    def __init__(self, op, dims, dtype):
        self.op, self.dims, self.dtype = op, dims, dtype
        self.shape = op.type.shape(dims)

    def attribute(self, name, default=None):
        value = self.op.attributes.get(name, default)
        if isinstance(value, list):
            return [extent(self.dims) if callable(extent) else extent for extent in value]
        if isinstance(value, str) and value not in self.dims:
            return value
        return value(self.dims) if callable(value) else value
