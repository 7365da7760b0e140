SPDX-License-Identifier: Apache-2.0

needs: python3

The benchmark of the cpu device beside its peers, on one small case with numpy alone. Where numpy is not installed its row says so.

    $ export PYTHONDONTWRITEBYTECODE=1
    $ compare() { python3 bench/compare/compare.py --fuse-bench "$BIN/fuse_bench" --peers numpy "$@"; }
    $ compare --filter softmax.f32.16x64 --rounds 2 --json out.json >table 2>progress
    $ fuse_bench --check out.json
    out.json: fits bench/schema.json
    $ python3 -c '
    > import json
    > for row in sorted(json.load(open("out.json"))["cases"], key=lambda row: row["by"]):
    >     print(row["by"], row["status"], row.get("device_us", {}).get("n"))'
    fuse ok 2
    fuse.again ok 2
    numpy (ok 2|missing None) (re)
    $ grep -c '^softmax.f32.16x64 ' table
    1
    $ cat progress
    1 of 1, 0 s: softmax.f32.16x64

The command line is checked before anything starts.

    $ compare --filter softmax.f32.16x64 --rounds 1
    ...
    *: error: --rounds 1: at least 2, since the spread is of several (glob)
    [2]
    $ compare --filter sofmax
    ...
    *: error: no case's name contains 'sofmax', and none has that tag; --list prints all (glob)
    [2]
    $ compare --threads 0
    ...
    *: error: --threads 0: there are from 1 to 1024 (glob)
    [2]
    $ python3 bench/compare/compare.py --peers numpi
    ...
    *: error: there is no peer 'numpi'; there are torch.eager, torch.compile, jax.jit, onnxruntime, numpy (glob)
    [2]
    $ python3 bench/compare/compare.py --fuse-bench nowhere
    ...
    *: error: there is no program nowhere; ./dev build fuse_bench makes it (glob)
    [2]

fuse_bench answers requests, one line each. What is wrong with one is its answer.

    $ printf '%s\n' '{"do": "fly"}' '{"do": "run", "runs": 1}' 'run' | fuse_bench --serve 1
    {"error":"there is no request 'fly'"}
    {"error":"no case is loaded"}
    {"error":"*"} (glob)
    $ fuse_bench --serve none
    error: --serve none: not a number of threads; see --help
    [2]
