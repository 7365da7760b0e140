#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What torch.compile(dynamic=True) and jax.jit compile for shapes that nobody knows beforehand, on this CPU: how often,
and how many seconds. `dynamic_shapes --write-shapes FILE` writes the shapes."""

import argparse
import collections
import time

HIDDEN, HEADS, STEPS = 768, 12, 4


def normed(np, x, gamma, beta):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def torch_graphs(torch):
    F = torch.nn.functional

    def bert(x, wq, wk, wv, wo, w1, w2, b, t):
        heads = lambda y: y.reshape(b, t, HEADS, HIDDEN // HEADS).transpose(1, 2)
        q, k, v = (heads(x @ w) for w in (wq, wk, wv))
        mixed = torch.softmax((q @ k.transpose(2, 3)).float() * 0.125, -1).to(x.dtype) @ v
        h = F.layer_norm((x + mixed.transpose(1, 2).reshape(b * t, HIDDEN) @ wo).float(), (HIDDEN,)).to(x.dtype)
        return F.layer_norm((h + F.gelu(h @ w1) @ w2).float(), (HIDDEN,)).to(x.dtype)

    def lstm(w, u, h, c, *x):
        for step in x:
            i, f, g, o = (step @ w + h @ u).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h, c

    norm = lambda x: F.layer_norm(x.float(), (x.shape[-1],)).to(x.dtype)
    return {"softmax": lambda x: torch.softmax(x.float(), -1).to(x.dtype), "layer norm": norm,
            "column sums": lambda x: x.sum(0), "gelu": F.gelu, "BERT": bert, "LSTM": lstm}


def jax_graphs(jax):
    np, nn = jax.numpy, jax.nn
    f32 = np.float32

    def bert(x, wq, wk, wv, wo, w1, w2, b, t):
        heads = lambda y: y.reshape(b, t, HEADS, HIDDEN // HEADS).transpose(0, 2, 1, 3)
        q, k, v = (heads(x @ w) for w in (wq, wk, wv))
        mixed = nn.softmax((q @ k.transpose(0, 1, 3, 2)).astype(f32) * 0.125, -1).astype(x.dtype) @ v
        h = normed(np, (x + mixed.transpose(0, 2, 1, 3).reshape(b * t, HIDDEN) @ wo).astype(f32), 1, 0).astype(x.dtype)
        return normed(np, (h + nn.gelu(h @ w1, approximate=False) @ w2).astype(f32), 1, 0).astype(x.dtype)

    def lstm(w, u, h, c, *x):
        for step in x:
            i, f, g, o = np.split(step @ w + h @ u, 4, 1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * np.tanh(g)
            h = nn.sigmoid(o) * np.tanh(c)
        return h, c

    norm = lambda x: normed(np, x.astype(f32), 1, 0).astype(x.dtype)
    return {"softmax": lambda x: nn.softmax(x.astype(f32), -1).astype(x.dtype), "layer norm": norm,
            "column sums": lambda x: x.sum(0), "gelu": lambda x: nn.gelu(x, approximate=False), "BERT": bert,
            "LSTM": lstm}


def shapes_of(name, dims):
    """Of the operands; numbers are operands that are no tensors."""
    if name.startswith("BERT"):
        square = (HIDDEN, HIDDEN)
        return [(dims["B"] * dims["T"], HIDDEN)] + [square] * 4 + [(HIDDEN, 4 * HIDDEN), (4 * HIDDEN, HIDDEN)] + \
            [dims["B"], dims["T"]]
    if name.startswith("LSTM"):
        return [(256, 1024)] * 2 + [(dims["B"], 256)] * (2 + STEPS)
    return [(dims["M"], dims.get("N", 1024))]


def of_name(graphs, name):
    return next(graph for part, graph in graphs.items() if name.startswith(part))


class Torch:
    def __init__(self):
        import torch
        import torch._inductor.config
        from torch._inductor.compile_fx import compile_fx
        torch._inductor.config.fx_graph_cache = False
        self.torch, self.graphs, self.compiled = torch, torch_graphs(torch), 0

        def counted(module, inputs):
            self.compiled += 1
            return compile_fx(module, inputs)

        self.backend = counted

    def start(self, name):
        self.torch._dynamo.reset()
        self.compiled = 0
        self.f = self.torch.compile(of_name(self.graphs, name), dynamic=True, backend=self.backend)

    def run(self, name, shapes):
        """The seconds of a call that compiled something, else none."""
        dtype = self.torch.bfloat16 if "bf16" in name or name.startswith("BERT") else self.torch.float32
        operands = [self.torch.zeros(s, dtype=dtype) if isinstance(s, tuple) else s for s in shapes]
        before, start = self.compiled, time.perf_counter()
        with self.torch.no_grad():
            self.f(*operands)
        return time.perf_counter() - start if self.compiled > before else 0.0


class Jax:
    def __init__(self):
        import jax
        self.jax, self.graphs, self.compiled = jax, jax_graphs(jax), 0

    def start(self, name):
        self.compiled, self.seen, self.f = 0, set(), of_name(self.graphs, name)

    def run(self, name, shapes):
        if tuple(shapes) in self.seen:
            return 0.0
        self.seen.add(tuple(shapes))
        np = self.jax.numpy
        dtype = np.bfloat16 if "bf16" in name or name.startswith("BERT") else np.float32
        tensors = [self.jax.ShapeDtypeStruct(s, dtype) for s in shapes if isinstance(s, tuple)]
        numbers = [s for s in shapes if not isinstance(s, tuple)]
        start = time.perf_counter()
        self.jax.jit(lambda *x: self.f(*x, *numbers)).lower(*tensors).compile()
        self.compiled += 1
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", help="what dynamic_shapes --write-shapes wrote")
    parser.add_argument("--peers", default="torch,jax")
    options = parser.parse_args()
    by_graph = collections.defaultdict(list)
    for line in open(options.shapes):
        name, dims = line.rstrip("\n").split("\t")
        by_graph[name].append({k: int(v) for k, v in (part.split("=") for part in dims.split())})
    print("%-28s %6s %-6s %9s %10s %11s" % ("graph", "shapes", "peer", "compiles", "seconds", "of the first"))
    for peer in options.peers.split(","):
        with_peer = {"torch": Torch, "jax": Jax}[peer]()
        for name, shapes in by_graph.items():
            with_peer.start(name)
            seconds = [with_peer.run(name, shapes_of(name, dims)) for dims in shapes]
            print("%-28s %6d %-6s %9d %10.2f %11.2f" % (name, len(shapes), peer, with_peer.compiled, sum(seconds),
                                                        seconds[0]), flush=True)


if __name__ == "__main__":
    main()
