# SPDX-License-Identifier: Apache-2.0
"""The cpu cases in ONNX Runtime: models of its own fused ops where it has them, inputs and outputs bound in place.
It has no kernels in bf16 for these."""

import time

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import onnx_models
from serve import Unsupported

FUSED = "com.microsoft"


def node(op, inputs, outputs, domain="", **attributes):
    return helper.make_node(op, inputs, outputs, domain=domain, **attributes)


def scalar(name, value):
    return numpy_helper.from_array(numpy.array(value, numpy.float32), name)


def integers(name, values):
    return numpy_helper.from_array(numpy.array(values, numpy.int64), name)


def norm_backward():
    last, first = integers("last", [-1]), integers("first", [0])
    nodes = [node("Sub", ["x", "mean"], ["centred"]), node("Mul", ["centred", "rstd"], ["unit"]),
             node("Mul", ["dy", "gamma"], ["scaled"]), node("Mul", ["scaled", "unit"], ["both"]),
             node("ReduceMean", ["scaled", "last"], ["m1"]), node("ReduceMean", ["both", "last"], ["m2"]),
             node("Mul", ["unit", "m2"], ["part"]), node("Sub", ["scaled", "m1"], ["rest"]),
             node("Sub", ["rest", "part"], ["dx"]), node("Mul", ["dx", "rstd"], ["y"]),
             node("Mul", ["dy", "unit"], ["products"]),
             node("ReduceSum", ["products", "first"], ["dgamma"], keepdims=0),
             node("ReduceSum", ["dy", "first"], ["dbeta"], keepdims=0)]
    return nodes, [last, first]


def adam():
    step = 10
    size, root = 1e-3 / (1 - 0.9**step), (1 - 0.999**step) ** 0.5
    constants = [scalar("b1", 0.9), scalar("c1", 0.1), scalar("b2", 0.999), scalar("c2", 0.001),
                 scalar("root", root), scalar("epsilon", 1e-8), scalar("size", size)]
    nodes = [node("Mul", ["first_moment", "b1"], ["m1"]), node("Mul", ["gradient", "c1"], ["m2"]),
             node("Add", ["m1", "m2"], ["first_out"]), node("Mul", ["gradient", "gradient"], ["g2"]),
             node("Mul", ["second_moment", "b2"], ["v1"]), node("Mul", ["g2", "c2"], ["v2"]),
             node("Add", ["v1", "v2"], ["second_out"]), node("Sqrt", ["second_out"], ["s"]),
             node("Div", ["s", "root"], ["s1"]), node("Add", ["s1", "epsilon"], ["s2"]),
             node("Div", ["first_out", "s2"], ["d"]), node("Mul", ["d", "size"], ["d1"]),
             node("Sub", ["weights", "d1"], ["y"])]
    return nodes, constants


# Nodes and constants by builder. Inputs and outputs have the names of the graph of fuse.
NODES = {
    "softmax": lambda: ([node("Softmax", ["x"], ["y"], axis=-1)], []),
    "layer_norm": lambda: ([node("LayerNormalization", ["x", "gamma", "beta"], ["y"], axis=-1, epsilon=1e-5)], []),
    "rms_norm": lambda: ([node("SimplifiedLayerNormalization", ["x", "gamma"], ["y"], axis=-1, epsilon=1e-6)], []),
    "gelu": lambda: ([node("Gelu", ["x"], ["y"], FUSED)], []),
    "gelu_tanh": lambda: ([node("FastGelu", ["x"], ["y"], FUSED)], []),
    "bias_gelu": lambda: ([node("BiasGelu", ["x", "bias"], ["y"], FUSED)], []),
    "residual_layer_norm": lambda: ([node("SkipLayerNormalization", ["x", "r0", "0.gamma", "0.beta"], ["y"], FUSED,
                                          epsilon=1e-5)], []),
    "transpose": lambda: ([node("Transpose", ["x"], ["y"], perm=[1, 0])], []),
    "nll": lambda: ([node("LogSoftmax", ["x"], ["logs"], axis=-1),
                     node("Unsqueeze", ["labels", "last"], ["at"]),
                     node("GatherElements", ["logs", "at"], ["picked"], axis=-1),
                     node("Squeeze", ["picked", "last"], ["row"]), node("Neg", ["row"], ["y"])],
                    [integers("last", [-1])]),
    "dropout": lambda: ([node("Dropout", ["x", "ratio", "training"], ["y"])],
                        [scalar("ratio", 0.1), numpy_helper.from_array(numpy.array(True), "training")]),
    "softmax_backward": lambda: ([node("Mul", ["probabilities", "dy"], ["both"]),
                                  node("ReduceSum", ["both", "last"], ["s"]), node("Sub", ["dy", "s"], ["d"]),
                                  node("Mul", ["probabilities", "d"], ["y"])], [integers("last", [-1])]),
    "norm_backward": norm_backward,
    "adam": adam,
}


def value_info(name, array):
    kind = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}[str(array.dtype)]
    return helper.make_tensor_value_info(name, kind, array.shape)


def output_shapes(builder, tensors):
    x = next(iter(tensors.values()))
    if builder == "transpose":
        return {"y": x.shape[::-1]}
    if builder == "nll":
        return {"y": x.shape[:1]}
    if builder == "norm_backward":
        return {"y": x.shape, "dgamma": x.shape[1:], "dbeta": x.shape[1:]}
    if builder == "adam":
        return {"y": x.shape, "first_out": x.shape, "second_out": x.shape}
    return {"y": x.shape}


class Peer:
    version = onnxruntime.__version__

    def __init__(self, name, threads):
        del name
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3

    @staticmethod
    def tensor(bits, dtype):
        return bits

    def session(self, nodes, constants, inputs, outputs):
        graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(FUSED, 1)])
        model.ir_version = 9
        return onnxruntime.InferenceSession(model.SerializeToString(), self.options, ["CPUExecutionProvider"])

    def load(self, case, tensors):
        builder = case["builder"]
        if case["dtype"] == "bf16":
            raise Unsupported("ONNX Runtime has no kernel in bf16 for it")
        in_place = {}
        if builder in onnx_models.MODELS:
            nodes, constants, fed, shapes, in_place = onnx_models.MODELS[builder](tensors, case["dims"])
        elif builder in NODES:
            nodes, constants = NODES[builder]()
            used = {name for each in nodes for name in each.input}
            fed, shapes = {n: x for n, x in tensors.items() if n in used}, output_shapes(builder, tensors)
            if builder == "adam":
                in_place = {"y": "weights", "first_out": "first_moment", "second_out": "second_moment"}
        else:
            raise Unsupported("no model of " + builder)
        results = {name: fed[in_place[name]] if name in in_place else numpy.empty(shape, numpy.float32)
                   for name, shape in shapes.items()}
        session = self.session(nodes, constants, [value_info(n, x) for n, x in fed.items()],
                               [value_info(n, x) for n, x in results.items()])
        binding = session.io_binding()
        for name, x in fed.items():
            binding.bind_input(name, "cpu", 0, x.dtype, x.shape, x.ctypes.data)
        for name, x in results.items():
            binding.bind_output(name, "cpu", 0, x.dtype, x.shape, x.ctypes.data)
        keep = fed, results  # the session has their addresses alone
        return [(lambda keep=keep: session.run_with_iobinding(binding),
                 lambda: {name: (x, "f32") for name, x in results.items()}, "bound outputs")]

    def shapes(self, case, tensors, lengths):
        x = tensors["x"]
        start = time.perf_counter()
        nodes, constants, fed, shapes, _ = onnx_models.MODELS[case["builder"]](tensors, case["dims"])
        symbolic = helper.make_tensor_value_info("x", TensorProto.FLOAT, [x.shape[0], "L", x.shape[2]])
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [x.shape[0], "L", x.shape[2]])
        session = self.session(nodes, constants, [symbolic], [result])
        cold, steady = time.perf_counter() - start, 0.0
        for length in lengths:
            part = numpy.ascontiguousarray(x[:, :length])
            start = time.perf_counter()
            session.run(None, {"x": part})
            middle = time.perf_counter()
            session.run(None, {"x": part})
            cold, steady = cold + middle - start, steady + time.perf_counter() - middle
        return cold, steady

    def drop(self):
        pass
