# SPDX-License-Identifier: Apache-2.0
"""Philox 4x32-10 (Salmon and others, SC 2011), by 64-bit integers of PyTorch, which wrap."""

import torch

MASK = 0xFFFFFFFF


def words(seed, offset, stream, blocks):
    counter = [blocks & MASK, (blocks >> 32) & MASK]
    counter += [torch.full_like(blocks, stream & MASK), torch.full_like(blocks, offset & MASK)]
    key0, key1 = seed & MASK, (seed >> 32) & MASK
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            ((b >> 32) & MASK) ^ counter[1] ^ key0,
            b & MASK,
            ((a >> 32) & MASK) ^ counter[3] ^ key1,
            a & MASK,
        ]
        key0, key1 = (key0 + 0x9E3779B9) & MASK, (key1 + 0xBB67AE85) & MASK
    return torch.stack(counter, dim=-1)


def uniform(seed, offset, stream, shape, dtype):
    """In [0, 1): f32 takes one word of a block of four, f64 two."""
    count = torch.Size(shape).numel()
    each = 4 if dtype == torch.float32 else 2
    drawn = words(seed, offset, stream, torch.arange((count + each - 1) // each))
    if dtype == torch.float32:
        numbers = (drawn >> 8).to(torch.float64) * 2.0**-24
    else:  # the second word of a pair is the high one; 53 bits of the 64 count
        low, high = drawn[:, 0::2], drawn[:, 1::2]
        numbers = ((high << 21) | (low >> 11)).to(torch.float64) * 2.0**-53
    return numbers.reshape(-1)[:count].reshape(shape).to(dtype)
