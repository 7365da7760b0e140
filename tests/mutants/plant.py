#!/usr/bin/env python3
"""Plants mutants: a copy of the tree in which every mutant is compiled in, each behind its number.

plant.py ROOT TREE writes the copy to TREE and the list of mutants to TREE/mutants.json. The program that is built there
runs the mutant whose number stands in FUSE_MUTANT; 0 is the code as it was. SPDX-License-Identifier: Apache-2.0
"""
import argparse
import bisect
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys

import clang.cindex as cindex
from clang.cindex import CursorKind as Kind

# Each area with its folders, and what of them holds no decision of ours.
AREAS = {
    'analysis': ['src/analysis'],
    'schedule': ['src/schedule', 'src/plan', 'src/target'],
    'code generation': ['src/codegen_cuda'],
    'kernel passes': ['src/ir/kernel/passes'],
    'graph passes': ['src/passes'],
    'runtime': ['src/runtime', 'src/compile', 'src/os', 'src/tensors'],
}
LEFT_OUT = ['src/codegen_cuda/primitives/', 'src/eval/']  # text of another language; the oracle
FLAGS = ['-xc++', '-std=c++20', '-Iinclude', '-Isrc', '-isystem', '/usr/local/cuda/include', '-DFUSE_COMPILER_STATIC',
         '-DFUSE_COMPILER_HAS_CUDA=1', '-DFUSE_COMPILER_HAS_EMULATED=1', '-DFUSE_COMPILER_VERSION="mutants"', '-w']
COMPARISONS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
ARITHMETIC = {'+': '-', '-': '+', '*': '+', '/': '*', '%': '/', '<<': '>>', '>>': '<<', '&': '|', '|': '&'}
CONSTANT = {Kind.STATIC_ASSERT, Kind.ENUM_CONSTANT_DECL, Kind.TEMPLATE_TYPE_PARAMETER, Kind.TEMPLATE_NON_TYPE_PARAMETER}
NOT_TAKEN = 'the branch is not taken'
PRELUDE = '#include "mutant.hpp"\n'
MUTANT_HPP = '''// Which mutant runs. Written by tests/mutants/plant.py. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mutant_trace.hpp"
#define FUSE_MUTANT(number, as_it_was, changed) (::fuse::mutants::is(number) ? (changed) : (as_it_was))
#define FUSE_MUTANT_WITHOUT(number) if (!::fuse::mutants::is(number))
'''


class Planter:
    """Finds the sites of one file. A site replaces [begin, end) by text in which other sites may lie."""

    def __init__(self, path):
        self.path = path
        self.text = pathlib.Path(path).read_bytes()
        self.sites = []  # (begin, end, kind, changed text)
        self.line_starts = [0] + [i + 1 for i, byte in enumerate(self.text) if byte == 10]

    def source(self, cursor):
        return self.text[cursor.extent.start.offset:cursor.extent.end.offset].decode()

    def inside(self, cursor):
        start, end = cursor.extent.start, cursor.extent.end
        return (start.file is not None and start.file.name == self.path and end.file is not None
                and end.file.name == self.path and start.offset < end.offset)

    def add(self, cursor, kind, changed):
        if self.is_plain(cursor):
            self.sites.append((cursor.extent.start.offset, cursor.extent.end.offset, kind, changed))

    def is_plain(self, cursor):
        """Nothing of it comes from a macro, and it has no preprocessor line."""
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        at = bisect.bisect_left(self.macros, (begin, 0))
        if at < len(self.macros) and self.macros[at][0] < end:
            return False
        return b'\n#' not in self.text[begin:end]

    def find(self):
        options = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        unit = cindex.Index.create().parse(self.path, args=FLAGS, options=options)
        errors = [d for d in unit.diagnostics if d.severity >= cindex.Diagnostic.Error]
        if errors:
            raise ValueError(f'{self.path}: {errors[0]}')  # SystemExit would leave the pool waiting
        self.macros = sorted((c.extent.start.offset, c.extent.end.offset) for c in unit.cursor.get_children()
                             if c.kind == Kind.MACRO_INSTANTIATION and c.location.file
                             and c.location.file.name == self.path)
        for cursor in unit.cursor.get_children():
            if not cursor.kind.is_preprocessing() and self.inside(cursor):
                self.walk(cursor, False)
        return self.sites

    def walk(self, cursor, runs):
        """`runs`: within a function's body, where code may ask at run time which mutant it is."""
        if cursor.kind in CONSTANT:
            return
        if cursor.kind in (Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.CONSTRUCTOR, Kind.FUNCTION_TEMPLATE, Kind.VAR_DECL):
            words = {token.spelling for token, _ in zip(cursor.get_tokens(), range(6))}
            if words & {'constexpr', 'consteval'}:
                return
        if cursor.kind == Kind.DECL_STMT and re.match(rb'(static )?constexpr\b', self.text[cursor.extent.start.offset:]):
            return  # its second name and those after it do not say so themselves
        if cursor.kind in (Kind.CXX_METHOD, Kind.CONSTRUCTOR) and self.is_defaulted(cursor):
            return
        constant = cursor.kind == Kind.IF_STMT and self.source(cursor).startswith('if constexpr')
        if cursor.kind == Kind.CASE_STMT or constant:  # the value, or the condition, is a constant
            for child in list(cursor.get_children())[1:]:
                self.walk(child, runs)
            return
        if runs and self.inside(cursor):
            self.mutate(cursor)
        body = runs or cursor.kind == Kind.COMPOUND_STMT
        for child in cursor.get_children():
            if cursor.kind == Kind.COMPOUND_STMT and self.inside(child):
                self.drop(child)
            self.walk(child, body)

    def is_defaulted(self, cursor):
        """The compiler writes its body, whose sites are those of the declaration."""
        begin, end = cursor.extent.start.offset, cursor.extent.end.offset
        return b'= default' in self.text[begin:end + 12] and b'{' not in self.text[begin:end]

    def operator(self, cursor, left):
        """The operator of a binary expression, between its operands."""
        between = self.text[left.extent.end.offset:cursor.extent.end.offset].decode().lstrip(' )\n')
        for length in (2, 1):
            if between[:length] in COMPARISONS or between[:length] in ARITHMETIC or between[:length] in ('&&', '||'):
                return between[:length]
        return None

    def mutate(self, cursor):
        children = list(cursor.get_children())
        if cursor.kind == Kind.BINARY_OPERATOR and len(children) == 2:
            left, right = children
            if not (self.inside(left) and self.inside(right)):
                return
            operator, a, b = self.operator(cursor, left), self.source(left), self.source(right)
            plain = all(is_arithmetic(side.type) for side in children)
            if operator in ('&&', '||'):
                self.add(cursor, f'{operator}: the left side alone', f'bool({a})')
                self.add(cursor, f'{operator}: the right side alone', f'bool({b})')
            elif operator in COMPARISONS and (plain or operator in ('==', '!=')):
                self.add(cursor, f'{operator} becomes {COMPARISONS[operator]}', f'({a}) {COMPARISONS[operator]} ({b})')
            elif operator in ARITHMETIC and plain and is_arithmetic(cursor.type):
                self.add(cursor, f'{operator} becomes {ARITHMETIC[operator]}',
                         f'decltype({self.source(cursor)})(({a}) {ARITHMETIC[operator]} ({b}))')
                if right.kind == Kind.INTEGER_LITERAL and operator in '+-':
                    self.add(cursor, f'{operator} {b} is left out', f'decltype({self.source(cursor)})({a})')
        elif cursor.kind == Kind.CALL_EXPR and cursor.spelling in ('operator==', 'operator!='):
            self.add(cursor, f'{cursor.spelling[8:]} is turned', f'!({self.source(cursor)})')
        elif cursor.kind == Kind.UNARY_OPERATOR and self.source(cursor)[0] == '!' and children:
            if self.source(cursor).startswith('!='):  # a != b, which C++20 reads as !(a == b)
                return
            self.add(cursor, '! is left out', f'bool({self.source(children[0])})')
        elif cursor.kind == Kind.IF_STMT:
            self.condition(cursor, children)
        elif cursor.kind == Kind.RETURN_STMT and children and self.source(children[0]) in ('true', 'false'):
            other = 'false' if self.source(children[0]) == 'true' else 'true'
            self.add(children[0], f'{self.source(children[0])} becomes {other}', other)

    def condition(self, cursor, children):
        """A branch that is never taken, where the condition is an expression of its own."""
        if not children or not children[0].kind.is_expression():
            return
        between = self.text[children[0].extent.end.offset:children[1].extent.start.offset]
        if b';' in between:  # what stands before the condition
            return
        if children[0].kind != Kind.BINARY_OPERATOR:  # those are changed themselves
            self.add(children[0], NOT_TAKEN, 'false')

    def drop(self, statement):
        """A statement that is left out: a call, an assignment, a jump."""
        kinds = (Kind.CALL_EXPR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.CONTINUE_STMT, Kind.CXX_UNARY_EXPR)
        text = self.source(statement)
        assigns = statement.kind in (Kind.BINARY_OPERATOR, Kind.UNARY_OPERATOR) or (
            statement.kind == Kind.UNEXPOSED_EXPR and text.endswith(')'))
        if (statement.kind in kinds or assigns) and self.is_plain(statement):
            self.sites.append((statement.extent.start.offset, statement.extent.start.offset, 'the statement is left out',
                                None))

    def line(self, offset):
        return bisect.bisect_right(self.line_starts, offset)

    def planted(self, first):
        """The text with all sites, numbered from `first`; and the mutants."""
        # What leaves a statement out stands before what changes its expression.
        sites = sorted(set(self.sites), key=lambda p: (p[0], p[0] != p[1], -p[1], p[2]))
        mutants = [{'number': first + i, 'file': self.path, 'line': self.line(p[0]), 'kind': p[2],
                    'text': ' '.join(self.text[p[0]:].decode().split('\n')[0].split())[:100]
                    if p[3] is None else ' '.join(self.text[p[0]:p[1]].decode().split())[:160]}
                   for i, p in enumerate(sites)]
        return render(self.text, sites, first), mutants


def render(text, sites, first):
    """Nested sites: the text as it was has the inner ones, the changed text has none."""
    def span(begin, end, inner):
        out, at = [], begin
        i = 0
        while i < len(inner):
            number, site = inner[i]
            held = []
            i += 1
            if site[3] is None:
                out.append(text[at:site[0]].decode())
                out.append(f'FUSE_MUTANT_WITHOUT({number}) ')
                at = site[0]
                continue
            while i < len(inner) and inner[i][1][1] <= site[1] and inner[i][1][0] < site[1]:
                held.append(inner[i])
                i += 1
            out.append(text[at:site[0]].decode())
            as_it_was = f'({span(site[0], site[1], held)})'
            if site[2] == NOT_TAKEN:  # it may be a pointer or an optional
                as_it_was = f'bool{as_it_was}'
            out.append(f'FUSE_MUTANT({number}, {as_it_was}, ({site[3]}))')
            at = site[1]
        out.append(text[at:end].decode())
        return ''.join(out)

    return PRELUDE + span(0, len(text), list(enumerate(sites, first)))


def is_arithmetic(kind):
    kind = kind.get_canonical()
    return cindex.TypeKind.BOOL.value <= kind.kind.value <= cindex.TypeKind.LONGDOUBLE.value


def find_in(path):
    planter = Planter(path)
    planter.find()
    return planter


def sources():
    for area, folders in AREAS.items():
        for folder in folders:
            for path in sorted(pathlib.Path(folder).rglob('*.cpp')):
                inside_other = any(other != folder and str(path).startswith(other + '/') and len(other) > len(folder)
                                   for folders_ in AREAS.values() for other in folders_)
                if not inside_other and not any(str(path).startswith(left) for left in LEFT_OUT):
                    yield area, str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('root')
    parser.add_argument('tree')
    options = parser.parse_args()
    os.chdir(options.root)
    tree = pathlib.Path(options.tree)
    tracked = subprocess.run(['git', 'ls-files', '-z'], check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split('\0')):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, tree / name)
    files = list(sources())
    mutants = []
    with multiprocessing.Pool() as pool:
        for done, ((area, path), planter) in enumerate(zip(files, pool.imap(find_in, [p for _, p in files])), 1):
            text, found = planter.planted(len(mutants) + 1)
            (tree / path).write_text(text)
            mutants += [dict(mutant, area=area) for mutant in found]
            print(f'{done} of {len(files)} files, {len(mutants)} mutants', file=sys.stderr,
                  end='\r' if sys.stderr.isatty() else '\n')
    (tree / 'src/mutant.hpp').write_text(MUTANT_HPP)
    here = tree / 'tests/mutants'
    shutil.copy(here / 'mutant_trace.hpp', tree / 'src/mutant_trace.hpp')
    shutil.copy(here / 'mutant_trace.cpp.in', tree / 'src/base/mutant_trace.cpp')
    shutil.copy(here / 'listener.cpp.in', tree / 'tests/support/mutant_listener.cpp')
    with (tree / 'tests/CMakeLists.txt').open('a') as cmake:  # what the others precompile has no listeners
        cmake.write('set_source_files_properties(support/mutant_listener.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON\n'
                    '                            SKIP_UNITY_BUILD_INCLUSION ON)\n')
    (tree / 'src/mutant_count.hpp').write_text(f'// SPDX-License-Identifier: Apache-2.0\ninline constexpr int mutant_count = {len(mutants)};\n')
    (tree / 'mutants.json').write_text(json.dumps(mutants, indent=1))


if __name__ == '__main__':
    main()
