#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of bench/cases.json in JAX under jit. Where JAX is not installed every case is reported as missing.
JAX gives no events: a sample is many runs by the host's clock, ended by waiting for the last."""

import math
import sys
import time

import harness

try:
    import jax
    import jax.numpy as jnp
    import numpy
except ImportError as error:
    jax, why_no_jax = None, str(error)

PEER = "jax.jit"


def norm(t, prefix, x):
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    centred = wide - wide.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return (centred * scale * t[prefix + "gamma"] + t[prefix + "beta"]).astype(x.dtype)


def rms_norm(t, _):
    x = t["x"].astype(jnp.promote_types(t["x"].dtype, jnp.float32))
    return (x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * t["gamma"]).astype(t["x"].dtype)


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def elementwise(t, dims):
    x = t["x"]
    for _ in range(dims[1]):
        x = jnp.maximum(x * 0.7978 + t["b"], 0) * 0.5 + x
    return x


def residual_layer_norm(t, dims):
    x = t["x"]
    for i in range(dims[2]):
        x = norm(t, "%d." % i, x + t["r%d" % i])
    return x


def transformer(t, dims):
    batch, length, hidden, heads, layers = dims
    x = t["x"]
    mask = jnp.tril(jnp.ones((length, length), bool))

    def dense(x, name):
        return x @ t[name + ".weight"] + t[name + ".bias"]

    for i in range(layers):
        p = "%d." % i
        qkv = dense(norm(t, p + "norm1.", x), p + "qkv").reshape(batch, length, 3, heads, hidden // heads)
        q, k, v = (qkv[:, :, j].transpose(0, 2, 1, 3) for j in range(3))
        scores = (q @ k.swapaxes(2, 3)) / math.sqrt(hidden // heads)
        mixed = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v
        x = x + dense(mixed.transpose(0, 2, 1, 3).reshape(batch, length, hidden), p + "out")
        x = x + dense(gelu(dense(norm(t, p + "norm2.", x), p + "up")), p + "down")
    return x


BUILDERS = {
    "softmax": lambda t, d: jax.nn.softmax(t["x"], -1),
    "log_softmax": lambda t, d: jax.nn.log_softmax(t["x"], -1),
    "layer_norm": lambda t, d: norm(t, "", t["x"]),
    "rms_norm": rms_norm,
    "row_sum": lambda t, d: t["x"].sum(1),
    "column_sum": lambda t, d: t["x"].sum(0),
    "transpose": lambda t, d: t["x"].T,
    "elementwise": elementwise,
    "bias_gelu": lambda t, d: gelu(t["x"] + t["bias"]),
    "residual_layer_norm": residual_layer_norm,
    "matmul_bias_gelu": lambda t, d: gelu(t["a"] @ t["b"] + t["bias"]),
    "transformer": transformer,
}


def make_sets(case, l2_bytes):
    dtypes = {"f32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16}
    given = harness.inputs_of(case)
    generator = numpy.random.default_rng(1)

    def make(name, dtype, shape, parameter):
        low, high = harness.data_range(name, parameter)
        return jnp.asarray(generator.uniform(low, high, shape).astype(numpy.float32)).astype(dtypes[dtype])

    first = {name: make(name, dtype, shape, parameter) for name, dtype, shape, parameter in given}
    size = sum(x.nbytes for x in first.values())
    count = harness.sets_past_l2(2 * size, l2_bytes)
    return size, [first] + [{n: x.copy() for n, x in first.items()} for _ in range(count - 1)]


def measure(run, sets):
    for i in range(3):
        run(sets[i % len(sets)]).block_until_ready()
    samples, at, runs = [], 0, 1
    while len(samples) < harness.SAMPLES:
        start = time.perf_counter()
        for _ in range(runs):
            y = run(sets[at % len(sets)])
            at += 1
        y.block_until_ready()
        seconds = time.perf_counter() - start
        if seconds < 4e-3 and runs < 2000 and not samples:
            runs *= 2
        else:
            samples.append(seconds / runs)
    return samples


def exact_error(case, run, tensors):
    """As torch_peer.py: the same function in double precision, and op by op, without jit."""
    if sum(x.size for x in tensors.values()) > harness.MOST_CHECKED:
        return harness.UNCHECKED
    body = BUILDERS[case["builder"]]

    def double(x):
        return numpy.asarray(x).astype(numpy.float64)

    exact = numpy.asarray(body({n: jnp.asarray(double(x)) for n, x in tensors.items()}, case["dims"]))
    dtype = next(iter(tensors.values())).dtype
    return harness.error_row(abs(double(run(tensors)) - exact).max(), abs(double(body(tensors, case["dims"])) - exact).max(),
                             float(jnp.finfo(dtype).eps) * abs(exact).max())


def main():
    options = harness.arguments("jax_peer.py", (PEER,))
    results = harness.Results("jax_peer.py", options)
    if jax is None:
        results.add_all(PEER, "missing", why_no_jax)
        return results.finish()
    if options.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    platform = jax.devices()[0].platform
    if options.device == "cuda" and platform != "gpu":
        results.add_all(PEER, "skipped", "no GPU: JAX runs on " + platform)
        return results.finish()
    jax.config.update("jax_default_matmul_precision", "highest")
    jax.config.update("jax_enable_x64", True)  # for the check; the cases' arrays keep their types
    l2_bytes = 50 << 20 if platform == "gpu" else 0  # JAX does not tell; an H200's
    results.device = {"kind": options.device, "name": "%s, jax %s" % (jax.devices()[0].device_kind, jax.__version__),
                      "clock": "host clock", "l2_bytes": l2_bytes}
    for case in results.wanted:
        try:
            size, sets = make_sets(case, l2_bytes)
            run = jax.jit(lambda t, case=case: BUILDERS[case["builder"]](t, case["dims"]))
            written = run(sets[0]).nbytes
            error = exact_error(case, run, sets[0])
            times = harness.spread(measure(run, sets))
        except Exception as failure:  # a peer's failure is a row, not the end of the list
            results.add(case, PEER, "failed", "%s: %s" % (type(failure).__name__, str(failure)[:300]))
            continue
        results.add(case, PEER, *harness.verdict(error), device_us=times, buffer_sets=len(sets), error=error,
                    bytes={"read": size, "written": written, "moved": None})
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
