# SPDX-License-Identifier: Apache-2.0
"""The cpu cases in PyTorch. Eager calls get their output where the op can write to one without a copy; compiled
functions copy into it, which is one kernel with what goes before."""

import time

import numpy
import torch
import torch._inductor.config
import torch.nn.functional as F

import torch_models
import torch_peer
from serve import Unsupported

ATEN = torch.ops.aten
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64}


def wide(x):
    return x.float()


def empty(like, shape=None, dtype=None):
    """Memory of numpy, as that of the inputs: large arrays are in huge pages where the system has them."""
    shape, dtype = list(like.shape) if shape is None else shape, dtype or like.dtype
    bits = numpy.empty(shape, {torch.float32: numpy.float32, torch.bfloat16: numpy.int16}[dtype])
    return torch.from_numpy(bits).view(dtype)


def softmax_backward(t, _):
    p, dy = wide(t["probabilities"]), wide(t["dy"])
    return (p * (dy - (p * dy).sum(-1, keepdim=True))).to(t["dy"].dtype)


def norm_backward(t, _):
    x, dy, unit_scale = wide(t["x"]), wide(t["dy"]), t["rstd"]
    unit, scaled = (x - t["mean"]) * unit_scale, dy * t["gamma"]
    dx = unit_scale * (scaled - scaled.mean(-1, keepdim=True) - unit * (scaled * unit).mean(-1, keepdim=True))
    return dx.to(t["x"].dtype), (dy * unit).sum(0), dy.sum(0)


def adam(t, _):
    gradient, step = wide(t["gradient"]), 10
    m = 0.9 * wide(t["first_moment"]) + 0.1 * gradient
    v = 0.999 * wide(t["second_moment"]) + 0.001 * gradient * gradient
    size, root = 1e-3 / (1 - 0.9**step), (1 - 0.999**step) ** 0.5
    return wide(t["weights"]) - size * m / (v.sqrt() / root + 1e-8), m, v


# Functions of tensors and dims, for torch.compile.
PLAIN = dict(torch_peer.BUILDERS)
PLAIN.update({
    "gelu": lambda t, d: F.gelu(t["x"]),
    "gelu_tanh": lambda t, d: F.gelu(t["x"], approximate="tanh"),
    "nll": lambda t, d: F.cross_entropy(wide(t["x"]), t["labels"], reduction="none"),
    "dropout": lambda t, d: F.dropout(t["x"], 0.1, training=True),
    "softmax_backward": softmax_backward,
    "norm_backward": norm_backward,
    "adam": adam,
})
NAMES = {"norm_backward": ("y", "dgamma", "dbeta"), "adam": ("y", "first_out", "second_out")}


def out_ways(builder, t):
    """Ways of eager PyTorch that write to outputs which exist: [(run, outputs by name, how)]."""
    x = t.get("x")
    if builder in ("softmax", "gelu", "gelu_tanh", "bias_gelu", "transpose"):
        y = empty(x, list(x.shape[::-1]) if builder == "transpose" else None)
        run = {
            "softmax": lambda: ATEN._softmax.out(x, -1, False, out=y),
            "gelu": lambda: ATEN.gelu.out(x, out=y),
            "gelu_tanh": lambda: ATEN.gelu.out(x, approximate="tanh", out=y),
            "bias_gelu": lambda: ATEN.gelu.out(torch.add(x, t["bias"], out=y), out=y),
            "transpose": lambda: y.copy_(x.t()),
        }[builder]
        return [(run, {"y": y}, "out=")]
    if builder == "softmax_backward":
        p, dy = t["probabilities"], t["dy"]
        y = empty(dy)
        return [(lambda: ATEN._softmax_backward_data.out(dy, p, -1, p.dtype, grad_input=y), {"y": y}, "out=")]
    if builder == "nll" and x.dtype == torch.float32:
        logs, y, count = empty(x), empty(x, [len(x)]), torch.empty(())
        run = lambda: ATEN.nll_loss_forward.output(  # noqa: E731
            ATEN._log_softmax.out(x, -1, False, out=logs), t["labels"], None, 0, -100, output=y, total_weight=count)
        return [(run, {"y": y}, "out=")]
    if builder == "dropout":
        y = empty(x)
        return [(lambda: torch.mul(x, y.bernoulli_(0.9).div_(0.9), out=y), {"y": y}, "out=")]
    if builder == "adam":
        step = torch.tensor(10.0)
        state = [t["weights"]], [t["gradient"]], [t["first_moment"]], [t["second_moment"]], [], [step]
        run = lambda: ATEN._fused_adam_(*state, lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8,  # noqa: E731
                                        amsgrad=False, maximize=False)
        return [(run, {"y": t["weights"], "first_out": t["first_moment"], "second_out": t["second_moment"]},
                 "in place")]
    return []


def eager_calls(builder, t, dims):
    """Ways of eager PyTorch that allocate their outputs: functions that return a tuple."""
    x, plain = t.get("x"), PLAIN[builder]
    total = empty(x) if builder == "residual_layer_norm" else None
    calls = {
        "residual_layer_norm": lambda: (F.layer_norm(torch.add(x, t["r0"], out=total), (dims[1],), t["0.gamma"],
                                                     t["0.beta"], 1e-5),),
        "layer_norm": lambda: (F.layer_norm(x, (dims[1],), t["gamma"], t["beta"], 1e-5),),
        "rms_norm": lambda: (F.rms_norm(wide(x), (dims[1],), t["gamma"], 1e-6).to(x.dtype),),
        "norm_backward": lambda: ATEN.native_layer_norm_backward(t["dy"], x, (dims[1],), t["mean"], t["rstd"],
                                                                 t["gamma"], t["gamma"], [True, True, True]),
    }
    as_tuple = lambda y: y if isinstance(y, tuple) else (y,)  # noqa: E731
    return [calls[builder]] if builder in calls else [lambda: as_tuple(plain(t, dims))]


def returning(call, names):
    """A way around a function that returns new tensors."""
    kept = {}

    def run():
        kept["y"] = call()

    return run, lambda: dict(zip(names, kept["y"])), "returns its output"


class Peer:
    version = torch.__version__

    def __init__(self, name, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.compiled = name == "torch.compile"

    @staticmethod
    def tensor(bits, dtype):
        x = torch.from_numpy(bits.view(numpy.int16) if dtype == "bf16" else bits)
        return x.view(torch.bfloat16) if dtype == "bf16" else x

    def load(self, case, t):
        self.forget("compile" in case["tags"])
        builder, dims = case["builder"], case["dims"]
        if builder in torch_models.MODELS:
            function, names = torch_models.MODELS[builder](t, dims)
            if self.compiled:
                function = torch.compile(function, dynamic=False)
            ways = [returning(function, names)]
        elif self.compiled:
            ways = [self.compiled_way(builder, t, dims)]
        else:
            ways = self.eager_ways(builder, t, dims)
        return [(run, self.bits(outputs), how) for run, outputs, how in ways]

    @staticmethod
    def compiled_way(builder, t, dims):
        names, plain = NAMES.get(builder, ("y",)), PLAIN[builder]
        example = plain(t, dims)  # for types and shapes
        example = example if isinstance(example, tuple) else (example,)
        if builder == "adam":
            outputs = (t["weights"], t["first_moment"], t["second_moment"])
        else:
            outputs = tuple(empty(y) for y in example)

        def into(tensors, results):
            values = plain(tensors, dims)
            for result, value in zip(results, values if isinstance(values, tuple) else (values,)):
                result.copy_(value)

        function = torch.compile(into, dynamic=False)
        return lambda: function(t, outputs), lambda: dict(zip(names, outputs)), "copied into its output"

    @staticmethod
    def eager_ways(builder, t, dims):
        names = NAMES.get(builder, ("y",))
        ways = [(run, lambda outputs=outputs: outputs, how) for run, outputs, how in out_ways(builder, t)]
        if builder != "adam":
            ways += [returning(call, names) for call in eager_calls(builder, t, dims)]
        return ways

    @staticmethod
    def bits(outputs):
        def read():
            found = {}
            for name, y in outputs().items():
                half = y.dtype == torch.bfloat16
                y = y.contiguous()
                found[name] = (y.view(torch.int16).numpy() if half else y.numpy(), "bf16" if half else "f32")
            return found
        return read

    def shapes(self, case, t, lengths):
        if case["builder"] not in torch_models.MODELS:
            raise Unsupported("no %s of several lengths" % case["builder"])
        self.forget(True)
        x = t.pop("x")
        function, _ = torch_models.MODELS[case["builder"]](t, case["dims"], given=True)
        if self.compiled:
            function = torch.compile(function, dynamic=True)
        cold = steady = 0.0
        for length in lengths:
            part = x[:, :length].contiguous()
            start = time.perf_counter()
            function(part)
            middle = time.perf_counter()
            function(part)
            cold, steady = cold + middle - start, steady + time.perf_counter() - middle
        return cold, steady

    @staticmethod
    def forget(cold):
        """The next function is compiled anew; a cold start takes nothing from files either."""
        torch._dynamo.reset()
        torch._inductor.config.force_disable_caches = cold

    def drop(self):
        torch._dynamo.reset()
