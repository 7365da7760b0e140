# SPDX-License-Identifier: Apache-2.0
"""Writes a graph of fuse as text, op by op, with what fuse's own builder adds: broadcasts, and f32 around half types."""

import math

import numpy

NAMES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int8": "i8",
    "uint8": "u8",
    "bool": "bool",
}
HALVES = ("f16", "bf16")
LIMITS = {"i64": (-(2**63), 2**63 - 1), "i32": (-(2**31), 2**31 - 1), "i8": (-128, 127), "u8": (0, 255)}


class Inexpressible(Exception):
    """What today's ops, or the text form, cannot say; its text is the reason."""


def type_of(dtype):
    """fuse's name of a NumPy type."""
    if str(dtype) not in NAMES:
        raise Inexpressible("strings" if numpy.dtype(dtype).kind in "OSU" else f"type {dtype}")
    return NAMES[str(dtype)]


def numpy_type(dtype):
    return numpy.dtype(next(name for name, own in NAMES.items() if own == dtype))


def is_float(dtype):
    return dtype in ("f64", "f32", "f16", "bf16")


class Value:
    """A value of the graph. Arithmetic with Python numbers makes constants of its type."""

    def __init__(self, graph, name, dtype, shape):
        self.graph, self.name, self.dtype, self.shape = graph, name, dtype, list(shape)

    @property
    def rank(self):
        return len(self.shape)

    def __add__(self, other):
        return self.graph.elementwise("add", self, other)

    def __sub__(self, other):
        return self.graph.elementwise("sub", self, other)

    def __mul__(self, other):
        return self.graph.elementwise("mul", self, other)

    def __truediv__(self, other):
        return self.graph.elementwise("div", self, other)

    def __rpow__(self, other):
        return self.graph.elementwise("pow", other, self)

    def __pow__(self, other):
        return self.graph.elementwise("pow", self, other)

    def __radd__(self, other):
        return self.graph.elementwise("add", other, self)

    def __rsub__(self, other):
        return self.graph.elementwise("sub", other, self)

    def __rmul__(self, other):
        return self.graph.elementwise("mul", other, self)

    def __rtruediv__(self, other):
        return self.graph.elementwise("div", other, self)

    def __neg__(self):
        return self.graph.elementwise("neg", self)

    def __lt__(self, other):
        return self.graph.elementwise("lt", self, other)

    def __le__(self, other):
        return self.graph.elementwise("le", self, other)

    def __gt__(self, other):
        return self.graph.elementwise("gt", self, other)

    def __ge__(self, other):
        return self.graph.elementwise("ge", self, other)

    def do(self, name, *others):
        """An element-wise op by its name."""
        return self.graph.elementwise(name, self, *others)

    def to(self, dtype):
        return self if dtype == self.dtype else self.graph.op("convert", [self], dtype, self.shape)

    def axis(self, axis):
        return axis + self.rank if axis < 0 else axis

    def broadcast(self, shape):
        """By NumPy's rules."""
        shape = list(shape)
        if shape == self.shape:
            return self
        skipped = len(shape) - self.rank
        kept = [d for d, extent in enumerate(self.shape) if extent == shape[skipped + d]]
        x = self.reshape([self.shape[d] for d in kept])
        return self.graph.op("broadcast_in_dim", [x], self.dtype, shape, dims=[skipped + d for d in kept])

    def reshape(self, shape):
        return self if list(shape) == self.shape else self.graph.op("reshape", [self], self.dtype, shape)

    def transpose(self, dims):
        shape = [self.shape[d] for d in dims]
        return (
            self
            if list(dims) == list(range(self.rank))
            else self.graph.op("transpose", [self], self.dtype, shape, dims=dims)
        )

    def slice(self, starts, limits, strides=None):
        strides = strides or [1] * self.rank
        shape = [
            max(0, -(-(limit - start) // stride)) for start, limit, stride in zip(starts, limits, strides)
        ]
        return self.graph.op(
            "slice", [self], self.dtype, shape, starts=starts, limits=limits, strides=strides
        )

    def narrow(self, axis, start, limit, stride=1):
        """A slice of one axis."""
        axis = self.axis(axis)
        starts, limits, strides = [0] * self.rank, list(self.shape), [1] * self.rank
        starts[axis], limits[axis], strides[axis] = start, max(start, limit), stride
        return self.slice(starts, limits, strides)

    def reverse(self, dims):
        return self.graph.op("reverse", [self], self.dtype, self.shape, dims=sorted(dims)) if dims else self

    def pad(self, low, high, value):
        if not any(low) and not any(high):
            return self
        shape = [a + extent + b for a, extent, b in zip(low, self.shape, high)]
        value = self.graph.lift(value, self.dtype)
        return self.graph.op("pad", [self, value], self.dtype, shape, low=low, high=high)

    def gather(self, indices, axis):
        shape = self.shape[:axis] + indices.shape + self.shape[axis + 1 :]
        return self.graph.op("gather", [self, indices], self.dtype, shape, axis=axis)

    def reduce(self, name, axes, keep=True):
        """Half types are reduced in f32 and rounded once."""
        axes = sorted({self.axis(axis) for axis in axes})
        wide = self.to("f32") if self.dtype in HALVES else self
        shape = [extent for d, extent in enumerate(self.shape) if d not in axes]
        dtype = "i64" if name.startswith("arg") else wide.dtype
        result = self.graph.op(name, [wide], dtype, shape, dims=axes)
        result = result.to(self.dtype) if self.dtype in HALVES and dtype != "i64" else result
        return (
            result.reshape([1 if d in axes else extent for d, extent in enumerate(self.shape)])
            if keep
            else result
        )

    def sum(self, axes, keep=True):
        return self.reduce("reduce_sum", axes, keep)

    def mean(self, axes, keep=True):
        return self.sum(axes, keep) / math.prod(self.shape[axis] for axis in axes)


class Graph:
    def __init__(self):
        self.inputs, self.lines, self.outputs = [], [], []  # inputs: (Value, array)

    def input(self, array):
        value = Value(self, f"%x{len(self.inputs)}", type_of(array.dtype), array.shape)
        self.inputs.append((value, array))
        return value

    def op(self, name, operands, dtype, shape, **attributes):
        value = Value(self, f"%v{len(self.lines)}", dtype, map(int, shape))
        words = ", ".join(operand.name for operand in operands)
        said = ", ".join(f"{key} = {text(said)}" for key, said in attributes.items())
        self.lines.append(
            f"{value.name} = {name} {words} {'{' + said + '}' if said else ''} : {dtype}{value.shape}"
        )
        return value

    def constant(self, number, dtype, shape=()):
        if dtype in HALVES:
            return self.constant(number, "f32", shape).to(dtype)
        if is_float(dtype):
            number = float(numpy.float32(number)) if dtype == "f32" else float(number)
        else:
            number = bool(number) if dtype == "bool" else int(number)
        return self.op("constant", [], dtype, shape, value=number)

    def lift(self, value, dtype):
        return value if isinstance(value, Value) else self.constant(value, dtype)

    def elementwise(self, name, *operands):
        dtype = next(operand.dtype for operand in operands if isinstance(operand, Value))
        operands = [self.lift(operand, dtype) for operand in operands]
        shape = numpy.broadcast_shapes(*(tuple(operand.shape) for operand in operands))
        operands = [operand.broadcast(shape) for operand in operands]
        half = dtype in HALVES
        if half:
            operands = [operand.to("f32") for operand in operands]
        boolean = name in ("eq", "ne", "lt", "le", "gt", "ge", "is_nan", "is_inf")
        result = self.op(name, operands, "bool" if boolean else operands[0].dtype, shape)
        return result.to(dtype) if half and not boolean else result

    def select(self, condition, a, b):
        dtype = next(operand.dtype for operand in (a, b) if isinstance(operand, Value))
        operands = [condition, self.lift(a, dtype), self.lift(b, dtype)]
        shape = numpy.broadcast_shapes(*(tuple(operand.shape) for operand in operands))
        return self.op("select", [operand.broadcast(shape) for operand in operands], dtype, shape)

    def iota(self, shape, axis, dtype="i64"):
        return self.op("iota", [], dtype, shape, axis=axis)

    def concat(self, parts, axis):
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.op("concat", parts, parts[0].dtype, shape, axis=axis)

    def matmul(self, a, b, dtype=None):
        """NumPy's: batch dims broadcast, a vector is a row on the left and a column on the right."""
        vector_a, vector_b = a.rank == 1, b.rank == 1
        a = a.reshape([1] + a.shape) if vector_a else a
        b = b.reshape(b.shape + [1]) if vector_b else b
        batch = list(numpy.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2])))
        a, b = a.broadcast(batch + a.shape[-2:]), b.broadcast(batch + b.shape[-2:])
        result = self.op("matmul", [a, b], dtype or a.dtype, batch + [a.shape[-2], b.shape[-1]])
        shape = batch + ([] if vector_a else [a.shape[-2]]) + ([] if vector_b else [b.shape[-1]])
        return result.reshape(shape)

    def text(self):
        given = ", ".join(f"{value.name}: {value.dtype}{value.shape}" for value, _ in self.inputs)
        made = ", ".join(f"y{i}: {value.dtype}{value.shape}" for i, value in enumerate(self.outputs))
        returned = ", ".join(f"y{i} = {value.name}" for i, value in enumerate(self.outputs))
        body = "".join(f"  {line}\n" for line in self.lines)
        return f"graph @node({given}) -> ({made}) {{\n{body}  return {returned}\n}}\n"


def text(said):
    if isinstance(said, bool):
        return "true" if said else "false"
    if isinstance(said, (list, tuple)):
        return "[" + ", ".join(text(item) for item in said) + "]"
    if isinstance(said, float):
        return (
            "nan" if math.isnan(said) else ("-inf" if said < 0 else "inf") if math.isinf(said) else said.hex()
        )
    return str(int(said))


def as_npy(array):
    """An array as fusec reads it: bf16, which NumPy lacks, is two bytes without a type."""
    return array.view("V2") if str(array.dtype) == "bfloat16" else array
