SPDX-License-Identifier: Apache-2.0

needs: python3

The parser of tests/oracle reads the graphs that fuse prints.

    $ PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/oracle python3 -c '
    > import glob, fuse_text
    > for path in glob.glob("examples/graphs/*.fuse") + glob.glob("tests/fuzz/corpus/*.fuse"):
    >     graph = fuse_text.parse(open(path, encoding="utf-8").read())
    >     if path.endswith("/softmax.fuse"): print(graph.ops[4].result, "softmax")
    >     assert all(value in {op.result for op in graph.ops} | set(graph.inputs) for _, value in graph.outputs), path'
    %5 softmax
