#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small GPT of characters in plain PyTorch: trains it, writes its weights, and generates text from them.

    gpt.py train --text FILE --out FILE.safetensors [--steps N]
    gpt.py generate --weights FILE --prompt TEXT --tokens N
    gpt.py check --weights FILE --prompt TEXT --tokens N --expected FILE

It needs torch and numpy alone. The text goes to stdout as it is, without a newline at its end."""

import argparse
import hashlib
import json
import math
import struct
import sys
import time

import numpy
import torch
from torch import nn
from torch.nn import functional

SYMBOLS, WIDTH, LAYERS, HEADS, CONTEXT, HIDDEN = 96, 64, 2, 4, 128, 256
NEWLINE = 95  # the others are the bytes 32 to 126, in order
STEPS, BATCH, RATE, WARMUP, SEED = 3000, 16, 4e-3, 100, 1


def encode(text):
    """The symbols of bytes: whatever has none becomes a space."""
    return [NEWLINE if byte == 10 else byte - 32 if 32 <= byte <= 126 else 0 for byte in text]


def decode(symbols):
    return bytes(10 if symbol == NEWLINE else symbol + 32 for symbol in symbols)


# The model. The names of the modules make the names in the file.


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        heads = self.c_attn(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(future, -math.inf).softmax(-1) @ v
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, HIDDEN)
        self.c_proj = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH, eps=1e-5)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-5)
        self.mlp = Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(SYMBOLS, WIDTH)
        self.wpe = nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH, eps=1e-5)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:  # as GPT-2: smaller where a layer adds to the residual stream
                depth = 2 * LAYERS if name.endswith("c_proj.weight") else 1
                nn.init.normal_(parameter, std=0.02 / math.sqrt(depth))
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, symbols):
        """[batch, length] of symbols to [batch, length, SYMBOLS] of logits."""
        x = self.wte(symbols) + self.wpe(torch.arange(symbols.shape[1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


# The file: the length of the header in 8 bytes, the header in JSON, the elements


def save(path, tensors):
    """Writes f16 tensors as safetensors, sorted by name: equal tensors make equal bytes."""
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        elements = tensor.numpy().astype("<f2").tobytes()
        offsets = [len(data), len(data) + len(elements)]
        header[name] = {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": offsets}
        data += elements
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    content = struct.pack("<Q", len(text)) + text + data
    with open(path, "wb") as file:
        file.write(content)
    return content


def load(path):
    """The f16 tensors of a safetensors file, as f32."""
    with open(path, "rb") as file:
        content = file.read()
    start = 8 + struct.unpack_from("<Q", content)[0]
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F16":
            raise ValueError(f"{path}: {name} is {entry['dtype']}, not F16")
        begin, end = entry["data_offsets"]
        elements = numpy.frombuffer(content[start + begin : start + end], dtype="<f2")
        tensors[name] = torch.from_numpy(elements.astype(numpy.float32)).reshape(entry["shape"])
    return tensors


# The commands


def loss_of(model, text, starts):
    windows = text[starts[:, None] + torch.arange(CONTEXT + 1)]
    logits = model(windows[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def train(options):
    with open(options.text, "rb") as file:
        text = torch.tensor(encode(file.read()))
    if len(text) <= CONTEXT:
        sys.exit(f"gpt.py: {options.text} has to be longer than {CONTEXT} bytes")
    torch.manual_seed(SEED)
    model, began = Gpt(), time.monotonic()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.99), weight_decay=0.01)
    for step in range(1, options.steps + 1):
        # The rate rises over the first steps, then falls as a cosine to nearly nothing.
        falling = 0.01 + 0.99 * (0.5 + 0.5 * math.cos(math.pi * step / options.steps))
        optimizer.param_groups[0]["lr"] = RATE * min(1, step / WARMUP) * falling
        loss = loss_of(model, text, torch.randint(len(text) - CONTEXT, (BATCH,)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == options.steps:
            print(f"step {step}: loss {loss.item():.4f}, {time.monotonic() - began:.0f} s", flush=True)
    content = save(options.out, {name: tensor.half() for name, tensor in model.state_dict().items()})
    model.load_state_dict(load(options.out))
    with torch.no_grad():
        every = loss_of(model, text, torch.arange(0, len(text) - CONTEXT, 16))
    print(f"loss of the rounded weights over the text: {every.item():.4f}")
    print(f"{options.out}: {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}")
    return 0


def generated(options):
    """The prompt and what follows it, and the least gap between the best logit and the second."""
    symbols, gap = encode(options.prompt.encode()), math.inf
    if not 1 <= len(symbols) <= CONTEXT:
        sys.exit(f"gpt.py: a prompt has 1 to {CONTEXT} bytes")
    model = Gpt()
    model.load_state_dict(load(options.weights))
    with torch.no_grad():
        for _ in range(min(options.tokens, CONTEXT - len(symbols))):
            logits = model(torch.tensor([symbols]))[0, -1].numpy()
            second, best = numpy.sort(logits)[-2:]
            gap = min(gap, float(best - second))
            symbols.append(int(logits.argmax()))  # NumPy's is the first of equals
    return decode(symbols), gap


def generate(options):
    text, gap = generated(options)
    sys.stdout.buffer.write(text)
    sys.stdout.flush()
    print(f"\nthe least gap between the best logit and the second: {gap:.4f}", file=sys.stderr)
    return 0


def check(options):
    text, _ = generated(options)
    with open(options.expected, "rb") as file:
        expected = file.read()
    if text == expected:
        return 0
    print(f"generated: {text!r}\nexpected:  {expected!r}")
    return 1


def arguments():
    parser = argparse.ArgumentParser(
        prog="gpt.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train", help="trains on a text and writes the weights in f16")
    training.set_defaults(run=train)
    training.add_argument("--text", required=True, metavar="FILE")
    training.add_argument("--out", required=True, metavar="FILE")
    training.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"default: {STEPS}")
    for function, does in (
        (generate, "writes the prompt and what follows it, the likeliest symbol each time"),
        (check, "compares what generate writes with a file"),
    ):
        command = commands.add_parser(function.__name__, help=does)
        command.set_defaults(run=function)
        command.add_argument("--weights", required=True, metavar="FILE")
        command.add_argument("--prompt", required=True, metavar="TEXT")
        command.add_argument("--tokens", required=True, type=int, metavar="N")
        if function is check:
            command.add_argument("--expected", required=True, metavar="FILE")
    return parser.parse_args()


def main():
    torch.set_num_threads(1)
    options = arguments()
    return options.run(options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
