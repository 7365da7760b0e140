# SPDX-License-Identifier: Apache-2.0
"""The cpu cases in JAX under jit. JAX takes no output; Adam and the caches donate their inputs, which it writes in place."""

import os
import time

import numpy

THREADS = os.environ.get("NPROC")  # compare.py sets it: XLA reads it when it makes its pool

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import jax_peer  # noqa: E402
from serve import Unsupported  # noqa: E402

jax.config.update("jax_platforms", "cpu")


def wide(x):
    return x.astype(jnp.float32)


def nll(t, _):
    logs = jax.nn.log_softmax(wide(t["x"]), -1)
    return -jnp.take_along_axis(logs, t["labels"][:, None], -1)[:, 0]


def softmax_backward(t, _):
    p, dy = wide(t["probabilities"]), wide(t["dy"])
    return (p * (dy - (p * dy).sum(-1, keepdims=True))).astype(t["dy"].dtype)


def norm_backward(t, _):
    x, dy, rstd = wide(t["x"]), wide(t["dy"]), t["rstd"]
    unit, scaled = (x - t["mean"]) * rstd, dy * t["gamma"]
    dx = rstd * (scaled - scaled.mean(-1, keepdims=True) - unit * (scaled * unit).mean(-1, keepdims=True))
    return {"y": dx.astype(t["x"].dtype), "dgamma": (dy * unit).sum(0), "dbeta": dy.sum(0)}


def dropout(t, _):
    keep = jax.random.bernoulli(t["key"], 0.9, t["x"].shape)
    return jnp.where(keep, t["x"] / 0.9, 0).astype(t["x"].dtype)


def adam(t, _):
    dtype, gradient, step = t["weights"].dtype, wide(t["gradient"]), 10
    m = 0.9 * wide(t["first_moment"]) + 0.1 * gradient
    v = 0.999 * wide(t["second_moment"]) + 0.001 * gradient * gradient
    size, root = 1e-3 / (1 - 0.9**step), (1 - 0.999**step) ** 0.5
    y = wide(t["weights"]) - size * m / (jnp.sqrt(v) / root + 1e-8)
    return {"y": y.astype(dtype), "first_out": m.astype(dtype), "second_out": v.astype(dtype)}


def dense(t, x, name):
    return x @ t[name + ".weight"] + t[name + ".bias"]


def norm(t, x, name):
    return jax_peer.norm(t, name + ".", x)


def encoder(t, dims):
    heads, layers = dims[3:]
    x = t["x"]
    batch, length, hidden = x.shape
    for i in range(layers):
        p = "%d." % i
        qkv = dense(t, x, p + "qkv").reshape(batch, length, 3, heads, hidden // heads)
        mixed = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]).reshape(batch, length, hidden)
        x = norm(t, x + dense(t, mixed, p + "out"), p + "norm1")
        x = norm(t, x + dense(t, jax_peer.gelu(dense(t, x, p + "up")), p + "down"), p + "norm2")
    return x


def decode_step(t, dims):
    batch, length, hidden, heads, layers = dims
    x, out = t["x"], {}
    for i in range(layers):
        p = "%d." % i
        qkv = dense(t, norm(t, x, p + "norm1"), p + "qkv").reshape(batch, 3, heads, hidden // heads)
        keys = t[p + "keys"].at[:, :, length - 1].set(qkv[:, 1])
        values = t[p + "values"].at[:, :, length - 1].set(qkv[:, 2])
        out.update({p + "keys_out": keys, p + "values_out": values})
        scores = jnp.einsum("bhw,bhlw->bhl", qkv[:, 0], keys) / (hidden // heads) ** 0.5
        mixed = jnp.einsum("bhl,bhlw->bhw", jax.nn.softmax(scores, -1), values)
        x = x + dense(t, mixed.reshape(batch, hidden), p + "out")
        x = x + dense(t, jax_peer.gelu(dense(t, norm(t, x, p + "norm2"), p + "up")), p + "down")
    return dict(out, y=x)


def lstm(t, dims):
    _, batch, width = dims
    given = t["x"] @ t["input.weight"] + t["bias"]

    def step(state, gates):
        hidden, cell = state
        i, f, g, o = jnp.split(gates + hidden @ t["hidden.weight"], 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((batch, width), t["x"].dtype)
    return jax.lax.scan(step, (zeros, zeros), given)[1]


BUILDERS = dict(jax_peer.BUILDERS)
BUILDERS.update({
    "gelu": lambda t, d: jax_peer.gelu(t["x"]),
    "gelu_tanh": lambda t, d: jax.nn.gelu(t["x"], approximate=True),
    "nll": nll, "dropout": dropout, "adam": adam, "softmax_backward": softmax_backward,
    "norm_backward": norm_backward, "encoder": encoder, "decode_step": decode_step, "lstm": lstm,
})


def donated_of(builder, tensors):
    """Inputs that the case writes in place: {input: output}."""
    if builder == "adam":
        return {"weights": "y", "first_moment": "first_out", "second_moment": "second_out"}
    if builder == "decode_step":
        return {name: name + "_out" for name in tensors if name.endswith((".keys", ".values"))}
    return {}


class Peer:
    version = jax.__version__

    def __init__(self, name, threads):
        del name
        if THREADS != str(threads):
            raise RuntimeError("NPROC is %s for %d threads: XLA's pool would have another size" % (THREADS, threads))

    @staticmethod
    def tensor(bits, dtype):
        return jnp.asarray(bits.view(jnp.bfloat16) if dtype == "bf16" else bits)

    def load(self, case, tensors):
        builder, dims = case["builder"], case["dims"]
        if builder == "dropout":
            tensors = {"x": tensors["x"], "key": jax.random.key(1)}
        in_place = donated_of(builder, tensors)
        state = {name: tensors[name] for name in in_place}
        rest = {name: x for name, x in tensors.items() if name not in in_place}
        kept = {"y": None}

        def body(state, rest):
            y = BUILDERS[builder](dict(state, **rest), dims)
            return y if isinstance(y, dict) else {"y": y}

        function = jax.jit(body, donate_argnums=0)

        def run():
            nonlocal state
            kept["y"] = jax.block_until_ready(function(state, rest))
            state = {name: kept["y"][out] for name, out in in_place.items()}

        return [(run, lambda: {name: bits_of(y) for name, y in kept["y"].items()},
                 "in place" if in_place else "returns its output")]

    def shapes(self, case, tensors, lengths):
        if case["builder"] != "encoder":
            raise Unsupported("no %s of several lengths" % case["builder"])
        rest = {name: x for name, x in tensors.items() if name != "x"}
        function = jax.jit(lambda x: encoder(dict(rest, x=x), case["dims"]))
        cold = steady = 0.0
        for length in lengths:
            part = jax.block_until_ready(tensors["x"][:, :length])
            start = time.perf_counter()
            jax.block_until_ready(function(part))
            middle = time.perf_counter()
            jax.block_until_ready(function(part))
            cold, steady = cold + middle - start, steady + time.perf_counter() - middle
        return cold, steady

    def drop(self):
        jax.clear_caches()


def bits_of(y):
    half = y.dtype == jnp.bfloat16
    y = numpy.asarray(y)
    return (y.view(numpy.int16) if half else y), "bf16" if half else "f32"
