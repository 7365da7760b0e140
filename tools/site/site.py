#!/usr/bin/env python3
"""Makes the site of the pages: usage: site.py ROOT OUT [--check].

The pages keep their places relative to each other, so that links work on the site as they do in the repository. Files
that pages link to and that are no pages (sources, pictures) are copied beside them. --check fails for a dead link, for a
public symbol without documentation, and for any warning of mkdocs and doxygen.
SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import shutil
import subprocess
import sys

LINK = re.compile(r'\]\(([^)#\s]+)(#[^)\s]*)?\)')

# Who reads what. A page that stands in neither list is an error.
USERS = [
    ('Getting started', 'docs/getting-started.md'), ('Concepts', 'docs/concepts.md'), ('From PyTorch', 'docs/from-pytorch.md'), ('From ONNX Runtime', 'docs/from-onnx-runtime.md'),
    ('Functions and layers', 'docs/functions.md'), ('Decode with a cache', 'docs/decode.md'), ('Dynamic shapes', 'docs/dynamic-shapes.md'), ('GPU or CPU', 'docs/devices.md'),
    ('Make a graph faster', 'docs/tune.md'), ('Examples', 'examples/README.md'),
    ('The ops', 'docs/ops.md'), ('The text form', 'docs/text-form.md'), ('fusec', 'docs/fusec.md'),
    ('Install and link', 'docs/packaging.md'), ('Dependencies', 'docs/dependencies.md'), ('Embed', 'docs/interop.md'),
    ('Deploy', 'docs/deploy.md'), ('A bundle', 'docs/bundle.md'), ('Explore', 'docs/exploration.md'),
    ('Debug', 'docs/debugging.md'),
    ('Errors', 'docs/errors.md'), ('Performance', 'docs/performance.md'), ('Limitations', 'docs/limitations.md'),
    ('Questions and answers', 'docs/faq.md'), ('Variables and options', 'docs/environment.md'),
    ('Glossary', 'docs/glossary.md'), ('Security', 'SECURITY.md'), ('Changes', 'CHANGELOG.md'),
]
DEVELOPERS = [
    ('Architecture', 'docs/architecture.md'), ('Contributing', 'CONTRIBUTING.md'), ('Passes', 'docs/passes.md'),
    ('Dependency analysis', 'docs/dependency.md'), ('Facts about dims', 'docs/facts.md'), ('Partition', 'docs/partition.md'),
    ('Stitching', 'docs/stitching.md'), ('Loop nests', 'docs/nests.md'), ('Search', 'docs/search.md'),
    ('Decisions', 'docs/decisions.md'), ('GEMMs', 'docs/gemm.md'), ('In place', 'docs/in-place.md'),
    ('Regional kernels', 'docs/regional.md'), ('Horizontal kernels', 'docs/horizontal.md'),
    ('Compile once', 'docs/compile-once.md'), ('Versions and builds', 'docs/versions.md'), ('Runtime', 'docs/runtime.md'), ('Streams', 'docs/streams.md'),
    ('The cpu device', 'docs/cpu.md'), ('The emulated device', 'docs/emulated-device.md'), ('The reference device', 'docs/reference-device.md'),
    ('Fuzzing', 'docs/fuzz.md'), ('Mutants', 'tests/mutants/README.md'), ('Oracles', 'tests/oracle/README.md'),
    ('Coverage-guided fuzzing', 'tests/guided/README.md'), ('Benchmarks', 'bench/README.md'),
]

DOXYFILE = """
PROJECT_NAME = fuse
PROJECT_BRIEF = "The fusion compiler that C++ programs link"
INPUT = {root}/include/fuse
FILE_PATTERNS = *.hpp *.h
RECURSIVE = YES
INCLUDE_PATH = {root}/include
STRIP_FROM_PATH = {root}/include
OUTPUT_DIRECTORY = {out}
HTML_OUTPUT = api
GENERATE_LATEX = NO
QUIET = YES
JAVADOC_AUTOBRIEF = YES
DISTRIBUTE_GROUP_DOC = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = FUSE_COMPILER_API= FUSE_COMPILER_API_BEGIN= FUSE_COMPILER_API_END= FUSE_COMPILER_C_API= \\
             FUSE_COMPILER_NOT_NULL(x)=
EXCLUDE_SYMBOLS = fuse::detail::* fuse::runtime* fuse::ir* fuse::v0::detail*
EXCLUDE = {root}/include/fuse/deprecated.hpp {root}/include/fuse/function_ref.hpp
HAVE_DOT = NO
CLASS_GRAPH = NO
SEARCHENGINE = NO
WARN_IF_UNDOCUMENTED = YES
WARN_FORMAT = "$file:$line: $text"
"""


def links_of(page):
    text = re.sub(r'```.*?```', '', page.read_text(), flags=re.S)
    text = re.sub(r'`[^`\n]*`', '', text)
    return [m[1] for m in LINK.finditer(text) if not re.match(r'[a-z]+:', m[1])]


def copy_pages(root, pages, to):
    """Copies the pages and what they link to; gives what is wrong."""
    wrong = []
    for page in pages:
        target = to / page
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / page, target)
        for link in links_of(root / page):
            source = ((root / page).parent / link).resolve()
            if not source.exists():
                wrong.append(f'{page}: the link {link} leads nowhere')
            elif not source.is_relative_to(root):
                wrong.append(f'{page}: the link {link} leads out of the repository')
            elif source.is_file() and str(source.relative_to(root)) not in pages:
                beside = to / source.relative_to(root)
                beside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, beside)
    return wrong


def main():
    root, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    check = '--check' in sys.argv[3:]
    shutil.rmtree(out, ignore_errors=True)
    pages = ['README.md'] + [page for _, page in USERS + DEVELOPERS]
    wrong = [f'docs/{page.name} is in no list of tools/site/site.py'
             for page in sorted((root / 'docs').glob('*.md')) if f'docs/{page.name}' not in pages]
    wrong += copy_pages(root, pages, out / 'pages')
    (out / 'pages/README.md').rename(out / 'pages/index.md')
    nav = [{'fuse': 'index.md'}]
    for part, entries in (('To use fuse', USERS), ('To change fuse', DEVELOPERS)):
        nav.append({part: [{name: page} for name, page in entries]})
    # YAML is a superset of JSON, but for the tabs that JSON does not write.
    import json
    (out / 'mkdocs.yml').write_text(json.dumps({
        'site_name': 'fuse', 'docs_dir': 'pages', 'site_dir': 'site', 'theme': 'readthedocs', 'use_directory_urls': False,
        'site_url': '', 'nav': nav, 'markdown_extensions': ['tables', 'fenced_code', 'toc'],
    }, indent=1))

    print('pages', file=sys.stderr)
    made = subprocess.run(['mkdocs', 'build', '--quiet', '--config-file', str(out / 'mkdocs.yml')], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    # A link to a folder, or to a file that is no page, is checked above; mkdocs knows pages alone.
    wrong += [line for line in made.stdout.splitlines() if line.startswith(('WARNING', 'ERROR')) and 'contains a link' not in line]
    if made.returncode != 0:
        wrong.append(made.stdout)

    print('API reference', file=sys.stderr)
    (out / 'Doxyfile').write_text(DOXYFILE.format(root=root, out=out / 'site'))
    made = subprocess.run(['doxygen', str(out / 'Doxyfile')], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    wrong += [line.replace(f'{root}/', '') for line in made.stderr.splitlines() if line.strip()]
    if made.returncode != 0:
        wrong.append(f'doxygen ended with status {made.returncode}')

    for line in wrong:
        print(line)
    print(f'{len(pages)} pages, the API reference: {out}/site/index.html; {len(wrong)} warnings', file=sys.stderr)
    sys.exit(1 if check and wrong else 0)


if __name__ == '__main__':
    main()
