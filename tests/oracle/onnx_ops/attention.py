# SPDX-License-Identifier: Apache-2.0
"""Attention and its relatives."""

import math

from onnx_ops.elementwise import sigmoid, target_type


def heads_first(x, heads):
    """[batch, length, heads * size] -> [batch, heads, length, size]"""
    batch, length, width = x.shape
    return x.reshape([batch, length, heads, width // heads]).transpose([0, 2, 1, 3])


def heads_last(x):
    batch, heads, length, size = x.shape
    return x.transpose([0, 2, 1, 3]).reshape([batch, length, heads * size])


def shared_heads(x, heads):
    """Each head of keys or values for several heads of queries, side by side."""
    batch, own, length, size = x.shape
    if own == heads:
        return x
    wide = [batch, own, heads // own, length, size]
    return x.graph.op("broadcast_in_dim", [x], x.dtype, wide, dims=[0, 1, 3, 4]).reshape(
        [batch, heads, length, size]
    )


def visible(node, length, keys, past, valid):
    """Which keys each query may see by its position, or None for all: bool that broadcasts to [batch, heads, length,
    keys]."""
    graph, masks = node.graph, []
    query, key = graph.iota([1, 1, length, 1], 2), graph.iota([1, 1, 1, keys], 3)
    if valid is not None:
        valid = valid.to("i64").reshape([valid.shape[0], 1, 1, 1])
        masks.append(key < valid)
    position = query + (valid - length if valid is not None else past)
    left, right = node.attribute("left_window_size", -1), node.attribute("right_window_size", -1)
    if node.attribute("is_causal", 0):
        masks.append(key <= position)
    if left >= 0:
        masks.append(position - key <= left)
    if right >= 0:
        masks.append(key - position <= right)
    result = None
    for mask in masks:
        result = mask if result is None else result.do("logical_and", mask)
    return result


def attention(node):
    q, k, v, mask, past_key, past_value, valid = [node[i] for i in range(7)]
    graph, flat = node.graph, q.rank == 3
    if flat:
        q = heads_first(q, node.attribute("q_num_heads"))
        k, v = (heads_first(x, node.attribute("kv_num_heads")) for x in (k, v))
    if past_key is not None:
        k, v = graph.concat([past_key, k], 2), graph.concat([past_value, v], 2)
    present, heads, length, keys = (k, v), q.shape[1], q.shape[2], k.shape[2]
    k, v = shared_heads(k, heads), shared_heads(v, heads)
    scale = math.sqrt(node.attribute("scale") or 1 / math.sqrt(q.shape[3]))
    scores = graph.matmul(q * scale, (k * scale).transpose([0, 1, 3, 2]))
    raw, softcap = scores, node.attribute("softcap", 0.0)
    if softcap:
        scores = (scores / softcap).do("tanh") * softcap
    capped = scores
    seen = visible(node, length, keys, keys - node[1].shape[-2] if past_key is not None else 0, valid)
    hidden = graph.constant(False, "bool", [1, 1, 1, 1])
    if mask is not None:
        short = keys - mask.shape[-1]
        mask = mask.pad(
            [0] * mask.rank, [0] * (mask.rank - 1) + [short], False if mask.dtype == "bool" else -math.inf
        )
        if mask.dtype == "bool":
            mask = graph.select(mask, graph.constant(0.0, q.dtype), -math.inf)
        scores = scores + mask
        hidden = mask.do("eq", -math.inf)
    if seen is not None:
        scores = graph.select(seen, scores, -math.inf)
        hidden = hidden.do("logical_or", seen.do("logical_not"))
    biased = scores
    if node.attribute("softmax_precision"):
        scores = scores.to(target_type(node.attribute("softmax_precision")))
    nothing = hidden.reduce("reduce_all", [-1]) if hidden.shape[-1] == keys else hidden
    top = graph.select(nothing, 0.0, scores.reduce("reduce_max", [-1]))
    e = graph.select(nothing, 0.0, (scores - top).do("exp"))
    weights = graph.select(nothing, 0.0, e / e.sum([-1])).to(q.dtype)
    result = graph.matmul(weights, v)
    shown = (raw, capped, biased, weights)[node.attribute("qk_matmul_output_mode", 0)]
    return heads_last(result) if flat else result, *present, shown


def rotary_embedding(node):
    x, cos, sin, positions = [node[i] for i in range(4)]
    graph, flat = node.graph, x.rank == 3
    x = heads_first(x, node.attribute("num_heads")) if flat else x
    turned = node.attribute("rotary_embedding_dim", 0) or x.shape[3]
    if positions is not None:
        cos, sin = cos.gather(positions, 0), sin.gather(positions, 0)
    cos, sin = (c.reshape([c.shape[0], 1] + c.shape[1:]) for c in (cos, sin))
    rest, x = x.narrow(3, turned, x.shape[3]), x.narrow(3, 0, turned)
    if node.attribute("interleaved", 0):
        a, b = x.narrow(3, 0, turned, 2), x.narrow(3, 1, turned, 2)
    else:
        a, b = x.narrow(3, 0, turned // 2), x.narrow(3, turned // 2, turned)
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    if node.attribute("interleaved", 0):
        pairs = [part.reshape(part.shape + [1]) for part in (real, imaginary)]
        x = graph.concat(pairs, 4).reshape(x.shape)
    else:
        x = graph.concat([real, imaginary], 3)
    x = graph.concat([x, rest], 3)
    return heads_last(x) if flat else x


def linear_attention(node):
    """The recurrence, unrolled; computed in f32."""
    query, key, value, state, decay, beta = [node[i] for i in range(6)]
    graph, rule = node.graph, node.attribute("update_rule", "gated_delta")
    q_heads, heads = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    batch, length, _ = query.shape
    result_type, state_type = query.dtype, (state or query).dtype
    q, k, v = (
        heads_first(query, q_heads).to("f32"),
        heads_first(key, heads).to("f32"),
        heads_first(value, heads).to("f32"),
    )
    size, width = k.shape[3], v.shape[3]
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(size)
    s = graph.constant(0.0, "f32", [batch, heads, size, width]) if state is None else state.to("f32")
    decay = None if decay is None else heads_first(decay, heads).to("f32")
    beta = None if beta is None else beta.reshape(beta.shape + [1]).transpose([0, 2, 1, 3]).to("f32")
    outputs = []
    for t in range(length):
        row = [x.narrow(2, t, t + 1) for x in (q, k, v)]
        column = row[1].transpose([0, 1, 3, 2])
        if decay is not None:
            s = s * decay.narrow(2, t, t + 1).transpose([0, 1, 3, 2]).do("exp")
        added = row[2]
        if rule in ("delta", "gated_delta"):
            added = beta.narrow(2, t, t + 1) * (added - graph.matmul(row[1], s))
        s = s + column * added
        outputs.append(graph.matmul(row[0], shared_heads(s, q_heads)) * scale)
    return heads_last(graph.concat(outputs, 2)).to(result_type), s.to(state_type)


def flex_attention(node):
    q, k, v = node[0], node[1], node[2]
    graph, heads = node.graph, q.shape[1]
    precision = node.attribute("softmax_precision")
    wide = target_type(precision) if precision else "f64" if q.dtype == "f64" else "f32"
    k, v = shared_heads(k, heads), shared_heads(v, heads)
    scores = graph.matmul(q, k.transpose([0, 1, 3, 2])).to(wide) * (
        node.attribute("scale") or 1 / math.sqrt(q.shape[3])
    )
    (scores,) = node.opened("score_mod", [scores])
    e = (scores - scores.reduce("reduce_max", [-1])).do("exp")
    (weights,) = node.opened("prob_mod", [e / e.sum([-1])])
    return graph.matmul(weights.to(q.dtype), v)


def causal_convolution(node):
    """Each channel by itself, over the present and the past positions: a sum of shifted slices."""
    x, weight, bias, past = [node[i] for i in range(4)]
    taps, length = weight.shape[2], x.shape[2]
    whole = x.pad([0, 0, taps - 1], [0, 0, 0], 0) if past is None else x.graph.concat([past, x], 2)
    total = None
    for tap in range(taps):
        term = whole.narrow(2, tap, tap + length) * weight.narrow(2, tap, tap + 1).reshape([1, x.shape[1], 1])
        total = term if total is None else total + term
    total = total if bias is None else total + bias.reshape([1, x.shape[1], 1])
    if node.attribute("activation", "none") != "none":
        total = total * sigmoid(total)
    return total, whole.narrow(2, whole.shape[2] - (taps - 1), whole.shape[2])


HANDLERS = {
    "Attention": attention,
    "CausalConvWithState": causal_convolution,
    "FlexAttention": flex_attention,
    "LinearAttention": linear_attention,
    "RotaryEmbedding": rotary_embedding,
}
