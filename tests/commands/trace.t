SPDX-License-Identifier: Apache-2.0

A graph that branches has steps beside each other on streams, and the trace has the streams as rows, groups of several steps,
and the run as it was.

    $ fusec run examples/graphs/transformer_block.fuse --stitch mapping --device emulated --trace t.json
    ...
    trace    t.json: [0-9]+ steps on [2-9] streams, .* by the cost model.* (re)
    $ grep -o '"stream 1"' t.json | sort -u
    "stream 1"
    $ grep -oE '"group [0-9]+: [^"]* in block' t.json | sed -n 1p
    "group 0: * in block (glob)
    $ grep -o '"by host clock"' t.json | sort -u
    "by host clock"

On the cpu device both clocks are told, and the steps have lengths of their own by the host's.

    $ fusec run examples/graphs/transformer_block.fuse --device cpu --trace cpu.json
    ...
    trace    cpu.json: [0-9]+ steps on [0-9]+ streams?, [0-9.]+ us by the cost model .*, [0-9.]+ us by the host clock (re)
    $ grep -o '"by host clock"' cpu.json | sort -u
    "by host clock"
    $ distinct() { awk '/"pid": 1/ { measured = 1 } measured && /"dur"/' cpu.json | sort -u | wc -l; }
    $ test "$(distinct)" -gt 5

A trace that cannot be written, and one of the reference device, are refused.

    $ fusec run examples/graphs/softmax.fuse --dim B=1 --device emulated --trace /proc/no/such/t.json
    error: --trace '/proc/no/such/t.json': the directory /proc/no/such does not exist
      hint: make it
    [2]
    $ fusec run examples/graphs/softmax.fuse --dim B=1 --device reference --trace t.json
    error: --trace: the reference device has no steps
    [2]
