# SPDX-License-Identifier: Apache-2.0
"""The models of the cpu cases in PyTorch: a function that runs once, and the names of what it returns."""

import torch
import torch.nn.functional as F


def dense(t, x, name):
    weight, bias = t[name + ".weight"], t[name + ".bias"]
    return torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight).view(*x.shape[:-1], -1)


def norm(t, x, name):
    return F.layer_norm(x, (x.shape[-1],), t[name + ".gamma"], t[name + ".beta"], 1e-5)


def encoder(t, dims, given=False):
    batch, _, hidden, heads, layers = dims

    def forward(x):
        length = x.shape[1]
        for i in range(layers):
            p = "%d." % i
            qkv = dense(t, x, p + "qkv").view(batch, length, 3, heads, hidden // heads)
            q, k, v = (qkv[:, :, j].transpose(1, 2) for j in range(3))
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, hidden)
            x = norm(t, x + dense(t, mixed, p + "out"), p + "norm1")
            x = norm(t, x + dense(t, F.gelu(dense(t, x, p + "up")), p + "down"), p + "norm2")
        return (x,)

    return (forward if given else lambda: forward(t["x"])), ("y",)


def decode_step(t, dims):
    batch, length, hidden, heads, layers = dims

    def step():
        x = t["x"]
        for i in range(layers):
            p = "%d." % i
            qkv = dense(t, norm(t, x, p + "norm1"), p + "qkv").view(batch, 3, heads, hidden // heads)
            keys, values = t[p + "keys"], t[p + "values"]
            keys[:, :, length - 1] = qkv[:, 1]
            values[:, :, length - 1] = qkv[:, 2]
            mixed = F.scaled_dot_product_attention(qkv[:, 0].unsqueeze(2), keys, values)
            x = x + dense(t, mixed.reshape(batch, hidden), p + "out")
            x = x + dense(t, F.gelu(dense(t, norm(t, x, p + "norm2"), p + "up")), p + "down")
        return (x,)

    return step, ("y",)


def lstm(t, dims):
    """torch.lstm, which may use oneDNN; its gates stand in the same order."""
    _, batch, width = dims
    zeros = t["x"].new_zeros(1, batch, width)
    weights = [t["input.weight"].t().contiguous(), t["hidden.weight"].t().contiguous(), t["bias"],
               torch.zeros_like(t["bias"])]
    x = t["x"]
    return lambda: (torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, False, False, False)[0],), ("y",)


MODELS = {"encoder": encoder, "decode_step": decode_step, "lstm": lstm}
