# SPDX-License-Identifier: Apache-2.0
"""Reads the text form of a graph (docs/text-form.md), of graphs that were printed and are known to be right."""

import dataclasses
import re

WORD = re.compile(
    r"""(?P<skip>\s+|\#[^\n]*|\bat\ (?:\?|(?:"(?:\\.|[^"\\])*"|[\w./+-]+):\d+))
      | (?P<value>%(?:"(?:\\.|[^"\\])*"|[A-Za-z0-9_.]+))
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<number>0x[0-9a-f]+(?:\.[0-9a-f]*)?p[+-]?\d+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<sign>->|.)""",
    re.VERBOSE,
)


@dataclasses.dataclass
class Type:
    dtype: str
    dims: list  # of extents: functions of the values of the dims

    def shape(self, dims):
        return [extent(dims) for extent in self.dims]


@dataclasses.dataclass
class Op:
    name: str
    operands: list  # names of values
    attributes: dict
    type: Type
    result: str  # the value that it defines


@dataclasses.dataclass
class Graph:
    inputs: dict  # name of a value -> Type
    outputs: list  # (name, value)
    dims: list  # names, in order of declaration
    ops: list


class Symbol(str):
    """A name that stands alone as an attribute: a dim, or a word."""

    def __call__(self, dims):
        return dims[self]


class Parser:
    def __init__(self, text):
        self.words = [(m.lastgroup, m.group()) for m in WORD.finditer(text) if m.lastgroup != "skip"]
        self.words.append(("end", ""))
        self.at = 0

    def peek(self):
        return self.words[self.at][1]

    def next(self):
        self.at += 1
        return self.words[self.at - 1][1]

    def accept(self, word):
        if self.peek() != word:
            return False
        self.at += 1
        return True

    def expect(self, word):
        found = self.next()
        if found != word:
            raise ValueError(f"expected {word!r}, found {found!r} before {self.words[self.at:self.at + 5]}")

    def listed(self, end, item):
        items = []
        while not self.accept(end):
            items.append(item())
            self.accept(",")
        return items

    def name(self):
        word = self.next()
        if not word.startswith('"'):
            return word
        return re.sub(
            r"\\(?:x([0-9a-fA-F]{2})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else m[2], word[1:-1]
        )

    # Extents

    def extent(self):
        left = self.product()
        while self.peek() in ("+", "-"):
            sign, right = self.next(), self.product()
            left = binary(sign, left, right)
        return left

    def product(self):
        left = self.factor()
        while self.peek() in ("*", "/", "%"):
            sign, right = self.next(), self.factor()
            left = binary(sign, left, right)
        return left

    def factor(self):
        if self.accept("-"):
            inner = self.factor()
            return lambda dims: -inner(dims)
        if self.accept("("):
            inner = self.extent()
            self.expect(")")
            return inner
        kind = self.words[self.at][0]
        if kind == "number":
            number = int(self.next())
            return lambda dims: number
        return Symbol(self.name())

    # Attributes and types

    def number(self):
        sign = -1 if self.accept("-") else 1
        word = self.next()
        if word.startswith("0x"):
            return sign * float.fromhex(word)
        if word in ("true", "false"):
            return word == "true"
        if word in ("inf", "nan") or not word.isdigit():
            return sign * float(word)
        return sign * int(word)

    def attribute(self):
        if self.accept("["):
            return self.listed("]", self.attribute)
        kind, word = self.words[self.at]
        if kind == "string":
            return self.name()
        if word in ("true", "false"):
            return self.next() == "true"
        return self.extent()

    def type(self):
        dtype = self.next()
        self.expect("[")
        return Type(dtype, self.listed("]", self.extent))

    # The graph

    def given(self, inputs):
        self.accept("param")
        value = self.next()
        self.expect(":")
        inputs[value] = self.type()
        if self.accept("in"):
            self.name()
            while self.accept("/"):
                self.name()

    def made(self):
        name = self.name()
        self.expect(":")
        return name, self.type()

    def dim(self, dims):
        dims.append(self.name())
        self.expect("in")
        self.expect("[")
        self.listed("]", self.extent)
        if self.accept("hint"):
            self.next()

    def op(self):
        result = self.next()
        self.expect("=")
        name, operands, attributes = self.next(), [], {}
        while self.words[self.at][0] == "value":
            operands.append(self.next())
            self.accept(",")
        if self.accept("{"):
            while not self.accept("}"):
                key = self.next()
                self.expect("=")
                attributes[key] = self.number() if name == "constant" else self.attribute()
                self.accept(",")
        self.expect(":")
        return Op(name, operands, attributes, self.type(), result)

    def graph(self):
        self.expect("graph")
        self.expect("@")
        self.name()
        inputs, dims, ops, results = {}, [], [], {}
        self.expect("(")
        self.listed(")", lambda: self.given(inputs))
        self.expect("->")
        self.expect("(")
        made = self.listed(")", self.made)
        if self.accept("where"):
            self.dim(dims)
            while self.accept(","):
                self.dim(dims)
        while self.peek() != "{":  # assumptions
            self.next()
        self.expect("{")
        depth = 1
        while depth:
            if self.accept("}"):
                depth -= 1
            elif self.accept("scope"):
                self.name()
                self.expect("{")
                depth += 1
            elif self.accept("return"):
                self.result(results)
                while self.accept(","):
                    self.result(results)
            else:
                ops.append(self.op())
        return Graph(inputs, [(name, results[name]) for name, _ in made], dims, ops)

    def result(self, results):
        name = self.name()
        self.expect("=")
        results[name] = self.next()
        if self.accept("into"):
            self.next()


def binary(sign, left, right):
    if sign == "+":
        return lambda dims: left(dims) + right(dims)
    if sign == "-":
        return lambda dims: left(dims) - right(dims)
    if sign == "*":
        return lambda dims: left(dims) * right(dims)
    if sign == "/":
        return lambda dims: left(dims) // right(dims)
    return lambda dims: left(dims) % right(dims)


def parse(text):
    return Parser(text).graph()
