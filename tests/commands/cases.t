SPDX-License-Identifier: Apache-2.0

Graphs that showed a hole in the fusion of an earlier version, and what is made of them now.

A cache is updated in place though a GEMM reads the result, and a GEMM reads the first rows of a cache where they are.

    $ fusec explain tests/cases/kv_cache.fuse | tail -n 4
      would change: a row of the rule table for these classes; --partition fuse has more rows than apollo

    outputs in the memory of inputs:
    in place %5 in %old
    $ fusec plan tests/cases/kv_cache.fuse | tail -n 1
    kernels: 1  gemms: 1  barriers: 0
    $ fusec plan tests/cases/kv_prefix.fuse | grep -E '^view|^kernels'
    view %2 slice in %c at element 0, strides 262144, 64, 1
    kernels: 0  gemms: 1  barriers: 0

Layers of filters and of reversals do work in proportion to their layers.

    $ fusec plan tests/cases/recompute_fir4.fuse | grep -oE 'ends at .*|^kernels.*'
    ends at %20 pad (repeated)
    ends at %33 pad (repeated)
    ends at %46 pad (repeated)
    ends at %57 add (output)
    kernels: 3  gemms: 0  barriers: 0
    $ fusec plan tests/cases/recompute_blur4.fuse | grep -oE 'ends at .*|^kernels.*'
    ends at %38 mul (output)
    kernels: 1  gemms: 0  barriers: 3
    $ fusec plan tests/cases/recompute_rev10.fuse | grep -oE 'ends at .*|^kernels.*'
    ends at %30 sin (output)
    kernels: 1  gemms: 0  barriers: 4
    $ fusec run tests/cases/recompute_fir4.fuse --device emulated --check | grep -o 'OK'
    OK
    $ fusec run tests/cases/recompute_rev10.fuse --device emulated --check | grep -o 'OK'
    OK

All of them: launches of kernels and GEMMs, the bytes that kernels ask for and the least that they could, the costly ops that they execute, and why
values are stored between segments.

    $ counts() {
    >   fusec stats "$1" 2> /dev/null | awk 'NR == 1 { launches = $4; gemms = $6 } /^1 MB and more/ { bytes += $5 + $6; floor += $9 }
    >     /^smaller/ { bytes += $2 + $3; floor += $6 } /^costly/ { sub(/^costly ops executed: /, ""); ops = $0 }
    >     END { printf "%d + %d, %d of %d bytes, %s\n", launches, gemms, bytes, floor, ops }'
    > }
    $ reasons() { fusec explain "$1" | grep -oE '^  [a-z-]+,' | sort | uniq -c | awk '{ printf " %s %s", $2, $1 }' | tr -d ','; }
    $ for graph in tests/cases/*.fuse; do case $graph in *half_constants_inf* | *mutant_m2.fuse) ;; *) echo "$(basename "$graph" .fuse): $(counts "$graph");$(reasons "$graph")" ;; esac; done
    astitch_fig4: 1 + 0, 37226512 of 25188352 bytes, log 131072, tanh 262144;
    astra_lstm: 12 + 22, 30624000 of 19536000 bytes, exp 1440000, tanh 960000; cycle 18 no-rule 73
    astra_milstm: 11 + 11, 19005440 of 7405568 bytes, exp 491520, tanh 327680; cycle 9 no-rule 41
    astra_scrn: 13 + 12, 1256960 of 1208320 bytes, exp 48000; no-gain 10 no-rule 43
    astra_sublstm: 11 + 11, 7072000 of 4669600 bytes, exp 520000; cycle 9 no-rule 41
    attention_pool: 1 + 0, 2248704 of 811008 bytes, exp 51200;
    attmask: 1 + 0, 18874368 of 12587008 bytes, exp 1572864;
    bfbias: 1 + 1, 5242880 of 3149824 bytes, ; epilogue 1
    cell: 1 + 2, 983040 of 724992 bytes, exp 49152, tanh 32768; no-rule 2
    check_f64_b: 1 + 0, 64000 of 64000 bytes, ;
    check_runs_donated: 1 + 0, 32 of 32 bytes, ;
    dien: 43 + 45, 31842304 of 18343232 bytes, exp 1375744, tanh 377856; cycle 77 epilogue 2 no-rule 145 prologue 1
    dyn_nohint: 1 + 0, 128 of 128 bytes, exp 16;
    fig5_big: 1 + 0, 134250496 of 134250496 bytes, pow 4096;
    fig5exp: 1 + 0, 512 of 512 bytes, exp 64;
    fig5exp_static: 1 + 0, 25165824 of 25165824 bytes, ;
    half_constant_rounded_twice: 2 + 0, 4 of 4 bytes, ;
    implicit2: 1 + 0, 192 of 192 bytes, ;
    kv_cache: 1 + 1, 1536 of 1028 bytes, ; no-rule 1
    kv_prefix: 0 + 1, 0 of 0 bytes, ;
    lstm: 17 + 33, 558016 of 339732 bytes, exp 72784, tanh 48128; cycle 61 no-rule 81 prologue 1
    mutant_m15: 2 + 1, 65792 of 49152 bytes, ; no-rule 1 scheme-unavailable 2
    mutant_m24: 2 + 0, 36864 of 24576 bytes, ; scheme-unavailable 2
    mutant_m3: 0 + 0, 0 of 0 bytes, ;
    mutant_m34: 1 + 0, 80 of 80 bytes, ;
    mutant_m65: 2 + 0, 213760 of 147712 bytes, ; scheme-unavailable 2
    mutant_m70: 2 + 0, 288 of 136 bytes, ;
    mutant_m72: 0 + 1, 0 of 0 bytes, ;
    paper_slow_emulated: 12 + 0, 1135220 of 186976 bytes, ; scheme-unavailable 29
    par_diffshape: 1 + 0, 28480 of 28480 bytes, exp 1024, tanh 2400;
    par_softmax2: 1 + 0, 27392 of 27392 bytes, ;
    qk_norm_rope: 1 + 0, 9175040 of 2688000 bytes, ;
    recompute_blur4: 1 + 0, 133696 of 32768 bytes, ;
    recompute_fir4: 4 + 0, 2622976 of 262144 bytes, erf 232064; no-gain 1 scheme-unavailable 2
    recompute_rev10: 1 + 0, 1280 of 512 bytes, sin 960;
    recompute_rev8: 1 + 0, 1280 of 512 bytes, sin 768;
    remote: 1 + 0, 73984 of 73984 bytes, exp 18432;
    shp2: 1 + 0, 960 of 704 bytes, exp 64;
    shp4: 1 + 0, 512 of 512 bytes, ;

Rows of two tensors of other heads, normalised and turned, are one kernel; so is a cell of a recurrent layer, and both directions of a layer take one
kernel for each step.

    $ fusec plan tests/cases/qk_norm_rope.fuse | tail -n 1
    kernels: 1  gemms: 0  barriers: 0
    $ fusec plan tests/cases/cell.fuse | tail -n 1
    kernels: 1  gemms: 2  barriers: 0
    $ fusec stats tests/cases/lstm.fuse | head -n 1
    kernels 7  launches 17  gemms 33
    $ fusec plan tests/papers/apollo_fig6c.fuse | tail -n 1
    kernels: 1  gemms: 0  barriers: 2

A value out of range, and dims that contradict each other, are refused.

    $ fusec plan tests/cases/half_constants_inf.fuse
    error: tests/cases/half_constants_inf.fuse:3: column 26: '1e39' is out of the range of f16
    [2]
