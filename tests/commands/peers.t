SPDX-License-Identifier: Apache-2.0

needs: python3

What the scripts of bench/peers write fits the schema, whether or not their frameworks are installed.

    $ export PYTHONDONTWRITEBYTECODE=1
    $ peer() { python3 "bench/peers/$1_peer.py" --device cpu --filter bias_gelu --json "$1.json" >"$1.log" 2>&1 || true; }
    $ peer torch
    $ peer jax
    $ fuse_bench --check torch.json
    torch.json: fits bench/schema.json
    $ fuse_bench --check jax.json
    jax.json: fits bench/schema.json

Unknown peers and empty parts of a filter are refused.

    $ python3 bench/peers/torch_peer.py --peers numpy
    ...
    torch_peer.py: error: there is no peer 'numpy'; there are torch.eager, * (glob)
    [2]
    $ python3 bench/peers/torch_peer.py --filter bf16,
    ...
    torch_peer.py: error: argument --filter: 'bf16,' has an empty part
    [2]

A peer that ends at once leaves the cases that it had finished, in a whole file.

    $ PYTHONPATH=bench/peers python3 -c '
    > import os, harness
    > results = harness.Results("peer", harness.arguments("peer", ("a", "b")))
    > results.add(results.wanted[0], "a")
    > os._exit(9)' --device cpu --filter bias_gelu --json killed.json
    bias_gelu.f32.128x1024                       a                    ok
    [9]
    $ fuse_bench --check killed.json
    killed.json: fits bench/schema.json
    $ grep -o '"by": "a"' killed.json
    "by": "a"
