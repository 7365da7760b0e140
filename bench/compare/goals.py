# SPDX-License-Identifier: Apache-2.0
"""What a case should reach, and whether it did."""

import math

COPY_SHARE = 0.85
MOST_SPREAD = 0.10  # where two equal processes differ by more, nothing was measured that a loss could hide in
MEMORY_MEAN = 1.6  # geometric mean of the memory-bound cases without dropout


def best_peer(times):
    """(name, seconds) of the fastest peer; None where none ran."""
    peers = {name: t for name, t in times.items() if name not in ("fuse", "fuse.again")}
    return min(peers.items(), key=lambda entry: entry[1]) if peers else None


def verdict(case, found, in_cache):
    """(goal, met) of a case: met is yes, no, or empty where a part of the goal could not be asked.

    `found` has ratio, spread, share; for models gemm_share. `in_cache`: bytes/s of the same kernel at 16 MB, or None.
    """
    parts = []
    ratio, spread = found.get("ratio"), min(found.get("spread") or 0.0, MOST_SPREAD)
    if "memory" in case["tags"] and case["builder"] != "transpose":  # transposes are shown, without a goal
        least = 0.9 if (case["builder"], case["dtype"]) == ("gelu", "bf16") else 1.0
        parts.append((">= %.1f x best, less the spread" % least, None if ratio is None else ratio >= least - spread))
        if "256MB" in case["tags"]:
            parts.append(share_goal(found, in_cache))
    elif "compile" in case["tags"]:
        parts.append(("< 3 s", found["fuse_s"] < 3))
        other = found.get("compile_ratio")
        parts.append((">= 10 x torch.compile", None if other is None else other >= 10))
    elif "shapes" in case["tags"]:
        for name in ("torch.compile", "jax.jit"):
            other = found.get("cold_ratios", {}).get(name)
            parts.append((">= 3 x %s, cold" % name, None if other is None else other >= 3))
    elif "model" in case["tags"]:
        gemms = found.get("gemm_share")
        if {"decode", "lstm"} & set(case["tags"]) or gemms is None or gemms <= 0.85:
            parts.append((">= 1.2 x best", None if ratio is None else ratio >= 1.2))
        else:
            parts.append((">= 1.05 x best", None if ratio is None else ratio >= 1.05))
            parts.append(("<= 1.10 x its GEMMs", 1 / gemms <= 1.10))
    if not parts:
        return "", ""
    answers = [met for _, met in parts]
    met = "no" if False in answers else "" if None in answers else "yes"
    return "; ".join(text for text, _ in parts), met


def share_goal(found, in_cache):
    """85% of the copy, or of the same kernel's rate in the caches where that is slower."""
    share = found.get("share")
    if share is None:
        return "85% of copy", None
    limit = 1.0 if in_cache is None else min(1.0, in_cache / found["copy_rate"])
    text = "85% of copy" if limit == 1.0 else "85%% of its rate in cache, which is %.0f%% of copy" % (100 * limit)
    return text, share >= COPY_SHARE * limit


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
