# SPDX-License-Identifier: Apache-2.0
"""Ops that work element by element, with NumPy's broadcasting."""

import functools
import math

import onnx

from graph_writer import Inexpressible, is_float, type_of


def plain(name):
    return lambda node: node.graph.elementwise(name, *node.all())


def on(function):
    """Of the first input alone."""
    return lambda node: function(node[0])


def folded(name):
    return lambda node: functools.reduce(lambda a, b: a.do(name, b), node.all())


def mean(node):
    return folded("add")(node) / len(node)


def modulo(node):
    a, b = node[0], node[1]
    remainder = a.do("rem", b)
    if node.attribute("fmod", 0) or a.dtype == "u8":
        return remainder
    turned = remainder.do("ne", 0).do("logical_and", (remainder < 0).do("ne", b < 0))
    return node.graph.select(turned, remainder + b, remainder)


def power(node):
    base, exponent = node[0], node[1]
    if is_float(exponent.dtype) and not is_float(base.dtype):
        return (base.to(exponent.dtype) ** exponent).to(base.dtype)
    return base ** exponent.to(base.dtype)


def target_type(number):
    try:
        return type_of(onnx.helper.tensor_dtype_to_np_dtype(number))
    except KeyError:
        raise Inexpressible(f"type {onnx.TensorProto.DataType.Name(number)}")


def clip(node):
    x = node[0]
    for index, (name, old) in enumerate((("max", "min"), ("min", "max")), 1):
        bound = node[index] if node.has(index) else node.attribute(old)
        x = x if bound is None else x.do(name, bound)
    return x


def is_inf(node):
    x, result = node[0], node[0].do("is_inf")
    if not node.attribute("detect_negative", 1):
        result = result.do("logical_and", x > 0)
    if not node.attribute("detect_positive", 1):
        result = result.do("logical_and", x < 0)
    return result


def shift(node):
    return node[0].do("shift_left" if node.attribute("direction") == "LEFT" else "shift_right", node[1])


def sigmoid(x):
    return 1 / ((-x).do("exp") + 1)


def softplus(x):
    return x.do("max", 0) + (-x.do("abs")).do("exp").do("log1p")


def piecewise(negative):
    """x where it is not negative, else negative(node, x)."""

    def handler(node):
        x = node[0]
        return node.graph.select(x >= 0, x, negative(node, x))

    return handler


def celu(node, x):
    alpha = node.attribute("alpha", 1.0)
    return ((x / alpha).do("expm1")) * alpha


def selu(node):
    x, alpha, gamma = (
        node[0],
        node.attribute("alpha", 1.67326319217681884765625),
        node.attribute("gamma", 1.05070102214813232421875),
    )
    return node.graph.select(x > 0, x, x.do("expm1") * alpha) * gamma


def hard_sigmoid(x, alpha, beta):
    return (x * alpha + beta).do("max", 0.0).do("min", 1.0)


def gelu(node):
    x = node[0]
    if node.attribute("approximate", "none") == "tanh":
        return 0.5 * x * (1 + ((x + 0.044715 * x * x * x) * math.sqrt(2 / math.pi)).do("tanh"))
    return 0.5 * x * (1 + (x * math.sqrt(0.5)).do("erf"))


def shrink(node):
    x, bias, lambd = node[0], node.attribute("bias", 0.0), node.attribute("lambd", 0.5)
    wide = x if is_float(x.dtype) else x.to("f32")
    zero = node.graph.select(wide > lambd, wide - bias, 0.0)
    return node.graph.select(wide < -lambd, wide + bias, zero).to(x.dtype)


def thresholded_relu(node):
    x = node[0]
    return node.graph.select(x > node.attribute("alpha", 1.0), x, 0.0)


def dropout(node):
    x = node[0]
    training = bool(node.known(2, False))
    ratio = float(node.known(1, node.attribute("ratio", 0.5)))
    if training and ratio:
        raise Inexpressible("random numbers of another generator")
    return x, node.graph.constant(True, "bool", x.shape)


def swish(node):
    x = node[0]
    return x * sigmoid(x * node.attribute("alpha", 1.0))


def asinh(x):
    return x.do("sign") * (x.do("abs") + (x * x + 1).do("sqrt")).do("log")


def binarizer(node):
    x = node[0]
    return node.graph.select(x > node.attribute("threshold", 0.0), 1.0, x * 0)


NAMES = {
    "Abs": "abs", "Add": "add", "And": "logical_and", "BitwiseAnd": "bit_and", "BitwiseNot": "bit_not",
    "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor", "Ceil": "ceil", "Cos": "cos", "Div": "div", "Equal": "eq",
    "Erf": "erf", "Exp": "exp", "Floor": "floor", "Greater": "gt", "GreaterOrEqual": "ge", "IsNaN": "is_nan", "Less": "lt", "LessOrEqual": "le",
    "Log": "log", "Mul": "mul", "Neg": "neg", "Not": "logical_not", "Or": "logical_or", "Reciprocal": "reciprocal",
    "Round": "round", "Sign": "sign", "Sin": "sin", "Sqrt": "sqrt", "Sub": "sub", "Tanh": "tanh", "Xor": "ne",
}  # fmt: skip

HANDLERS = {
    **{op: plain(name) for op, name in NAMES.items()},
    "Acos": on(lambda x: (1 - x * x).do("sqrt").do("atan2", x)),
    "Acosh": on(lambda x: (x + (x * x - 1).do("sqrt")).do("log")),
    "Asin": on(lambda x: x.do("atan2", (1 - x * x).do("sqrt"))),
    "Asinh": on(asinh),
    "Atan": on(lambda x: x.do("atan2", 1.0)),
    "Atanh": on(lambda x: (x.do("log1p") - (-x).do("log1p")) * 0.5),
    "Binarizer": binarizer,
    "BitShift": shift,
    "Cast": lambda node: node[0].to(target_type(node.attribute("to"))),
    "CastLike": lambda node: node[0].to(node[1].dtype),
    "Celu": piecewise(celu),
    "Clip": clip,
    "Cosh": on(lambda x: (x.do("exp") + (-x).do("exp")) * 0.5),
    "Dropout": dropout,
    "Elu": piecewise(lambda node, x: x.do("expm1") * node.attribute("alpha", 1.0)),
    "Gelu": gelu,
    "HardSigmoid": lambda node: hard_sigmoid(
        node[0], node.attribute("alpha", 0.2), node.attribute("beta", 0.5)
    ),
    "HardSwish": on(lambda x: x * hard_sigmoid(x, 1 / 6, 0.5)),
    "Identity": on(lambda x: x),
    "IsInf": is_inf,
    "LeakyRelu": piecewise(lambda node, x: x * node.attribute("alpha", 0.01)),
    "Max": folded("max"),
    "Mean": mean,
    "Min": folded("min"),
    "Mish": on(lambda x: x * softplus(x).do("tanh")),
    "Mod": modulo,
    "PRelu": piecewise(lambda node, x: x * node[1]),
    "Pow": power,
    "Relu": on(lambda x: x.do("max", 0)),
    "Selu": selu,
    "Shrink": shrink,
    "Sigmoid": on(sigmoid),
    "Sinh": on(lambda x: (x.do("exp") - (-x).do("exp")) * 0.5),
    "Softplus": on(softplus),
    "Softsign": on(lambda x: x / (x.do("abs") + 1)),
    "Sum": folded("add"),
    "Swish": swish,
    "Tan": on(lambda x: x.do("sin") / x.do("cos")),
    "ThresholdedRelu": thresholded_relu,
    "Where": lambda node: node.graph.select(*node.all()),
}
