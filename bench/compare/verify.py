# SPDX-License-Identifier: Apache-2.0
"""Do all contenders compute the same? Outputs of a peer's first run against those of fuse, as files of bits."""

import filecmp

# Of the root mean square of fuse's output. Half types round at 2^-9, and eager calls round between ops; a gelu by
# tanh differs from one by erf by 2e-4 of it.
MOST = {"f32": 1e-5, "bf16": 1e-2}
MOST_OF_MODELS = 2e-4
SUMS = ("dgamma", "dbeta")
DROPPED = 0.1


def values(entry):
    import numpy
    if entry["dtype"] == "bf16":
        bits = numpy.fromfile(entry["file"], numpy.uint16).astype(numpy.uint32) << 16
        return bits.view(numpy.float32).reshape(entry["shape"])
    return numpy.fromfile(entry["file"], numpy.float32).reshape(entry["shape"])


def difference(ours, theirs):
    import numpy
    a, b = ours.ravel(), theirs.ravel()
    step, off, size = 1 << 22, 0.0, 0.0  # in parts: doubles of 256 MB are a lot of memory
    for at in range(0, len(a), step):
        x, y = a[at:at + step].astype(numpy.float64), b[at:at + step].astype(numpy.float64)
        off += float(((x - y) ** 2).sum())
        size += float((x * x).sum())
    return (off / max(size, 1e-300)) ** 0.5


def dropout_error(x, y):
    """Why y is no dropout of x; empty where it is one."""
    import numpy
    kept = y != 0
    share = 1 - kept.mean()
    if abs(share - DROPPED) > 0.01 + 3 * (DROPPED / y.size) ** 0.5:
        return "dropped %.3f of the elements, not %.1f" % (share, DROPPED)
    off = float(numpy.abs(y[kept] - x[kept] / (1 - DROPPED)).max()) if kept.any() else 0.0
    return "" if off <= 0.02 * float(numpy.abs(x).max()) else "kept elements are not x / (1 - p)"


def known_to_differ(peer, case, name):
    """Eager PyTorch adds the columns of a norm's backward pass in bf16: over 44,000 rows half of a sum is lost."""
    return peer == "torch.eager" and case["dtype"] == "bf16" and name in SUMS


def disagreement(peer, case, inputs, ours, theirs):
    """Why the outputs differ; empty where they agree. Outputs that only fuse returns are not compared."""
    mine = {entry["name"]: entry for entry in ours}
    if "y" not in [entry["name"] for entry in theirs]:
        return "returned no y"
    for entry in theirs:
        name = entry["name"]
        if name not in mine:
            return "returned %s, which fuse does not" % name
        if entry["shape"] != mine[name]["shape"]:
            return "%s has the shape %s, and fuse's has %s" % (name, entry["shape"], mine[name]["shape"])
        if case["builder"] == "dropout":
            why = dropout_error(values(next(i for i in inputs if i["name"] == "x")), values(entry))
            if why:
                return why
            continue
        most = MOST_OF_MODELS if case["builder"] in ("encoder", "decode_step", "lstm") else MOST[case["dtype"]]
        if name in SUMS and case["dtype"] == "f32":
            most = 1e-4  # of many terms, in another order
        off = difference(values(mine[name]), values(entry))
        if not off <= most and not known_to_differ(peer, case, name):
            return "%s differs from fuse's by %.2g of its size, more than %.2g" % (name, off, most)
    return ""


def same_bits(ours, theirs):
    return all(filecmp.cmp(a["file"], b["file"], shallow=False) for a, b in zip(ours, theirs))
