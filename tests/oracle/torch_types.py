# SPDX-License-Identifier: Apache-2.0
"""fuse's types in PyTorch, and conversions between them by the rules of docs/ops.md."""

import torch

TYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
}
HALVES = (torch.float16, torch.bfloat16)


def from_bytes(data, dtype, shape):
    if not data:
        return torch.empty(shape, dtype=TYPES[dtype])
    return torch.frombuffer(bytearray(data), dtype=TYPES[dtype]).reshape(shape)


def lowest(dtype):
    return -torch.inf if dtype.is_floating_point else False if dtype == torch.bool else torch.iinfo(dtype).min


def highest(dtype):
    return torch.inf if dtype.is_floating_point else True if dtype == torch.bool else torch.iinfo(dtype).max


def convert(x, dtype):
    if dtype == torch.bool:
        return x != 0
    if x.dtype.is_floating_point and not dtype.is_floating_point:
        return to_integer(x, dtype)
    if dtype in HALVES and x.dtype in (torch.float64, torch.int64, torch.int32):
        return to_odd_float(x).to(dtype)  # PyTorch goes by way of f32 and would round twice
    return x.to(dtype)


def to_integer(x, dtype):
    """Truncates and saturates; a NaN gives 0."""
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    wide = torch.trunc(x.to(torch.float64))
    inside = (wide > float(low)) & (wide < float(high))
    result = torch.where(inside, wide, 0.0).to(dtype)
    result = torch.where(wide >= float(high), torch.tensor(high, dtype=dtype), result)
    return torch.where(wide <= float(low), torch.tensor(low, dtype=dtype), result)


def to_odd_float(x):
    """To f32, rounded to odd: what is inexact gets an odd last bit, so that a later rounding to fewer bits is that of x."""
    if not x.dtype.is_floating_point:
        x = x.to(torch.int64)
        sticky = ((x & 0x7FF) != 0).to(torch.int64) << 11
        x = torch.where(x.abs() < 2**53, x, (x & ~0x7FF) | sticky).to(torch.float64)
    rounded = x.to(torch.float32)
    wide = rounded.to(torch.float64)
    away = torch.nextafter(rounded, torch.zeros_like(rounded))
    toward_zero = torch.where(wide.abs() > x.abs(), away, rounded)
    odd = (toward_zero.view(torch.int32) | 1).view(torch.float32)
    return torch.where((wide == x) | x.isnan(), rounded, odd)
