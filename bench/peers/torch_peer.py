#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of bench/cases.json in PyTorch: eager, torch.compile, torch.compile max-autotune with CUDA graphs, and
Liger and QuACK kernels where they are installed. A peer that is not installed is reported as missing."""

import importlib
import math
import sys

import harness

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    torch, why_no_torch = None, str(error)

PEERS = ("torch.eager", "torch.compile", "torch.compile.max_autotune", "liger", "quack")


def wide(x):
    """At least f32: half types are normalised in f32, the check's doubles stay doubles."""
    return x if x.dtype == torch.float64 else x.float()


def norm(t, prefix, x):
    width = x.shape[-1]
    return F.layer_norm(wide(x), (width,), t[prefix + "gamma"], t[prefix + "beta"], 1e-5).to(x.dtype)


def elementwise(t, dims):
    x = t["x"]
    for _ in range(dims[1]):
        x = torch.clamp_min(x * 0.7978 + t["b"], 0) * 0.5 + x
    return x


def residual_layer_norm(t, dims):
    x = t["x"]
    for i in range(dims[2]):
        x = norm(t, "%d." % i, x + t["r%d" % i])
    return x


def transformer(t, dims):
    batch, length, hidden, heads, layers = dims
    x = t["x"]

    def dense(x, name):
        return x @ t[name + ".weight"] + t[name + ".bias"]

    for i in range(layers):
        p = "%d." % i
        qkv = dense(norm(t, p + "norm1.", x), p + "qkv").view(batch, length, 3, heads, hidden // heads)
        q, k, v = (qkv[:, :, j].transpose(1, 2) for j in range(3))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + dense(mixed.transpose(1, 2).reshape(batch, length, hidden), p + "out")
        x = x + dense(F.gelu(dense(norm(t, p + "norm2.", x), p + "up")), p + "down")
    return x


def rms_norm(t, _):
    x = wide(t["x"])
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * t["gamma"]).to(t["x"].dtype)


BUILDERS = {
    "softmax": lambda t, d: F.softmax(t["x"], -1),
    "log_softmax": lambda t, d: F.log_softmax(t["x"], -1),
    "layer_norm": lambda t, d: norm(t, "", t["x"]),
    "rms_norm": rms_norm,
    "row_sum": lambda t, d: t["x"].sum(1),
    "column_sum": lambda t, d: t["x"].sum(0),
    "transpose": lambda t, d: t["x"].t().contiguous(),
    "elementwise": elementwise,
    "bias_gelu": lambda t, d: F.gelu(t["x"] + t["bias"]),
    "residual_layer_norm": residual_layer_norm,
    "matmul_bias_gelu": lambda t, d: F.gelu(t["a"] @ t["b"] + t["bias"]),
    "transformer": transformer,
}

# (peer, builder): module, and its call. Named kernels only: what they lack is reported.
KERNELS = {
    ("liger", "softmax"): ("liger_kernel.ops.softmax", lambda m, t: m.LigerSoftmaxFunction.apply(t["x"])),
    ("liger", "layer_norm"): ("liger_kernel.ops.layer_norm",
                              lambda m, t: m.LigerLayerNormFunction.apply(t["x"], t["gamma"], t["beta"], 1e-5)),
    ("liger", "rms_norm"): ("liger_kernel.ops.rms_norm",
                            lambda m, t: m.LigerRMSNormFunction.apply(t["x"], t["gamma"], 1e-6)),
    ("quack", "softmax"): ("quack.softmax", lambda m, t: m.softmax(t["x"])),
    ("quack", "rms_norm"): ("quack.rmsnorm", lambda m, t: m.rmsnorm(t["x"], t["gamma"], eps=1e-6)),
}


def function_of(peer, case):
    """(function of tensors, None), or (None, (status, why))."""
    builder, dims = case["builder"], case["dims"]
    eager = lambda t: BUILDERS[builder](t, dims)  # noqa: E731
    if peer == "torch.eager":
        return eager, None
    if peer == "torch.compile":
        torch._dynamo.reset()
        return torch.compile(eager, dynamic=False), None
    if peer == "torch.compile.max_autotune":
        torch._dynamo.reset()
        return torch.compile(eager, dynamic=False, mode="max-autotune"), None
    if (peer, builder) not in KERNELS:
        return None, ("skipped", peer + " has no kernel for " + builder)
    module, call = KERNELS[peer, builder]
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        return None, ("missing", str(error))
    return lambda t: call(loaded, t), None


def make_sets(case, device, l2_bytes):
    dtypes = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    generator = torch.Generator(device).manual_seed(1)
    given = harness.inputs_of(case)
    size = sum(math.prod(shape) * dtypes[dtype].itemsize for _, dtype, shape, _ in given)

    def make(name, dtype, shape, parameter):
        low, high = harness.data_range(name, parameter)
        return torch.empty(shape, dtype=torch.float32, device=device).uniform_(low, high, generator=generator).to(
            dtypes[dtype])

    first = {name: make(name, dtype, shape, parameter) for name, dtype, shape, parameter in given}
    count = harness.sets_past_l2(2 * size, l2_bytes)
    return size, [first] + [{n: x.clone() for n, x in first.items()} for _ in range(count - 1)]


def measure(run, sets, device):
    """Seconds of one run, by events on a GPU and by the host's clock elsewhere."""
    for i in range(3):
        run(sets[i % len(sets)])
    if device != "cuda":
        return harness.host_samples(lambda i: run(sets[i]), lambda _: None, len(sets))
    torch.cuda.synchronize()
    samples, at, runs = [], 0, 1
    while len(samples) < harness.SAMPLES:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(runs):
            run(sets[at % len(sets)])
            at += 1
        end.record()
        end.synchronize()
        milliseconds = start.elapsed_time(end)
        if milliseconds < 4 and runs < 2000 and not samples:
            runs *= 2
        else:
            samples.append(milliseconds * 1e-3 / runs)
    return samples


def exact_error(run, tensors, eager):
    """Of the same function in double precision, and of eager evaluation."""
    if sum(x.numel() for x in tensors.values()) > harness.MOST_CHECKED:
        return harness.UNCHECKED
    exact = eager({n: x.double() for n, x in tensors.items()}).double()

    def largest(y):
        return (y.double() - exact).abs().max().item()

    eps = torch.finfo(next(iter(tensors.values())).dtype).eps
    return harness.error_row(largest(run(tensors)), largest(eager(tensors)), eps * exact.abs().max().item())


def reason(failure):
    return "%s: %s" % (type(failure).__name__, str(failure)[:300])


def main():
    options = harness.arguments("torch_peer.py", PEERS)
    results = harness.Results("torch_peer.py", options)
    if torch is None:
        for peer in options.peers:
            results.add_all(peer, "missing", why_no_torch)
        return results.finish()
    if options.device == "cuda" and not torch.cuda.is_available():
        for peer in options.peers:
            results.add_all(peer, "skipped", "no GPU: torch.cuda.is_available() is false")
        return results.finish()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    properties = torch.cuda.get_device_properties(0) if options.device == "cuda" else None
    l2_bytes = properties.L2_cache_size if properties else 0
    results.device = {"kind": options.device, "name": properties.name if properties else "cpu",
                      "clock": "CUDA events" if properties else "host clock", "l2_bytes": l2_bytes}
    results.device["name"] += ", torch " + torch.__version__
    for case in results.wanted:
        try:
            size, sets = make_sets(case, options.device, l2_bytes)
        except Exception as failure:  # no memory for its data
            for peer in options.peers:
                results.add(case, peer, "failed", reason(failure))
            continue
        for peer in options.peers:
            run, status = function_of(peer, case)
            if run is None:
                results.add(case, peer, *status)
                continue
            try:
                eager = function_of("torch.eager", case)[0]
                error = exact_error(run, sets[0], eager)
                written = (lambda y: y.numel() * y.element_size())(run(sets[0]))
                times = harness.spread(measure(run, sets, options.device))
            except Exception as failure:  # a peer's failure is a row, not the end of the list
                results.add(case, peer, "failed", reason(failure))
                continue
            results.add(case, peer, *harness.verdict(error), device_us=times, buffer_sets=len(sets), error=error,
                        bytes={"read": size, "written": written, "moved": None})
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
