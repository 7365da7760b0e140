# SPDX-License-Identifier: Apache-2.0
"""ONNX ops in fuse's: HANDLERS has one entry for each op that is written, IMPOSSIBLE the reason for each that is not.

A handler takes an onnx_nodes.Node and returns a Value, or one for each output."""

from onnx_ops import (
    attention,
    elementwise,
    matrices,
    movement,
    networks,
    quantized,
    recurrent,
    reductions,
    sampling,
    windows,
)

HANDLERS = {}
for module in (
    attention,
    elementwise,
    matrices,
    movement,
    networks,
    quantized,
    recurrent,
    reductions,
    sampling,
    windows,
):
    HANDLERS.update(module.HANDLERS)

REASONS = {
    "no control flow": "If Loop Scan SequenceMap",
    "sequences and optional values": "SequenceInsert SequenceAt SequenceConstruct SequenceEmpty SplitToSequence "
    "OptionalGetElement OptionalHasElement ConcatFromSequence SequenceLength Optional",
    "strings": "StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer LabelEncoder",
    "no scatter": "Scatter ScatterElements ScatterND TensorScatter MaxUnpool Col2Im",
    "no sort": "TopK",
    "the shape of the result depends on data": "Compress NonZero Unique NonMaxSuppression",
    "no cumulative product": "CumProd",
    "random numbers of another generator": "Bernoulli Multinomial RandomNormal RandomNormalLike "
    "RandomUniform RandomUniformLike",
    "no reinterpretation of bits": "BitCast",
    "image formats": "ImageDecoder",
    "trees of decisions": "TreeEnsemble TreeEnsembleRegressor TreeEnsembleClassifier",
    "no elimination (determinant)": "Det",
    "gradients inside of the model": "Gradient",
}
IMPOSSIBLE = {op: reason for reason, ops in REASONS.items() for op in ops.split()}
