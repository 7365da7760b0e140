# SPDX-License-Identifier: Apache-2.0
"""Products of matrices."""

import string

from graph_writer import is_float
from onnx_ops.movement import pick


def product(graph, a, b):
    """Integers are multiplied in f64, which is exact for those of 32 bits and fewer."""
    if is_float(a.dtype):
        return graph.matmul(a, b)
    return graph.matmul(a.to("f64"), b.to("f64")).to(a.dtype)


def gemm(node):
    a = node[0].transpose([1, 0]) if node.attribute("transA", 0) else node[0]
    b = node[1].transpose([1, 0]) if node.attribute("transB", 0) else node[1]
    result = product(node.graph, a, b)
    if node.attribute("alpha", 1.0) != 1.0:
        result = result * node.attribute("alpha")
    if node.has(2):
        c = node[2] if node.attribute("beta", 1.0) == 1.0 else node[2] * node.attribute("beta")
        result = result + c
    return result


def centred(x, zero, axis):
    """An integer less its zero point, which may be one for each row or column, in i32."""
    x = x.to("i32")
    if zero is None:
        return x
    zero = zero.to("i32")
    if zero.rank == 1 and zero.shape[0] > 1:
        zero = zero.reshape([zero.shape[0] if d == x.axis(axis) else 1 for d in range(x.rank)])
    return x - (zero.reshape([]) if zero.shape in ([], [1]) else zero)


def matmul_integer(node):
    return product(node.graph, centred(node[0], node[2], -2), centred(node[1], node[3], -1))


def diagonal(x, letters):
    """Elements whose positions of the same letter are equal."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            keep, drop = (d for d, other in enumerate(letters) if other == letter)
            positions = x.graph.iota([1 if d == drop else extent for d, extent in enumerate(x.shape)], keep)
            x = pick(x, positions, drop).reshape([extent for d, extent in enumerate(x.shape) if d != drop])
            letters = letters[:drop] + letters[drop + 1 :]
    return x, letters


def einsum(node):
    """A contraction for each further operand; what is left over is summed and put in order."""
    equation = node.attribute("equation").replace(" ", "")
    left, arrow, wanted = equation.partition("->")
    terms = left.split(",")
    dots = max(
        (node[i].rank - len(term.replace("...", "")) for i, term in enumerate(terms) if "..." in term),
        default=0,
    )
    spare = "".join(letter for letter in string.ascii_letters if letter not in equation)[:dots]
    terms = [term.replace("...", spare) for term in terms]
    if not arrow:
        once = [c for c in sorted(set("".join(terms)) - set(spare)) if "".join(terms).count(c) == 1]
        wanted = "..." + "".join(once)
    wanted = wanted.replace("...", spare)
    x, letters = diagonal(node[0], terms[0])
    for i in range(1, len(terms)):
        y, others = diagonal(node[i], terms[i])
        kept = set(wanted + "".join(terms[i + 1 :]))
        shared = [c for c in letters if c in others]
        batch, gone = [c for c in shared if c in kept], [c for c in shared if c not in kept]
        free_x, free_y = [c for c in letters if c not in shared], [c for c in others if c not in shared]
        extents = {**dict(zip(letters, x.shape)), **dict(zip(others, y.shape))}
        letters_x, letters = letters, "".join(batch + free_x + free_y)
        x = node.graph.op(
            "contraction", [x, y], x.dtype, [extents[c] for c in letters],
            batch_a=[letters_x.index(c) for c in batch], batch_b=[others.index(c) for c in batch],
            contract_a=[letters_x.index(c) for c in gone], contract_b=[others.index(c) for c in gone],
        )  # fmt: skip
    summed = [d for d, c in enumerate(letters) if c not in wanted]
    x = x.sum(summed, False) if summed else x
    letters = [c for c in letters if c in wanted]
    return x.transpose([letters.index(c) for c in wanted])


HANDLERS = {
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": lambda node: product(node.graph, node[0], node[1]),
    "MatMulInteger": matmul_integer,
}
